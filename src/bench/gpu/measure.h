#pragma once
// From times to a verdict: which library a task is measured against, the least that must be moved,
// what the numbers mean and why they are no better.

#include <optional>

#include "bench/gpu/timing.h"
#include "bench/task.h"
#include "bench/verdict.h"

namespace ptxbench::bench {

// The library routine that the candidate is measured against ($PTXBENCH_CUBLASLT and
// $PTXBENCH_CUDNN, the toolkit's, the loader's); nothing where none is known for the task.
std::optional<device::cuda::LoadLibrary> frontier_library(const Task& task, const AxisValues& axes);

// Inputs read once, outputs written once.
double compulsory_bytes(const Task& task, const AxisValues& axes);

// Medians, ratio and clocks of what was timed.
void summarise(const TimingDevice& timing, Contestant* baseline, Performance& performance);

// What the assembler, the launch shapes and the card say about why it is no faster.
std::vector<std::string> causes(const Verdict& verdict, const plan::LaunchPlan& plan,
                                const device::cuda::DeviceInfo& info,
                                const std::vector<device::cuda::KernelInfo>& kernels,
                                uint64_t throttle_reasons);

// Level 5 or 6 with its reason, of a verdict that is level 5 by now.
void judge_performance(const Performance& performance, Verdict& verdict);

}  // namespace ptxbench::bench
