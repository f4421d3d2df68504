#pragma once
// Verdicts on values as the evaluator comes to them, for what a test computes on the host.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/op/operation.h"

namespace ptxbench::bench {

constexpr int kModelThreads = 2;

inline Task load_task(const std::string& name) {
  return TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks")
      .take()
      .load(name)
      .take();
}

// One for each output.
inline std::vector<Correctness> judge_values(const Task& task, const Problem& p,
                                             const std::vector<Tensor>& got) {
  const Operation* operation = operation_of(task.definition).take();
  std::vector<Comparator> comparators;
  for (size_t i = 0; i < got.size(); ++i)
    comparators.emplace_back(got[i].type, got[i].bytes, operation->view(p.definition, p.axes, i),
                             poison_bits(got[i].type, 0x7fbd));
  const auto done = operation->reference(p, kModelThreads, [&](const ReferenceBlock& b) {
    comparators[b.output].add_block(b.first_row, b.count, b.values, kModelThreads, b.noise);
  });
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  std::vector<Correctness> all;
  for (size_t i = 0; i < got.size(); ++i) {
    Correctness c = comparators[i].finish();
    c.output = got[i].spec.name;
    c.shape = got[i].shape;
    decide(task.calibration, 0, c);
    all.push_back(c);
  }
  return all;
}

using Model = std::function<std::vector<Tensor>(const Problem&)>;

// Of a model on inputs of a distribution.
inline std::vector<Correctness> judge_model(const Task& task, const AxisValues& axes,
                                            const Seed& seed, Distribution distribution,
                                            const Model& model) {
  const Operation* operation = operation_of(task.definition).take();
  const std::vector<Tensor> inputs =
      operation->inputs(task.definition, axes, seed, kModelThreads, distribution).take();
  const Problem p{task.definition, axes, inputs};
  return judge_values(task, p, model(p));
}

}  // namespace ptxbench::bench
