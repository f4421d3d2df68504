#pragma once
// Where the CUDA toolkit and the published TVM-FFI headers are on this machine.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::toolchain {

struct Toolkit {
  std::filesystem::path home;  // holds bin/nvcc and include/
  std::filesystem::path nvcc, ptxas;
  std::string version;  // nvcc's release and build, one line
};

// Searched in $PTXBENCH_CUDA_HOME, $CUDA_HOME, PATH, /usr/local/cuda, <venv>/cuda; found once per
// process. Error: "no-compiler".
Result<Toolkit> find_toolkit();

// A library of the toolkit by stem ("cudart", "cuda"), for the linker; empty if there is none.
std::filesystem::path find_cuda_library(const Toolkit& toolkit, const std::string& stem);

// The folder of the published TVM-FFI package (include/, lib/): $PTXBENCH_TVM_FFI_HOME or in the
// venv; empty if there is none.
std::filesystem::path find_tvm_ffi();

// Folders that must be visible in the sandbox for the toolkit to work.
std::vector<std::filesystem::path> toolkit_folders(const Toolkit& toolkit);

}  // namespace ptxbench::toolchain
