#pragma once
// One pass of one candidate through the compilers, in the sandbox, without the cache.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "toolchain/compiler.h"
#include "toolchain/toolkit.h"

namespace ptxbench::toolchain {

struct PassInput {
  std::string source, file_name, arch;
  std::vector<std::filesystem::path> include_dirs;
  std::vector<std::pair<std::string, std::string>> extra_files;
  Toolkit toolkit;
  std::filesystem::path small_headers;      // the project's own TVM-FFI headers
  std::filesystem::path published_headers;  // empty: not on this machine
  double timeout_s = 60;
  bool trust = false;
};

struct PassOutput {
  std::string failure_reason;  // "" = fine
  std::vector<Diagnostic> diagnostics;
  bool published_headers = false;
  bool cacheable = true;  // false: the outcome depends on the machine's mood (time, a crash)
  std::vector<KernelResources> kernels;
  std::string ptx, cubin, library;  // contents
  double compile_ms = 0, assemble_ms = 0;
};

// CUDA source → PTX → machine code.
Result<PassOutput> device_pass(const PassInput& input);
// PTX → machine code.
Result<PassOutput> ptx_pass(const PassInput& input);
// CUDA source → host shared object.
Result<PassOutput> host_pass(const PassInput& input);

// Changes whenever the passes would make something else of the same input.
std::string pass_version();

nlohmann::json to_json(const PassOutput& output);  // without the contents
bool from_json(const nlohmann::json& json, PassOutput* output);

}  // namespace ptxbench::toolchain
