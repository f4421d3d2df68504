#pragma once
// Attention as a kernel computes it, on the host in fp32 with P and dS in bf16, and with faults
// planted; written without the code that explains them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/op/operation.h"
#include "numeric/dtype.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {

inline Task load_task(const std::string& name) {
  return TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks")
      .take()
      .load(name)
      .take();
}
inline float bf16(double v) {
  return numeric::bf16_to_float(numeric::bf16_from_float(static_cast<float>(v)));
}

struct Fault {
  const char* name = "honest";
  bool base_2_lse = false, no_rescale = false, no_scale = false, shifted_mask = false,
       no_mask = false, last_tile_dropped = false, heads_swapped = false, tile_softmax = false;
  bool output_not_rescaled = false, sum_not_rescaled = false, undivided = false,
       padding_counted = false, batches_swapped = false, own_sum_a_tile = false,
       last_tile_only = false, lse_without_maximum = false, exponent_base_2 = false;
};

// Forward in fp32 over key tiles of 64, probabilities and result rounded to bf16.
inline std::vector<Tensor> model_forward(const Problem& p, const Fault& f) {
  std::vector<Tensor> out = make_outputs(p.definition, p.axes, 0).take();
  const int64_t heads = axis_value(p.axes, "B") * axis_value(p.axes, "H");
  const int64_t s = axis_value(p.axes, "S"), d = axis_value(p.axes, "D");
  const bool causal = has_tag(p.definition, "mask:causal");
  const std::vector<double> q = to_doubles(p.inputs[0]), k = to_doubles(p.inputs[1]),
                            v = to_doubles(p.inputs[2]);
  const float scale = f.no_scale ? 1.0f : 1 / std::sqrt(static_cast<float>(d));
  constexpr int64_t kTile = 64;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < s; ++i) {
      const int64_t per_batch = axis_value(p.axes, "H");
      int64_t of_kv = f.heads_swapped ? (head + 1) % heads : head;
      if (f.batches_swapped) of_kv = (head + per_batch) % heads;
      const double* row = &q[(head * s + i) * d];
      float top = -INFINITY, sum = 0;
      std::vector<float> o(static_cast<size_t>(d), 0.0f);
      int64_t seen = causal && !f.no_mask ? i + 1 + f.shifted_mask : s;
      seen = std::min(seen, s);
      if (f.last_tile_dropped) seen = std::min(seen, (s - 1) / kTile * kTile);
      for (int64_t first = 0; first < seen; first += kTile) {
        const int64_t last = std::min(first + kTile, seen);
        float score[kTile], tile_top = -INFINITY;
        for (int64_t j = first; j < last; ++j) {
          float x = 0;
          for (int64_t c = 0; c < d; ++c)
            x += static_cast<float>(row[c] * k[(of_kv * s + j) * d + c]);
          score[j - first] = x * scale;
          tile_top = std::max(tile_top, score[j - first]);
        }
        const bool by_tile = f.tile_softmax || f.own_sum_a_tile;
        const float now = by_tile ? tile_top : std::max(top, tile_top);
        const float once = first > 0 && !f.last_tile_only ? 1.0f : 0.0f;
        const float right = f.last_tile_only    ? 0.0f
                            : f.exponent_base_2 ? std::exp2(top - now)
                                                : std::exp(top - now);
        sum *= f.own_sum_a_tile                                       ? 0.0f
               : f.no_rescale || f.tile_softmax || f.sum_not_rescaled ? once
                                                                      : right;
        for (float& x : o) x *= f.no_rescale || by_tile || f.output_not_rescaled ? once : right;
        float part = 0;  // the tile's own sum
        for (int64_t j = first; j < last; ++j) {
          const float off = score[j - first] - now;
          const float probability = f.exponent_base_2 ? std::exp2(off) : std::exp(off);
          sum += probability;
          part += probability;
        }
        for (int64_t j = first; j < last; ++j) {
          const float off = score[j - first] - now;
          const float probability = f.exponent_base_2 ? std::exp2(off) : std::exp(off);
          const float rounded = bf16(f.own_sum_a_tile ? probability / part : probability);
          for (int64_t c = 0; c < d; ++c)
            o[c] += rounded * static_cast<float>(v[(of_kv * s + j) * d + c]);
        }
        top = now;
      }
      if (f.padding_counted)
        sum += static_cast<float>((s + kTile - 1) / kTile * kTile - s) * std::exp(0 - top);
      const float divisor = f.undivided || f.own_sum_a_tile ? 1.0f : sum;
      uint8_t* to = out[0].bytes.data() + (head * s + i) * d * 2;
      for (int64_t c = 0; c < d; ++c)
        numeric::store_element(out[0].type, o[c] / divisor, to + 2 * c);
      const float logarithm = f.exponent_base_2 ? std::log2(sum) * 0.69314718f : std::log(sum);
      const float lse = (f.lse_without_maximum ? 0
                         : f.exponent_base_2   ? top * 0.69314718f
                                               : top) +
                        logarithm;
      numeric::store_element(out[1].type, f.base_2_lse ? lse * 1.44269504f : lse,
                             out[1].bytes.data() + (head * s + i) * 4);
    }
  return out;
}

struct BackwardFault {
  const char* name = "honest";
  bool no_delta = false, dq_unscaled = false, no_mask = false, last_tile_dropped = false;
  bool dk_unscaled = false, shifted_mask = false, base_2_l = false, heads_swapped = false,
       first_queries_dropped = false, no_scale = false;
};

inline std::vector<Tensor> model_backward(const Problem& p, const BackwardFault& f) {
  std::vector<Tensor> out = make_outputs(p.definition, p.axes, 0).take();
  const int64_t heads = axis_value(p.axes, "B") * axis_value(p.axes, "H");
  const int64_t s = axis_value(p.axes, "S"), d = axis_value(p.axes, "D");
  const bool causal = has_tag(p.definition, "mask:causal");
  std::vector<std::vector<double>> in;
  for (const Tensor& tensor : p.inputs) in.push_back(to_doubles(tensor));
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  for (int64_t head = 0; head < heads; ++head) {
    const auto at = [&](size_t tensor, int64_t r, int64_t c) {
      return static_cast<float>(in[tensor][(head * s + r) * d + c]);
    };
    std::vector<float> g[3];
    for (auto& x : g) x.assign(static_cast<size_t>(s * d), 0.0f);
    const int64_t of_kv = f.heads_swapped ? (head + 1) % heads : head;
    const auto kv = [&](size_t tensor, int64_t r, int64_t c) {
      return static_cast<float>(in[tensor][(of_kv * s + r) * d + c]);
    };
    for (int64_t i = 0; i < s; ++i) {
      float delta = 0;
      for (int64_t c = 0; c < d; ++c) delta += at(3, i, c) * at(4, i, c);
      const float l = static_cast<float>(in[5][head * s + i]) * (f.base_2_l ? 0.69314718f : 1.0f);
      int64_t seen = causal && !f.no_mask ? std::min(i + 1 + f.shifted_mask, s) : s;
      if (f.last_tile_dropped) seen = std::min(seen, (s - 1) / 64 * 64);
      for (int64_t j = 0; j < seen; ++j) {
        float score = 0, dp = 0;
        for (int64_t c = 0; c < d; ++c)
          score += at(0, i, c) * kv(1, j, c), dp += at(4, i, c) * kv(2, j, c);
        const float probability = std::exp(score * (f.no_scale ? 1.0f : scale) - l);
        const float ds = bf16(probability * (dp - (f.no_delta ? 0 : delta))),
                    rounded = bf16(probability);
        for (int64_t c = 0; c < d; ++c) {
          g[0][i * d + c] += ds * kv(1, j, c);
          if (f.first_queries_dropped && i < 64) continue;
          g[1][j * d + c] += ds * at(0, i, c);
          g[2][j * d + c] += rounded * at(4, i, c);
        }
      }
    }
    for (int t = 0; t < 3; ++t)
      for (int64_t i = 0; i < s * d; ++i)
        numeric::store_element(
            out[t].type,
            g[t][i] *
                (t == 2 || (t == 0 && f.dq_unscaled) || (t == 1 && f.dk_unscaled) ? 1.0f : scale),
            out[t].bytes.data() + (head * s * d + i) * 2);
  }
  return out;
}

// The verdict on values, as the evaluator comes to it.
inline std::vector<Correctness> judge(const Task& task, const Problem& p,
                                      const std::vector<Tensor>& got, bool explained = false) {
  const Operation* operation = operation_of(task.definition).take();
  std::vector<Comparator> comparators;
  for (size_t i = 0; i < got.size(); ++i)
    comparators.emplace_back(got[i].type, got[i].bytes, operation->view(p.definition, p.axes, i),
                             poison_bits(got[i].type, 0x7fbd));
  EXPECT_TRUE(operation
                  ->reference(p, 2,
                              [&](const ReferenceBlock& b) {
                                comparators[b.output].add_block(b.first_row, b.count, b.values, 2,
                                                                b.noise);
                              })
                  .ok());
  std::vector<Correctness> all;
  for (size_t i = 0; i < got.size(); ++i) {
    Correctness c = comparators[i].finish();
    c.output = got[i].spec.name;
    c.shape = got[i].shape;
    decide(task.calibration, 0, c);
    if (explained && !c.passed)
      c.explanation = operation->explain(p, got, i, comparators[i].locate(c));
    all.push_back(c);
  }
  return all;
}

}  // namespace ptxbench::bench
