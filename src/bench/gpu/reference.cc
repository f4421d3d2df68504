#include "bench/gpu/reference.h"

#include <algorithm>
#include <atomic>

#include "bench/gpu/fp64_fp8_gemm_ptx.h"
#include "bench/gpu/fp64_gemm_ptx.h"
#include "bench/gpu/reference_plan.h"

namespace ptxbench::bench {
namespace {

std::atomic<device::Device*> g_device = nullptr;

plan::LaunchPlan gemm_plan(int64_t m, int64_t n, int64_t k) {
  const auto bytes = [](int64_t rows, int64_t columns, uint64_t element) {
    return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * element;
  };
  ReferencePlan plan("fp64_gemm", kFp64GemmPtx);
  const uint32_t a = plan.argument(bytes(m, k, 2)), b = plan.argument(bytes(n, k, 2)),
                 c = plan.argument(bytes(m, n, 8));
  using P = ReferencePlan;
  plan.launch("ptxbench_fp64_gemm",
              {static_cast<uint32_t>((n + 63) / 64), static_cast<uint32_t>((m + 63) / 64), 1},
              {P::address(a, 0), P::address(b, 0), P::address(c, 0), P::number(m), P::number(n),
               P::number(k)});
  return plan.take();
}

template <class T>
std::span<uint8_t> bytes_of(std::span<const T> values) {  // only read
  return {reinterpret_cast<uint8_t*>(const_cast<T*>(values.data())), values.size_bytes()};
}
std::span<uint8_t> bytes_of(std::span<double> values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size_bytes()};
}

}  // namespace

ReferenceOnDevice::ReferenceOnDevice(device::Device& device) { g_device = &device; }
ReferenceOnDevice::~ReferenceOnDevice() { g_device = nullptr; }
device::Device* ReferenceOnDevice::current() { return g_device; }

Result<void> gemm_fp64_on(device::Device& device, std::span<const uint16_t> a,
                          std::span<const uint16_t> b, int64_t m, int64_t n, int64_t k,
                          std::span<double> c) {
  const device::Binding bindings[] = {
      {bytes_of(a), true, true}, {bytes_of(b), true, true}, {bytes_of(c), false, false}};
  return replay_reference(device, gemm_plan(m, n, k), bindings);
}

Result<void> fp8_gemm_fp64_on(device::Device& device, const Fp8GemmOnDevice& g, std::span<double> d,
                              std::span<double> noise) {
  const device::Binding bindings[] = {
      {bytes_of(g.a), true, true}, {bytes_of(g.scale_a), true, true},
      {bytes_of(g.b), true, true}, {bytes_of(g.scale_b), true, true},
      {bytes_of(d), false, false}, {bytes_of(noise), false, false}};
  ReferencePlan plan("fp64_fp8_gemm", kFp64Fp8GemmPtx);
  using P = ReferencePlan;
  std::vector<P::Parameter> parameters;
  for (const device::Binding& binding : bindings)
    parameters.push_back(P::address(plan.argument(binding.bytes.size()), 0));
  for (const int64_t size : {g.m, g.n, g.k, g.scale_b_rows}) parameters.push_back(P::number(size));
  parameters.push_back(P::number(g.rounding));
  plan.launch("ptxbench_fp64_fp8_gemm",
              {static_cast<uint32_t>((g.n + 63) / 64), static_cast<uint32_t>((g.m + 63) / 64), 1},
              parameters);
  return replay_reference(device, plan.take(), bindings);
}

}  // namespace ptxbench::bench
