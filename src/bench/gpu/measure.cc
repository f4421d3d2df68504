#include "bench/gpu/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/demangle.h"
#include "toolchain/toolkit.h"

namespace ptxbench::bench {

namespace fs = std::filesystem;

namespace {

// $VARIABLE, the toolkit's folders, else what the loader finds under that name.
std::string library_path(const char* variable, const char* name) {
  if (const char* path = std::getenv(variable)) return path;
  std::error_code error;
  if (auto toolkit = toolchain::find_toolkit(); toolkit.ok())
    for (const char* folder : {"lib64", "targets/x86_64-linux/lib", "lib"})
      if (const fs::path path = toolkit->home / folder / name; fs::exists(path, error))
        return path.string();
  return name;
}

}  // namespace

std::optional<device::cuda::LoadLibrary> frontier_library(const Task& task,
                                                          const AxisValues& axes) {
  struct Row {
    const char *op_type, *tag, *compute_type, *routine;
    std::vector<const char*> sizes;
  };
  static const Row kRows[] = {
      {"gemm", "", "bf16.bf16.f32", "cublaslt-bf16", {"M", "N", "K"}},
      {"fp8_gemm", "recipe:1d2d", "e4m3.e4m3.f32", "cublaslt-fp8-1d2d", {"m", "n", "k"}},
      {"fp8_gemm", "recipe:1d1d", "e4m3.e4m3.f32", "cublaslt-fp8-1d1d", {"m", "n", "k"}},
      {"mha", "", "bf16.bf16.f32", "cudnn-sdpa", {"B", "H", "S", "D"}},
      {"mha_bwd", "", "bf16.bf16.f32", "cudnn-sdpa-backward", {"B", "H", "S", "D"}},
      {"fp8_mha", "", "e4m3.e4m3.f32", "cudnn-sdpa-fp8", {"B", "H", "L", "D"}}};
  const auto& tags = task.definition.tags;
  const auto has = [&](const std::string& tag) {
    return tag.empty() || std::find(tags.begin(), tags.end(), tag) != tags.end();
  };
  for (const Row& row : kRows) {
    if (task.definition.op_type != row.op_type || !has(row.tag) ||
        task.requirements.compute_type != row.compute_type)
      continue;
    device::cuda::LoadLibrary library;
    library.routine = row.routine;
    library.path = library.routine.starts_with("cublaslt")
                       ? library_path("PTXBENCH_CUBLASLT", "libcublasLt.so.13")
                       : library_path("PTXBENCH_CUDNN", "libcudnn.so.9");
    for (const char* axis : row.sizes) library.sizes.push_back(axis_value(axes, axis));
    library.causal = has("mask:causal");
    return library;
  }
  return std::nullopt;
}

double compulsory_bytes(const Task& task, const AxisValues& axes) {
  double bytes = 0;
  for (const auto* tensors : {&task.definition.inputs, &task.definition.outputs})
    for (const TensorSpec& spec : *tensors) {
      double elements = 1;
      if (auto shape = resolve_shape(spec, axes); shape.ok())
        for (const int64_t size : *shape) elements *= static_cast<double>(size);
      bytes += elements * (spec.dtype == "float32" ? 4 : spec.dtype.find("float8") == 0 ? 1 : 2);
    }
  return bytes;
}

void summarise(const TimingDevice& timing, Contestant* baseline, Performance& p) {
  p.timer = "cuda-events";
  p.candidate_ms = median(timing.first_ms);
  p.candidate_end_to_end_ms = median(timing.first_host_ms);
  p.launches = timing.first_ms.size() + timing.first_host_ms.size();
  if (baseline != nullptr) {
    p.baseline_ms = median(timing.second_ms);
    p.baseline_end_to_end_ms = median(timing.second_host_ms);
    p.baseline = baseline->description();
    const RatioInterval ratio = ratio_of_medians(timing.first_ms, timing.second_ms);
    p.speedup = ratio.ratio, p.speedup_low = ratio.low, p.speedup_high = ratio.high;
  }
  p.sm_mhz_low = static_cast<int>(timing.low.sm_mhz);
  p.sm_mhz_high = static_cast<int>(timing.high.sm_mhz);
  p.memory_mhz = static_cast<int>(timing.high.memory_mhz);
  p.watts_high = timing.high.watts;
  p.throttle_reasons = timing.high.throttle_reasons;
}

std::vector<std::string> causes(const Verdict& verdict, const plan::LaunchPlan& plan,
                                const device::cuda::DeviceInfo& info,
                                const std::vector<device::cuda::KernelInfo>& kernels,
                                uint64_t throttle_reasons) {
  constexpr uint64_t kPowerLimit = 0x4;
  std::vector<std::string> out;
  for (const toolchain::Diagnostic& d : verdict.diagnostics)
    if (d.severity == toolchain::Diagnostic::Severity::advisory)
      out.push_back(fmt::format("ptxas {}: {}", d.code, d.text));
  size_t next = 0;
  for (const plan::Step& step : plan.steps) {
    const auto* launch = std::get_if<plan::Launch>(&step);
    if (launch == nullptr || next >= kernels.size()) continue;
    const device::cuda::KernelInfo& kernel = kernels[next++];
    const std::string name = demangled_function(kernel.name);
    if (kernel.local_bytes > 0)
      out.push_back(
          fmt::format("{}: {} bytes of local memory a thread (spills)", name, kernel.local_bytes));
    const double slots = static_cast<double>(info.sm_count) * std::max(kernel.resident_ctas, 1);
    const double waves = static_cast<double>(launch->grid.count()) / slots;
    const double used = waves / std::ceil(waves);
    if (used < 0.9)
      out.push_back(fmt::format("{}: {} CTAs fill {:.0f} % of {:.0f} waves of {:.0f}", name,
                                launch->grid.count(), 100 * used, std::ceil(waves), slots));
  }
  if (throttle_reasons & kPowerLimit) out.push_back("the card was at its power limit");
  return out;
}

void judge_performance(const Performance& p, Verdict& verdict) {
  verdict.level = Level::strategy;
  if (p.verified != p.launches) {
    verdict.reason = "not-verified";
    verdict.message = fmt::format("{} of {} timed outputs were verified", p.verified, p.launches);
  } else if (p.implausible) {
    verdict.reason = "implausible";
    verdict.message =
        fmt::format("{:.4g} ms is less than this card needs for the work ({:.4g} ms): not ranked",
                    p.candidate_ms, p.floor_ms);
  } else if (p.baseline_ms <= 0) {
    verdict.reason = "no-baseline";
    verdict.message =
        fmt::format("{:.4g} ms, {:.0f} % of the speed of light; no library is known for this task",
                    p.candidate_ms, 100 * p.speed_of_light);
  } else {
    if (p.speedup >= 1) verdict.level = Level::frontier;
    verdict.reason = p.speedup >= 1 ? "frontier" : "below-frontier";
    verdict.message = fmt::format(
        "{:.4g} ms against {:.4g} ms of {}: {:.3f} of its speed [{:.3f}, {:.3f}], {:.0f} % of "
        "the speed of light",
        p.candidate_ms, p.baseline_ms, p.baseline, p.speedup, p.speedup_low, p.speedup_high,
        100 * p.speed_of_light);
  }
}

}  // namespace ptxbench::bench
