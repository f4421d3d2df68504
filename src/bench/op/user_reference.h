#pragma once
// An op_type that only the task's folder knows. `reference.cu` beside the task says what is right:
// a CUDA file with a host function `run` like a candidate's, but with float64 in place of every
// floating-point output. It is compiled, recorded in the sandbox and run on the emulator like a
// candidate; it needs no target instruction, and a slow loop for each output element is fine.

#include <functional>

#include "bench/op/operation.h"

namespace ptxbench::bench {

class UserReference : public Operation {
 public:
  // Runs reference.cu: inputs of the problem to outputs, float64 where the definition has floats.
  // Errors: "bad-task" with what is wrong with the reference, or the harness's own.
  using Run = std::function<Result<std::vector<Tensor>>(const Problem& problem)>;

  UserReference(const Task& task, InputSources sources, Run run)
      : task_(task), sources_(std::move(sources)), run_(std::move(run)) {}

  const char* op_type() const override { return task_.definition.op_type.c_str(); }
  Result<void> check(const Definition& definition) const override;
  // Of requirements.json; 0 where it names none.
  double flop(const Definition& definition, const AxisValues& axes) const override;
  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override;
  Result<void> reference(const Problem& problem, int threads,
                         const ReferenceSink& sink) const override;

 private:
  const Task& task_;
  InputSources sources_;
  Run run_;
};

// "float64" for floating types, the type itself for the others.
std::string reference_dtype(const std::string& dtype);

}  // namespace ptxbench::bench
