#pragma once
// What compilers print, as data. All parsers take the text of stderr (or stdout and stderr
// together) and never fail: a line they don't know is no diagnostic.

#include <string>
#include <string_view>
#include <vector>

#include "toolchain/compiler.h"
#include "toolchain/line_map.h"

namespace ptxbench::toolchain {

// nvcc and what it runs: the CUDA front end ("file(12): error #20: text"), the host compiler
// ("file:12:5: error: text"), the linker, nvcc itself.
std::vector<Diagnostic> parse_nvcc(std::string_view text);

struct AssemblerReport {
  std::vector<Diagnostic> diagnostics;  // errors, warnings, advisories ("C7510", spills as "spill")
  std::vector<KernelResources> kernels;
  bool wrong_target = false;  // an error says that an instruction needs another target
};
// `ptxas -v`, with PTX lines mapped to the CUDA source and hints for the target `arch`.
AssemblerReport parse_ptxas(std::string_view text, const LineMap& lines, const std::string& arch);

// What a wrong-target message about `ptx_text` (the instruction or feature) means for a candidate
// compiled for `arch`: the counterpart there. "" if we know none.
std::string target_hint(std::string_view ptx_text, const std::string& arch);

// What a ptxas advisory means for the kernel's speed or correctness, "" if unknown.
std::string advisory_hint(std::string_view code);

}  // namespace ptxbench::toolchain
