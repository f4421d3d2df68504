// ld and st in every state space, with the memory checker.
//
// A warp-level access goes through an image of 32 bytes per lane: addresses are read first (a
// destination may share its slot with the base register), then bytes move between memory and the
// image, then between the image and the registers with sign or zero extension.

#include <fmt/format.h>

#include <algorithm>

#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu {
namespace {

template <class T, class R>
void to_register(const uint8_t* image, R* dst, uint32_t mask) {
  if (mask == ~0u) {
    for (int l = 0; l < 32; l++) {
      T v;
      std::memcpy(&v, image + l * kImageBytes, sizeof(T));
      dst[l] = static_cast<R>(v);
    }
    return;
  }
  for_each_lane(mask, [&](int l) {
    T v;
    std::memcpy(&v, image + l * kImageBytes, sizeof(T));
    dst[l] = static_cast<R>(v);
  });
}

template <class T>
void widen(const uint8_t* image, uint8_t* dst, int register_bytes, uint32_t mask) {
  // Signed T sign-extends through the conversion.
  if (register_bytes == 2)
    to_register<T>(image, reinterpret_cast<uint16_t*>(dst), mask);
  else if (register_bytes == 4)
    to_register<T>(image, reinterpret_cast<uint32_t*>(dst), mask);
  else
    to_register<T>(image, reinterpret_cast<uint64_t*>(dst), mask);
}

template <class R>
void from_register(uint8_t* image, const R* src, int bytes, uint32_t mask) {
  for_each_lane(mask, [&](int l) {
    std::memcpy(image + l * kImageBytes, src + l, static_cast<size_t>(bytes));
  });
}

// --------------------------------------------------------------------------------------- shared
// memory

template <int N>
bool shared_load_image(const Cta& c, const uint32_t* offset, uint32_t mask, uint8_t* image) {
  uint8_t clean[N];
  std::memset(clean, kWritten, N);
  bool dirty = false;
  for_each_lane(mask, [&](int l) {
    std::memcpy(image + l * kImageBytes, c.shared.data() + offset[l], N);
    dirty |= std::memcmp(c.shadow.data() + offset[l], clean, N) != 0;
  });
  return !dirty;
}

bool shared_load_image(const Cta& c, const uint32_t* offset, uint32_t mask, uint8_t* image,
                       int bytes) {
  switch (bytes) {
    case 1:
      return shared_load_image<1>(c, offset, mask, image);
    case 2:
      return shared_load_image<2>(c, offset, mask, image);
    case 4:
      return shared_load_image<4>(c, offset, mask, image);
    case 8:
      return shared_load_image<8>(c, offset, mask, image);
    case 16:
      return shared_load_image<16>(c, offset, mask, image);
    default:
      return shared_load_image<32>(c, offset, mask, image);
  }
}

// Checks bounds and alignment of every lane; reports the first offence. False: the launch has
// ended.
bool check_shared(Warp& w, const Cta& c, const uint32_t* offset, uint32_t mask, uint32_t bytes,
                  bool store) {
  uint32_t lo = ~0u, hi = 0, low_bits = 0;
  for_each_lane(mask, [&](int l) {
    lo = std::min(lo, offset[l]), hi = std::max(hi, offset[l]), low_bits |= offset[l];
  });
  if (lo >= kReservedShared && hi + bytes <= c.shared_bytes &&
      !(low_bits & (std::min(bytes, 16u) - 1)))
    return true;
  uint32_t bad = 0;
  int first = -1;
  bool misaligned = false;
  for_each_lane(mask, [&](int l) {
    bool out = offset[l] < kReservedShared || offset[l] + bytes > c.shared_bytes;
    bool mis = offset[l] & (std::min(bytes, 16u) - 1);
    if (!out && !mis) return;
    bad |= 1u << l;
    if (first < 0) first = l, misaligned = !out;
  });
  if (misaligned) {
    w.exec->fault(w, "misaligned", bad,
                  fmt::format("a {}-byte shared {} at offset {} is not aligned to its size", bytes,
                              store ? "store" : "load", offset[first]),
                  "", offset[first], w.exec->shared_symbol(c, offset[first]));
  } else {
    w.exec->fault(
        w, "out-of-bounds", bad,
        fmt::format("a {}-byte shared {} at offset {} leaves the CTA's {} bytes of shared memory",
                    bytes, store ? "store" : "load",
                    static_cast<int64_t>(offset[first]) - kReservedShared,
                    c.shared_bytes - kReservedShared),
        "", offset[first], w.exec->shared_symbol(c, offset[first]));
  }
  return false;
}

// Splits a mask by the CTA that the addresses belong to and calls f(cta, offsets, submask).
template <class F>
void by_target(Warp& w, const uint64_t* address, uint32_t mask, F&& f) {
  uint32_t offset[32] = {};
  while (mask && !w.exec->launch().stop) {
    int first = std::countr_zero(mask);
    Cta* target = shared_target(w, address[first], &offset[first]);
    if (!target) {
      w.exec->fault(
          w, "out-of-bounds", mask,
          fmt::format("0x{:x} is no shared memory address of this cluster", address[first]), "",
          address[first]);
      return;
    }
    uint32_t same = 0;
    for_each_lane(mask, [&](int l) {
      uint32_t o;
      if (shared_target(w, address[l], &o) == target) same |= 1u << l, offset[l] = o;
    });
    if (target->exited) {
      w.exec->fault(
          w, "out-of-bounds", same,
          fmt::format("shared memory of CTA rank {}, which has exited, is accessed", target->rank),
          "keep every CTA alive (cluster barrier) until remote accesses to it are done");
      return;
    }
    f(*target, offset, same);
    mask &= ~same;
  }
}

void shared_load(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask) {
  uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  alignas(64) uint8_t image[32 * kImageBytes];
  by_target(w, address, mask, [&](Cta& c, const uint32_t* offset, uint32_t lanes) {
    if (!check_shared(w, c, offset, lanes, bytes, false)) return;
    if (RaceChecker* races = w.exec->races())
      races->shared(w, c, offset, lanes, bytes, false, m.order);
    if (!shared_load_image(c, offset, lanes, image, static_cast<int>(bytes)))
      for_each_lane(lanes, [&](int l) {
        if (!Executor::is_clean(c, offset[l], bytes))
          w.exec->diagnose_read(w, c, offset[l], bytes, 1u << l, "this load");
      });
    if (w.exec->tracks_proxies())
      for_each_lane(lanes, [&](int l) {
        if (!w.exec->check_arrival(w, c, offset[l], bytes, 1u << l, "this load"))
          std::memset(image + l * kImageBytes, 0xff, bytes);
      });
    if (CostLedger* costs = w.exec->costs()) costs->shared(w.pc - 1, offset, lanes, bytes, false);
    scatter_to_registers(w, m, lanes, image);
  });
  w.exec->traffic().shared_load += uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask));
}

void shared_store_lane(Warp& w, Cta& c, uint32_t offset, const uint8_t* bytes, uint32_t n,
                       int lane) {
  for (uint32_t i = offset; i < offset + n; i++) {
    if (!(c.shadow[i] & (kInFlight | kBarrierWord))) continue;
    if (c.shadow[i] & kBarrierWord) {
      w.exec->report(w, "mbarrier-access", plan::HazardClass::fatal, 1u << lane,
                     fmt::format("an ordinary store overwrites {}, a live mbarrier object",
                                 w.exec->shared_symbol(c, i)),
                     "mbarrier.inval before the memory is used for something else", i);
      return;  // the object does not live in these bytes: the store has no effect on it
    }
    w.exec->report(
        w, "async-destination-overwritten", plan::HazardClass::fatal, 1u << lane,
        fmt::format("a store writes {}, which an asynchronous copy in flight will overwrite",
                    w.exec->shared_symbol(c, i)),
        "wait for the copy first", i);
    break;
  }
  std::memcpy(c.shared.data() + offset, bytes, n);
  if (!Executor::is_clean(c, offset, n)) {
    // Bytes still in flight stay so: the copy will arrive later.
    for (uint32_t i = offset; i < offset + n; i++)
      if (!c.shadow[i]) Executor::mark_clean(c, i, 1);
  }
}

void shared_store(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask) {
  uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  alignas(64) uint8_t image[32 * kImageBytes];
  gather_from_registers(w, m, mask, image);
  by_target(w, address, mask, [&](Cta& c, const uint32_t* offset, uint32_t lanes) {
    if (!check_shared(w, c, offset, lanes, bytes, true)) return;
    if (RaceChecker* races = w.exec->races())
      races->shared(w, c, offset, lanes, bytes, true, m.order);
    bool in_use = c.store_lo < c.store_hi || c.wgmma_lo < c.wgmma_hi;
    uint64_t stamp = c.sequence << 8 | (&c == w.cta ? w.index : 0xff);
    for_each_lane(lanes, [&](int l) {
      if (in_use) w.exec->check_source_in_flight(w, c, offset[l], bytes, "an ordinary store");
      shared_store_lane(w, c, offset[l], image + l * kImageBytes, bytes, l);
      if (w.exec->tracks_proxies()) {
        c.generic_writes[offset[l] >> 4] = stamp;
        c.generic_writes[(offset[l] + bytes - 1) >> 4] = stamp;
        c.generic_kib[offset[l] >> 10] = stamp >> 8;
        Executor::clear_arrival(c, offset[l], bytes);
      }
    });
    c.cluster->progress++;
    if (CostLedger* costs = w.exec->costs()) costs->shared(w.pc - 1, offset, lanes, bytes, true);
  });
  w.exec->traffic().shared_store += uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask));
}

// --------------------------------------------------------------------------------------- global
// memory

void report_global(Warp& w, const uint64_t* address, uint32_t mask, uint32_t bytes, bool store) {
  GlobalMemory& memory = *w.exec->launch().memory;
  uint32_t bad = 0;
  int first = -1;
  bool misaligned = false;
  for_each_lane(mask, [&](int l) {
    Allocation* a = memory.find(address[l]);
    bool out = !a || !a->contains(address[l], bytes), mis = address[l] % std::min(bytes, 32u);
    if (!out && !mis) return;
    bad |= 1u << l;
    if (first < 0) first = l, misaligned = !out;
  });
  if (first < 0) return;
  std::string where = memory.describe(address[first]);
  std::string what = fmt::format("a {}-byte global {}", bytes, store ? "store" : "load");
  if (misaligned)
    w.exec->fault(w, "misaligned", bad,
                  fmt::format("{} at {} is not aligned to its size", what, where), "",
                  address[first], where);
  else
    w.exec->fault(w, "out-of-bounds", bad, fmt::format("{} touches {}", what, where),
                  "check the row and column limits of ragged sizes", address[first], where);
}

// The allocation that holds all lanes' accesses, or null (then lanes are looked at one by one).
Allocation* common_allocation(GlobalMemory& memory, const uint64_t* address, uint32_t mask,
                              uint32_t bytes, bool* aligned) {
  uint64_t lo = ~uint64_t{0}, hi = 0, low_bits = 0;
  for_each_lane(mask, [&](int l) {
    lo = std::min(lo, address[l]), hi = std::max(hi, address[l]), low_bits |= address[l];
  });
  *aligned = !(low_bits & (bytes - 1));
  Allocation* a = memory.find(lo);
  return a && a->contains(lo, bytes) && a->contains(hi, bytes) ? a : nullptr;
}

void global_load(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask) {
  uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  alignas(64) uint8_t image[32 * kImageBytes];
  GlobalMemory& memory = *w.exec->launch().memory;
  bool aligned;
  Allocation* common = common_allocation(memory, address, mask, bytes, &aligned);
  if (!common || !aligned) {
    report_global(w, address, mask, bytes, false);
    if (w.exec->launch().stop) return;
  }
  if (RaceChecker* races = w.exec->races()) races->global(w, address, mask, bytes, false, m.order);
  uint32_t unwritten = 0;
  for_each_lane(mask, [&](int l) {
    Allocation* a = common ? common : memory.find(address[l]);
    uint64_t at = address[l] - a->base;
    std::memcpy(image + l * kImageBytes, a->data + at, bytes);
    if (!common) w.exec->touch(a, bytes, 0);
    if (a->tracks_writes() && !a->note_read(at, bytes)) unwritten |= 1u << l;
  });
  if (unwritten) {
    int l = std::countr_zero(unwritten);
    w.exec->report(
        w, "uninitialized-read", plan::HazardClass::latent, unwritten,
        fmt::format("the load reads {}, which nothing has written", memory.describe(address[l])),
        "", address[l], memory.describe(address[l]));
  }
  scatter_to_registers(w, m, mask, image);
  if (CostLedger* costs = w.exec->costs())
    costs->global(w.pc - 1, *w.cta, address, mask, bytes, false);
  if (common)
    w.exec->touch(common, uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask)), 0);
  w.exec->traffic().global_load += uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask));
}

void global_store(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask) {
  uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  alignas(64) uint8_t image[32 * kImageBytes];
  gather_from_registers(w, m, mask, image);
  GlobalMemory& memory = *w.exec->launch().memory;
  bool aligned;
  Allocation* common = common_allocation(memory, address, mask, bytes, &aligned);
  if (!common || !aligned) {
    report_global(w, address, mask, bytes, true);
    if (w.exec->launch().stop) return;
  }
  if (RaceChecker* races = w.exec->races()) races->global(w, address, mask, bytes, true, m.order);
  for_each_lane(mask, [&](int l) {
    Allocation* a = common ? common : memory.find(address[l]);
    uint64_t at = address[l] - a->base;
    if (a->read_only) {
      if (!w.exec->launch().stop)
        w.exec->fault(w, "write-to-input", mask,
                      fmt::format("the store writes to {}, an input", a->name),
                      "inputs are read-only", address[l], memory.describe(address[l]));
      return;
    }
    std::memcpy(a->data + at, image + l * kImageBytes, bytes);
    a->mark_written(at, bytes);
    if (!common) w.exec->touch(a, 0, bytes);
  });
  w.cta->cluster->progress++;
  if (CostLedger* costs = w.exec->costs())
    costs->global(w.pc - 1, *w.cta, address, mask, bytes, true);
  if (common)
    w.exec->touch(common, 0, uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask)));
  w.exec->traffic().global_store += uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask));
}

// -------------------------------------------------------------------------------- local and
// parameters

// Local memory of a lane; frame-relative for plain local accesses, absolute for generic ones.
bool local_range(Warp& w, uint64_t offset, uint32_t bytes, uint32_t mask) {
  if (offset + bytes <= w.local_bytes) return true;
  w.exec->fault(w, "out-of-bounds", mask,
                fmt::format("a local memory access at {} leaves the thread's {} bytes", offset,
                            w.local_bytes));
  return false;
}

void local_access(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask,
                  uint64_t base, bool store) {
  uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  alignas(64) uint8_t image[32 * kImageBytes];
  if (store) gather_from_registers(w, m, mask, image);
  bool ok = true;
  for_each_lane(mask, [&](int l) {
    uint64_t at = static_cast<uint32_t>(address[l]) + base;
    if (!ok || !(ok = local_range(w, at, bytes, mask))) return;
    uint8_t* p = w.local.data() + size_t(l) * w.local_bytes + at;
    if (store)
      std::memcpy(p, image + l * kImageBytes, bytes);
    else
      std::memcpy(image + l * kImageBytes, p, bytes);
  });
  if (ok && !store) scatter_to_registers(w, m, mask, image);
}

void param_access(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask) {
  uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  alignas(64) uint8_t image[32 * kImageBytes];
  const std::vector<uint8_t>& params = w.exec->launch().params;
  bool ok = true;
  for_each_lane(mask, [&](int l) {
    uint64_t at = address[l] & 0xffffffffu;
    if (at + bytes > params.size()) {
      ok = false;
      return;
    }
    std::memcpy(image + l * kImageBytes, params.data() + at, bytes);
  });
  if (!ok)
    return w.exec->fault(
        w, "out-of-bounds", mask,
        fmt::format("a parameter load leaves the {} bytes of parameters", params.size()));
  scatter_to_registers(w, m, mask, image);
}

// -------------------------------------------------------------------------------------------
// generic

enum class Kind : uint8_t { shared, local, param, global };
Kind kind_of(uint64_t a) {
  if (in_window(a, kSharedWindow)) return Kind::shared;
  if (in_window(a, kLocalWindow)) return Kind::local;
  if (in_window(a, kParamWindow)) return Kind::param;
  return Kind::global;
}

void generic_access(Warp& w, const MemorySite& m, const uint64_t* address, uint32_t mask,
                    bool store) {
  while (mask && !w.exec->launch().stop) {
    Kind kind = kind_of(address[std::countr_zero(mask)]);
    uint32_t lanes = 0;
    for_each_lane(mask, [&](int l) { lanes |= uint32_t{kind_of(address[l]) == kind} << l; });
    switch (kind) {
      case Kind::shared:
        store ? shared_store(w, m, address, lanes) : shared_load(w, m, address, lanes);
        break;
      case Kind::local:
        local_access(w, m, address, lanes, 0, store);
        break;
      case Kind::param:
        if (store) return w.exec->fault(w, "out-of-bounds", lanes, "a store to a kernel parameter");
        param_access(w, m, address, lanes);
        break;
      case Kind::global:
        store ? global_store(w, m, address, lanes) : global_load(w, m, address, lanes);
        break;
    }
    mask &= ~lanes;
  }
}

struct Access {
  Warp& w;
  const MemorySite& m;
  uint64_t address[32];
  Access(RegisterView& v, const MicroOp& op)
      : w(warp_of(v)), m(w.exec->kernel().memories[op.extra]) {
    lane_addresses(w, m, address);
  }
};

}  // namespace

void scatter_to_registers(Warp& w, const MemorySite& m, uint32_t mask, const uint8_t* image) {
  for (size_t e = 0; e < m.values.size(); e++) {
    const uint8_t* from = image + e * m.element_bytes;
    uint8_t* dst = destination<uint8_t>(w, m.values[e]);
    switch (m.element_bytes) {
      case 1:
        if (m.sign_extend)
          widen<int8_t>(from, dst, m.register_bytes, mask);
        else
          widen<uint8_t>(from, dst, m.register_bytes, mask);
        break;
      case 2:
        if (m.sign_extend)
          widen<int16_t>(from, dst, m.register_bytes, mask);
        else
          widen<uint16_t>(from, dst, m.register_bytes, mask);
        break;
      case 4:
        if (m.sign_extend)
          widen<int32_t>(from, dst, m.register_bytes, mask);
        else
          widen<uint32_t>(from, dst, m.register_bytes, mask);
        break;
      case 8:
        widen<uint64_t>(from, dst, 8, mask);
        break;
      default:
        for_each_lane(mask, [&](int l) { std::memcpy(dst + l * 16, from + l * kImageBytes, 16); });
    }
  }
}

void gather_from_registers(const Warp& w, const MemorySite& m, uint32_t mask, uint8_t* image) {
  for (size_t e = 0; e < m.values.size(); e++) {
    uint8_t* to = image + e * m.element_bytes;
    switch (m.register_bytes) {
      case 2:
        from_register(to, source<uint16_t>(w, m.values[e]), m.element_bytes, mask);
        break;
      case 4:
        from_register(to, source<uint32_t>(w, m.values[e]), m.element_bytes, mask);
        break;
      case 8:
        from_register(to, source<uint64_t>(w, m.values[e]), m.element_bytes, mask);
        break;
      default: {
        const uint8_t* src = source<uint8_t>(w, m.values[e]);
        for_each_lane(mask, [&](int l) { std::memcpy(to + l * kImageBytes, src + l * 16, 16); });
      }
    }
  }
}

void access_lanes(Warp& w, const MemorySite& m, ptx::Space space, const uint64_t* address,
                  uint32_t mask) {
  if (space == ptx::Space::generic)
    generic_access(w, m, address, mask, m.is_store);
  else if (space == ptx::Space::global)
    m.is_store ? global_store(w, m, address, mask) : global_load(w, m, address, mask);
  else
    m.is_store ? shared_store(w, m, address, mask) : shared_load(w, m, address, mask);
}

namespace ops {

void load_global(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  global_load(a.w, a.m, a.address, mask);
}
void load_shared(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  shared_load(a.w, a.m, a.address, mask);
}
void load_local(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  // A constant address is an offset in the frame; a register holds an address in the thread's local
  // memory.
  uint64_t base = a.m.base_kind == MemorySite::Base::reg ? 0 : a.w.frames[a.w.frame].local_base;
  local_access(a.w, a.m, a.address, mask, base, false);
}
void load_param(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  param_access(a.w, a.m, a.address, mask);
}
void load_generic(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  generic_access(a.w, a.m, a.address, mask, false);
}
void store_global(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  global_store(a.w, a.m, a.address, mask);
}
void store_shared(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  shared_store(a.w, a.m, a.address, mask);
}
void store_local(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  uint64_t base = a.m.base_kind == MemorySite::Base::reg ? 0 : a.w.frames[a.w.frame].local_base;
  local_access(a.w, a.m, a.address, mask, base, true);
}
void store_generic(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Access a(v, op);
  generic_access(a.w, a.m, a.address, mask, true);
}

}  // namespace ops
}  // namespace ptxbench::emu
