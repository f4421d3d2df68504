// Cheaper arithmetic. Its errors are small, so the comparison is of bits: elements that are not
// correctly rounded are computed again in the suspected arithmetic, and most must come out with the
// very bits that were written. An honest kernel's few misroundings follow no such formula.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "bench/pattern/samples.h"
#include "emu/tensor_core_exact.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::pattern {
namespace {

using Round = std::function<float(float)>;

constexpr size_t kFewest = 12;
constexpr double kEnough = 0.85;

float through_f16(float x) { return numeric::f16_to_float(numeric::f16_from_float(x)); }
float through_bf16(float x) { return numeric::bf16_to_float(numeric::bf16_from_float(x)); }
float through_e4m3(float x) { return numeric::e4m3_to_float(numeric::e4m3_from_float(x)); }
float through_e5m2(float x) { return numeric::e5m2_to_float(numeric::e5m2_from_float(x)); }

uint16_t toward_zero(double x) {
  const float nearest = static_cast<float>(x);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(x)) --bits;
  return static_cast<uint16_t>(bits >> 16);
}

class Precision {
 public:
  explicit Precision(const Samples& samples) : samples_(samples) {}

  // The share of the misrounded samples with exactly the bits of `predict`; 0 below kEnough.
  double share(const std::function<uint16_t(const Sample&)>& predict) const {
    const auto& samples = samples_.misrounded();
    size_t misses = 0;
    for (const Sample& s : samples) {
      if (predict(s) == s.bits) continue;
      if (static_cast<double>(++misses) > (1 - kEnough) * static_cast<double>(samples.size()))
        return 0;
    }
    return 1 - static_cast<double>(misses) / static_cast<double>(samples.size());
  }

  uint16_t with_inputs(const Sample& s, const Round& a, const Round& b) const {
    double sum = 0;
    for (int64_t i = 0; i < samples_.gemm().k; ++i)
      sum += round(a, samples_.a(s.row, i)) * round(b, samples_.b(s.column, i));
    return numeric::bf16_from_double(sum);
  }
  // The accumulator is rounded after every `step` products (which are summed without error).
  uint16_t with_accumulator(const Sample& s, const Round& accumulator, int64_t step) const {
    const int64_t k = samples_.gemm().k;
    float sum = 0;
    for (int64_t at = 0; at < k; at += step)
      sum = accumulator(
          static_cast<float>(sum + samples_.dot(s.row, s.column, at, std::min(k, at + step))));
    return numeric::bf16_from_float(sum);
  }
  // The tensor core's own fp16 accumulator, in K order; the inputs as fp16.
  uint16_t with_tensor_f16(const Sample& s) const {
    constexpr int kStep = 16;
    uint32_t sum = 0;
    for (int64_t at = 0; at < samples_.gemm().k; at += kStep) {
      uint16_t a[kStep] = {}, b[kStep] = {};
      for (int64_t i = 0; i < kStep && at + i < samples_.gemm().k; ++i) {
        a[i] = numeric::f16_from_double(samples_.a(s.row, at + i));
        b[i] = numeric::f16_from_double(samples_.b(s.column, at + i));
      }
      sum = emu::exact_step(ptx::Type::f16, ptx::Type::f16, ptx::Type::f16,
                            reinterpret_cast<const uint8_t*>(a),
                            reinterpret_cast<const uint8_t*>(b), kStep, sum);
    }
    return numeric::bf16_from_float(numeric::f16_to_float(static_cast<uint16_t>(sum)));
  }

 private:
  static double round(const Round& f, double x) { return f ? f(static_cast<float>(x)) : x; }
  const Samples& samples_;
};

Explanation explain_result_rounding(const Precision& precision) {
  const double half = precision.share([](const Sample& s) {
    return numeric::bf16_from_float(through_f16(static_cast<float>(s.right)));
  });
  if (half > 0) return {"rounded-through-fp16", "the result rounded through fp16", half};
  const double zero = precision.share([](const Sample& s) { return toward_zero(s.right); });
  if (zero > 0)
    return {"rounded-toward-zero", "the result rounded toward zero instead of to nearest", zero};
  return {};
}

Explanation explain_inputs(const Precision& precision) {
  for (auto [kind, name, round] : {std::tuple{"e4m3-inputs", "e4m3", Round(through_e4m3)},
                                   {"e5m2-inputs", "e5m2", Round(through_e5m2)}})
    for (int which : {3, 1, 2}) {
      const double share = precision.share([&](const Sample& s) {
        return precision.with_inputs(s, which & 1 ? round : Round(), which & 2 ? round : Round());
      });
      if (share > 0)
        return {kind,
                fmt::format("{} rounded to {}",
                            which == 3   ? "A and B"
                            : which == 1 ? "A"
                                         : "B",
                            name),
                share};
    }
  return {};
}

Explanation explain_accumulator(const Precision& precision) {
  const double tensor =
      precision.share([&](const Sample& s) { return precision.with_tensor_f16(s); });
  if (tensor > 0) return {"fp16-accumulation", "fp16 accumulators of the tensor core", tensor};
  for (int64_t step : {1, 2, 8, 16, 32, 64, 128}) {
    const std::string after = step == 1
                                  ? std::string("the sum rounded after every product")
                                  : fmt::format("the sum rounded after every {} products", step);
    const double half = precision.share(
        [&](const Sample& s) { return precision.with_accumulator(s, through_f16, step); });
    if (half > 0) return {"fp16-accumulation", "fp16 accumulation, " + after, half};
    const double brain = precision.share(
        [&](const Sample& s) { return precision.with_accumulator(s, through_bf16, step); });
    if (brain > 0) return {"bf16-accumulation", "bf16 accumulation, " + after, brain};
  }
  return {};
}

}  // namespace

Explanation explain_precision(const Samples& samples) {
  if (samples.misrounded().size() < kFewest) return {};
  const Precision precision(samples);
  if (Explanation found = explain_result_rounding(precision); !found.kind.empty()) return found;
  if (Explanation found = explain_inputs(precision); !found.kind.empty()) return found;
  return explain_accumulator(precision);
}

}  // namespace ptxbench::bench::pattern
