#pragma once
// Launch attributes and function attributes: numbers and layouts are the same in driver and
// runtime.

#include <cuda.h>

#include <string>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart {

inline int apply_attributes(const CUlaunchAttribute* attributes, unsigned count, LaunchCall* call) {
  for (unsigned i = 0; i < count; ++i) {
    const CUlaunchAttributeValue& value = attributes[i].value;
    switch (attributes[i].id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        call->cluster[0] = value.clusterDim.x;
        call->cluster[1] = value.clusterDim.y;
        call->cluster[2] = value.clusterDim.z;
        if (value.clusterDim.x == 0 || value.clusterDim.y == 0 || value.clusterDim.z == 0)
          return ptxbench_backend()->refuse(kInvalidClusterSize,
                                            "launch attribute clusterDim has a zero extent");
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        call->cooperative = value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        call->programmatic_serialization = value.programmaticStreamSerializationAllowed != 0;
        break;
      // Hints: they change speed, never results.
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        break;
      default: {
        const std::string what = "launch attribute " + std::to_string(attributes[i].id);
        return ptxbench_backend()->unsupported(what.c_str());
      }
    }
  }
  return kSuccess;
}

// The parameter block of a launch's `extra` list.
inline void read_packed(void** extra, LaunchCall* call) {
  for (size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END && i < 8; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) call->packed = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      call->packed_bytes = *static_cast<size_t*>(extra[i + 1]);
  }
}

inline int set_function_attribute(Kernel* kernel, int attribute, int value) {
  if (!kernel)
    return ptxbench_backend()->refuse(kInvalidDeviceFunction,
                                      "function attribute of no registered kernel");
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int most =
          DeviceProfile::kSharedPerBlockOptin - static_cast<int>(kernel->static_shared());
      if (value < 0 || value > most) {
        const std::string why = std::string(kernel->name) + ": " + std::to_string(value) +
                                " bytes of dynamic shared memory requested, at most " +
                                std::to_string(most) + " are possible";
        return ptxbench_backend()->refuse(kInvalidValue, why.c_str());
      }
      kernel->max_dynamic_shared = static_cast<uint32_t>(value);
      return kSuccess;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return kernel->carveout = value, kSuccess;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return kernel->non_portable_cluster = value != 0, kSuccess;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return kSuccess;
    default: {
      const std::string what = "function attribute " + std::to_string(attribute);
      return ptxbench_backend()->unsupported(what.c_str());
    }
  }
}

}  // namespace ptxbench::cudart
