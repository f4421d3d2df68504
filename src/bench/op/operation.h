#pragma once
// What the evaluator has to know of an op_type: which inputs a workload has, what the right outputs
// are, how far off honest rounding may be, what the work costs, and how wrong values are explained.
// Everything else (sandbox, replay, comparison, verdict) is the same for all of them.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/compare.h"
#include "bench/inputs.h"
#include "bench/pattern/explain.h"
#include "bench/task.h"

namespace ptxbench::bench {

namespace admit {
struct Battery;
}

struct Problem {
  const Definition& definition;
  const AxisValues& axes;
  std::span<const Tensor> inputs;  // in definition order

  // Tensors by name; null if there is none.
  const Tensor* input(const std::string& name) const;
};

// Part of the right result. Blocks of an output arrive in row order; a block begins at a multiple
// of 16 rows of its matrix.
struct ReferenceBlock {
  size_t output = 0;
  int64_t first_row = 0, count = 0;  // of the stack of matrices (OutputView)
  std::span<const double> values;    // count x columns
  std::span<const double> noise;  // of the same size, or empty: the variance that honest rounding
                                  // gives each element
};
using ReferenceSink = std::function<void(const ReferenceBlock&)>;

// Tensors that can be turned around without changing what is right: their leading dimensions are
// `units` independent pieces, and moving pieces of all of them by one number moves the right
// outputs likewise.
struct Rotation {
  int64_t units = 0;        // 0: nothing of the kind
  std::vector<bool> moves;  // by argument, inputs first
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual const char* op_type() const = 0;
  // Error "bad-task": a tensor or an axis is missing or of another kind than the operation needs.
  virtual Result<void> check(const Definition& definition) const = 0;
  // Multiply and add counted separately.
  virtual double flop(const Definition& definition, const AxisValues& axes) const = 0;
  // Inputs in definition order; a function of seed and distribution alone.
  virtual Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                             const Seed& seed, int threads,
                                             Distribution distribution) const;
  // How output `index` is cut into matrices for comparison: all but the last two dimensions count
  // matrices.
  virtual OutputView view(const Definition& definition, const AxisValues& axes, size_t index) const;
  virtual Result<void> reference(const Problem& problem, int threads,
                                 const ReferenceSink& sink) const = 0;
  virtual Rotation rotation(const Definition& definition, const AxisValues& axes) const;
  // Why output `index` is wrong; kind "" if nothing fits. `bad_tiles`: of Comparator::locate.
  virtual Explanation explain(const Problem& problem, std::span<const Tensor> outputs, size_t index,
                              std::span<const uint64_t> bad_tiles) const;
  // What its tasks' rulers are tried on (bench/admit/battery.h). Without one of its own a task is
  // not admitted.
  virtual admit::Battery battery(const Definition& definition) const;
};

// Errors: "unsupported" (no such op_type; the known ones are listed), those of Operation::check.
Result<const Operation*> operation_of(const Definition& definition);

// Of the operation, with its errors.
Result<double> task_flop(const Definition& definition, const AxisValues& axes);
// The same; where the folder's reference decides, what requirements.json declares (declared_flop).
Result<double> task_flop(const Task& task, const AxisValues& axes);

// Of requirements.json; 0 where it declares none. Error "bad-task".
Result<double> declared_flop(const Task& task, const AxisValues& axes);

// Bytes of all inputs and outputs, each once: what has to move at least.
Result<double> task_bytes(const Definition& definition, const AxisValues& axes);

// The right outputs rounded to their types, as tensors. Errors of Operation::reference.
Result<std::vector<Tensor>> right_outputs(const Operation& operation, const Problem& problem,
                                          int threads);

// ---- for implementations ----

// Calls f(0..count-1), on up to `threads` threads; f must not throw.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& f);

// Variance of the relative error of rounding to a format with `significant_bits` (bfloat16: 8), for
// values whose logarithms are evenly spread.
double rounding_variance(int significant_bits);

std::vector<double> to_doubles(const Tensor& tensor);

// Error "bad-task" unless the definition has exactly these tensors, in this order, as
// "name:dtype:rank".
Result<void> expect_tensors(const Definition& definition, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs);
bool has_tag(const Definition& definition, const std::string& tag);

// The operations, each in a file of its own.
const Operation& gemm_operation();
const Operation& attention_operation();
const Operation& attention_backward_operation();
const Operation& fp8_gemm_operation();
const Operation& fp8_attention_operation();
const Operation& gqa_paged_operation();
const Operation& gqa_ragged_operation();
const Operation& mla_paged_operation();
const Operation& mla_ragged_operation();
const Operation& gated_delta_rule_operation();

}  // namespace ptxbench::bench
