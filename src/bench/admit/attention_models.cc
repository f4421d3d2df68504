#include "bench/admit/attention_models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

constexpr float kLog2E = 1.44269504088896340736f;
constexpr int64_t kQueryTile = 64;
constexpr size_t kLanes = 4;  // that share a row of an accumulator

std::span<const uint16_t> head_words(const Tensor& tensor, int64_t head, size_t matrix) {
  return {
      reinterpret_cast<const uint16_t*>(tensor.bytes.data()) + static_cast<size_t>(head) * matrix,
      matrix};
}

std::span<const float> head_floats(const Tensor& tensor, int64_t head, int64_t s) {
  return {reinterpret_cast<const float*>(tensor.bytes.data()) + head * s, static_cast<size_t>(s)};
}

template <class T>
std::vector<T> transposed(std::span<const T> from, int64_t rows, int64_t columns) {
  std::vector<T> to(from.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
  return to;
}

Words rounded(const std::vector<float>& values) {
  Words words(values.size());
  numeric::bf16_from_float(values, words);
  return words;
}

std::span<const uint16_t> rows_of(std::span<const uint16_t> matrix, int64_t columns, int64_t first,
                                  int64_t count) {
  return matrix.subspan(static_cast<size_t>(first * columns), static_cast<size_t>(count * columns));
}

// sums[m,n] += a[m,k] b[n,k]^T
void multiply(plan::TensorMode mode, int64_t m, int64_t n, int64_t k, std::span<const uint16_t> a,
              std::span<const uint16_t> b, float* sums) {
  TensorProduct product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = a;
  product.b = b;
  product.mode = mode;
  accumulate(product, sums);
}

void store(Tensor& tensor, int64_t head, size_t matrix, size_t at, float value) {
  numeric::store_element(tensor.type, static_cast<double>(value),
                         tensor.bytes.data() + (static_cast<size_t>(head) * matrix + at) *
                                                   numeric::dtype_size(tensor.type));
}

std::vector<Tensor> outputs_of(const Problem& p) {
  auto made = make_outputs(p.definition, p.axes, 0);
  return made.ok() ? made.take() : std::vector<Tensor>{};
}

// ---- forward ----

struct Head {
  AttentionSize size;
  std::span<const uint16_t> q, k, v;
};

// A tile of up to 64 queries of a head, walking over key blocks.
class QueryTile {
 public:
  QueryTile(const Head& head, const ForwardOrder& order, int64_t first)
      : head_(head),
        order_(order),
        first_(first),
        rows_(std::min(kQueryTile, head.size.s - first)),
        factor_(head.size.scale * kLog2E) {
    o.assign(static_cast<size_t>(rows_ * head.size.d), 0.0f);
    shift_.assign(static_cast<size_t>(rows_), -INFINITY);
    sum_.assign(static_cast<size_t>(rows_), {});
  }

  void run() {
    const int64_t seen = head_.size.visible(first_ + rows_ - 1);
    const int64_t blocks = (seen + order_.block_keys - 1) / order_.block_keys;
    for (const bool sums_only : {true, false}) {
      if (sums_only && !order_.normalised) continue;
      if (!sums_only && order_.normalised) fix_shifts();
      for (int64_t i = 0; i < blocks; ++i)
        block((order_.last_block_first ? blocks - 1 - i : i) * order_.block_keys, sums_only);
    }
  }

  std::vector<float> o;  // before division by sum()
  float sum(int64_t row) const {
    const std::array<float, kLanes>& lanes = sum_[static_cast<size_t>(row)];
    return fixed_ ? 1.0f : (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  }
  float lse(int64_t row) const {
    const size_t at = static_cast<size_t>(row);
    return fixed_ ? shift_[at] / kLog2E : (shift_[at] + std::log2(sum(row))) / kLog2E;
  }
  int64_t rows() const { return rows_; }

 private:
  // From here on weights are probabilities.
  void fix_shifts() {
    for (size_t r = 0; r < shift_.size(); ++r) shift_[r] += std::log2(sum(static_cast<int64_t>(r)));
    fixed_ = true;
  }

  void block(int64_t key, bool sums_only) {
    const int64_t d = head_.size.d, keys = std::min(order_.block_keys, head_.size.s - key);
    std::vector<float> s(static_cast<size_t>(rows_ * keys));
    multiply(order_.mode, rows_, keys, d, rows_of(head_.q, d, first_, rows_),
             rows_of(head_.k, d, key, keys), s.data());
    for (int64_t r = 0; r < rows_; ++r)
      weigh(r, std::clamp<int64_t>(head_.size.visible(first_ + r) - key, 0, keys),
            {&s[static_cast<size_t>(r * keys)], static_cast<size_t>(keys)});
    if (sums_only) return;
    const Words v = transposed(rows_of(head_.v, d, key, keys), keys, d);
    multiply(order_.mode, rows_, d, keys, rounded(s), v, o.data());
  }

  // Turns a row of scores into weights, of which the first `seen` count.
  void weigh(int64_t r, int64_t seen, std::span<float> row) {
    float& shift = shift_[static_cast<size_t>(r)];
    std::array<float, kLanes>& sum = sum_[static_cast<size_t>(r)];
    float top = -INFINITY;
    for (int64_t j = 0; j < seen; ++j) top = std::max(top, row[static_cast<size_t>(j)] * factor_);
    if (!fixed_ && top > shift + order_.slack) {
      const float to = std::max(shift, top), by = std::exp2(shift - to);
      shift = to;
      for (float& lane : sum) lane *= by;
      for (int64_t c = 0; c < head_.size.d; ++c) o[static_cast<size_t>(r * head_.size.d + c)] *= by;
    }
    std::array<float, kLanes> added = {};
    for (int64_t j = 0; j < static_cast<int64_t>(row.size()); ++j) {
      float& x = row[static_cast<size_t>(j)];
      x = j < seen ? std::exp2(std::fma(x, factor_, -shift)) : 0.0f;
      added[static_cast<size_t>(j / 2) % kLanes] += x;
    }
    for (size_t lane = 0; lane < kLanes && !fixed_; ++lane) sum[lane] += added[lane];
  }

  const Head& head_;
  const ForwardOrder& order_;
  int64_t first_, rows_;
  float factor_;
  std::vector<float> shift_;
  std::vector<std::array<float, kLanes>> sum_;  // each lane's share
  bool fixed_ = false;
};

// ---- backward ----

struct BackwardHead {
  AttentionSize size;
  std::span<const uint16_t> q, k, v, d_o;
  Words q_t, k_t, d_o_t;  // transposed
  std::vector<float> lse2, delta;
};

struct Gradients {
  std::vector<float> dq, dk, dv;
};

// Columns first.. of a transposed matrix [d, s].
Words columns_of(const Words& matrix, int64_t s, int64_t d, int64_t first, int64_t count) {
  Words part;
  part.reserve(static_cast<size_t>(d * count));
  for (int64_t r = 0; r < d; ++r)
    part.insert(part.end(), matrix.begin() + r * s + first, matrix.begin() + r * s + first + count);
  return part;
}

// The products of a block of queries with a block of keys.
void backward_block(const BackwardHead& h, const BackwardOrder& order, int64_t query, int64_t key,
                    Gradients& g) {
  const int64_t d = h.size.d, queries = std::min(order.block_queries, h.size.s - query),
                keys = std::min(order.block_keys, h.size.s - key);
  const float factor = h.size.scale * kLog2E;
  std::vector<float> p(static_cast<size_t>(queries * keys)), ds(p.size());
  multiply(order.mode, queries, keys, d, rows_of(h.q, d, query, queries),
           rows_of(h.k, d, key, keys), p.data());
  multiply(order.mode, queries, keys, d, rows_of(h.d_o, d, query, queries),
           rows_of(h.v, d, key, keys), ds.data());
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      const size_t at = static_cast<size_t>(i * keys + j), row = static_cast<size_t>(query + i);
      const bool seen = key + j < h.size.visible(query + i);
      p[at] = seen ? std::exp2(std::fma(p[at], factor, -h.lse2[row])) : 0.0f;
      ds[at] = p[at] * (ds[at] - h.delta[row]);
    }
  const Words p_words = rounded(p), ds_words = rounded(ds);
  multiply(order.mode, keys, d, queries, transposed<uint16_t>(p_words, queries, keys),
           columns_of(h.d_o_t, h.size.s, d, query, queries), &g.dv[static_cast<size_t>(key * d)]);
  multiply(order.mode, keys, d, queries, transposed<uint16_t>(ds_words, queries, keys),
           columns_of(h.q_t, h.size.s, d, query, queries), &g.dk[static_cast<size_t>(key * d)]);
  const Words k_t = columns_of(h.k_t, h.size.s, d, key, keys);
  float* dq = &g.dq[static_cast<size_t>(query * d)];
  if (order.dq == BackwardOrder::Dq::accumulator)
    return multiply(order.mode, queries, d, keys, ds_words, k_t, dq);
  std::vector<float> part(static_cast<size_t>(queries * d));
  multiply(order.mode, queries, d, keys, ds_words, k_t, part.data());
  for (size_t i = 0; i < part.size(); ++i) dq[i] += part[i];
}

// Key blocks from the first on; in any order: a fixed shuffle, as one run of atomics might be.
std::vector<int64_t> key_blocks(const AttentionSize& size, const BackwardOrder& order) {
  std::vector<int64_t> blocks(
      static_cast<size_t>((size.s + order.block_keys - 1) / order.block_keys));
  std::iota(blocks.begin(), blocks.end(), 0);
  uint64_t state = 9;
  for (size_t i = blocks.size(); order.dq == BackwardOrder::Dq::any_order && i > 1; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(blocks[i - 1], blocks[(state >> 33) % i]);
  }
  return blocks;
}

BackwardHead backward_head(const Problem& p, const AttentionSize& size, int64_t head) {
  const size_t matrix = size.matrix();
  BackwardHead h{size,
                 head_words(p.inputs[0], head, matrix),
                 head_words(p.inputs[1], head, matrix),
                 head_words(p.inputs[2], head, matrix),
                 head_words(p.inputs[4], head, matrix),
                 {},
                 {},
                 {},
                 {},
                 {}};
  h.q_t = transposed(h.q, size.s, size.d);
  h.k_t = transposed(h.k, size.s, size.d);
  h.d_o_t = transposed(h.d_o, size.s, size.d);
  const auto o = head_words(p.inputs[3], head, matrix);
  for (float lse : head_floats(p.inputs[5], head, size.s)) h.lse2.push_back(lse * kLog2E);
  h.delta.assign(static_cast<size_t>(size.s), 0.0f);
  for (size_t i = 0; i < matrix; ++i)
    h.delta[i / static_cast<size_t>(size.d)] +=
        numeric::bf16_to_float(o[i]) * numeric::bf16_to_float(h.d_o[i]);
  return h;
}

}  // namespace

AttentionSize attention_size(const Problem& p) {
  AttentionSize size;
  size.heads = axis_value(p.axes, "B") * axis_value(p.axes, "H");
  size.s = axis_value(p.axes, "S");
  size.d = axis_value(p.axes, "D");
  size.scale = 1 / std::sqrt(static_cast<float>(size.d));
  size.causal = has_tag(p.definition, "mask:causal");
  return size;
}

std::vector<Tensor> attention_forward(const Problem& p, const ForwardOrder& order) {
  const AttentionSize size = attention_size(p);
  const size_t matrix = size.matrix();
  std::vector<Tensor> out = outputs_of(p);
  for (int64_t head = 0; head < size.heads; ++head) {
    const Head h{size, head_words(p.inputs[0], head, matrix), head_words(p.inputs[1], head, matrix),
                 head_words(p.inputs[2], head, matrix)};
    for (int64_t first = 0; first < size.s; first += kQueryTile) {
      QueryTile tile(h, order, first);
      tile.run();
      for (int64_t r = 0; r < tile.rows(); ++r) {
        const float reciprocal = 1 / tile.sum(r);
        for (int64_t c = 0; c < size.d; ++c)
          store(out[0], head, matrix, static_cast<size_t>((first + r) * size.d + c),
                tile.o[static_cast<size_t>(r * size.d + c)] * reciprocal);
        store(out[1], head, static_cast<size_t>(size.s), static_cast<size_t>(first + r),
              tile.lse(r));
      }
    }
  }
  return out;
}

std::vector<Tensor> attention_backward(const Problem& p, const BackwardOrder& order) {
  const AttentionSize size = attention_size(p);
  const size_t matrix = size.matrix();
  std::vector<Tensor> out = outputs_of(p);
  for (int64_t head = 0; head < size.heads; ++head) {
    const BackwardHead h = backward_head(p, size, head);
    Gradients g;
    for (auto* x : {&g.dq, &g.dk, &g.dv}) x->assign(matrix, 0.0f);
    for (int64_t block : key_blocks(size, order))
      for (int64_t query = 0; query < size.s; query += order.block_queries) {
        const int64_t last = std::min(query + order.block_queries, size.s) - 1;
        if (block * order.block_keys < size.visible(last))
          backward_block(h, order, query, block * order.block_keys, g);
      }
    for (size_t i = 0; i < matrix; ++i) {
      store(out[0], head, matrix, i, g.dq[i] * size.scale);
      store(out[1], head, matrix, i, g.dk[i] * size.scale);
      store(out[2], head, matrix, i, g.dv[i]);
    }
  }
  return out;
}

}  // namespace ptxbench::bench::admit
