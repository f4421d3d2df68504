#include "bench/gpu/reference.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "bench/gpu/fp64_gemm_ptx.h"

namespace ptxbench::bench {
namespace {

std::atomic<device::Device*> g_device = nullptr;

plan::LaunchPlan gemm_plan(int64_t m, int64_t n, int64_t k) {
  const auto bytes = [](int64_t rows, int64_t columns, uint64_t element) {
    return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * element;
  };
  plan::LaunchPlan plan;
  plan.arch = "sm_90";
  plan.device_profile = "h200";
  plan.definition = "fp64 reference";
  const std::pair<const char*, uint64_t> buffers[] = {
      {"A", bytes(m, k, 2)}, {"B", bytes(n, k, 2)}, {"C", bytes(m, n, 8)}};
  for (const auto& [name, size] : buffers) {
    plan::Buffer buffer;
    buffer.name = name;
    buffer.argument = static_cast<uint32_t>(plan.buffers.size());
    buffer.size = size;
    plan.buffers.push_back(buffer);
  }
  plan::Module module;
  module.hash = "fp64_gemm";
  module.ptx = kFp64GemmPtx;
  plan.modules.push_back(std::move(module));
  plan::Launch launch;
  launch.kernel = "ptxbench_fp64_gemm";
  launch.grid = {static_cast<uint32_t>((n + 63) / 64), static_cast<uint32_t>((m + 63) / 64), 1};
  launch.block.x = 256;
  launch.params.bytes.resize(48);
  for (uint64_t i = 0; i < 3; ++i)
    launch.params.pointers.push_back({8 * i, {static_cast<uint32_t>(i), 0}});
  const int64_t sizes[] = {m, n, k};
  std::memcpy(launch.params.bytes.data() + 24, sizes, sizeof sizes);
  plan.steps.push_back(std::move(launch));
  return plan;
}

std::span<uint8_t> bytes_of(std::span<const uint16_t> words) {  // only read
  return {reinterpret_cast<uint8_t*>(const_cast<uint16_t*>(words.data())), words.size() * 2};
}

}  // namespace

ReferenceOnDevice::ReferenceOnDevice(device::Device& device) { g_device = &device; }
ReferenceOnDevice::~ReferenceOnDevice() { g_device = nullptr; }
device::Device* ReferenceOnDevice::current() { return g_device; }

Result<void> gemm_fp64_on(device::Device& device, std::span<const uint16_t> a,
                          std::span<const uint16_t> b, int64_t m, int64_t n, int64_t k,
                          std::span<double> c) {
  const device::Binding bindings[] = {
      {bytes_of(a), true, true},
      {bytes_of(b), true, true},
      {{reinterpret_cast<uint8_t*>(c.data()), c.size() * 8}, false, false}};
  PB_ASSIGN_OR_RETURN(const plan::RunResult run,
                      device.replay(gemm_plan(m, n, k), bindings, plan::RunOptions()));
  if (run.status != plan::RunStatus::completed || !run.findings.empty())
    return Error{"infrastructure",
                 "the reference kernel failed: " +
                     (run.findings.empty() ? run.message : run.findings[0].message)};
  return {};
}

}  // namespace ptxbench::bench
