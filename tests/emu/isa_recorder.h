#pragma once
// What the tests of this program have executed. A form counts as covered when a test that executed
// it has passed; isa_coverage_test.cc compares the sum with the instruction table at the end.

#include <string>

#include "ptx/ast.h"

namespace ptxbench::emu::isa {

// The running test executed this instruction to its end and looks at what came out.
void executed(const ptx::Instruction& instruction);
// The same, by text up to the first blank: "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32".
void executed(const std::string& text);

}  // namespace ptxbench::emu::isa
