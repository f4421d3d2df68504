#pragma once
// Mistakes in asynchronous Hopper and Blackwell code that show without running it.
//
// Each is either certain (no path does it right) or possible (some path of the control-flow graph
// does it wrong; whether that path can be taken is not known). Guards are not followed: a guarded
// instruction counts as executed. Where a kernel calls functions with bodies of their own, what the
// callee may have done is believed. Only entries are judged at their exits.

#include <string>
#include <vector>

#include "ptx/ast.h"

namespace ptxbench::ptx {

struct StaticHazard {
  std::string kind;  // "wgmma-without-fence", ...: stable
  bool certain = false;
  std::string function;
  uint32_t line = 0;   // in the PTX, of the first site
  uint32_t sites = 1;  // instructions with the same hazard
  std::string ptx;     // the instruction, shortened
  std::string source;  // chain of source lines, "" if unknown
  std::string message;
};

// In the order of functions and lines; one for each kind and function.
std::vector<StaticHazard> static_hazards(const Module& module);

// Every kind with what it means, for documentation and tests.
struct HazardKind {
  const char* kind;
  bool certain;
  const char* message;
};
const std::vector<HazardKind>& hazard_kinds();

}  // namespace ptxbench::ptx
