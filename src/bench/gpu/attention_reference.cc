#include "bench/gpu/attention_reference.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/gpu/fp64_attention_ptx.h"
#include "bench/gpu/reference_plan.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

constexpr int64_t kTile = 64;
constexpr int64_t kMatrixBytes = int64_t{2} << 30;  // of the scores of the heads in one launch
constexpr int64_t kOutputBytes = int64_t{256} << 20;

double variance_of(int bits) { return bits > 0 ? rounding_variance(bits) : 0; }

uint32_t tiles(int64_t size) { return static_cast<uint32_t>((size + kTile - 1) / kTile); }

// Kernels for `heads` heads, `together` at a time.
class AttentionPlan {
 public:
  AttentionPlan(const AttentionOnDevice& p, int64_t heads)
      : p_(p), heads_(heads), plan_("fp64_attention", kFp64AttentionPtx) {
    together_ = std::clamp<int64_t>(kMatrixBytes / (8 * p.s * p.s), 1, heads);
  }

  plan::LaunchPlan forward() {
    const uint32_t q = rows(2), k = rows(2), v = rows(2), o = rows(8), noise = rows(8),
                   lse = column(8), scores = square(),
                   rounded = p_.head.operand_unit > 0 ? square() : ReferencePlan::kNone;
    for_heads([&](int64_t first, uint32_t n) {
      launch_scores(first, n, q, k, ReferencePlan::kNone, scores);
      plan_.launch(
          "ptxbench_attention_softmax", {static_cast<uint32_t>(p_.s), n, 1},
          {at(scores, 0), place(rounded), at(lse, 8 * first * p_.s), int_of(p_.s),
           int_of(p_.head.causal), ReferencePlan::number(variance_of(p_.head.operand_bits)),
           ReferencePlan::number(p_.head.operand_unit)});
      launch_product(first, n, scores, rounded, v, o, noise, false, p_.value_factor);
    });
    return plan_.take();
  }

  plan::LaunchPlan backward() {
    const uint32_t q = rows(2), k = rows(2), v = rows(2), o = rows(2), d_o = rows(2),
                   lse = column(4), dq = rows(8), dk = rows(8), dv = rows(8), dq_noise = rows(8),
                   dk_noise = rows(8), dv_noise = rows(8), p = square(), ds = square(),
                   noise = square(), delta = plan_.scratch(bytes(together_ * p_.s, 8));
    for_heads([&](int64_t first, uint32_t n) {
      launch_scores(first, n, q, k, lse, p);
      plan_.launch(
          "ptxbench_attention_delta", {static_cast<uint32_t>(p_.s), n, 1},
          {row(o, first, 2), row(d_o, first, 2), at(delta, 0), int_of(p_.s), int_of(p_.d)});
      plan_.launch("ptxbench_attention_ds", {tiles(p_.s), tiles(p_.s), n},
                   {row(d_o, first, 2), row(v, first, 2), at(p, 0), at(delta, 0), at(ds, 0),
                    at(noise, 0), int_of(p_.s), int_of(p_.d), int_of(p_.head.causal),
                    ReferencePlan::number(variance_of(p_.head.operand_bits))});
      launch_product(first, n, p, ReferencePlan::kNone, d_o, dv, dv_noise, true, 1);
      launch_product(first, n, ds, noise, k, dq, dq_noise, false, p_.head.scale);
      launch_product(first, n, ds, noise, q, dk, dk_noise, true, p_.head.scale);
    });
    return plan_.take();
  }

 private:
  using Parameter = ReferencePlan::Parameter;

  static uint64_t bytes(int64_t elements, int64_t size) {
    return static_cast<uint64_t>(elements * size);
  }
  uint32_t rows(int64_t size) { return plan_.argument(bytes(heads_ * p_.s * p_.d, size)); }
  uint32_t column(int64_t size) { return plan_.argument(bytes(heads_ * p_.s, size)); }
  uint32_t square() { return plan_.scratch(bytes(together_ * p_.s * p_.s, 8)); }
  static Parameter at(uint32_t buffer, int64_t offset) {
    return ReferencePlan::address(buffer, static_cast<uint64_t>(offset));
  }
  static Parameter place(uint32_t buffer) {
    return buffer == ReferencePlan::kNone ? ReferencePlan::null() : at(buffer, 0);
  }
  Parameter row(uint32_t buffer, int64_t head, int64_t size) const {
    return at(buffer, head * p_.s * p_.d * size);
  }
  static Parameter int_of(int64_t value) {
    return ReferencePlan::number(static_cast<int32_t>(value));
  }

  template <class F>
  void for_heads(F f) {
    for (int64_t first = 0; first < heads_; first += together_)
      f(first, static_cast<uint32_t>(std::min(together_, heads_ - first)));
  }

  void launch_scores(int64_t first, uint32_t n, uint32_t q, uint32_t k, uint32_t lse,
                     uint32_t scores) {
    plan_.launch("ptxbench_attention_scores", {tiles(p_.s), tiles(p_.s), n},
                 {row(q, first, 2), row(k, first, 2),
                  lse == ReferencePlan::kNone ? ReferencePlan::null() : at(lse, 4 * first * p_.s),
                  at(scores, 0), int_of(p_.s), int_of(p_.d), int_of(p_.head.causal),
                  ReferencePlan::number(p_.head.scale)});
  }

  // Rounding of the left factor is in its noise matrix where it has one.
  void launch_product(int64_t first, uint32_t n, uint32_t left, uint32_t left_noise, uint32_t right,
                      uint32_t out, uint32_t noise, bool transposed, double factor) {
    const bool own = left_noise != ReferencePlan::kNone;
    plan_.launch("ptxbench_attention_product", {tiles(p_.d), tiles(p_.s), n},
                 {at(left, 0), place(left_noise), row(right, first, 2), row(out, first, 8),
                  row(noise, first, 8), int_of(p_.s), int_of(p_.d), int_of(p_.head.causal),
                  int_of(transposed), ReferencePlan::number(factor),
                  ReferencePlan::number(own ? 1.0 : variance_of(p_.head.operand_bits)),
                  ReferencePlan::number(variance_of(p_.head.output_bits)),
                  ReferencePlan::number(p_.head.output_unit * p_.head.output_unit / 12)});
  }

  AttentionOnDevice p_;
  int64_t heads_, together_ = 1;
  ReferencePlan plan_;
};

// Some heads after the other, so that what comes back fits into memory. `inputs` have `row` bytes a
// head, outputs `row` doubles a head.
struct HeadInput {
  std::span<const uint8_t> bytes;
  size_t per_head = 0;
};

Result<void> some_at_a_time(
    device::Device& device, int64_t heads, std::vector<HeadInput> inputs,
    const std::vector<size_t>& doubles_per_head,
    const std::function<plan::LaunchPlan(int64_t)>& plan_for,
    const std::function<void(int64_t, int64_t, const std::vector<std::vector<double>>&)>& sink) {
  const size_t largest = *std::max_element(doubles_per_head.begin(), doubles_per_head.end());
  const int64_t chunk =
      std::clamp<int64_t>(kOutputBytes / static_cast<int64_t>(8 * largest), 1, heads);
  // Kept from call to call: fresh memory costs more than the copies into it.
  static thread_local std::vector<std::vector<double>> outputs;
  outputs.resize(std::max(outputs.size(), doubles_per_head.size()));
  for (int64_t first = 0; first < heads; first += chunk) {
    const int64_t count = std::min(chunk, heads - first);
    const size_t at = static_cast<size_t>(first), n = static_cast<size_t>(count);
    std::vector<device::Binding> bindings;
    for (const HeadInput& input : inputs) {
      auto part = input.bytes.subspan(at * input.per_head, n * input.per_head);
      bindings.push_back({{const_cast<uint8_t*>(part.data()), part.size()}, true, true});
    }
    for (size_t i = 0; i < doubles_per_head.size(); ++i) {
      outputs[i].resize(n * doubles_per_head[i]);
      bindings.push_back(
          {{reinterpret_cast<uint8_t*>(outputs[i].data()), outputs[i].size() * 8}, false, false});
    }
    PB_RETURN_IF_ERROR(replay_reference(device, plan_for(count), bindings));
    sink(first, count, outputs);
  }
  return {};
}

template <class T>
HeadInput input_of(std::span<const T> values, int64_t heads) {
  return {{reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()},
          values.size_bytes() / static_cast<size_t>(heads)};
}

}  // namespace

std::vector<double> noise_of_heads(
    const AttentionHeads& heads, const AttentionHead& head, int threads,
    const std::function<std::pair<std::vector<double>, std::vector<double>>(int64_t)>& qk) {
  std::vector<double> noise(heads.lse.size());
  const size_t s = heads.lse.size() / static_cast<size_t>(heads.count);
  parallel_for(heads.count, threads, [&](int64_t i) {
    const auto [q, k] = qk(heads.first + i);
    AttentionHead own = head;
    own.q = q;
    own.k = k;
    const size_t row = static_cast<size_t>(i) * s;
    const std::vector<double> result = lse_noise(own, heads.lse.subspan(row, s));
    std::copy(result.begin(), result.end(), noise.begin() + static_cast<std::ptrdiff_t>(row));
  });
  return noise;
}

Result<void> attend_on(device::Device& device, const AttentionOnDevice& p,
                       std::span<const uint16_t> q, std::span<const uint16_t> k,
                       std::span<const uint16_t> v, const HeadsSink& sink) {
  const size_t row = static_cast<size_t>(p.s * p.d), column = static_cast<size_t>(p.s);
  return some_at_a_time(
      device, p.heads, {input_of(q, p.heads), input_of(k, p.heads), input_of(v, p.heads)},
      {row, row, column}, [&](int64_t heads) { return AttentionPlan(p, heads).forward(); },
      [&](int64_t first, int64_t count, const std::vector<std::vector<double>>& out) {
        AttentionHeads heads;
        heads.first = first, heads.count = count;
        heads.o = out[0], heads.o_noise = out[1], heads.lse = out[2];
        sink(heads);
      });
}

Result<void> attend_backward_on(device::Device& device, const AttentionOnDevice& p,
                                const GradientInputs& in, const HeadsSink& sink) {
  const size_t row = static_cast<size_t>(p.s * p.d);
  std::vector<HeadInput> inputs;
  for (const auto& words : {in.q, in.k, in.v, in.o, in.d_o})
    inputs.push_back(input_of(words, p.heads));
  inputs.push_back(input_of(in.lse, p.heads));
  return some_at_a_time(
      device, p.heads, inputs, std::vector<size_t>(6, row),
      [&](int64_t heads) { return AttentionPlan(p, heads).backward(); },
      [&](int64_t first, int64_t count, const std::vector<std::vector<double>>& out) {
        AttentionHeads heads;
        heads.first = first, heads.count = count;
        heads.dq = out[0], heads.dk = out[1], heads.dv = out[2];
        heads.dq_noise = out[3], heads.dk_noise = out[4], heads.dv_noise = out[5];
        sink(heads);
      });
}

}  // namespace ptxbench::bench
