// Decoding of asynchronous copies: cp.async, bulk and tensor copies, st.async and red.async; and of
// what changes tensor maps.

#include <fmt/format.h>

#include "emu/decoder.h"
#include "emu/tma.h"
#include "plan/tensor_map.h"

namespace ptxbench::emu {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

bool is_shared(Space s) {
  return s == Space::shared || s == Space::shared_cta || s == Space::shared_cluster;
}

}  // namespace

Result<void> Decoder::cp_async(Scope& s, const Instruction& i) {
  const auto& o = i.operands;
  switch (i.op) {
    case Op::cp_async_commit_group:
      emit(s, i, ops::cp_async_commit);
      return {};
    case Op::cp_async_wait_all:
      emit(s, i, ops::cp_async_wait).imm = ~uint64_t{0};
      return {};
    case Op::cp_async_wait_group:
      emit(s, i, ops::cp_async_wait).imm = o[0].value;
      return {};
    case Op::cp_async_mbarrier_arrive: {
      PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[0]));
      m.is_store = is_shared(i.mods.space());
      MicroOp& op = emit(s, i, ops::cp_async_mbarrier_arrive);
      op.extra = static_cast<uint32_t>(kernel_->memories.size());
      op.imm = i.mods.has(Mod::noinc);
      kernel_->memories.push_back(std::move(m));
      return {};
    }
    default:
      break;
  }
  BulkSite b;
  PB_RETURN_IF_ERROR(address_register(s, i, o[0], &b.dst, &b.dst_offset));
  PB_RETURN_IF_ERROR(address_register(s, i, o[1], &b.src, &b.src_offset));
  if (o[2].kind != Operand::Kind::integer ||
      (o[2].value != 4 && o[2].value != 8 && o[2].value != 16))
    return unsupported(s, i, "the copy size must be 4, 8 or 16");
  bool has_source_size = false, ignores = false;
  if (o.size() > 3 && !(o.size() == 4 && i.mods.has(Mod::L2_cache_hint))) {
    ignores = o[3].kind == Operand::Kind::reg && operand_bytes(s, o[3]) == 0;
    PB_ASSIGN_OR_RETURN(b.size, read(s, i, o[3], ignores ? Type::pred : Type::u32));
    has_source_size = !ignores;
  }
  MicroOp& op = emit(s, i, ops::cp_async);
  op.extra = static_cast<uint32_t>(kernel_->bulks.size());
  op.imm = o[2].value | static_cast<uint64_t>(has_source_size) << 32 |
           static_cast<uint64_t>(ignores) << 33;
  // Predicates have their own negation: a false one is the constant 0.
  if (ignores) op.operand[0] = b.size, op.negated = o[3].negated ? 1 : 0;
  kernel_->bulks.push_back(std::move(b));
  return {};
}

Result<void> Decoder::bulk(Scope& s, const Instruction& i) {
  const auto& o = i.operands;
  const ptx::Modifiers& mods = i.mods;
  if (i.op == Op::cp_async_bulk_commit_group) {
    emit(s, i, ops::bulk_commit);
    return {};
  }
  if (i.op == Op::cp_async_bulk_wait_group) {
    MicroOp& op = emit(s, i, ops::bulk_wait);
    op.imm = o[0].value;
    op.extra = mods.has(Mod::read);
    return {};
  }
  bool tensor = i.op == Op::cp_async_bulk_tensor || i.op == Op::cp_reduce_async_bulk_tensor;
  bool reduce = i.op == Op::cp_reduce_async_bulk || i.op == Op::cp_reduce_async_bulk_tensor;
  for (Mod m : {Mod::im2col_w, Mod::im2col_w_128, Mod::tile_gather4, Mod::tile_scatter4,
                Mod::cp_mask, Mod::ignore_oob, Mod::cta_group_1, Mod::cta_group_2})
    if (mods.has(m))
      return unsupported(s, i, fmt::format(".{} does not exist before sm_100", ptx::name(m)));
  BulkSite b;
  b.im2col = mods.has(Mod::im2col) || mods.has(Mod::im2col_no_offs);
  b.dims = !tensor                ? 0
           : mods.has(Mod::dim1d) ? 1
           : mods.has(Mod::dim2d) ? 2
           : mods.has(Mod::dim3d) ? 3
           : mods.has(Mod::dim4d) ? 4
                                  : 5;
  bool load = is_shared(mods.space(0));
  auto tensor_operand = [&](const Operand& t) -> Result<void> {
    PB_RETURN_IF_ERROR(address_register(s, i, t, &b.map, &b.map_offset));
    for (const Operand& e : t.elements) {
      const ptx::OperandList& cs = e.elements.empty() ? t.elements : e.elements;
      for (const Operand& c : cs) {
        PB_ASSIGN_OR_RETURN(Slot slot, read(s, i, c, Type::s32));
        b.coordinates.push_back(slot);
      }
      break;
    }
    if (b.coordinates.size() != b.dims) return unsupported(s, i, "number of coordinates");
    return {};
  };
  size_t next = 0;
  if (load) {
    PB_RETURN_IF_ERROR(address_register(s, i, o[0], &b.dst, &b.dst_offset));
    next = 2;
    if (tensor) {
      PB_RETURN_IF_ERROR(tensor_operand(o[1]));
    } else {
      PB_RETURN_IF_ERROR(address_register(s, i, o[1], &b.src, &b.src_offset));
      PB_ASSIGN_OR_RETURN(b.size, read(s, i, o[2], Type::u32));
      next = 3;
    }
    PB_RETURN_IF_ERROR(address_register(s, i, o[next], &b.mbarrier, &b.mbarrier_offset));
    next++;
    if (mods.has(Mod::im2col)) {
      if (next >= o.size() || o[next].elements.size() + 2 != b.dims)
        return unsupported(s, i, "number of im2col offsets");
      for (const Operand& e : o[next].elements) {
        PB_ASSIGN_OR_RETURN(Slot slot, read(s, i, e, Type::u16));
        b.image_offsets.push_back(slot);
      }
      next++;
    }
    if (mods.has(Mod::multicast_cluster)) {
      PB_ASSIGN_OR_RETURN(b.multicast, read(s, i, o[next], Type::u16));
      b.has_multicast = true;
    }
  } else {
    if (tensor) {
      PB_RETURN_IF_ERROR(tensor_operand(o[0]));
    } else {
      PB_RETURN_IF_ERROR(address_register(s, i, o[0], &b.dst, &b.dst_offset));
      PB_ASSIGN_OR_RETURN(b.size, read(s, i, o[2], Type::u32));
    }
    PB_RETURN_IF_ERROR(address_register(s, i, o[1], &b.src, &b.src_offset));
  }
  if (reduce) {
    AtomicOp what;
    if (!atomic_op(mods, &what)) return unsupported(s, i, "no reduction is named");
    b.reduce = static_cast<uint8_t>(what);
    b.type = mods.type();
    if (!load) kernel_->communicates = true;
  }
  MicroOp& op = emit(s, i, load ? ops::bulk_load : ops::bulk_store);
  op.extra = static_cast<uint32_t>(kernel_->bulks.size());
  kernel_->bulks.push_back(std::move(b));
  return {};
}

// st.async and red.async: [destination], value(s), [mbarrier].
Result<void> Decoder::remote(Scope& s, const Instruction& i) {
  const auto& o = i.operands;
  if (o.size() != 3 || i.mods.has(Mod::mmio) || !is_shared(i.mods.space()))
    return unsupported(s, i, "only the forms with an mbarrier exist before sm_100");
  PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[0]));
  PB_ASSIGN_OR_RETURN(MemorySite barrier, address(s, i, o[2]));
  const Type type = i.mods.type();
  m.element_bytes = static_cast<uint8_t>(ptx::bits(type) / 8);
  m.register_bytes = m.element_bytes < 2 ? 2 : m.element_bytes;
  m.is_store = true;
  const ptx::OperandList single{o[1]};
  for (const Operand& e : o[1].kind == Operand::Kind::vector ? o[1].elements : single) {
    if (int bytes = operand_bytes(s, e)) m.register_bytes = static_cast<uint8_t>(bytes);
    PB_ASSIGN_OR_RETURN(Slot slot, read(s, i, e, type));
    m.values.push_back(slot);
  }
  if (m.element_bytes * m.values.size() > 16)
    return unsupported(s, i, "a vector of more than 16 bytes");
  kernel_->stores_async = true;
  uint64_t reduce = 0xff;
  if (i.op == Op::red_async) {
    AtomicOp what;
    if (!atomic_op(i.mods, &what) || !exists(what, type))
      return unsupported(s, i, "this reduction does not exist for the type");
    reduce = static_cast<uint64_t>(what);
  }
  MicroOp& op = emit(s, i, ops::remote_store);
  op.extra = static_cast<uint32_t>(kernel_->memories.size());
  op.imm = reduce | static_cast<uint64_t>(type) << 8;
  kernel_->memories.push_back(std::move(m));
  kernel_->memories.push_back(std::move(barrier));
  return {};
}

Result<void> Decoder::tensormap(Scope& s, const Instruction& i) {
  const auto& o = i.operands;
  const ptx::Modifiers& mods = i.mods;
  kernel_->communicates = true;  // maps in global memory change: CTAs run in order
  if (i.op == Op::tensormap_cp_fenceproxy) {
    PB_ASSIGN_OR_RETURN(MemorySite to, address(s, i, o[0]));
    PB_ASSIGN_OR_RETURN(MemorySite from, address(s, i, o[1]));
    if (o[2].value != 128) return unsupported(s, i, "the size must be 128");
    MicroOp& op = emit(s, i, ops::tensormap_copy);
    op.flags |= kAligned;
    op.extra = static_cast<uint32_t>(kernel_->memories.size());
    kernel_->memories.push_back(std::move(to));
    kernel_->memories.push_back(std::move(from));
    return {};
  }
  constexpr std::pair<Mod, plan::MapField> kFields[] = {
      {Mod::global_address, plan::MapField::global_address},
      {Mod::rank, plan::MapField::rank},
      {Mod::box_dim, plan::MapField::box_dim},
      {Mod::global_dim, plan::MapField::global_dim},
      {Mod::global_stride, plan::MapField::global_stride},
      {Mod::element_stride, plan::MapField::element_stride},
      {Mod::elemtype, plan::MapField::elemtype},
      {Mod::interleave_layout, plan::MapField::interleave_layout},
      {Mod::swizzle_mode, plan::MapField::swizzle_mode},
      {Mod::fill_mode, plan::MapField::fill_mode}};
  const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                   [&](const auto& f) { return mods.has(f.first); });
  if (field == std::end(kFields))
    return unsupported(s, i, "only sm_100 has this field, or none is named");
  PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[0]));
  m.is_store = is_shared(mods.space());
  const bool wide = field->second == plan::MapField::global_address ||
                    field->second == plan::MapField::global_stride;
  PB_ASSIGN_OR_RETURN(Slot value, read(s, i, o.back(), wide ? Type::b64 : Type::b32));
  MicroOp& op = emit(s, i, ops::tensormap_replace);
  op.operand[0] = value;
  op.extra = static_cast<uint32_t>(kernel_->memories.size());
  op.imm = static_cast<uint64_t>(field->second) | static_cast<uint64_t>(wide) << 8 |
           (o.size() > 2 ? o[1].value & 0xff : 0) << 16;
  kernel_->memories.push_back(std::move(m));
  return {};
}

}  // namespace ptxbench::emu
