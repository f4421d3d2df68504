#pragma once
// From an instruction to the source lines that it came from: the .loc in force and the chain of
// calls into which the compiler inlined it (PTX ISA 9.0, 11.5.3 and 11.5.4: .file, .loc).

#include <string>
#include <vector>

#include "ptx/ast.h"

namespace ptxbench::ptx {

struct SourceFrame {
  std::string file;  // as in .file; "" where the module does not name it
  int line = 0, column = 0;
  std::string function;  // mangled name of the inlined function, "" for the outermost frame
  bool operator==(const SourceFrame&) const = default;
};

// Innermost frame first, then outwards call by call; empty without line information. At most 33
// frames: a malformed .loc may form a ring.
std::vector<SourceFrame> source_chain(const Module& module, uint32_t location);
inline std::vector<SourceFrame> source_chain(const Module& module, const Instruction& i) {
  return source_chain(module, i.loc);
}

// "gemm.cuh:112 in _Z4loadv, inlined at gemm.cu:40"; "" for an empty chain. Files without folder.
std::string to_string(const std::vector<SourceFrame>& chain);

}  // namespace ptxbench::ptx
