// Decoding of what has an address: loads, stores, atomics, barriers in memory, matrix moves and
// wgmma. Asynchronous copies: decode_async.cc.

#include <fmt/format.h>

#include "emu/address.h"
#include "emu/atomics.h"
#include "emu/decoder.h"

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

int vector_length(const ptx::Modifiers& m) {
  return m.has(Mod::v8) ? 8 : m.has(Mod::v4) ? 4 : m.has(Mod::v2) ? 2 : 1;
}

}  // namespace

Result<MemorySite> Decoder::address(Scope& s, const Instruction& i, const Operand& o) {
  MemorySite m;
  if (o.kind != Operand::Kind::address) return unsupported(s, i, "expected an address");
  m.offset = o.offset;
  switch (o.base) {
    case Operand::Base::none:
      break;
    case Operand::Base::reg:
      m.base_kind = MemorySite::Base::reg;
      m.base = s.layout.slot[o.index];
      m.base_bytes = static_cast<uint8_t>(register_bytes(s.f->registers[o.index]));
      break;
    case Operand::Base::variable: {
      Place p = place(s, o);
      m.offset += static_cast<int64_t>(p.offset);
      if (p.kind == Place::Kind::shared) m.base_kind = MemorySite::Base::shared_constant;
      break;
    }
  }
  return m;
}

// An address as a register plus a constant, for instructions that keep it in a BulkSite.
Result<void> Decoder::address_register(Scope& s, const Instruction& i, const Operand& o, Slot* slot,
                                       int64_t* offset) {
  if (o.kind != Operand::Kind::address) return unsupported(s, i, "expected an address");
  *offset = 0;
  if (o.base == Operand::Base::reg) {
    *offset = o.offset;
    if (register_bytes(s.f->registers[o.index]) == 8) {
      *slot = s.layout.slot[o.index];
      return {};
    }
    Slot t = temp(s, 8);
    MicroOp& op = emit(s, i, ops::widen_address);
    op.operand[0] = t;
    op.operand[1] = s.layout.slot[o.index];
    *slot = t;
    return {};
  }
  if (o.base == Operand::Base::none) {
    *slot = constant(Type::b64, static_cast<uint64_t>(o.offset));
    return {};
  }
  Operand variable = o;
  variable.kind = Operand::Kind::variable;
  PB_ASSIGN_OR_RETURN(*slot, variable_address(s, i, variable, 8));
  return {};
}

Result<void> Decoder::load_store(Scope& s, const Instruction& i) {
  bool store = i.op == Op::st;
  if (i.operands.size() < 2) return unsupported(s, i, "too few operands");
  const Operand& address_operand = i.operands[store ? 0 : 1];
  const Operand& value = i.operands[store ? 1 : 0];
  PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, address_operand));
  Type type = i.mods->types.empty() ? Type::none : i.mods->types.back();
  m.element_bytes = static_cast<uint8_t>(ptx::bits(type) / 8);
  m.sign_extend = ptx::is_signed(type);
  m.is_store = store;
  m.order = memory_order(i.mods, {});
  std::vector<const Operand*> leaves;
  if (value.kind == Operand::Kind::vector)
    for (const Operand& e : value.elements) leaves.push_back(&e);
  else
    leaves.push_back(&value);
  int n = vector_length(i.mods);
  if (n != static_cast<int>(leaves.size()) || m.element_bytes == 0 || m.element_bytes * n > 32)
    return unsupported(s, i, "vector length and operands disagree");
  m.register_bytes = m.element_bytes < 2 ? 2 : m.element_bytes;
  for (const Operand* leaf : leaves) {
    if (leaf->kind == Operand::Kind::reg) {
      int b = operand_bytes(s, *leaf);
      if (b == 16 && m.element_bytes != 16)
        return unsupported(s, i, "a 128-bit register holds 128-bit elements only");
      if (b < m.element_bytes) return unsupported(s, i, "register narrower than the access");
      m.register_bytes = static_cast<uint8_t>(b);
    }
  }
  for (const Operand* leaf : leaves) {
    Type as = leaf->kind == Operand::Kind::reg         ? type
              : m.register_bytes * 8 > ptx::bits(type) ? register_type(m.register_bytes)
                                                       : type;
    PB_ASSIGN_OR_RETURN(Slot slot, store ? read(s, i, *leaf, as) : write(s, i, *leaf));
    m.values.push_back(slot);
  }
  Space space = i.mods.space();
  if (space == Space::generic || space == Space::global)
    if (m.order.order != Order::weak && !store) kernel_->communicates = true;
  // A parameter space variable of a device function, or of a call, lives in local memory.
  bool param = space == Space::param || space == Space::param_entry || space == Space::param_func;
  Handler h = nullptr;
  if (space == Space::global || space == Space::const_)
    h = store ? ops::store_global : ops::load_global;
  else if (is_shared(space))
    h = store ? ops::store_shared : ops::load_shared;
  else if (space == Space::local)
    h = store ? ops::store_local : ops::load_local;
  else if (param) {
    bool entry_param =
        s.f->is_entry && !store &&
        (address_operand.is_param || address_operand.base != Operand::Base::variable);
    if (entry_param)
      h = ops::load_param;
    else
      h = store ? ops::store_local : ops::load_local;
  } else if (space == Space::generic)
    h = store ? ops::store_generic : ops::load_generic;
  if (!h) return unsupported(s, i, "state space not supported");
  MicroOp& op = emit(s, i, h);
  op.flags |= kMemorySite;
  op.extra = static_cast<uint32_t>(kernel_->memories.size());
  kernel_->memories.push_back(std::move(m));
  return {};
}

Result<void> Decoder::atomic(Scope& s, const Instruction& i) {
  const bool has_result = i.op == Op::atom;
  const size_t at = has_result ? 1 : 0;
  const int n = vector_length(i.mods);
  const Type type = i.mods->types.empty() ? Type::none : i.mods->types.back();
  AtomicOp what;
  if (!atomic_op(i.mods, &what) || !exists(what, type))
    return unsupported(s, i, "this atomic operation does not exist for the type");
  const size_t sources = what == AtomicOp::cas ? 2 : 1;
  if (i.operands.size() < at + 1 + sources) return unsupported(s, i, "too few operands");
  PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, i.operands[at]));
  m.order = memory_order(i.mods, {Order::relaxed, SyncScope::gpu});
  m.element_bytes = static_cast<uint8_t>(ptx::bits(type) / 8);
  if (m.element_bytes * n > 32) return unsupported(s, i, "a vector of more than 32 bytes");
  // Results first, then the operands, each n elements.
  auto elements = [&](const Operand& o, bool written) -> Result<void> {
    const ptx::OperandList single{o};
    const auto& list = o.kind == Operand::Kind::vector ? o.elements : single;
    if (static_cast<int>(list.size()) != n) return unsupported(s, i, "number of vector elements");
    for (const Operand& e : list) {
      PB_ASSIGN_OR_RETURN(Slot slot, written ? write(s, i, e) : read(s, i, e, type));
      m.values.push_back(slot);
    }
    return {};
  };
  if (has_result && i.operands[0].kind != Operand::Kind::sink) {
    PB_RETURN_IF_ERROR(elements(i.operands[0], true));
  } else {
    m.values.assign(static_cast<size_t>(n), s.layout.sink);
  }
  for (size_t k = 0; k < sources; k++) PB_RETURN_IF_ERROR(elements(i.operands[at + 1 + k], false));
  Space space = i.mods.space();
  if (!is_shared(space)) kernel_->communicates = true;
  int where = is_shared(space) ? 1 : space == Space::global ? 2 : 0;
  MicroOp& op = emit(s, i, ops::atomic);
  op.flags |= kMemorySite;
  op.extra = static_cast<uint32_t>(kernel_->memories.size());
  op.imm = static_cast<uint64_t>(what) | static_cast<uint64_t>(type) << 8 |
           static_cast<uint64_t>(has_result) << 16 | static_cast<uint64_t>(where) << 24 |
           static_cast<uint64_t>(n) << 32;
  kernel_->memories.push_back(std::move(m));
  return {};
}

Result<void> Decoder::convert_address(Scope& s, const Instruction& i) {
  const ptx::Modifiers& mods = i.mods;
  if (i.op == Op::isspacep) {
    PB_ASSIGN_OR_RETURN(Slot src, read(s, i, i.operands[1], Type::u64));
    if (i.operands[0].kind != Operand::Kind::reg) return unsupported(s, i, "needs a predicate");
    MicroOp& op = emit(s, i, ops::is_space);
    op.operand[0] = s.layout.slot[i.operands[0].index];
    op.operand[1] = src;
    op.imm = static_cast<uint64_t>(mods.space());
    return {};
  }
  PB_ASSIGN_OR_RETURN(Slot dst, write(s, i, i.operands[0]));
  int bytes = operand_bytes(s, i.operands[0]);
  Type type = bytes == 4 ? Type::u32 : Type::u64;
  if (i.op == Op::cvta) {
    PB_ASSIGN_OR_RETURN(Slot src, read(s, i, i.operands[1], type));
    Space space = mods.space();
    uint64_t window = is_shared(space)                                       ? kSharedWindow
                      : space == Space::local                                ? kLocalWindow
                      : space == Space::param || space == Space::param_entry ? kParamWindow
                                                                             : 0;
    // Addresses of a device function's parameters are local addresses.
    if (window == kParamWindow && !s.f->is_entry) window = kLocalWindow;
    MicroOp& op = emit(s, i, mods.has(Mod::to) ? ops::from_generic : ops::to_generic);
    op.operand[0] = dst;
    op.operand[1] = src;
    op.imm = window;
    if (bytes != 8) return unsupported(s, i, "32-bit generic addresses are not supported");
    return {};
  }
  if (i.op == Op::mapa) {
    PB_ASSIGN_OR_RETURN(Slot src, read(s, i, i.operands[1], type));
    PB_ASSIGN_OR_RETURN(Slot rank, read(s, i, i.operands[2], Type::u32));
    MicroOp& op = emit(s, i, ops::map_shared);
    op.operand[0] = dst, op.operand[1] = src, op.operand[2] = rank;
    op.imm = static_cast<uint64_t>(bytes) | (is_shared(mods.space()) ? 0 : 0x100);
    return {};
  }
  int source_bytes = std::max(operand_bytes(s, i.operands[1]), 4);
  PB_ASSIGN_OR_RETURN(Slot src,
                      read(s, i, i.operands[1], source_bytes == 4 ? Type::u32 : Type::u64));
  MicroOp& op = emit(s, i, ops::get_rank);
  op.operand[0] = dst, op.operand[1] = src;
  op.imm = static_cast<uint64_t>(source_bytes);
  return {};
}

Result<void> Decoder::mbarrier(Scope& s, const Instruction& i) {
  const auto& o = i.operands;
  const ptx::Modifiers& mods = i.mods;
  auto finish = [&](MemorySite m, Handler h, Slot a, Slot b, uint64_t imm) {
    MicroOp& op = emit(s, i, h);
    op.extra = static_cast<uint32_t>(kernel_->memories.size());
    op.operand[0] = a, op.operand[1] = b;
    op.imm = imm;
    kernel_->memories.push_back(std::move(m));
  };
  auto with_space = [&](MemorySite m) {
    m.is_store =
        is_shared(mods.space());  // here: the address is a shared address, not a generic one
    return m;
  };
  switch (i.op) {
    case Op::mbarrier_init:
    case Op::mbarrier_expect_tx:
    case Op::mbarrier_complete_tx: {
      PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[0]));
      PB_ASSIGN_OR_RETURN(Slot v, read(s, i, o[1], Type::u32));
      Handler h = i.op == Op::mbarrier_init        ? ops::mbarrier_init
                  : i.op == Op::mbarrier_expect_tx ? ops::mbarrier_expect_tx
                                                   : ops::mbarrier_complete_tx;
      finish(with_space(m), h, v, 0, 0);
      return {};
    }
    case Op::mbarrier_inval: {
      PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[0]));
      finish(with_space(m), ops::mbarrier_inval, 0, 0, 0);
      return {};
    }
    case Op::mbarrier_arrive:
    case Op::mbarrier_arrive_drop: {
      PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[1]));
      PB_ASSIGN_OR_RETURN(Slot state, write(s, i, o[0]));
      uint64_t flags = (i.op == Op::mbarrier_arrive_drop ? uint64_t{ops::kDrop} : 0) |
                       (mods.has(Mod::relaxed) ? uint64_t{ops::kRelaxed} : 0) |
                       (mods.has(Mod::expect_tx) ? uint64_t{ops::kExpectTx} : 0);
      Slot v = 0;
      if (o.size() > 2) {
        PB_ASSIGN_OR_RETURN(v, read(s, i, o[2], Type::u32));
        flags |= ops::kHasCount;
      }
      finish(with_space(m), ops::mbarrier_arrive, state, v, flags);
      return {};
    }
    case Op::mbarrier_test_wait:
    case Op::mbarrier_try_wait: {
      PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, o[1]));
      if (o[0].kind != Operand::Kind::reg) return unsupported(s, i, "needs a predicate");
      bool parity = mods.has(Mod::parity);
      PB_ASSIGN_OR_RETURN(Slot v, read(s, i, o[2], parity ? Type::u32 : Type::u64));
      finish(with_space(m), ops::mbarrier_wait, s.layout.slot[o[0].index], v,
             (parity ? uint64_t{ops::kParity} : 0) |
                 (mods.has(Mod::relaxed) ? uint64_t{ops::kRelaxed} : 0) |
                 (i.op == Op::mbarrier_try_wait ? uint64_t{ops::kTryWait} : 0));
      return {};
    }
    default: {
      PB_ASSIGN_OR_RETURN(Slot d, write(s, i, o[0]));
      PB_ASSIGN_OR_RETURN(Slot state, read(s, i, o[1], Type::b64));
      finish({}, ops::mbarrier_pending_count, d, state, 0);
      return {};
    }
  }
}

Result<void> Decoder::matrix(Scope& s, const Instruction& i) {
  bool load = i.op == Op::ldmatrix;
  const Operand& value = i.operands[load ? 0 : 1];
  PB_ASSIGN_OR_RETURN(MemorySite m, address(s, i, i.operands[load ? 1 : 0]));
  if (i.mods.type() != Type::b16) return unsupported(s, i, "only .b16 matrices are supported");
  int count = i.mods.has(Mod::x4) ? 4 : i.mods.has(Mod::x2) ? 2 : 1;
  const ptx::OperandList single{value};
  const auto& elements = value.kind == Operand::Kind::vector ? value.elements : single;
  if (static_cast<int>(elements.size()) != count) return unsupported(s, i, "number of registers");
  for (const Operand& e : elements) {
    PB_ASSIGN_OR_RETURN(Slot slot, load ? write(s, i, e) : read(s, i, e, Type::b32));
    m.values.push_back(slot);
  }
  m.is_store = is_shared(i.mods.space());
  MicroOp& op = emit(s, i, load ? ops::ldmatrix : ops::stmatrix);
  op.extra = static_cast<uint32_t>(kernel_->memories.size());
  op.imm = static_cast<uint64_t>(count) | (i.mods.has(Mod::trans) ? 0x100 : 0);
  op.flags |= kAligned | kMemorySite;
  kernel_->memories.push_back(std::move(m));
  return {};
}

Result<void> Decoder::wgmma(Scope& s, const Instruction& i) {
  switch (i.op) {
    case Op::wgmma_fence:
      emit(s, i, ops::wgmma_fence).flags |= kAligned;
      return {};
    case Op::wgmma_commit_group:
      emit(s, i, ops::wgmma_commit).flags |= kAligned;
      return {};
    case Op::wgmma_wait_group: {
      MicroOp& op = emit(s, i, ops::wgmma_wait);
      op.flags |= kAligned;
      op.imm = i.operands.empty() ? 0 : i.operands[0].value;
      return {};
    }
    default:
      break;
  }
  // A sparse form has two operands more behind the descriptor of B: metadata and selector.
  const bool sparse = i.op == Op::wgmma_mma_async_sp;
  std::vector<Operand> o(i.operands.begin(), i.operands.end());
  const ptx::Modifiers& mods = i.mods;
  WgmmaSite site;
  site.form.n = mods.shape.n;
  site.form.k = mods.shape.k;
  site.form.d = mods.type(0), site.form.a = mods.type(1), site.form.b = mods.type(2);
  site.form.saturate = mods.has(Mod::satfinite);
  site.form.sparse = sparse;
  if (o.size() < (sparse ? 6 : 4) || o[0].kind != Operand::Kind::vector)
    return unsupported(s, i, "operands");
  for (const Operand& e : o[0].elements) {
    PB_ASSIGN_OR_RETURN(Slot slot, write(s, i, e));
    site.d.push_back(slot);
  }
  if (o[1].kind == Operand::Kind::vector) {
    site.form.a_in_registers = true;
    for (const Operand& e : o[1].elements) {
      PB_ASSIGN_OR_RETURN(Slot slot, read(s, i, e, Type::b32));
      site.a.push_back(slot);
    }
    if (site.a.size() != 4) return unsupported(s, i, "A needs four registers");
  } else {
    PB_ASSIGN_OR_RETURN(site.a_descriptor, read(s, i, o[1], Type::b64));
  }
  PB_ASSIGN_OR_RETURN(site.b_descriptor, read(s, i, o[2], Type::b64));
  if (sparse) {
    PB_ASSIGN_OR_RETURN(site.metadata, read(s, i, o[3], Type::b32));
    site.form.selector = static_cast<int>(o[4].value & 255);
    o.erase(o.begin() + 3, o.begin() + 5);
  }
  if (o[3].kind == Operand::Kind::reg) {
    site.scale_d_pred = s.layout.slot[o[3].index];
    site.scale_d_negated = o[3].negated;
  } else {
    site.scale_d_value = o[3].value != 0;
  }
  auto flag = [&](size_t n) -> int64_t {
    return n < o.size() ? static_cast<int64_t>(o[n].value) : 0;
  };
  auto negative = [&](size_t n) { return n < o.size() && (flag(n) < 0 || o[n].negated); };
  site.form.negate_a = negative(4), site.form.negate_b = negative(5);
  if (site.form.a_in_registers) {
    site.form.b_mn_major = flag(6) != 0;
  } else {
    site.form.a_mn_major = flag(6) != 0;
    site.form.b_mn_major = flag(7) != 0;
  }
  if (Result<void> known = check(site.form); !known.ok())
    return unsupported(s, i, known.error().message);
  size_t expected = static_cast<size_t>(site.form.n) / (site.form.d == Type::f16 ? 4 : 2);
  if (site.d.size() != expected)
    return unsupported(
        s, i, fmt::format("{} accumulator registers, {} expected", site.d.size(), expected));
  MicroOp& op = emit(s, i, ops::wgmma_issue);
  op.flags |= kAligned;
  op.extra = static_cast<uint32_t>(kernel_->wgmmas.size());
  kernel_->wgmmas.push_back(std::move(site));
  return {};
}

Result<void> Decoder::decode_memory(Scope& s, const Instruction& i, bool* done) {
  *done = true;
  switch (i.op) {
    case Op::ld:
    case Op::ldu:
    case Op::st:
      return load_store(s, i);
    case Op::atom:
    case Op::red:
      return atomic(s, i);
    case Op::cvta:
    case Op::isspacep:
    case Op::mapa:
    case Op::getctarank:
      return convert_address(s, i);
    case Op::mbarrier_init:
    case Op::mbarrier_inval:
    case Op::mbarrier_arrive:
    case Op::mbarrier_arrive_drop:
    case Op::mbarrier_expect_tx:
    case Op::mbarrier_complete_tx:
    case Op::mbarrier_test_wait:
    case Op::mbarrier_try_wait:
    case Op::mbarrier_pending_count:
      return mbarrier(s, i);
    case Op::cp_async:
    case Op::cp_async_commit_group:
    case Op::cp_async_wait_group:
    case Op::cp_async_wait_all:
    case Op::cp_async_mbarrier_arrive:
      return cp_async(s, i);
    case Op::cp_async_bulk:
    case Op::cp_async_bulk_tensor:
    case Op::cp_async_bulk_commit_group:
    case Op::cp_async_bulk_wait_group:
    case Op::cp_reduce_async_bulk:
    case Op::cp_reduce_async_bulk_tensor:
      return bulk(s, i);
    case Op::st_async:
    case Op::red_async:
      return remote(s, i);
    case Op::tensormap_replace:
    case Op::tensormap_cp_fenceproxy:
      return tensormap(s, i);
    case Op::movmatrix: {
      PB_ASSIGN_OR_RETURN(Slot from, read(s, i, i.operands[1], Type::b32));
      PB_ASSIGN_OR_RETURN(Slot to, write(s, i, i.operands[0]));
      MicroOp& op = emit(s, i, ops::movmatrix);
      op.operand[0] = to, op.operand[1] = from;
      op.flags |= kAligned;
      return {};
    }
    case Op::ldmatrix:
    case Op::stmatrix:
      return matrix(s, i);
    case Op::wgmma_fence:
    case Op::wgmma_commit_group:
    case Op::wgmma_wait_group:
    case Op::wgmma_mma_async:
    case Op::wgmma_mma_async_sp:
      return wgmma(s, i);
    case Op::createpolicy_fractional:
    case Op::createpolicy_range:
    case Op::createpolicy_cvt: {
      // Cache policies change no value; any bits will do as the handle.
      PB_ASSIGN_OR_RETURN(Slot d, write(s, i, i.operands[0]));
      emit(s, i, ops::write_zero64).operand[0] = d;
      return {};
    }
    default:
      *done = false;
      return {};
  }
}

}  // namespace ptxbench::emu
