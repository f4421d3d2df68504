#pragma once
// Addresses and values of the lanes of a warp-level access, shared by the ops_*.cc files.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "emu/executor.h"

namespace ptxbench::emu {

constexpr int kImageBytes = 32;  // of a lane, in images of warp-level accesses

// Effective address of every lane (garbage in lanes outside the mask is fine).
inline void lane_addresses(const Warp& w, const MemorySite& m, uint64_t out[32]) {
  switch (m.base_kind) {
    case MemorySite::Base::absolute:
      for (int l = 0; l < 32; l++) out[l] = static_cast<uint64_t>(m.offset);
      break;
    case MemorySite::Base::shared_constant: {
      uint64_t a =
          (w.cta->rank << kSharedRankShift | kReservedShared) + static_cast<uint64_t>(m.offset);
      for (int l = 0; l < 32; l++) out[l] = a;
      break;
    }
    case MemorySite::Base::reg:
      if (m.base_bytes == 8) {
        const uint64_t* base = source<uint64_t>(w, m.base);
        for (int l = 0; l < 32; l++) out[l] = base[l] + static_cast<uint64_t>(m.offset);
      } else {
        const uint32_t* base = source<uint32_t>(w, m.base);
        for (int l = 0; l < 32; l++)
          out[l] = static_cast<uint32_t>(base[l] + static_cast<uint32_t>(m.offset));
      }
      break;
  }
}

// The CTA of the cluster that a shared (or generic shared-window) address belongs to, and the
// offset; null if it is no such address.
inline Cta* shared_target(const Warp& w, uint64_t address, uint32_t* offset) {
  if (address >> 32 && !in_window(address, kSharedWindow)) return nullptr;
  uint32_t a = static_cast<uint32_t>(address);
  uint32_t rank = a >> kSharedRankShift;
  *offset = a & kSharedOffsetMask;
  Cluster& c = *w.cta->cluster;
  return rank < c.ctas.size() ? c.ctas[rank].get() : nullptr;
}

template <class F>
inline void for_each_lane(uint32_t mask, F&& f) {
  for (uint32_t m = mask; m; m &= m - 1) f(std::countr_zero(m));
}

// Distributes per-lane memory images (stride 32 bytes) to destination registers, extending to their
// width.
void scatter_to_registers(Warp& w, const MemorySite& m, uint32_t mask, const uint8_t* image);
// The inverse, for stores.
void gather_from_registers(const Warp& w, const MemorySite& m, uint32_t mask, uint8_t* image);

// Reports a tensor map that the kernel changed and this warp has not acquired (ops_tensormap.cc).
void check_map_fence(Warp& w, uint64_t address, int lane);

// A load or store of the lanes at given addresses in global, shared or generic space, checked and
// counted as ld and st are; `m` says registers and widths, its address is not used. After a fault
// LaunchState::stop is set.
void access_lanes(Warp& w, const MemorySite& m, ptx::Space space, const uint64_t* address,
                  uint32_t mask);

}  // namespace ptxbench::emu
