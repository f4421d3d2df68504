#pragma once
// Whether the assembler really mends what a finding of class `repaired` says: the missing
// instruction is put in, the kernel assembled once more, and the machine code compared.

#include <functional>
#include <string>

#include "base/result.h"
#include "plan/run_result.h"
#include "toolchain/compiler.h"

namespace ptxbench::bench {

using Assemble =
    std::function<Result<toolchain::CompiledCandidate>(const toolchain::CompileRequest&)>;

// The PTX with the instruction that `finding` misses before the one that it cites; "" where no
// single instruction is missing (only wgmma.fence, commit_group and wait_group are known).
std::string with_missing_instruction(const std::string& ptx, const plan::Finding& finding);

enum class Repair {
  not_tried,  // nothing to put in, or one of the two texts does not assemble
  same,       // the kernel's machine code is the same, byte for byte
  other       // what the assembler does instead differs
};
// Errors: those of `assemble`.
Result<Repair> reassemble(const std::string& ptx, const plan::Finding& finding,
                          const std::string& arch, const Assemble& assemble);

}  // namespace ptxbench::bench
