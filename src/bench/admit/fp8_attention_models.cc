#include "bench/admit/fp8_attention_models.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/admit/fp8_tensor_core.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

constexpr int64_t kDropped = 64;

struct Sizes {
  int64_t heads = 0, s = 0, d = 0;
  bool causal = false;
};

float e5m2(float x) { return numeric::e5m2_to_float(numeric::e5m2_from_float(x)); }
float e4m3(float x) { return numeric::e4m3_to_float(numeric::e4m3_from_float(x)); }

std::vector<float> elements(const Tensor& tensor, bool in_e5m2) {
  std::vector<float> values(tensor.bytes.size());
  numeric::load_elements(tensor.type, tensor.bytes.data(), std::span<float>(values));
  if (in_e5m2)
    for (float& x : values) x = e5m2(x);
  return values;
}

double number(const Tensor& tensor) {
  return numeric::load_element(tensor.type, tensor.bytes.data());
}

double dot(bool tensor_core, const float* a, const float* b, int64_t count) {
  if (tensor_core) return static_cast<double>(fp8_sum(0, a, b, count));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// A row of queries on its way over the keys.
class Row {
 public:
  Row(const Fp8AttentionKernel& kernel, int64_t d)
      : kernel_(kernel), sums_(static_cast<size_t>(d)) {}

  // Scores of the tile's keys and V transposed: v[c * stride + key].
  void add(const std::vector<double>& scores, const float* v, int64_t stride) {
    double now = top_;
    for (double x : scores) now = std::max(now, x);
    const double keep = kernel_.no_rescale ? 1 : std::exp(top_ - now);
    sum_ *= keep;
    const size_t padded = (scores.size() + kFp8Step - 1) / kFp8Step * kFp8Step;
    std::vector<float> p(padded, 0.0f), columns(padded, 0.0f);
    std::vector<double> exact(scores.size());
    for (size_t j = 0; j < scores.size(); ++j) {
      exact[j] = std::exp(scores[j] - now);
      sum_ += exact[j];
      p[j] = e4m3(static_cast<float>(exact[j] * kernel_.p_scale));
    }
    for (size_t c = 0; c < sums_.size(); ++c) {
      const float* column = v + static_cast<int64_t>(c) * stride;
      sums_[c] *= keep;
      if (kernel_.tensor_core) {
        std::copy_n(column, scores.size(), columns.begin());
        sums_[c] = static_cast<double>(fp8_sum(static_cast<float>(sums_[c]), p.data(),
                                               columns.data(), static_cast<int64_t>(padded)));
      } else {
        for (size_t j = 0; j < scores.size(); ++j)
          sums_[c] += exact[j] * static_cast<double>(column[j]);
      }
    }
    top_ = now;
  }

  double output(size_t c) const {
    return sums_[c] / sum_ / (kernel_.tensor_core ? kernel_.p_scale : 1);
  }
  double lse() const { return top_ + std::log(sum_); }

 private:
  const Fp8AttentionKernel& kernel_;
  double top_ = -INFINITY, sum_ = 0;
  std::vector<double> sums_;
};

std::vector<float> transposed(const float* v, int64_t s, int64_t d) {
  std::vector<float> to(static_cast<size_t>(s * d));
  for (int64_t j = 0; j < s; ++j)
    for (int64_t c = 0; c < d; ++c) to[static_cast<size_t>(c * s + j)] = v[j * d + c];
  return to;
}

int64_t keys_seen(const Fp8AttentionKernel& kernel, const Sizes& z, int64_t query) {
  int64_t seen = z.causal && !kernel.no_mask ? std::min(query + 1 + kernel.shifted_mask, z.s) : z.s;
  if (kernel.last_keys_dropped) seen = std::max<int64_t>(1, std::min(seen, z.s - kDropped));
  return seen;
}

Implementation implementation(const Fp8AttentionKernel& kernel) {
  return {kernel.name, kernel.what, [kernel](const Case& c) -> Result<std::vector<Tensor>> {
            return fp8_attention(c.problem(), kernel);
          }};
}

std::optional<AxisValues> reduced(const Definition&, const AxisValues& axes) {
  AxisValues result = axes;
  for (auto& [axis, value] : result) {
    if (axis == "B") value = 1;
    if (axis == "H") value = 2;
    if (axis == "L" && value != 512) return std::nullopt;  // longer ones differ in nothing
    if (axis == "L") value = 256 + 32;
  }
  return result;
}

}  // namespace

std::vector<Tensor> fp8_attention(const Problem& p, const Fp8AttentionKernel& kernel) {
  auto made = make_outputs(p.definition, p.axes, 0);
  if (!made.ok()) return {};
  std::vector<Tensor> out = made.take();
  const Sizes z = {axis_value(p.axes, "B") * axis_value(p.axes, "H"), axis_value(p.axes, "L"),
                   axis_value(p.axes, "D"), has_tag(p.definition, "mask:causal")};
  const std::vector<float> q = elements(p.inputs[0], kernel.qk_in_e5m2),
                           k = elements(p.inputs[1], kernel.qk_in_e5m2),
                           v = elements(p.inputs[2], false);
  double scale = kernel.no_scale ? 1 : 1 / std::sqrt(static_cast<double>(z.d));
  if (!kernel.no_descale_q) scale *= number(p.inputs[3]);
  if (!kernel.no_descale_k) scale *= number(p.inputs[4]);
  const double scale_v = kernel.no_descale_v ? 1 : number(p.inputs[5]);
  for (int64_t head = 0; head < z.heads; ++head) {
    const int64_t next = (head + 1) % z.heads;
    const float* keys =
        &k[static_cast<size_t>((kernel.keys_of_next_head ? next : head) * z.s * z.d)];
    const std::vector<float> values = transposed(
        &v[static_cast<size_t>((kernel.values_of_next_head ? next : head) * z.s * z.d)], z.s, z.d);
    for (int64_t query = 0; query < z.s; ++query) {
      const int64_t seen = keys_seen(kernel, z, query);
      const float* of_query = &q[static_cast<size_t>((head * z.s + query) * z.d)];
      Row row(kernel, z.d);
      for (int64_t first = kernel.first_keys_dropped ? std::min(seen - 1, kDropped) : 0;
           first < seen; first += kernel.tile) {
        std::vector<double> scores;
        for (int64_t j = first; j < std::min(first + kernel.tile, seen); ++j)
          scores.push_back(kernel.mean_of_v
                               ? 0
                               : scale * dot(kernel.tensor_core, of_query, keys + j * z.d, z.d));
        row.add(scores, values.data() + first, z.s);
      }
      const size_t at = static_cast<size_t>(head * z.s + query);
      for (int64_t c = 0; c < z.d; ++c)
        numeric::store_element(out[0].type, row.output(static_cast<size_t>(c)) * scale_v,
                               out[0].bytes.data() + at * static_cast<size_t>(z.d) + c);
      numeric::store_element(out[1].type, kernel.base_2_lse ? row.lse() / std::log(2.0) : row.lse(),
                             out[1].bytes.data() + at * 4);
    }
  }
  return out;
}

std::vector<Fp8AttentionKernel> honest_fp8_attention() {
  return {
      {.name = "wgmma-tiles-64",
       .what = "tensor core of sm_90, P in e4m3 as it is, 64 keys a tile",
       .tensor_core = true},
      {.name = "wgmma-tiles-128-p-256",
       .what = "the same with P times 256 and 128 keys a tile",
       .tensor_core = true,
       .p_scale = 256,
       .tile = 128},
      {.name = "wgmma-tiles-32-p-8",
       .what = "the same with P times 8 and 32 keys a tile",
       .tensor_core = true,
       .p_scale = 8,
       .tile = 32},
  };
}

std::vector<Fp8AttentionKernel> fp8_attention_faults(bool causal) {
  std::vector<Fp8AttentionKernel> faults = {
      {.name = "q-not-descaled", .no_descale_q = true},
      {.name = "k-not-descaled", .no_descale_k = true},
      {.name = "v-not-descaled", .no_descale_v = true},
      {.name = "scale-forgotten", .what = "without 1/sqrt(D)", .no_scale = true},
      {.name = "lse-in-base-2", .base_2_lse = true},
      {.name = "no-rescale",
       .what = "the running maximum grows, the sums stay",
       .no_rescale = true},
      {.name = "last-keys-dropped", .what = "the last 64", .last_keys_dropped = true},
      {.name = "first-keys-dropped", .what = "the first 64", .first_keys_dropped = true},
      {.name = "keys-of-next-head", .keys_of_next_head = true},
      {.name = "values-of-next-head", .values_of_next_head = true},
      {.name = "mean-of-v", .what = "all keys alike", .mean_of_v = true},
      {.name = "qk-in-e5m2", .what = "Q and K rounded to e5m2", .qk_in_e5m2 = true}};
  if (causal) {
    faults.push_back({.name = "no-mask", .no_mask = true});
    faults.push_back({.name = "mask-off-by-one", .shifted_mask = true});
  }
  return faults;
}

Battery fp8_attention_battery(const Definition& definition) {
  Battery battery;
  for (const Fp8AttentionKernel& kernel : honest_fp8_attention())
    battery.honest.push_back(implementation(kernel));
  for (const Fp8AttentionKernel& kernel : fp8_attention_faults(has_tag(definition, "mask:causal")))
    battery.cheats.push_back(implementation(kernel));
  // Values of one sign: O is near their mean, whichever keys are left.
  for (Implementation& cheat : battery.cheats)
    if (cheat.name.find("keys-dropped") != std::string::npos)
      cheat.hidden_on = {Distribution::one_sign};
  battery.not_applicable = {
      {"last-keys-16", "16 of hundreds of keys move O by less than e4m3 rounds it"},
      {"e4m3-inputs", "they are e4m3"},
      {"e4m3-p", "the task asks for it"},
      {"e5m2-p", "over many keys its error averages away below the rounding of O"},
      {"v-in-e5m2", "the same"},
      {"k-tail", "GEMM only"},
  };
  battery.reduce = reduced;
  battery.reduced_how = "one batch, two heads, 288 keys, which stand for all lengths";
  battery.shows_cheats = [](Distribution distribution) {
    return distribution != Distribution::one_hot;
  };
  // A head: where few keys have long rows, 64 others may have no weight at all.
  battery.slice_elements = [](const Case& c, size_t) {
    return axis_value(c.axes, "L") * axis_value(c.axes, "D");
  };
  return battery;
}

}  // namespace ptxbench::bench::admit
