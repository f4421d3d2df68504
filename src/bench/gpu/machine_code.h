#pragma once
// What machine code contains of the instruction families of PTX: read off nvdisasm's listing. Only
// instructions count that control flow can reach from the kernel's entry.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/verdict.h"

namespace ptxbench::bench {

struct MachineSites {
  // Instructions by family ("wgmma.mma_async"), of all kernels asked for.
  std::map<std::string, uint64_t> reachable, unreachable;
  std::set<std::string> kernels;  // those that were found
};

// The family of an opcode such as "HGMMA.64x256x16.F32.BF16"; "" for all others.
std::string family_of_opcode(std::string_view opcode);

// `listing`: of `nvdisasm -c`, for one module. Every label that a reachable instruction names, or
// any label where a jump is computed, counts as reachable.
MachineSites sites_in_listing(std::string_view listing, const std::set<std::string>& kernels);

// Disassembles modules. Errors: "not-found" (no nvdisasm), "unsupported" (it does not read the
// code, or a kernel is missing).
Result<MachineSites> machine_sites(std::span<const std::vector<uint8_t>> cubins,
                                   const std::set<std::string>& kernels);

// Notes the sites of each family; level 4 where a required one is not in the machine code.
void judge_machine_code(const MachineSites& sites, Verdict& verdict);

}  // namespace ptxbench::bench
