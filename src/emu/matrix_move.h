#pragma once
// ldmatrix and stmatrix (PTX ISA "Warp-level matrix load/store"): data movement between
// eight-by-eight matrices of 16-bit elements in shared memory and one register per matrix. Which
// lane's address is which row and which lane holds which element, as recorded on an H200
// (tests/data/hw, group "matrix_warp").

#include <cstdint>

namespace ptxbench::emu {

// `rows[8j + i]` is the shared address of row i of matrix j, eight elements (16 bytes), for j <
// count; shared memory is indexed by address & 0xffffff and the caller has checked that the rows
// lie inside. `count` is 1, 2 or 4; `regs[j]` are the 32 lanes of register j.
void ldmatrix(const uint8_t* shared, const uint32_t* rows, int count, bool trans,
              uint32_t* const* regs);
void stmatrix(uint8_t* shared, const uint32_t* rows, int count, bool trans,
              const uint32_t* const* regs);

}  // namespace ptxbench::emu
