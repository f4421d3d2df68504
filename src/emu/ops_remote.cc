// st.async and red.async: stores and reductions into the shared memory of the cluster that complete
// on an mbarrier beside their destination.

#include <fmt/format.h>

#include "emu/lane_access.h"
#include "emu/ops.h"

namespace ptxbench::emu::ops {
namespace {

plan::MapType reduction_type(ptx::Type t) {
  switch (t) {
    case ptx::Type::s32:
      return plan::MapType::s32;
    case ptx::Type::s64:
      return plan::MapType::s64;
    case ptx::Type::u64:
    case ptx::Type::b64:
      return plan::MapType::u64;
    default:
      return plan::MapType::u32;
  }
}

}  // namespace

void remote_store(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  Executor& e = *w.exec;
  const MemorySite& m = e.kernel().memories[op.extra];
  const uint32_t bytes = static_cast<uint32_t>(m.element_bytes * m.values.size());
  uint64_t address[32], barrier[32];
  lane_addresses(w, m, address);
  lane_addresses(w, e.kernel().memories[op.extra + 1], barrier);
  alignas(64) uint8_t image[32 * kImageBytes];
  gather_from_registers(w, m, mask, image);
  for_each_lane(mask, [&](int l) {
    if (e.launch().stop) return;
    uint32_t offset = 0, bar = 0;
    Cta* target = shared_target(w, address[l], &offset);
    if (!target || shared_target(w, barrier[l], &bar) != target)
      return e.fault(w, "out-of-bounds", 1u << l,
                     "destination and mbarrier must lie in the shared memory of one CTA of the "
                     "cluster",
                     "", address[l]);
    if (offset < kReservedShared || offset + bytes > target->shared_bytes || target->exited)
      return e.fault(w, "out-of-bounds", 1u << l,
                     fmt::format("an asynchronous store leaves the shared memory of CTA rank {}{}",
                                 target->rank, target->exited ? ", which has exited" : ""),
                     "", address[l]);
    if (offset % bytes)
      return e.fault(
          w, "misaligned", 1u << l,
          fmt::format("an asynchronous store of {} bytes is not aligned to its size", bytes), "",
          address[l]);
    e.check_init_order(w, *target, bar, 1u << l);
    BulkLoad load;
    load.pc = w.pc - 1;
    load.issuer_cta = w.cta->linear;
    load.issuer_warp = static_cast<int>(w.index);
    load.cta_rank = load.mbarrier_rank = target->rank;
    load.shared_address = offset;
    load.mbarrier = bar;
    load.bytes = load.span = bytes;
    load.data.assign(image + l * kImageBytes, image + l * kImageBytes + bytes);
    load.reduce = static_cast<uint8_t>(op.imm & 0xff);
    load.type = reduction_type(static_cast<ptx::Type>(op.imm >> 8 & 0xff));
    e.issue_load(w, std::move(load));
  });
}

}  // namespace ptxbench::emu::ops
