// Kernel launches: the record.

#include "cudart/lib/launch_checks.h"
#include "cudart/lib/record_backend.h"
#include "cudart/lib/text.h"

namespace ptxbench::cudart {
int RecordBackend::check_target() {
  if (runs_on(request_->ptx_target, profile_)) return kSuccess;
  return refuse(kNoKernelImage,
                text("the code is for %s, the device (%s) is compute capability %d.%d",
                     request_->ptx_target.c_str(), profile_.name, profile_.major, profile_.minor)
                    .c_str());
}

int RecordBackend::launch(const LaunchCall& call) {
  std::lock_guard lock(mutex_);
  if (!call.kernel)
    return refuse(kInvalidDeviceFunction, "launch of a function that is no registered kernel");
  const wire::KernelInfo* info = call.kernel->info;
  if (!info)
    return refuse(
        kInvalidDeviceFunction,
        text("kernel %s is not in the candidate's device code", call.kernel->name).c_str());
  if (const int status = check_target()) return status;
  uint32_t cluster[3];
  settle_cluster(call, cluster);
  if (const int status = check_launch(*this, call, cluster)) return status;
  std::vector<uint8_t> params;
  if (!pack_arguments(call, &params))
    return refuse(kInvalidValue, text("%s: too few kernel arguments", call.kernel->name).c_str());
  wire::Writer w;
  w.put_string(info->name);
  for (int i = 0; i < 3; ++i) w.put(call.grid[i]);
  for (int i = 0; i < 3; ++i) w.put(call.block[i]);
  for (int i = 0; i < 3; ++i) w.put(std::max<uint32_t>(cluster[i], 1));
  w.put(static_cast<uint8_t>(cluster[0] != 0));
  w.put(static_cast<uint8_t>(call.cooperative));
  w.put(static_cast<uint8_t>(call.programmatic_serialization));
  w.put(static_cast<uint32_t>(call.dynamic_shared));
  w.put(call.kernel->max_dynamic_shared);
  w.put(stream_number(call.stream));
  w.put_bytes(params.data(), params.size());
  emit(wire::Kind::launch, w);
  launched_ = true;
  return kSuccess;
}

}  // namespace ptxbench::cudart
