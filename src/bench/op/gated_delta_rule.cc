// The gated delta rule with a recurrent state [.., heads, v, k] in fp32: one token for each
// sequence (tag "stage:decode"), a few ("stage:mtp", states in a pool that stays as it is), or
// sequences of different lengths one behind the other ("stage:prefill").
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/op/gated_delta_math.h"
#include "bench/op/index_inputs.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

enum class Stage { decode, mtp, prefill };

Stage stage_of(const Definition& definition) {
  if (has_tag(definition, "stage:prefill")) return Stage::prefill;
  return has_tag(definition, "stage:mtp") ? Stage::mtp : Stage::decode;
}

// Tokens first..first+count of the flat order, and the state they begin with.
struct Sequence {
  int64_t first = 0, count = 0, state = 0;
};

struct Sizes {
  int64_t tokens = 0, q_heads = 0, v_heads = 0, d = 0;
};

Sizes sizes_of(const Problem& p) {
  const Tensor &q = *p.input("q"), &v = *p.input("v");
  Sizes z;
  z.d = q.shape.back();
  z.q_heads = q.shape[q.shape.size() - 2];
  z.v_heads = v.shape[v.shape.size() - 2];
  z.tokens = 1;
  for (size_t i = 0; i + 2 < q.shape.size(); ++i) z.tokens *= q.shape[i];
  return z;
}

Result<std::vector<Sequence>> sequences_of(const Problem& p, const Sizes& z) {
  std::vector<Sequence> sequences;
  if (const Tensor* offsets = p.input("cu_seqlens")) {
    const std::vector<int64_t> at = indices_of(*offsets);
    if (at.empty() || at.front() != 0 || at.back() != z.tokens ||
        !std::is_sorted(at.begin(), at.end()))
      return Error{"bad-task", fmt::format("cu_seqlens does not ascend from 0 to {}", z.tokens)};
    for (size_t i = 0; i + 1 < at.size(); ++i)
      sequences.push_back({at[i], at[i + 1] - at[i], static_cast<int64_t>(i)});
    return sequences;
  }
  const int64_t batch = p.input("q")->shape[0], each = z.tokens / batch;
  std::vector<int64_t> states;
  if (const Tensor* indices = p.input("initial_state_indices")) states = indices_of(*indices);
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t state = states.empty() ? i : states[static_cast<size_t>(i)];
    if (!states.empty() && (state < 0 || state >= p.input("initial_state")->shape[0]))
      return Error{"bad-task", "an initial state lies outside the pool"};
    sequences.push_back({i * each, each, state});
  }
  return sequences;
}

class GatedDeltaRule : public Operation {
 public:
  const char* op_type() const override { return "gdn"; }

  Result<void> check(const Definition& definition) const override {
    switch (stage_of(definition)) {
      case Stage::prefill:
        return expect_tensors(definition,
                              {"q:bfloat16:3", "k:bfloat16:3", "v:bfloat16:3", "state:float32:4",
                               "A_log:float32:1", "a:bfloat16:2", "dt_bias:float32:1",
                               "b:bfloat16:2", "cu_seqlens:int64:1", "scale:float32:0"},
                              {"output:bfloat16:3", "new_state:float32:4"});
      case Stage::mtp:
        return expect_tensors(
            definition,
            {"q:bfloat16:4", "k:bfloat16:4", "v:bfloat16:4", "initial_state:float32:4",
             "initial_state_indices:int32:1", "A_log:float32:1", "a:bfloat16:3",
             "dt_bias:float32:1", "b:bfloat16:3", "scale:float32:0"},
            {"output:bfloat16:4", "final_state:float32:4"});
      case Stage::decode:
        return expect_tensors(
            definition,
            {"q:bfloat16:4", "k:bfloat16:4", "v:bfloat16:4", "state:float32:4", "A_log:float32:1",
             "a:bfloat16:3", "dt_bias:float32:1", "b:bfloat16:3", "scale:float32:0"},
            {"output:bfloat16:4", "new_state:float32:4"});
    }
    return {};
  }

  // S k, the update and S q for each token and head of values.
  double flop(const Definition& definition, const AxisValues& axes) const override {
    const auto v = resolve_shape(definition.inputs[2], axes);
    double flop = 6 * static_cast<double>(axis_value(axes, "head_size"));
    for (int64_t dim : v.ok() ? *v : std::vector<int64_t>{}) flop *= static_cast<double>(dim);
    return flop;
  }

  // Rows of Q and K have length 1, as models normalise them: longer keys make the state grow
  // without bound. A decays between 1 and 16 times softplus of about -6..-2, as it is initialised.
  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override {
    std::vector<Tensor> made;
    for (const TensorSpec& spec : definition.inputs) {
      const numeric::Random random(seed, 16 * made.size() + 1);
      if (spec.name == "scale") {
        const double d = static_cast<double>(axis_value(axes, "head_size"));
        PB_ASSIGN_OR_RETURN(Tensor scale, scalar_tensor(spec, 1 / std::sqrt(d)));
        made.push_back(std::move(scale));
        continue;
      }
      if (spec.dtype == "int32" || spec.dtype == "int64") {
        PB_ASSIGN_OR_RETURN(Tensor tensor,
                            index_tensor(spec, axes, index_values(spec, axes, random)));
        made.push_back(std::move(tensor));
        continue;
      }
      const bool gate =
          spec.name == "A_log" || spec.name == "dt_bias" || spec.name == "a" || spec.name == "b";
      PB_ASSIGN_OR_RETURN(Tensor tensor, make_input(spec, axes, made.size(), seed, threads,
                                                    gate ? Distribution::normal : distribution));
      if (spec.name == "q" || spec.name == "k") normalise(tensor);
      if (spec.name == "A_log" || spec.name == "dt_bias")
        draw_gate(spec.name == "A_log", random, tensor);
      made.push_back(std::move(tensor));
    }
    return made;
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    const Sizes z = sizes_of(p);
    PB_ASSIGN_OR_RETURN(const std::vector<Sequence> sequences, sequences_of(p, z));
    const bool pool = stage_of(p.definition) == Stage::mtp;
    const Tensor& states = *p.input(pool ? "initial_state" : "state");
    const size_t square = static_cast<size_t>(z.d * z.d);
    std::vector<double> o(static_cast<size_t>(z.tokens * z.v_heads * z.d)), o_noise(o.size());
    std::vector<double> state = to_doubles(states), state_noise(state.size());
    const std::vector<double> begin = state;
    const Inputs in(p);
    parallel_for(static_cast<int64_t>(sequences.size()) * z.v_heads, threads, [&](int64_t i) {
      const Sequence& s = sequences[static_cast<size_t>(i / z.v_heads)];
      const int64_t head = i % z.v_heads;
      const size_t at = static_cast<size_t>(s.state * z.v_heads + head) * square;
      DeltaRule rule({&begin[at], square}, z.d, z.d, in.scale,
                     stage_of(p.definition) == Stage::prefill ? 8 : 0);
      for (int64_t t = s.first; t < s.first + s.count; ++t) {
        const size_t to = static_cast<size_t>((t * z.v_heads + head) * z.d);
        rule.step(in.token(z, t, head), &o[to], &o_noise[to]);
      }
      if (pool) return;
      std::copy(rule.state().begin(), rule.state().end(), &state[at]);
      std::copy(rule.noise().begin(), rule.noise().end(), &state_noise[at]);
    });
    if (pool)  // handed back as it was
      for (size_t i = 0; i < state.size(); ++i) state_noise[i] = 0x1p-50 * state[i] * state[i];
    sink({0, 0, z.tokens * z.v_heads, o, o_noise});
    sink({1, 0, static_cast<int64_t>(state.size()) / z.d, state, state_noise});
    return {};
  }

 private:
  struct Inputs {
    std::vector<double> q, k, v, a_log, a, dt_bias, b;
    double scale;
    explicit Inputs(const Problem& p)
        : q(to_doubles(*p.input("q"))),
          k(to_doubles(*p.input("k"))),
          v(to_doubles(*p.input("v"))),
          a_log(to_doubles(*p.input("A_log"))),
          a(to_doubles(*p.input("a"))),
          dt_bias(to_doubles(*p.input("dt_bias"))),
          b(to_doubles(*p.input("b"))),
          scale(numeric::load_element(numeric::DType::float32, p.input("scale")->bytes.data())) {}
    DeltaToken token(const Sizes& z, int64_t t, int64_t head) const {
      const size_t d = static_cast<size_t>(z.d), h = static_cast<size_t>(head);
      const size_t gate = static_cast<size_t>(t * z.v_heads + head);
      const size_t of_q = static_cast<size_t>(t * z.q_heads + head * z.q_heads / z.v_heads) * d;
      DeltaToken token;
      token.q = {&q[of_q], d};
      token.k = {&k[of_q], d};
      token.v = {&v[gate * d], d};
      token.decay = delta_decay(a_log[h], a[gate] + dt_bias[h]);
      token.beta = delta_beta(b[gate]);
      return token;
    }
  };

  static std::vector<int64_t> index_values(const TensorSpec& spec, const AxisValues& axes,
                                           const numeric::Random& random) {
    const auto shape = resolve_shape(spec, axes);
    const int64_t count = shape.ok() ? (*shape)[0] : 0;
    if (spec.name != "cu_seqlens")
      return shuffled_indices(count, axis_value(axes, "pool_size"), random);
    return offsets_of(ragged_lengths(axis_value(axes, "total_seq_len"), count - 1,
                                     std::vector<int64_t>(static_cast<size_t>(count - 1), 1),
                                     random));
  }

  static void normalise(Tensor& tensor) {
    const int64_t d = tensor.shape.back();
    const size_t element = numeric::dtype_size(tensor.type);
    std::vector<double> values = to_doubles(tensor);
    for (size_t row = 0; row < values.size(); row += static_cast<size_t>(d)) {
      double norm = 0;
      for (int64_t i = 0; i < d; ++i) norm += values[row + i] * values[row + i];
      for (int64_t i = 0; i < d && norm > 0; ++i)
        numeric::store_element(tensor.type, values[row + i] / std::sqrt(norm),
                               tensor.bytes.data() + (row + i) * element);
    }
  }

  static void draw_gate(bool a_log, const numeric::Random& random, Tensor& tensor) {
    for (size_t i = 0; i * 4 < tensor.bytes.size(); ++i) {
      const double u = static_cast<double>(random.uniform(i));
      numeric::store_element(tensor.type, a_log ? std::log(1 + 15 * u) : -6 + 4 * u,
                             tensor.bytes.data() + 4 * i);
    }
  }
};

}  // namespace

const Operation& gated_delta_rule_operation() {
  static const GatedDeltaRule kOperation;
  return kOperation;
}

}  // namespace ptxbench::bench
