#include "cudart/cuda_error.h"

#include <fmt/format.h>

namespace ptxbench::cudart {

std::string cuda_error_name(uint32_t error) {
  switch (error) {
    case 1:
      return "cudaErrorInvalidValue";
    case 2:
      return "cudaErrorMemoryAllocation";
    case 9:
      return "cudaErrorInvalidConfiguration";
    case 13:
      return "cudaErrorInvalidSymbol";
    case 98:
      return "cudaErrorInvalidDeviceFunction";
    case 209:
      return "cudaErrorNoKernelImageForDevice";
    case 701:
      return "cudaErrorLaunchOutOfResources";
    case 720:
      return "cudaErrorCooperativeLaunchTooLarge";
    case 912:
      return "cudaErrorInvalidClusterSize";
    default:
      return fmt::format("CUDA error {}", error);
  }
}

}  // namespace ptxbench::cudart
