#pragma once
// Conversions are chosen by register widths as well as types: an integer may sit in a register
// wider than its type.
#include "emu/scalar/level.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

// cvt between integers; register widths in bytes. Bits 0..7 of `extra`: destination type, 8..15:
// source type.
Handler cvt_int_to_int(int to_bytes, int from_bytes, uint16_t extra, bool saturate);
// cvt from an integer (type in extra) to f16, bf16, f32, f64; flags: the runtime modifiers.
Handler cvt_int_to_float(ptx::Type to, int from_bytes, uint16_t extra, uint64_t flags);
// cvt from f16, bf16, f32, f64 to an integer (type in extra).
Handler cvt_float_to_int(int to_bytes, ptx::Type from, uint16_t extra, uint64_t flags);

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
