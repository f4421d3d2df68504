#pragma once
// The emulated device's address space. Generic addresses of the windows are told apart by their
// upper 32 bits; everything else is global memory.

#include <cstdint>

namespace ptxbench::emu {

constexpr uint64_t kSharedWindow = uint64_t{0x7e00} << 32;  // + (cluster rank << 24 | offset)
constexpr uint64_t kLocalWindow = uint64_t{0x7e01} << 32;
constexpr uint64_t kParamWindow = uint64_t{0x7e02} << 32;
constexpr uint64_t kFunctionWindow = uint64_t{0x7e03}
                                     << 32;  // + function index; only call may use it
// Where neither the heap, nor libraries, nor stacks of a process are put, so that memory which host
// code shares with kernels can be mapped at its device address.
constexpr uint64_t kGlobalBase = uint64_t{0x1100} << 32;
constexpr uint64_t kGlobalSlotBytes = uint64_t{2}
                                      << 20;  // every allocation starts on a slot of its own

// The first KiB of a CTA's shared memory belongs to the system (measured: user data starts at
// 0x400).
constexpr uint32_t kReservedShared = 0x400;
constexpr uint32_t kSharedRankShift = 24;
constexpr uint32_t kSharedOffsetMask = (1u << kSharedRankShift) - 1;

inline bool in_window(uint64_t address, uint64_t window) {
  return (address >> 32) == (window >> 32);
}

}  // namespace ptxbench::emu
