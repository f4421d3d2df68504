// What was written, without regard to where the operands came from.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/pattern/samples.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr size_t kFewest = 8;

double share(const std::vector<Sample>& samples, const std::function<bool(const Sample&)>& test) {
  const auto hits = std::count_if(samples.begin(), samples.end(), test);
  return static_cast<double>(hits) / static_cast<double>(samples.size());
}

// NaN and infinity: what entered, not how it was computed.
Explanation explain_classes(const Samples& samples) {
  const double nan = share(samples.wrong(), [](const Sample& s) { return std::isnan(s.actual); });
  if (nan >= 0.95) return {"nan", "NaN: something uninitialised or invalid entered the sums", nan};
  const double overflow = share(samples.wrong(), [](const Sample& s) {
    return std::isinf(s.actual) && std::abs(s.right) > 65504;
  });
  if (overflow >= 0.95)
    return {"fp16-overflow", "an overflow of fp16: the right values exceed 65504", overflow};
  return {};
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Explanation explain_factor(const Samples& samples) {
  std::vector<double> ratios;
  for (const Sample& s : samples.wrong())
    if (std::abs(s.right) > 0.1 * s.spread) ratios.push_back(s.actual / s.right);
  if (ratios.size() < kFewest) return {};
  const double factor = median(ratios);
  if (!std::isfinite(factor) || std::abs(factor) < 1e-6) return {};
  const auto fit = samples.fits([&](const Sample& s) { return factor * s.right; });
  if (!fit) return {};
  std::string text = fmt::format("the right result times {:.3g}", factor);
  if (std::abs(factor - 2) < 0.01) text += " (added up twice)";
  return {"scaled", text, *fit};
}

// A bias that depends on `key` (row, column or nothing); each key's is what is left over in its
// smallest element, which was rounded least. A key with few samples proves nothing and is not
// counted.
Explanation explain_bias(const Samples& samples, const char* kind, const char* text,
                         const std::function<int64_t(const Sample&)>& key) {
  std::map<int64_t, std::vector<const Sample*>> groups;
  for (const Sample& s : samples.all())
    if (s.wrong) groups[key(s)].push_back(&s);
  std::map<int64_t, double> bias;
  size_t counted = 0;
  for (const auto& [at, members] : groups) {
    if (members.size() < 3) continue;
    const Sample* least = *std::min_element(members.begin(), members.end(), [](auto* x, auto* y) {
      return std::abs(x->actual) < std::abs(y->actual);
    });
    bias[at] = least->actual - least->right;
    counted += members.size();
  }
  if (counted < kFewest || counted < samples.wrong().size() / 2) return {};
  size_t hits = 0;
  for (const auto& [at, value] : bias)
    for (const Sample* s : groups[at]) hits += Samples::near(*s, s->right + value);
  const double fit = static_cast<double>(hits) / static_cast<double>(counted);
  if (fit < 0.95) return {};
  return {kind, text, fit};
}

}  // namespace

Explanation explain_contents(const Samples& samples) {
  if (samples.wrong().size() < 4) return {};
  if (Explanation found = explain_classes(samples); !found.kind.empty()) return found;
  if (auto fit = samples.fits([](const Sample&) { return 0.0; }))
    return {"zeros", "zeros: the sums were never added, or never stored", *fit};
  if (auto fit = samples.fits([&](const Sample&) { return samples.wrong()[0].actual; }))
    return {"constant", fmt::format("one constant, {:.6g}", samples.wrong()[0].actual), *fit};
  if (Explanation found = explain_factor(samples); !found.kind.empty()) return found;
  Explanation found = explain_bias(samples, "bias", "a constant added to the right result",
                                   [](const Sample&) { return int64_t{0}; });
  if (!found.kind.empty()) return found;
  found = explain_bias(samples, "bias", "a constant per column added to the right result",
                       [](const Sample& s) { return s.column; });
  if (!found.kind.empty()) return found;
  return explain_bias(samples, "bias", "a constant per row added to the right result",
                      [](const Sample& s) { return s.row; });
}

}  // namespace ptxbench::bench::pattern
