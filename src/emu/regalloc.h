#pragma once
// Register allocation of one PTX function: virtual registers (thousands declared) to slots of a
// small per-warp register file, by liveness and linear scan. Slots of different widths never
// overlap: lanes of a diverged warp may hold different values in one slot, and only columns of
// equal width keep them apart.

#include <cstdint>
#include <vector>

#include "emu/micro_op.h"
#include "ptx/ast.h"

namespace ptxbench::emu {

struct RegisterLayout {
  std::vector<Slot> slot;       // by register index: byte offset, or predicate index for predicates
  uint32_t register_bytes = 0;  // multiple of 64
  uint32_t predicates = 0;      // including the fixed ones
  int live_slots = 0;           // 32-bit words needed at the widest point (sum of slots)
  std::vector<bool> is_matrix;  // by register index: used by some wgmma
  Slot temp32[4] = {}, temp64[4] = {};  // for addresses and special registers
  Slot sink = 0;                        // 512 bytes nobody reads
};

constexpr uint32_t kFixedPredicates = 4;

// Bytes of a register's lane value: 2, 4, 8, 16; 0 for predicates.
int register_bytes(const ptx::Register& reg);

RegisterLayout allocate_registers(const ptx::Function& function);

}  // namespace ptxbench::emu
