// C[M,N] = A[M,K] * B[N,K]^T.
#include <fmt/format.h>

#include "bench/admit/gemm_models.h"
#include "bench/op/operation.h"
#include "bench/oracle.h"

namespace ptxbench::bench {
namespace {

std::span<const uint16_t> words(const Tensor& tensor) {
  return {reinterpret_cast<const uint16_t*>(tensor.bytes.data()), tensor.bytes.size() / 2};
}

class Gemm : public Operation {
 public:
  const char* op_type() const override { return "gemm"; }

  Result<void> check(const Definition& definition) const override {
    for (const char* name : {"M", "N", "K"})
      if (std::none_of(definition.axes.begin(), definition.axes.end(),
                       [&](const Axis& axis) { return axis.name == name; }))
        return Error{"bad-task", fmt::format("{}: a gemm needs axes M, N and K", definition.name)};
    return expect_tensors(definition, {"A:bfloat16:2", "B:bfloat16:2"}, {"C:bfloat16:2"});
  }

  double flop(const Definition&, const AxisValues& axes) const override {
    double flop = 2;
    for (const char* axis : {"M", "N", "K"}) flop *= static_cast<double>(axis_value(axes, axis));
    return flop;
  }

  // Rows of A and of C.
  Rotation rotation(const Definition&, const AxisValues& axes) const override {
    return {axis_value(axes, "M"), {true, false, true}};
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    return gemm_fp64(words(p.inputs[0]), words(p.inputs[1]), axis_value(p.axes, "M"),
                     axis_value(p.axes, "N"), axis_value(p.axes, "K"), threads,
                     [&](int64_t first, int64_t count, std::span<const double> block) {
                       sink({0, first, count, block, {}});
                     });
  }

  Explanation explain(const Problem& p, std::span<const Tensor> outputs, size_t,
                      std::span<const uint64_t> bad_tiles) const override {
    return explain_gemm({words(p.inputs[0]), words(p.inputs[1]), words(outputs[0]),
                         axis_value(p.axes, "M"), axis_value(p.axes, "N"), axis_value(p.axes, "K")},
                        bad_tiles);
  }

  admit::Battery battery(const Definition&) const override { return admit::gemm_battery(); }
};

}  // namespace

const Operation& gemm_operation() {
  static const Gemm kGemm;
  return kGemm;
}

}  // namespace ptxbench::bench
