// Attention as it is served: sequences of different lengths one behind the other, keys and values
// in pages or ragged, several query heads for one head of keys (GQA) or one latent for all (MLA).
// Query i of a sequence sees the keys up to i + (keys - queries): all of them where it is the last.
// LSE is in base 2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/op/attention_inputs.h"
#include "bench/op/attention_math.h"
#include "bench/op/in_order.h"
#include "bench/op/index_inputs.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

bool has_input(const Definition& definition, const std::string& name) {
  return std::any_of(definition.inputs.begin(), definition.inputs.end(),
                     [&](const TensorSpec& spec) { return spec.name == name; });
}

// Where one sequence lies: queries first_query.., keys as rows of the flat cache.
struct Sequence {
  int64_t first_query = 0, queries = 0;
  std::vector<int64_t> keys;
};

Error bad_index(const char* what) { return Error{"bad-task", std::string(what)}; }

// Offsets must begin at 0, ascend and end at `total`.
Result<void> check_offsets(const std::vector<int64_t>& offsets, int64_t total, const char* name) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != total ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    return Error{"bad-task", fmt::format("{} does not ascend from 0 to {}", name, total)};
  return {};
}

Result<std::vector<Sequence>> sequences_of(const Problem& p, int64_t total_q, int64_t cache_rows) {
  const int64_t page = std::max<int64_t>(1, axis_value(p.axes, "page_size"));
  const std::vector<int64_t> kv = indices_of(*p.input("kv_indptr"));
  const Tensor *indices = p.input("kv_indices"), *last = p.input("kv_last_page_len"),
               *qo = p.input("qo_indptr");
  std::vector<int64_t> queries, pages, last_page;
  if (qo != nullptr) queries = indices_of(*qo);
  if (qo == nullptr)
    for (int64_t i = 0; i <= total_q; ++i) queries.push_back(i);
  if (indices != nullptr) pages = indices_of(*indices);
  if (last != nullptr) last_page = indices_of(*last);
  PB_RETURN_IF_ERROR(check_offsets(queries, total_q, "qo_indptr"));
  PB_RETURN_IF_ERROR(check_offsets(
      kv, indices != nullptr ? static_cast<int64_t>(pages.size()) : cache_rows, "kv_indptr"));
  if (queries.size() != kv.size()) return bad_index("qo_indptr and kv_indptr differ in length");
  std::vector<Sequence> sequences;
  for (size_t i = 0; i + 1 < kv.size(); ++i) {
    Sequence s{queries[i], queries[i + 1] - queries[i], {}};
    for (int64_t at = kv[i]; at < kv[i + 1]; ++at) {
      const int64_t first = (indices != nullptr ? pages[static_cast<size_t>(at)] : at) * page;
      const int64_t count = at + 1 == kv[i + 1] && last != nullptr ? last_page[i] : page;
      if (first < 0 || count < 1 || count > page || first + page > cache_rows)
        return bad_index("a page lies outside the cache");
      for (int64_t row = first; row < first + count; ++row) s.keys.push_back(row);
    }
    sequences.push_back(std::move(s));
  }
  return sequences;
}

// Rows of a matrix [.., heads, d] that belong to one head.
struct Rows {
  const Tensor* tensor = nullptr;
  int64_t heads = 1, head = 0, d = 0;
  void load(int64_t row, double* to) const {
    const size_t element = numeric::dtype_size(tensor->type);
    numeric::load_elements(
        tensor->type,
        tensor->bytes.data() + static_cast<size_t>((row * heads + head) * d) * element,
        std::span<double>(to, static_cast<size_t>(d)));
  }
};

struct SequenceResult {
  std::vector<double> o, o_noise, lse, lse_noise;  // [queries, heads, d_v], [queries, heads]
};

class ServingAttention : public Operation {
 public:
  ServingAttention(const char* op_type, bool latent, bool paged)
      : op_type_(op_type), latent_(latent), paged_(paged) {}
  const char* op_type() const override { return op_type_; }

  Result<void> check(const Definition& definition) const override {
    std::vector<std::string> inputs;
    if (latent_ && paged_)
      inputs = {"q_nope:bfloat16:3", "q_pe:bfloat16:3", "ckv_cache:bfloat16:3",
                "kpe_cache:bfloat16:3"};
    else if (paged_)
      inputs = {"q:bfloat16:3", "k_cache:bfloat16:4", "v_cache:bfloat16:4"};
    else
      inputs = {"q:bfloat16:3", "k:bfloat16:3", "v:bfloat16:3"};
    if (has_input(definition, "qo_indptr") || !paged_) inputs.push_back("qo_indptr:int32:1");
    inputs.push_back("kv_indptr:int32:1");
    if (paged_) inputs.push_back("kv_indices:int32:1");
    if (has_input(definition, "kv_last_page_len")) inputs.push_back("kv_last_page_len:int32:1");
    inputs.push_back("sm_scale:float32:0");
    return expect_tensors(definition, inputs, {"output:bfloat16:3", "lse:float32:2"});
  }

  // Of sequences of one length; the real lengths are known with the inputs only.
  double flop(const Definition& definition, const AxisValues& axes) const override {
    const std::vector<int64_t> q = shape(definition.inputs[0], axes),
                               o = shape(definition.outputs[0], axes);
    const auto indptr = std::find_if(definition.inputs.begin(), definition.inputs.end(),
                                     [](const TensorSpec& s) { return s.name == "kv_indptr"; });
    const double batch = static_cast<double>(shape(*indptr, axes)[0] - 1);
    const double queries = static_cast<double>(q[0]) / batch;
    const double page = static_cast<double>(std::max<int64_t>(1, axis_value(axes, "page_size")));
    const double keys =
        std::max(queries, static_cast<double>(paged_ ? axis_value(axes, "num_kv_indices")
                                                     : axis_value(axes, "total_kv")) *
                              page / batch);
    double d = static_cast<double>(q[2] + o[2]);
    if (latent_ && paged_) d += static_cast<double>(axis_value(axes, "head_dim_kpe"));
    return 2 * d * static_cast<double>(q[1]) * batch *
           (queries * keys - queries * (queries - 1) / 2);
  }

  // A head is a matrix of one row less than it looks: sequences end anywhere, so each query is a
  // matrix of its own, with its heads as rows.
  OutputView view(const Definition& definition, const AxisValues& axes,
                  size_t index) const override {
    const std::vector<int64_t> o = shape(definition.outputs[0], axes);
    return {o[0], o[1], index == 0 ? o[2] : 1};
  }

  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override {
    std::vector<Tensor> made;
    std::vector<int64_t> queries, keys;  // lengths in tokens, in pages
    for (const TensorSpec& spec : definition.inputs) {
      const numeric::Random random(seed, 16 * made.size() + 1);
      if (spec.dtype == "bfloat16") {
        const bool values = spec.name == "v" || spec.name == "v_cache";
        PB_ASSIGN_OR_RETURN(Tensor tensor,
                            make_input(spec, axes, made.size(), seed, threads,
                                       values ? distribution : score_distribution(distribution)));
        if (spec.name[0] == 'q') multiply_all(tensor, 2);  // see attention_inputs.h
        made.push_back(std::move(tensor));
        continue;
      }
      if (spec.name == "sm_scale") {
        PB_ASSIGN_OR_RETURN(Tensor scale, scalar_tensor(spec, default_scale(definition, axes)));
        made.push_back(std::move(scale));
        continue;
      }
      PB_ASSIGN_OR_RETURN(
          Tensor tensor,
          index_tensor(spec, axes, index_values(definition, spec, axes, random, queries, keys)));
      made.push_back(std::move(tensor));
    }
    return made;
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    const std::vector<int64_t>&q = p.inputs[0].shape,
          &k = p.inputs[latent_ && paged_ ? 2 : 1].shape;
    const int64_t heads = q[1];
    const int64_t cache_rows = paged_ ? k[0] * k[1] : k[0];
    PB_ASSIGN_OR_RETURN(const std::vector<Sequence> sequences, sequences_of(p, q[0], cache_rows));
    return in_order<SequenceResult>(
        static_cast<int64_t>(sequences.size()), threads,
        [&](int64_t i, int each) {
          return attend_sequence(p, sequences[static_cast<size_t>(i)], each);
        },
        [&](int64_t i, const SequenceResult& r) {
          const Sequence& s = sequences[static_cast<size_t>(i)];
          if (s.queries == 0) return;
          sink({0, s.first_query * heads, s.queries * heads, r.o, r.o_noise});
          sink({1, s.first_query * heads, s.queries * heads, r.lse, r.lse_noise});
        });
  }

 private:
  static std::vector<int64_t> shape(const TensorSpec& spec, const AxisValues& axes) {
    const auto resolved = resolve_shape(spec, axes);  // checked by resolve_axes
    return resolved.ok() ? *resolved : std::vector<int64_t>(spec.shape.size(), 1);
  }

  static void multiply_all(Tensor& tensor, double factor) {
    const size_t element = numeric::dtype_size(tensor.type);
    for (size_t at = 0; at < tensor.bytes.size(); at += element)
      numeric::store_element(tensor.type,
                             factor * numeric::load_element(tensor.type, &tensor.bytes[at]),
                             &tensor.bytes[at]);
  }

  // That of the heads before the latent is multiplied into the queries: 128 and 64 for positions.
  double default_scale(const Definition& definition, const AxisValues& axes) const {
    const double d = latent_ && paged_
                         ? 128.0 + static_cast<double>(axis_value(axes, "head_dim_kpe"))
                         : static_cast<double>(shape(definition.inputs[0], axes)[2]);
    return 1 / std::sqrt(d);
  }

  std::vector<int64_t> index_values(const Definition& definition, const TensorSpec& spec,
                                    const AxisValues& axes, const numeric::Random& random,
                                    std::vector<int64_t>& queries,
                                    std::vector<int64_t>& keys) const {
    const int64_t count = shape(spec, axes)[0];
    const int64_t page = std::max<int64_t>(1, axis_value(axes, "page_size"));
    const int64_t total_q = shape(definition.inputs[0], axes)[0];
    if (spec.name == "qo_indptr") {
      queries = ragged_lengths(total_q, count - 1,
                               std::vector<int64_t>(static_cast<size_t>(count - 1), 1), random);
      return offsets_of(queries);
    }
    if (spec.name == "kv_indptr") {
      if (queries.empty()) queries.assign(static_cast<size_t>(count - 1), 1);
      std::vector<int64_t> least;
      for (int64_t q : queries) least.push_back((q + page - 1) / page);
      keys = ragged_lengths(axis_value(axes, paged_ ? "num_kv_indices" : "total_kv"), count - 1,
                            least, random);
      return offsets_of(keys);
    }
    if (spec.name == "kv_indices")
      return shuffled_indices(count, axis_value(axes, "num_pages"), random);
    std::vector<int64_t> last(static_cast<size_t>(count), 1);  // kv_last_page_len
    for (size_t i = 0; i < keys.size() && i < last.size(); ++i) {
      const int64_t least = std::clamp<int64_t>(queries[i] - (keys[i] - 1) * page, 1, page);
      last[i] =
          least + static_cast<int64_t>(random.below(i, static_cast<uint64_t>(page - least + 1)));
    }
    return last;
  }

  Result<SequenceResult> attend_sequence(const Problem& p, const Sequence& s, int threads) const {
    const int64_t heads = p.inputs[0].shape[1];
    const std::vector<int64_t> o = shape(p.definition.outputs[0], p.axes);
    SequenceResult result;
    result.o.resize(static_cast<size_t>(s.queries * heads * o[2]));
    result.o_noise = result.o;
    result.lse.resize(static_cast<size_t>(s.queries * heads));
    result.lse_noise = result.lse;
    for (int64_t head = 0; head < heads && s.queries > 0; ++head) {
      PB_ASSIGN_OR_RETURN(const AttentionResult r, attend_head(p, s, head, threads));
      for (int64_t i = 0; i < s.queries; ++i) {
        const size_t to = static_cast<size_t>(i * heads + head), from = static_cast<size_t>(i);
        const size_t d = static_cast<size_t>(o[2]);
        std::copy_n(&r.o[from * d], d, &result.o[to * d]);
        std::copy_n(&r.o_noise[from * d], d, &result.o_noise[to * d]);
        result.lse[to] = r.lse[from] / std::log(2.0);
        result.lse_noise[to] = r.lse_noise[from] / std::log(2.0) / std::log(2.0);
      }
    }
    return result;
  }

  Result<AttentionResult> attend_head(const Problem& p, const Sequence& s, int64_t head,
                                      int threads) const {
    std::vector<Rows> q, k;
    Rows v;
    const auto rows = [&](size_t input, int64_t of_head) {
      const Tensor& tensor = p.inputs[input];
      const bool alike = latent_ && paged_ && input >= 2;  // one latent for all heads
      const int64_t heads = alike ? 1 : tensor.shape[tensor.shape.size() - 2];
      return Rows{&tensor, heads, alike ? 0 : of_head, tensor.shape.back()};
    };
    if (latent_ && paged_) {
      q = {rows(0, head), rows(1, head)};
      k = {rows(2, 0), rows(3, 0)};
      v = k[0];
    } else {
      const int64_t queries = p.inputs[0].shape[1],
                    kv = p.inputs[1].shape[p.inputs[1].shape.size() - 2];
      q = {rows(0, head)};
      k = {rows(1, head * kv / queries)};
      v = rows(2, head * kv / queries);
    }
    AttentionHead h;
    h.queries = s.queries;
    h.keys = static_cast<int64_t>(s.keys.size());
    for (const Rows& part : q) h.d += part.d;
    h.d_v = v.d;
    h.causal = true;
    h.offset = h.keys - h.queries;
    h.scale = numeric::load_element(numeric::DType::float32, p.input("sm_scale")->bytes.data());
    std::vector<double> wide_q(static_cast<size_t>(h.queries * h.d)),
        wide_k(static_cast<size_t>(h.keys * h.d)), wide_v(static_cast<size_t>(h.keys * h.d_v));
    for (int64_t i = 0; i < h.queries; ++i)
      load(q, s.first_query + i, &wide_q[static_cast<size_t>(i * h.d)]);
    for (int64_t j = 0; j < h.keys; ++j) {
      load(k, s.keys[static_cast<size_t>(j)], &wide_k[static_cast<size_t>(j * h.d)]);
      v.load(s.keys[static_cast<size_t>(j)], &wide_v[static_cast<size_t>(j * h.d_v)]);
    }
    h.q = wide_q;
    h.k = wide_k;
    h.v = wide_v;
    return attend(h, threads);
  }

  static void load(const std::vector<Rows>& parts, int64_t row, double* to) {
    for (const Rows& part : parts) {
      part.load(row, to);
      to += part.d;
    }
  }

  const char* op_type_;
  bool latent_, paged_;
};

}  // namespace

const Operation& gqa_paged_operation() {
  static const ServingAttention kOperation("gqa_paged", false, true);
  return kOperation;
}
const Operation& gqa_ragged_operation() {
  static const ServingAttention kOperation("gqa_ragged", false, false);
  return kOperation;
}
const Operation& mla_paged_operation() {
  static const ServingAttention kOperation("mla_paged", true, true);
  return kOperation;
}
const Operation& mla_ragged_operation() {
  static const ServingAttention kOperation("mla_ragged", true, false);
  return kOperation;
}

}  // namespace ptxbench::bench
