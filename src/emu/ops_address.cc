// cvta, isspacep, mapa, getctarank.

#include "emu/lane_access.h"
#include "emu/ops.h"

namespace ptxbench::emu::ops {

void to_generic(RegisterView& v, const MicroOp& op, uint32_t mask) {
  const uint64_t* src = source<uint64_t>(v, op.operand[1]);
  uint64_t* dst = destination<uint64_t>(v, op.operand[0]);
  for_each_lane(mask, [&](int l) { dst[l] = op.imm ? op.imm + (src[l] & 0xffffffffu) : src[l]; });
}

void from_generic(RegisterView& v, const MicroOp& op, uint32_t mask) {
  const uint64_t* src = source<uint64_t>(v, op.operand[1]);
  uint64_t* dst = destination<uint64_t>(v, op.operand[0]);
  for_each_lane(mask, [&](int l) { dst[l] = op.imm ? src[l] - op.imm : src[l]; });
}

void is_space(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const uint64_t* src = source<uint64_t>(v, op.operand[1]);
  uint32_t result = 0;
  ptx::Space space = static_cast<ptx::Space>(op.imm);
  for_each_lane(mask, [&](int l) {
    uint64_t a = src[l];
    bool shared = in_window(a, kSharedWindow);
    bool own = shared && (static_cast<uint32_t>(a) >> kSharedRankShift) == w.cta->rank;
    bool yes = false;
    switch (space) {
      case ptx::Space::shared:
      case ptx::Space::shared_cta:
        yes = own;
        break;
      case ptx::Space::shared_cluster:
        yes =
            shared && (static_cast<uint32_t>(a) >> kSharedRankShift) < w.cta->cluster->ctas.size();
        break;
      case ptx::Space::local:
        yes = in_window(a, kLocalWindow);
        break;
      case ptx::Space::param:
      case ptx::Space::param_entry:
        yes = in_window(a, kParamWindow);
        break;
      case ptx::Space::global:
        yes = !shared && !in_window(a, kLocalWindow) && !in_window(a, kParamWindow);
        break;
      default:
        break;
    }
    result |= uint32_t{yes} << l;
  });
  uint32_t& p = v.preds[op.operand[0]];
  p = (p & ~mask) | result;
}

void map_shared(RegisterView& v, const MicroOp& op, uint32_t mask) {
  const uint32_t* rank = source<uint32_t>(v, op.operand[2]);
  auto map = [&](uint64_t a, int l) {
    return (a & ~(uint64_t{0xff} << kSharedRankShift)) | uint64_t{rank[l]} << kSharedRankShift;
  };
  if ((op.imm & 0xff) == 4) {
    const uint32_t* src = source<uint32_t>(v, op.operand[1]);
    uint32_t* dst = destination<uint32_t>(v, op.operand[0]);
    for_each_lane(mask, [&](int l) { dst[l] = static_cast<uint32_t>(map(src[l], l)); });
  } else {
    const uint64_t* src = source<uint64_t>(v, op.operand[1]);
    uint64_t* dst = destination<uint64_t>(v, op.operand[0]);
    for_each_lane(mask, [&](int l) { dst[l] = map(src[l], l); });
  }
}

void get_rank(RegisterView& v, const MicroOp& op, uint32_t mask) {
  uint32_t* dst = destination<uint32_t>(v, op.operand[0]);
  uint32_t out[32] = {};
  for_each_lane(mask, [&](int l) {
    uint64_t a =
        op.imm == 4 ? source<uint32_t>(v, op.operand[1])[l] : source<uint64_t>(v, op.operand[1])[l];
    out[l] = static_cast<uint32_t>(a) >> kSharedRankShift;
  });
  for_each_lane(mask, [&](int l) { dst[l] = out[l]; });
}

void widen_address(RegisterView& v, const MicroOp& op, uint32_t mask) {
  const uint32_t* src = source<uint32_t>(v, op.operand[1]);
  uint64_t* dst = destination<uint64_t>(v, op.operand[0]);
  for_each_lane(mask, [&](int l) { dst[l] = src[l]; });
}

void write_zero64(RegisterView& v, const MicroOp& op, uint32_t mask) {
  uint64_t* dst = destination<uint64_t>(v, op.operand[0]);
  for_each_lane(mask, [&](int l) { dst[l] = 0; });
}

}  // namespace ptxbench::emu::ops
