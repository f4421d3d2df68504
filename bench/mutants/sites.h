#pragma once
// Faults of synchronisation planted into PTX: each fence, wait, commit, expected byte count,
// arrival, barrier, participant count and guard of a module is left out or changed by one.

#include <string>
#include <vector>

#include "ptx/ast.h"

namespace ptxbench::mutants {

struct Mutant {
  std::string kind;      // what was done: "bar.sync: left out", "mbarrier.init: count + 1", ...
  std::string expected;  // class of the fault: "fatal", "latent", "repaired"
  uint32_t line = 0;     // of the canonical text, from 1
  std::string ptx;       // the instruction before
  std::string text;      // what stands on the line instead
  std::string probe;     // stops the launch where the fault could make a difference
  std::string file;      // CUDA source, innermost but for wrappers
  int source_line = 0;
};

// `module` was parsed from its own printed form, so that every statement has a line to itself.
std::vector<Mutant> enumerate(const ptx::Module& module);

// The module's text with one line replaced.
std::string apply(const std::string& canonical, uint32_t line, const std::string& text);

}  // namespace ptxbench::mutants
