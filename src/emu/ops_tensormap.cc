// Tensor maps that a kernel changes: tensormap.replace, tensormap.cp_fenceproxy and the fences of
// the tensormap proxy.
//
// A map in global memory that was changed may be used by a tensor copy only after a release (the
// copy with its fence, or fence.proxy.tensormap::generic.release) and an acquire that names it, by
// the warp that issues the copy. Versions of changed maps live in LaunchState; a warp remembers
// which it has acquired.

#include <fmt/format.h>

#include "emu/lane_access.h"
#include "emu/ops.h"
#include "plan/tensor_map.h"

namespace ptxbench::emu {
namespace {

constexpr uint32_t kMapBytes = 128;

// The 128 bytes at an address in shared or global memory; null after a fault.
uint8_t* map_bytes(Warp& w, const MemorySite& m, uint64_t address, int lane, bool written) {
  Executor& e = *w.exec;
  if (address % 64) {
    e.fault(w, "misaligned", 1u << lane, "a tensor map must be 64-byte aligned", "", address);
    return nullptr;
  }
  if (m.is_store || in_window(address, kSharedWindow)) {
    uint32_t offset = 0;
    Cta* c = shared_target(w, address, &offset);
    if (c == w.cta && offset >= kReservedShared && offset + kMapBytes <= c->shared_bytes) {
      if (!Executor::is_clean(*c, offset, kMapBytes))
        e.diagnose_read(w, *c, offset, kMapBytes, 1u << lane, "this instruction");
      return c->shared.data() + offset;
    }
    e.fault(w, "out-of-bounds", 1u << lane, "the tensor map is not in the CTA's shared memory", "",
            address);
    return nullptr;
  }
  GlobalMemory& memory = *e.launch().memory;
  Allocation* a = memory.find(address);
  if (!a || !a->contains(address, kMapBytes)) {
    e.fault(w, "out-of-bounds", 1u << lane, "the tensor map touches " + memory.describe(address),
            "", address);
    return nullptr;
  }
  if (written && a->read_only) {
    e.fault(w, "write-to-input", 1u << lane,
            fmt::format("a tensor map in {}, an input, is changed", a->name), "", address);
    return nullptr;
  }
  if (written) a->mark_written(address - a->base, kMapBytes);
  e.touch(a, kMapBytes, written ? kMapBytes : 0);
  return a->data + (address - a->base);
}

}  // namespace

void check_map_fence(Warp& w, uint64_t address, int lane) {
  const auto& edits = w.exec->launch().map_edits;
  const auto it = edits.find(address);
  if (it == edits.end()) return;
  const auto seen = w.maps_acquired.find(address);
  if (it->second.released && seen != w.maps_acquired.end() && seen->second == it->second.version)
    return;
  w.exec->report(
      w, "missing-tensormap-fence", plan::HazardClass::latent, 1u << lane,
      fmt::format("the tensor map at 0x{:x} was changed by this kernel; {}", address,
                  it->second.released ? "this warp has not acquired it since"
                                      : "no release of the tensormap proxy lies between"),
      "tensormap.cp_fenceproxy ... release after the change, then fence.proxy.tensormap::generic."
      "acquire with the map's address before the copy",
      address);
}

namespace ops {

void tensormap_replace(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  uint64_t address[32];
  lane_addresses(w, m, address);
  for_each_lane(mask, [&](int l) {
    if (w.exec->launch().stop) return;
    uint8_t* bytes = map_bytes(w, m, address[l], l, true);
    if (!bytes) return;
    const uint64_t value = op.imm >> 8 & 0xff ? source<uint64_t>(v, op.operand[0])[l]
                                              : source<uint32_t>(v, op.operand[0])[l];
    const Result<void> done = plan::replace(bytes, static_cast<plan::MapField>(op.imm & 0xff),
                                            static_cast<uint32_t>(op.imm >> 16 & 0xff), value);
    if (!done.ok())
      return w.exec->fault(w, "tensor-map", 1u << l, done.error().message, "", address[l]);
    if (m.is_store || in_window(address[l], kSharedWindow)) return;
    auto& edit = w.exec->launch().map_edits[address[l]];
    edit.version++, edit.released = false;
  });
}

void tensormap_copy(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const auto& memories = w.exec->kernel().memories;
  MemorySite from = memories[op.extra + 1];
  from.is_store = true;  // names shared::cta
  uint64_t to_address[32], from_address[32];
  lane_addresses(w, memories[op.extra], to_address);
  lane_addresses(w, from, from_address);
  const int l = std::countr_zero(mask);  // .aligned: one copy for the warp
  uint8_t* source_bytes = map_bytes(w, from, from_address[l], l, false);
  uint8_t* target =
      source_bytes ? map_bytes(w, memories[op.extra], to_address[l], l, true) : nullptr;
  if (!target) return;
  std::memcpy(target, source_bytes, kMapBytes);
  auto& edit = w.exec->launch().map_edits[to_address[l]];
  edit.version++, edit.released = true;
}

void tensormap_fence(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  auto& edits = w.exec->launch().map_edits;
  if (!op.imm) {
    for (auto& [address, edit] : edits) edit.released = true;
    return;
  }
  uint64_t address[32];
  lane_addresses(w, w.exec->kernel().memories[op.extra], address);
  for_each_lane(mask, [&](int l) {
    if (auto it = edits.find(address[l]); it != edits.end())
      w.maps_acquired[address[l]] = it->second.version;
  });
}

}  // namespace ops
}  // namespace ptxbench::emu
