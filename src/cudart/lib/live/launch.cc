// Kernel launches: checks, the emulator, and what becomes of a fault.
#include <cstdio>
#include <cstring>

#include "cudart/lib/launch_checks.h"
#include "cudart/lib/live/backend.h"
#include "cudart/lib/text.h"

namespace ptxbench::cudart::live {
namespace {

plan::Dim3 extents(const uint32_t* v) { return {v[0], v[1], v[2]}; }

// The error that host code sees after a kernel has stopped.
int status_after(const plan::RunResult& result) {
  if (result.status == plan::RunStatus::unsupported) return kNotSupported;
  if (result.status != plan::RunStatus::fault) return kLaunchTimeout;
  for (const plan::Finding& f : result.findings) {
    if (f.hazard != plan::HazardClass::fatal || f.message != result.message) continue;
    if (f.kind == "device-assert") return kAssert;
    if (f.kind == "misaligned") return kMisalignedAddress;
    if (f.kind == "out-of-bounds" || f.kind == "write-to-input") return kIllegalAddress;
  }
  return kLaunchFailure;
}

// As the driver prints a failed assertion, for the first thread of the warp.
void print_assertion(const plan::Finding& f, const plan::Dim3& block) {
  const auto lane = static_cast<uint32_t>(f.lanes ? __builtin_ctz(f.lanes) : 0);
  const uint32_t thread = static_cast<uint32_t>(std::max(f.warp, 0)) * 32 + lane;
  std::fprintf(stderr, "%s: block: [%u,%u,%u], thread: [%u,%u,%u] %s\n", f.kernel.c_str(), f.cta[0],
               f.cta[1], f.cta[2], thread % block.x, thread / block.x % block.y,
               thread / block.x / block.y, f.message.c_str());
}

}  // namespace

int LiveBackend::prepare(const LaunchCall& call, KernelOp* out) {
  if (!call.kernel)
    return refuse(kInvalidDeviceFunction, "launch of a function that is no kernel of the program");
  uint32_t cluster[3];
  settle_cluster(call, cluster);
  if (const int status = check_launch(*this, call, cluster)) return status;
  if (!pack_arguments(call, &out->params))
    return refuse(kInvalidValue, text("%s: too few kernel arguments", call.kernel->name).c_str());
  out->kernel = call.kernel;
  out->function = call.kernel;
  out->explicit_cluster = cluster[0] != 0;
  for (int i = 0; i < 3; ++i) {
    out->grid[i] = call.grid[i];
    out->block[i] = call.block[i];
    out->cluster[i] = std::max<uint32_t>(cluster[i], 1);
  }
  out->cooperative = call.cooperative;
  out->programmatic = call.programmatic_serialization;
  out->dynamic_shared = static_cast<uint32_t>(call.dynamic_shared);
  return kSuccess;
}

int LiveBackend::launch(const LaunchCall& call) {
  std::lock_guard lock(mutex_);
  if (sticky_) return sticky_;
  KernelOp op;
  if (const int status = prepare(call, &op)) return status;
  return submit(call.stream, std::move(op));
}

int LiveBackend::execute(const KernelOp& op) {
  auto* kernel = static_cast<LiveKernel*>(op.kernel);
  emu::LaunchRequest request;
  request.kernel = kernel->own_name;
  request.grid = extents(op.grid);
  request.block = extents(op.block);
  request.cluster = extents(op.cluster);
  request.explicit_cluster = op.explicit_cluster;
  request.cooperative = op.cooperative;
  request.dynamic_shared = op.dynamic_shared;
  request.params = op.params;
  plan::RunResult result;
  const auto done = emulator_.launch(kernel->module->handle, request, options_, &result);
  if (!done.ok()) {
    unsupported(("kernel " + kernel->own_name + ": " + done.error().message).c_str());
    return kNotSupported;
  }
  return settle(op, result);
}

// Like a GPU, the launch itself succeeds; whatever comes after it fails.
int LiveBackend::settle(const KernelOp& op, const plan::RunResult& result) {
  const bool news = !result.findings.empty() || result.status != plan::RunStatus::completed;
  report_.add(result);
  if (result.status != plan::RunStatus::completed) {
    sticky_ = status_after(result);
    std::string kind = "deadlock";
    if (result.status == plan::RunStatus::fault) kind = "fault";
    report_.stopped(sticky_, kind, result.message);
    if (sticky_ == kAssert)
      for (const plan::Finding& f : result.findings)
        if (f.kind == "device-assert") print_assertion(f, extents(op.block));
  }
  if (news) report_.save();
  return kSuccess;
}

int LiveBackend::execute(const HostOp& op) {
  static thread_local bool inside = false;
  if (inside) return kNotPermitted;
  inside = true;
  const int depth = mutex_.leave();
  op.function(op.data);
  mutex_.enter(depth);
  inside = false;
  return kSuccess;
}

}  // namespace ptxbench::cudart::live
