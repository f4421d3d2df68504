// What instructions.def cannot say: rules that tie counts, shapes and state spaces of single
// instructions together (PTX ISA 9.0, the notes of each instruction).

#include <fmt/format.h>

#include <array>
#include <optional>

#include "ptx/parser.h"
#include "ptx/verifier_impl.h"

namespace ptxbench::ptx {
namespace {

size_t element_count(const Operand& o) {
  return o.kind == Operand::Kind::vector ? o.elements.size() : 1;
}

Space wide_space(Space s) {
  if (s == Space::shared_cta || s == Space::shared_cluster) return Space::shared;
  if (s == Space::param_entry || s == Space::param_func) return Space::param;
  return s;
}

int vector_length(const Modifiers& mods) {
  return mods.has(Mod::v2)    ? 2
         : mods.has(Mod::v4)  ? 4
         : mods.has(Mod::v8)  ? 8
         : mods.has(Mod::v16) ? 16
                              : 1;
}

// A vector moves 128 bits at most; from sm_100 on 256 of global memory, as .v8 of 32 bits or .v4
// of 64.
Complaint vector_width(const Context& c) {
  const Instruction& i = c.instruction;
  int length = vector_length(i.mods), element = bits(i.mods.type());
  bool evicts = i.mods.has(Mod::L2_evict_normal) || i.mods.has(Mod::L2_evict_first) ||
                i.mods.has(Mod::L2_evict_last);
  bool wide = length * element == 256 && (length == 8 || length == 4);
  if (wide) {
    Space space = i.mods.space();
    if (space != Space::generic && space != Space::global)
      return fmt::format("{} moves 256 bits, which only .global memory can", mnemonic(i));
    return {};
  }
  if (evicts)
    return fmt::format("{}: an L2 eviction priority needs .v8 of 32 bits or .v4 of 64",
                       mnemonic(i));
  if (length > 1 && length * element > 128)
    return fmt::format("{} moves {} bits, more than 128", mnemonic(i), length * element);
  return {};
}

// mov between registers of one size, or packing and unpacking of as many bits.
Complaint move(const Context& c) {
  const Instruction& i = c.instruction;
  if (vector_length(i.mods) > 1) return {};
  int want = bits(i.mods.type());
  for (const Operand& o : i.operands) {
    if (o.kind != Operand::Kind::vector) continue;
    int have = 0;
    for (const Operand& e : o.elements) {
      if (e.kind != Operand::Kind::reg) continue;
      have = bits(c.reg(e).type) * static_cast<int>(o.elements.size());
      break;
    }
    for (const Operand& e : o.elements)
      if (e.kind == Operand::Kind::reg &&
          bits(c.reg(e).type) * static_cast<int>(o.elements.size()) != have)
        return fmt::format("the elements of {} differ in size", mnemonic(i));
    if (have != 0 && have != want)
      return fmt::format("{} moves {} bits, but its operand has {}", mnemonic(i), want, have);
    if (o.elements.size() != 2 && o.elements.size() != 4)
      return fmt::format("{} packs 2 or 4 elements, but {} are given", mnemonic(i),
                         o.elements.size());
  }
  return {};
}

int wgmma_k(const Instruction& i) {
  int k = 0;
  switch (i.mods.type(1)) {
    case Type::f16:
    case Type::bf16:
      k = 16;
      break;
    case Type::tf32:
      k = 8;
      break;
    case Type::b1:
      k = 256;
      break;
    default:
      k = 32;
  }
  return i.op == Op::wgmma_mma_async_sp ? 2 * k : k;
}

Complaint wgmma(const Context& c) {
  const Instruction& i = c.instruction;
  const MatrixShape& shape = i.mods->shape;
  if (shape.m != 64 || shape.n < 8 || shape.n > 256 || shape.n % 8 != 0)
    return fmt::format("{}: wgmma has the shapes m64nNkK with N = 8, 16, ... 256", mnemonic(i));
  if (shape.k != wgmma_k(i))
    return fmt::format("{}: with .{} operands K is {}", mnemonic(i), name(i.mods.type(1)),
                       wgmma_k(i));
  bool integer = i.mods.type() == Type::s32;
  if (integer && shape.n > 32 && shape.n % 16 != 0)
    return fmt::format("{}: with integer operands N is 8, 16, 24, 32 or a multiple of 16",
                       mnemonic(i));
  size_t want = shape.n / (i.mods.type() == Type::f16 ? 4 : 2);
  size_t have = element_count(i.operands[0]);
  if (have != want)
    return fmt::format("{} has {} accumulator registers a thread, but {} are given", mnemonic(i),
                       want, have);
  if (i.mods.type() == Type::f16)
    for (const Operand& e : i.operands[0].elements)
      if (e.kind == Operand::Kind::reg && bits(c.reg(e).type) != 32)
        return fmt::format("'{}' must have 32 bits", c.reg(e).name);
  size_t scale = i.op == Op::wgmma_mma_async_sp ? 6 : 4;
  for (size_t k = scale; k < i.operands.size(); ++k) {
    int64_t value = static_cast<int64_t>(i.operands[k].value);
    bool ok = k < scale + 2 ? value == 1 || value == -1 : value == 0 || value == 1;
    if (!ok)
      return fmt::format("{}: constant {} must be {}", mnemonic(i), value,
                         k < scale + 2 ? "1 or -1 (imm-scale)" : "0 or 1 (imm-trans)");
  }
  return {};
}

// The layouts of A and B, in this order; most forms have .row.col alone.
Complaint layouts(const Context& c, bool free) {
  const Modifiers& mods = c.instruction.mods;
  if (mods.spelled == 0) return {};
  std::string text;
  for (uint8_t k = 0; k < mods.spelled; ++k) {
    if (mods.spelling[k].kind != Modifiers::Word::Kind::mod) continue;
    Mod mod = static_cast<Mod>(mods.spelling[k].value);
    if (mod == Mod::row || mod == Mod::col) text.append(".").append(name(mod));
  }
  if (free ? text.size() == 8 : text == ".row.col") return {};
  return fmt::format("{} needs {} as layouts of A and B", mnemonic(c.instruction),
                     free ? "two of .row and .col" : ".row.col");
}

// Words that ptxas takes as a part of the opcode and therefore only in front.
Complaint leading_words(const Context& c) {
  struct Leading {
    Op op;
    Mod mod;
  };
  static constexpr Leading kLeading[] = {{Op::bar, Mod::red},
                                         {Op::barrier, Mod::red},
                                         {Op::bar, Mod::cta},
                                         {Op::barrier, Mod::cta},
                                         {Op::bar, Mod::arrive},
                                         {Op::barrier, Mod::arrive},
                                         {Op::cvta, Mod::to},
                                         {Op::dp2a, Mod::lo},
                                         {Op::dp2a, Mod::hi},
                                         {Op::mbarrier_test_wait, Mod::parity},
                                         {Op::mbarrier_try_wait, Mod::parity},
                                         {Op::pmevent, Mod::mask},
                                         {Op::txq, Mod::level},
                                         {Op::fence, Mod::proxy},
                                         {Op::membar, Mod::proxy},
                                         {Op::mul, Mod::lo},
                                         {Op::mul, Mod::hi},
                                         {Op::mul, Mod::wide},
                                         {Op::mad, Mod::lo},
                                         {Op::mad, Mod::hi},
                                         {Op::mad, Mod::wide},
                                         {Op::madc, Mod::lo},
                                         {Op::madc, Mod::hi},
                                         {Op::mul24, Mod::lo},
                                         {Op::mul24, Mod::hi},
                                         {Op::mad24, Mod::lo},
                                         {Op::mad24, Mod::hi},
                                         {Op::suld, Mod::mat_b},
                                         {Op::sust, Mod::mat_b},
                                         {Op::sust, Mod::mat_p},
                                         {Op::sured, Mod::mat_b},
                                         {Op::sured, Mod::mat_p},
                                         {Op::tex, Mod::base},
                                         {Op::tex, Mod::level},
                                         {Op::tex, Mod::grad},
                                         {Op::shf, Mod::l},
                                         {Op::shf, Mod::r},
                                         {Op::mbarrier_arrive, Mod::expect_tx},
                                         {Op::mbarrier_arrive_drop, Mod::expect_tx},
                                         {Op::setmaxnreg, Mod::inc},
                                         {Op::setmaxnreg, Mod::dec},
                                         {Op::wmma_load, Mod::mat_a},
                                         {Op::wmma_load, Mod::mat_b},
                                         {Op::wmma_load, Mod::mat_c},
                                         {Op::wmma_store, Mod::mat_d},
                                         {Op::tcgen05_wait, Mod::ld_},
                                         {Op::tcgen05_wait, Mod::st_},
                                         {Op::clusterlaunchcontrol_try_cancel, Mod::async}};
  static constexpr auto kConcerned = [] {
    std::array<bool, kOpCount> ops{};
    for (const Leading& leading : kLeading) ops[static_cast<size_t>(leading.op)] = true;
    return ops;
  }();
  const Instruction& i = c.instruction;
  const Modifiers& mods = i.mods;
  if (!kConcerned[static_cast<size_t>(i.op)]) return {};
  for (const Leading& leading : kLeading) {
    if (leading.op != c.instruction.op || !mods.has(leading.mod) || mods.spelled == 0) continue;
    auto is = [&](uint8_t k, Mod mod) {
      return mods.spelling[k].kind == Modifiers::Word::Kind::mod &&
             mods.spelling[k].value == static_cast<uint16_t>(mod);
    };
    bool barrier = i.op == Op::bar || i.op == Op::barrier;  // bar.cta.red
    uint8_t at = barrier && is(0, Mod::cta) && leading.mod != Mod::cta ? 1 : 0;
    if (!is(at, leading.mod))
      return fmt::format("'.{}' of {} must follow '{}' at once", name(leading.mod),
                         mnemonic(c.instruction), name(leading.op));
  }
  return {};
}

// The state space of the k-th operand's address; nothing where it does not matter (tensor maps).
std::optional<Space> address_space(const Instruction& i, size_t k) {
  const std::vector<Space>& spaces = i.mods->spaces;
  switch (i.op) {
    case Op::cp_async:
    case Op::cp_async_bulk:
    case Op::cp_reduce_async_bulk:
      return k < 2 && k < spaces.size() ? spaces[k] : Space::shared;
    case Op::cp_async_bulk_tensor:
    case Op::cp_reduce_async_bulk_tensor:
      if (!i.operands[k].elements.empty()) return {};
      return Space::shared;
    case Op::cp_async_bulk_prefetch_tensor:
    case Op::tensormap_cp_fenceproxy:
    case Op::tensormap_replace:
    case Op::tex:
    case Op::tld4:
    case Op::txq:
    case Op::suld:
    case Op::sust:
    case Op::sured:
    case Op::suq:
    case Op::cp_async_mbarrier_arrive:
      return {};
    case Op::st_async:
    case Op::red_async:
      if (k > 0) return Space::shared;
      break;
    default:
      break;
  }
  return spaces.empty() ? Space::generic : spaces[0];
}

// Tensor memory is addressed by 32-bit registers.
Complaint tensor_memory_address(const Context& c) {
  const Instruction& i = c.instruction;
  for (const Operand& o : i.operands) {
    if (o.kind != Operand::Kind::address) continue;
    if (o.base == Operand::Base::reg && bits(c.reg(o).type) == 32) continue;
    return fmt::format("{}: an address of tensor memory is a 32-bit register", mnemonic(i));
  }
  return {};
}

Complaint address(const Context& c, const Operand& o, Space space) {
  const Instruction& i = c.instruction;
  bool flat = space == Space::generic || space == Space::global;
  if (o.kind == Operand::Kind::address && o.base == Operand::Base::reg) {
    const Register& r = c.reg(o);
    if (flat && bits(r.type) == 32 && c.module.address_size == 64)
      return fmt::format("'{}' has 32 bits, but {} needs a 64-bit address", r.name, mnemonic(i));
    return {};
  }
  if (o.base != Operand::Base::variable && o.kind != Operand::Kind::variable) return {};
  const Variable& v = c.variable(o);
  if (v.space == Space::reg) return {};
  bool barrier = name(i.op).starts_with("mbarrier.") && v.space != Space::shared;
  if (barrier || (space != Space::generic && wide_space(v.space) != wide_space(space)))
    return fmt::format("'{}' lies in .{}, but {} accesses .{}", v.name, name(v.space), mnemonic(i),
                       barrier ? "shared" : name(space));
  return {};
}

// A variable in brackets must lie in the space that the instruction names, and a register that
// addresses global or generic memory have 64 bits.
Complaint addresses(const Context& c) {
  const Instruction& i = c.instruction;
  for (size_t k = 0; k < i.operands.size(); ++k) {
    const Operand& o = i.operands[k];
    bool taken = o.kind == Operand::Kind::variable && i.op == Op::cvta;
    if (o.kind != Operand::Kind::address && !taken) continue;
    std::optional<Space> space = address_space(i, k);
    if (!space) continue;
    if (Complaint bad = address(c, o, *space)) return bad;
  }
  return {};
}

const Operand* constant_operand(const Instruction& i, size_t k) {
  if (k >= i.operands.size() || i.operands[k].kind != Operand::Kind::integer) return nullptr;
  return &i.operands[k];
}

Complaint in_range(const Instruction& i, size_t k, int64_t low, int64_t high, int64_t step,
                   std::string_view what) {
  const Operand* o = constant_operand(i, k);
  if (!o) return {};
  int64_t value = static_cast<int64_t>(o->value);
  if (value >= low && value <= high && value % step == 0) return {};
  return fmt::format("{} {} of {} must lie in {}..{}{}", what, value, mnemonic(i), low, high,
                     step > 1 ? fmt::format(" and be a multiple of {}", step) : "");
}

Complaint barrier(const Context& c) {
  const Instruction& i = c.instruction;
  size_t first = i.mods.has(Mod::red) ? 1 : 0;
  if (Complaint bad = in_range(i, first, 0, 15, 1, "the barrier")) return bad;
  size_t threads = first + 1;
  if (i.mods.has(Mod::red) && i.operands.size() < 4) return {};
  return in_range(i, threads, 0, INT64_MAX, 32, "the number of threads");
}

Complaint copy_async(const Context& c) {
  const Instruction& i = c.instruction;
  int64_t size = static_cast<int64_t>(i.operands[2].value);
  bool ok = size == 16 || (i.mods.has(Mod::ca) && (size == 4 || size == 8));
  if (!ok)
    return fmt::format("{} copies {} bytes, not {}", mnemonic(i),
                       i.mods.has(Mod::ca) ? "4, 8 or 16" : "16", size);
  return in_range(i, 3, 0, size, 1, "the source's size");
}

// Coordinates: as many as dimensions (five for gather and scatter: a column and four rows), 32 bits
// each; offsets of im2col: two fewer than dimensions, of im2col::w two.
Complaint tensor(const Context& c) {
  const Instruction& i = c.instruction;
  int dims = 0;
  for (int d = 0; d < 5; ++d)
    if (i.mods->flags[static_cast<size_t>(Mod::dim1d) + static_cast<size_t>(d)]) dims = d + 1;
  size_t want = static_cast<size_t>(dims);
  if (i.mods.has(Mod::tile_gather4) || i.mods.has(Mod::tile_scatter4)) want = 5;
  for (const Operand& o : i.operands) {
    if (o.kind != Operand::Kind::address || o.elements.empty()) continue;
    const Operand& list = o.elements[0];
    if (list.kind != Operand::Kind::vector || list.elements.size() != want ||
        o.elements.size() != 1)
      return fmt::format("{} needs a vector of {} coordinate{} behind the tensor map", mnemonic(i),
                         want, want == 1 ? "" : "s");
    for (const Operand& e : list.elements)
      if (e.kind == Operand::Kind::reg && !agrees(c.reg(e).type, Type::s32, false))
        return fmt::format("'{}': the coordinates of {} are .s32", c.reg(e).name, mnemonic(i));
  }
  size_t offsets = i.mods.has(Mod::im2col)                                      ? want - 2
                   : i.mods.has(Mod::im2col_w) || i.mods.has(Mod::im2col_w_128) ? 2
                                                                                : 0;
  if (offsets == 0) return {};
  for (const Operand& o : i.operands)
    if (o.kind == Operand::Kind::vector && o.elements.size() != offsets)
      return fmt::format("{} takes {} offset{}", mnemonic(i), offsets, offsets == 1 ? "" : "s");
  return {};
}

// Registers of a tensor memory load or store: 32-bit columns of the shape times the repetition.
Complaint tensor_memory(const Context& c) {
  const Instruction& i = c.instruction;
  size_t times = 0;
  for (int k = 0; k < 8; ++k)
    if (i.mods->flags[static_cast<size_t>(Mod::x1) + static_cast<size_t>(k)])
      times = size_t{1} << k;
  size_t each = i.mods.has(Mod::s16x256b) ? 4 : i.mods.has(Mod::s16x128b) ? 2 : 1;
  size_t want = times * each;
  if (want > 128)
    return fmt::format("{} would need {} registers, more than 128", mnemonic(i), want);
  const Operand& data = i.op == Op::tcgen05_st ? i.operands.back() : i.operands[0];
  size_t have = element_count(data);
  if (have == want) return {};
  return fmt::format("{} moves {} register{}, but {} given", mnemonic(i), want,
                     want == 1 ? "" : "s", have == 1 ? "1 is" : fmt::format("{} are", have));
}

// A mask of lanes whose output stays: 4 registers for one CTA, 8 for two.
Complaint tensor_core(const Context& c) {
  const Instruction& i = c.instruction;
  size_t want = i.mods.has(Mod::cta_group_2) ? 8 : 4;
  for (const Operand& o : i.operands)
    if (o.kind == Operand::Kind::vector && o.elements.size() != want)
      return fmt::format("the mask of {} has {} registers", mnemonic(i), want);
  return {};
}

// Coordinates of a texture or surface (padded to a power of two, an array's index among them), and
// as many gradients as the geometry has dimensions, padded too.
Complaint texture(const Context& c) {
  const Instruction& i = c.instruction;
  struct Geometry {
    Mod mod;
    size_t coordinates, gradients;
  };
  static constexpr Geometry kGeometries[] = {
      {Mod::dim1d, 1, 1}, {Mod::dim2d, 2, 2},   {Mod::dim3d, 4, 4},
      {Mod::a1d, 2, 1},   {Mod::a2d, 4, 2},     {Mod::cube, 4, 4},
      {Mod::acube, 4, 4}, {Mod::dim2dms, 4, 0}, {Mod::a2dms, 4, 0}};
  for (const Geometry& g : kGeometries) {
    if (!i.mods.has(g.mod)) continue;
    for (const Operand& o : i.operands) {
      if (o.kind != Operand::Kind::address) continue;
      bool vector = !o.elements.empty() && o.elements.back().kind == Operand::Kind::vector;
      if (!vector || o.elements.back().elements.size() != g.coordinates)
        return fmt::format("{} needs a vector of {} coordinate{}", mnemonic(i), g.coordinates,
                           g.coordinates == 1 ? "" : "s");
    }
    for (size_t k = 2; i.mods.has(Mod::grad) && k < 4 && k < i.operands.size(); ++k)
      if (element_count(i.operands[k]) != g.gradients)
        return fmt::format("{} needs gradients of {} element{}", mnemonic(i), g.gradients,
                           g.gradients == 1 ? "" : "s");
  }
  return {};
}

Complaint field(const Context& c) {
  const Instruction& i = c.instruction;
  size_t first = i.op == Op::bfe ? 2 : 3;
  if (Complaint bad = in_range(i, first, 0, 255, 1, "the position")) return bad;
  return in_range(i, first + 1, 0, 255, 1, "the length");
}

Complaint columns(const Context& c) {
  const Instruction& i = c.instruction;
  const Operand* o = constant_operand(i, 1);
  if (!o || (o->value >= 32 && o->value <= 512 && (o->value & (o->value - 1)) == 0)) return {};
  return fmt::format("{} columns of {}: must be 32, 64, 128, 256 or 512",
                     static_cast<int64_t>(o->value), mnemonic(i));
}

// The second priority of createpolicy is one of two; a word may stand for both.
Complaint policy(const Context& c) {
  const Modifiers& mods = c.instruction.mods;
  int priorities = 0;
  Mod last = Mod::L2_evict_first;
  for (uint8_t k = 0; k < mods.spelled; ++k) {
    if (mods.spelling[k].kind != Modifiers::Word::Kind::mod) continue;
    ++priorities;
    last = static_cast<Mod>(mods.spelling[k].value);
  }
  bool secondary = last == Mod::L2_evict_first || last == Mod::L2_evict_unchanged;
  if (priorities < 2 || (priorities == 2 && secondary)) return {};
  return fmt::format("the second priority of {} must be .L2::evict_first or .L2::evict_unchanged",
                     mnemonic(c.instruction));
}

Complaint special_rule(const Context& c, const Form& form) {
  const Instruction& i = c.instruction;
  switch (i.op) {
    case Op::ld:
    case Op::st:
    case Op::ldu:
    case Op::st_async:
      return vector_width(c);
    case Op::mov:
      return move(c);
    case Op::wgmma_mma_async:
    case Op::wgmma_mma_async_sp:
      return wgmma(c);
    case Op::mma:
    case Op::wmma_mma:
      return layouts(c, form.two_layouts);
    case Op::bar:
    case Op::barrier:
      return barrier(c);
    case Op::setmaxnreg:
      return in_range(i, 0, 24, 256, 8, "the number of registers");
    case Op::cp_async:
      return copy_async(c);
    case Op::cp_async_bulk_tensor:
    case Op::cp_async_bulk_prefetch_tensor:
    case Op::cp_reduce_async_bulk_tensor:
      return tensor(c);
    case Op::tcgen05_ld:
    case Op::tcgen05_ld_red:
    case Op::tcgen05_st:
      return tensor_memory(c);
    case Op::tcgen05_mma:
    case Op::tcgen05_mma_sp:
      return tensor_core(c);
    case Op::tcgen05_alloc:
    case Op::tcgen05_dealloc:
      return columns(c);
    case Op::tex:
    case Op::tld4:
    case Op::suld:
    case Op::sust:
    case Op::sured:
      return texture(c);
    case Op::cp_async_bulk:
    case Op::cp_reduce_async_bulk:
      return in_range(i, 2, 0, INT64_MAX, 16, "the size");
    case Op::bfe:
    case Op::bfi:
      return field(c);
    case Op::shfl:
    case Op::vote:
      if (c.target.sm < 70 || c.version < 64) return {};
      return fmt::format("{} is gone from PTX 6.4 on; {}.sync takes a mask of lanes", mnemonic(i),
                         name(i.op));
    case Op::createpolicy_fractional:
    case Op::createpolicy_range:
      return policy(c);
    case Op::mbarrier_arrive:
    case Op::mbarrier_arrive_drop:
      if (i.mods.has(Mod::expect_tx)) return {};
      return in_range(i, 2, 1, INT32_MAX, 1, "the count");
    case Op::mbarrier_test_wait:
    case Op::mbarrier_try_wait:
      return i.mods.has(Mod::parity) ? in_range(i, 2, 0, 1, 1, "the parity") : Complaint();
    default:
      return {};
  }
}

}  // namespace

const Variable& Context::variable(const Operand& o) const {
  if (o.is_param) return function.params[o.index];
  if (o.is_return) return function.returns[o.index];
  return o.is_local ? function.variables[o.index] : module.variables[o.index];
}

Complaint check_rules(const Context& c, const Form& form) {
  const Instruction& i = c.instruction;
  Space space = i.mods.space();
  if (i.mods.has(Mod::unified) && space != Space::generic && space != Space::global)
    return fmt::format("{} cannot be .unified: only global memory is", mnemonic(i));
  if (Complaint bad = leading_words(c)) return bad;
  if (Complaint bad = special_rule(c, form)) return bad;
  if (i.op >= Op::tcgen05_alloc && i.op <= Op::tcgen05_wait) {
    bool shared = i.op == Op::tcgen05_alloc || i.op == Op::tcgen05_commit;
    if (!shared) return tensor_memory_address(c);
  }
  return addresses(c);
}

}  // namespace ptxbench::ptx
