#pragma once
// Names of the CUDA runtime errors that recording hands out, for messages.

#include <cstdint>
#include <string>

namespace ptxbench::cudart {

std::string cuda_error_name(uint32_t error);

}  // namespace ptxbench::cudart
