#pragma once
// Which steps of a replay the outputs depend on, by whole buffers. A kernel may execute every
// target instruction asked for and another one compute the result: only the launches that matter
// are evidence.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/run_result.h"

namespace ptxbench::device {

struct BufferTouch {
  uint64_t base = 0, size = 0;     // the buffer
  uint64_t read = 0, written = 0;  // bytes, repeated accesses counted again
};

// A launch (with its counts) or, with an empty kernel, a copy or memset.
struct StepEffect {
  std::string kernel;
  std::vector<BufferTouch> touched;
  std::vector<plan::FamilyCount> families;
  std::vector<plan::KernelStats> kernels;
};

// By step: does anything it wrote reach one of the buffers `outputs` (base addresses)? Walks
// backwards; a step that writes at least a buffer's size without reading it replaces what was there
// before.
std::vector<bool> contributes(const std::vector<StepEffect>& steps, std::vector<uint64_t> outputs);

// Adds a step's counts to the result's families and kernels; static counts once per kernel.
void merge_counts(const StepEffect& step, plan::RunResult* result);

}  // namespace ptxbench::device
