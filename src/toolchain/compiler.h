#pragma once
// From a candidate's CUDA source to PTX, machine code and a host library. Device and host passes
// are separate, run side by side in the sandbox, and are cached by content.
//
// The host library exports nothing but the `__tvm_ffi_*` entry points. Built with the project's own
// small TVM-FFI headers (src/toolchain/ffi) it needs from its process only the CUDA runtime and
// driver, TVMFFIEnvGetStream and TVMFFIErrorSetRaisedFromCStr; a candidate that uses more of
// TVM-FFI is compiled again with the published headers and then needs libtvm_ffi.so.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::toolchain {

struct Diagnostic {
  enum class Severity : uint8_t { note, warning, error, advisory } severity = Severity::error;
  std::string tool;  // "nvcc", "cudafe", "ptxas", "host-compiler", "linker"
  std::string file;  // as the user knows it (the candidate's own name)
  int line = 0, column = 0;
  std::string code;  // "C7510", "#20", "spill", "" if the tool gives none
  std::string text;
  int ptx_line =
      0;  // where ptxas spoke of one; `file` and `line` are then mapped back to the source
  std::string hint;  // what to do about it, "" if we don't know
};

struct StageTime {
  std::string name;  // "compile.device", "compile.host", "assemble"
  double ms = 0;
  bool cached = false;
};

// What `ptxas -v` says of one kernel; sizes in bytes.
struct KernelResources {
  std::string name;
  int registers = 0, barriers = 0;
  uint64_t stack = 0, spill_stores = 0, spill_loads = 0, static_shared = 0;
};

struct CompileRequest {
  std::string source;   // CUDA C++ text, or PTX with `is_ptx`
  bool is_ptx = false;  // assemble only: no host library
  std::string file_name = "candidate.cu";
  std::string arch = "sm_90a";
  // Further files of the candidate, for #include: path relative to its source and contents. At most
  // 1000, 8 MiB together; a path holds plain names only.
  std::vector<std::pair<std::string, std::string>> extra_files;
  // Further folders for #include, before the project's own include/. What they hold counts for the
  // cache, so give small ones (at most 1000 headers, 64 MiB).
  std::vector<std::filesystem::path> include_dirs;
  std::filesystem::path cache_dir;  // empty: default_cache_dir()
  double timeout_s = 60;            // per compiler process
  bool trust = false;               // allow running without a sandbox
};

struct CompiledCandidate {
  bool ok = false;  // false: diagnostics say why (the candidate's fault)
  // "does-not-compile", "wrong-target", "compiler-timeout", "compiler-crash" (a compiler died on
  // it), "undefined-symbol" (the host code calls what nobody defines), "banned-call"
  std::string failure_reason;
  std::string ptx;
  std::vector<uint8_t> cubin;
  std::filesystem::path host_library;   // shared object in the cache, linked with -cudart shared
  std::vector<Diagnostic> diagnostics;  // ptxas advisories (C7510, spills, ...) too
  std::vector<KernelResources> kernels;
  std::vector<StageTime> stages;
  bool published_headers = false;  // the host library was built with the published TVM-FFI headers
};

// An Error means the machine cannot compile at all ("no-compiler", "no-sandbox", "io") or the
// request makes no sense ("usage": unknown architecture, empty or huge source, include folder).
Result<CompiledCandidate> compile(const CompileRequest& request);

// $PTXBENCH_CACHE, else $XDG_CACHE_HOME/ptxbench, else ~/.cache/ptxbench
std::filesystem::path default_cache_dir();

// What doctor prints.
struct ToolInfo {
  std::string name, path, version;
  bool found = false;
};
std::vector<ToolInfo> find_tools();

}  // namespace ptxbench::toolchain
