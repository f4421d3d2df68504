#pragma once
// PTX text to AST.

#include <string_view>

#include "base/result.h"
#include "ptx/ast.h"

namespace ptxbench::ptx {

// Parses a whole module. The error (kind "ptx-syntax") names line, column, what was found, what was
// expected, and for a misspelt opcode or modifier the nearest legal one. Never throws, never
// crashes on any bytes; nesting and sizes are bounded.
Result<Module> parse(std::string_view text, std::string_view file_name = "");

// The dotted opcode as written, e.g. "ld.global.v4.u32".
std::string mnemonic(const Instruction& instruction);
// One instruction back to text (no trailing newline), e.g. "@%p1 ld.global.v4.u32
// {%r1,%r2,%r3,%r4}, [%rd1+16];".
std::string print(const Instruction& instruction, const Function& function, const Module& module);
// A whole module; parse(print(m)) gives an equal AST up to lines and columns.
std::string print(const Module& module);

}  // namespace ptxbench::ptx
