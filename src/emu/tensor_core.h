#pragma once
// Warpgroup matrix multiply (PTX ISA "wgmma.mma_async") as arithmetic on a shared-memory image and
// register fragments. No scheduling, no asynchrony: those are the core's. Numbers as measured on an
// H200, see tests/data/hw/README.md; layouts of fragments and descriptors likewise.

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "plan/run_result.h"
#include "ptx/opcodes.h"

namespace ptxbench::emu {

// Bits of a shared-memory matrix descriptor.
struct MatrixDescriptor {
  uint32_t start = 0;        // bytes
  uint32_t leading = 0;      // LBO, bytes
  uint32_t stride = 0;       // SBO, bytes
  uint32_t base_offset = 0;  // 0..7
  uint32_t swizzle = 0;      // bytes: 0, 32, 64, 128
};
MatrixDescriptor decode_descriptor(uint64_t bits);

// The shared address of the first byte of element (mn, k) after swizzling; element_bytes 1, 2 or 4.
uint32_t element_address(const MatrixDescriptor& d, bool mn_major, int element_bytes, int mn,
                         int k);

// Calls f(address, bytes) for every contiguous piece (at most 16 bytes, never straddling a 16-byte
// chunk) of an operand of mn x k elements. Used to check initialisation, poison and overlap.
void for_each_chunk(const MatrixDescriptor& d, bool mn_major, int element_bytes, int mn, int k,
                    const std::function<void(uint32_t address, uint32_t bytes)>& f);

struct WgmmaForm {
  int n = 8, k = 16;
  ptx::Type a{}, b{}, d{};  // bf16, f16, tf32, e4m3, e5m2, s8, u8, b1 (.and.popc); d: f32, f16, s32
  bool a_in_registers = false;
  bool negate_a = false, negate_b = false;
  bool a_mn_major = false, b_mn_major = false;    // "trans" immediates
  bool saturate = false;                          // .satfinite, integers
  bool sparse = false;                            // .sp: A holds half of K, see emu/sparse.h
  int selector = 0;                               // of the threads whose metadata counts
  int a_k() const { return sparse ? k / 2 : k; }  // elements of a row of A, as stored
};
// Elements of K as descriptors count them: a byte of b1 is one.
inline int addressed(const WgmmaForm& form, int k) { return form.a == ptx::Type::b1 ? k / 8 : k; }
// Of each of the four warps; multiply and add counted separately.
inline double flop_of_warp(const WgmmaForm& form) { return 2.0 * 16 * form.n * form.k; }
// Which forms exist here; the error ("unsupported") names what is missing.
Result<void> check(const WgmmaForm& form);

struct WgmmaOperands {
  const uint8_t* shared = nullptr;  // CTA's shared memory; index = shared address & 0xffffff
  uint32_t shared_bytes = 0;        // addresses at or above read as zero (the caller reports them)
  uint64_t a_descriptor = 0, b_descriptor = 0;
  const uint32_t* a[4][4] = {};      // [warp of the warpgroup][register] -> 32 lanes
  const uint32_t* metadata[4] = {};  // [warp] -> 32 lanes; sparse forms
  uint32_t* d[4][128] = {};          // [warp][register] -> 32 lanes, read and written
  bool scale_d = true;               // false: D = A*B
  uint32_t warps = 0xf;              // which warps' 16-row slices to compute
};
// Computes D = A*B (+ D) for the selected slices. Thread-safe (thread-local scratch). Bit-identical
// on every CPU in modes hw and f32.
void wgmma(const WgmmaForm& form, const WgmmaOperands& operands, plan::TensorMode mode);

}  // namespace ptxbench::emu
