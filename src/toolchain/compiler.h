#pragma once
// From a candidate's CUDA source to PTX, machine code and a host library. Device and host passes are
// separate, run side by side in the sandbox, and are cached by content.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::toolchain {

struct Diagnostic {
  enum class Severity : uint8_t { note, warning, error, advisory } severity = Severity::error;
  std::string tool;      // "nvcc", "cudafe", "ptxas", "host-compiler", "linker"
  std::string file;      // as the user knows it (the candidate's own name)
  int line = 0, column = 0;
  std::string code;      // "C7510", "#20", "" if the tool gives none
  std::string text;
};

struct StageTime {
  std::string name;      // "compile.device", "compile.host", "assemble"
  double ms = 0;
  bool cached = false;
};

struct CompileRequest {
  std::string source;                    // CUDA C++ text
  std::string file_name = "candidate.cu";
  std::string arch = "sm_90a";
  std::filesystem::path cache_dir;       // empty: default_cache_dir()
  double timeout_s = 60;                 // per compiler process
  bool trust = false;                    // allow running without a sandbox
};

struct CompiledCandidate {
  bool ok = false;                       // false: diagnostics say why (the candidate's fault)
  std::string failure_reason;            // "does-not-compile", "wrong-target", "compiler-timeout", ...
  std::string ptx;
  std::vector<uint8_t> cubin;
  std::filesystem::path host_library;    // shared object in the cache, linked with -cudart shared
  std::vector<Diagnostic> diagnostics;   // ptxas advisories (C7510, spills, ...) too
  std::vector<StageTime> stages;
};

// An Error means the machine cannot compile at all ("no-compiler", "no-sandbox", "io").
Result<CompiledCandidate> compile(const CompileRequest& request);

std::filesystem::path default_cache_dir();   // $PTXBENCH_CACHE, else $XDG_CACHE_HOME/ptxbench, else ~/.cache/ptxbench

// What doctor prints.
struct ToolInfo { std::string name, path, version; bool found = false; };
std::vector<ToolInfo> find_tools();

}  // namespace ptxbench::toolchain
