// What all baselines share: which library a routine belongs to, and the choice of the fastest way.
#include <fmt/format.h>

#include <algorithm>

#include "device/cuda/worker/program.h"

namespace ptxbench::device::cuda {

Result<std::unique_ptr<LibraryProgram>> LibraryProgram::create(const Context& context,
                                                               const LoadLibrary& request) {
  for (const char* routine : {"cublaslt-bf16", "cublaslt-fp8-1d2d", "cublaslt-fp8-1d1d"})
    if (request.routine == routine) return create_cublaslt(context, request);
  for (const char* routine : {"cudnn-sdpa", "cudnn-sdpa-backward", "cudnn-sdpa-fp8"})
    if (request.routine == routine) return create_cudnn(context, request);
  return Error{"unsupported", fmt::format("no library routine '{}'", request.routine)};
}

Result<void> LibraryProgram::tune(const Context& context, std::span<const CUdeviceptr> arguments,
                                  const std::function<Result<void>()>& before) {
  constexpr size_t kRounds = 5;
  const Driver& driver = context.driver();
  CUevent begin = nullptr, end = nullptr;
  driver.cuEventCreate(&begin, CU_EVENT_DEFAULT);
  driver.cuEventCreate(&end, CU_EVENT_DEFAULT);
  std::vector<std::vector<float>> times(offered_);
  if (arrange(arguments)) return Error{"infrastructure", "a baseline's inputs cannot be arranged"};
  for (size_t round = 0; round < kRounds; ++round) {
    for (chosen_ = 0; chosen_ < offered_; ++chosen_) {
      PB_RETURN_IF_ERROR(before());
      driver.cuEventRecord(begin, context.stream());
      if (enqueue(arguments)) continue;
      driver.cuEventRecord(end, context.stream());
      if (const CUresult code = context.synchronize(); code != CUDA_SUCCESS)
        return driver_error(driver, "tuning a baseline", code);
      float ms = 0;
      driver.cuEventElapsedTime_v2(&ms, begin, end);
      times[chosen_].push_back(ms);
    }
  }
  size_t best = offered_;
  float best_ms = 0;
  for (size_t i = 0; i < offered_; ++i) {
    if (times[i].size() < kRounds) continue;
    std::nth_element(times[i].begin(), times[i].begin() + kRounds / 2, times[i].end());
    if (best == offered_ || times[i][kRounds / 2] < best_ms)
      best = i, best_ms = times[i][kRounds / 2];
  }
  if (best == offered_) return Error{"unsupported", "nothing that the library offers runs"};
  chosen_ = best;
  return {};
}

}  // namespace ptxbench::device::cuda
