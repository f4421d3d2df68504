// Picks the handler of a scalar instruction from the level's table.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "emu/scalar/level.h"
#include "emu/scalar/video.h"
#include "ptx/ast.h"

namespace ptxbench::emu::scalar {
namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;

// ----------------------------------------------------------------------------------- modifiers
constexpr size_t kMods = static_cast<size_t>(Mod::count_);

const std::array<ModSet, kMods>& mod_bits() {
  static const std::array<ModSet, kMods> bits = [] {
    std::array<ModSet, kMods> b{};
#define X(name) b[static_cast<size_t>(Mod::name)] = mod::name;
    SCALAR_RUNTIME_MODS(X)
    SCALAR_SELECTING_MODS(X)
#undef X
    return b;
  }();
  return bits;
}

// False if the instruction has a modifier that no scalar form knows.
bool collect(const ptx::Modifiers& mods, ModSet& flags) {
  for (size_t i = 0; i < kMods; ++i) {
    if (!mods.flags[i]) continue;
    ModSet bit = mod_bits()[i];
    if (bit == 0) return false;
    flags |= bit;
  }
  return true;
}

// ------------------------------------------------------------------------------------- rows
struct Index {
  std::unordered_map<uint16_t, std::vector<const Row*>> by_op;
  explicit Index(const Level& level) {
    for (int t = 0; t < level.topics; ++t) {
      for (size_t i = 0; i < level.rows[t].count; ++i) {
        const Row* row = level.rows[t].first + i;
        by_op[static_cast<uint16_t>(row->op)].push_back(row);
      }
    }
  }
};
const std::vector<const Row*>& rows_of(const Level& level, Op op) {
  static const Index v2(level_v2::tables()), v3(level_v3::tables()), v4(level_v4::tables());
  static const std::vector<const Row*> none;
  std::string_view name = level.name;
  const Index& index = name == "v4" ? v4 : name == "v3" ? v3 : v2;
  auto it = index.by_op.find(static_cast<uint16_t>(op));
  return it == index.by_op.end() ? none : it->second;
}

// ---------------------------------------------------------------------------------- operands
int register_bytes(Type type) { return std::max(2, ptx::bits(type) / 8); }

bool fits(const LeafInfo& leaf, Type type, bool is_destination) {
  switch (leaf.kind) {
    case LeafInfo::Kind::reg:
      return type != Type::pred && leaf.bytes == register_bytes(type);
    case LeafInfo::Kind::pred:
      return type == Type::pred;
    case LeafInfo::Kind::immediate:
      return !is_destination;
    case LeafInfo::Kind::sink:
      return is_destination;
  }
  return false;
}

bool operands_fit(const ScalarSpec& spec, const std::array<LeafInfo, 8>& leaves, int count) {
  if (count != spec.leaves) return false;
  for (int i = 0; i < count; ++i) {
    if (!fits(leaves[i], spec.type[i], i < spec.destinations)) return false;
  }
  return true;
}

using OperandKind = ptx::Operand::Kind;
bool is_vector(const ptx::Instruction& in, size_t i) {
  return i < in.operands.size() && in.operands[i].kind == OperandKind::vector;
}

void append(ScalarSpec& spec, Type type) {
  if (spec.leaves < spec.type.size()) spec.type[spec.leaves++] = type;
}

// --------------------------------------------------------------------------------- comparisons
uint16_t outcomes_of(ModSet flags) {
  constexpr struct {
    ModSet mods;
    uint16_t outcomes;
  } kTable[] = {
      {mod::eq, kEqual},
      {mod::ne, kLess | kGreater},
      {mod::lt | mod::lo, kLess},
      {mod::le | mod::ls, kLess | kEqual},
      {mod::gt | mod::hi, kGreater},
      {mod::ge | mod::hs, kGreater | kEqual},
      {mod::equ, kEqual | kUnordered},
      {mod::neu, kLess | kGreater | kUnordered},
      {mod::ltu, kLess | kUnordered},
      {mod::leu, kLess | kEqual | kUnordered},
      {mod::gtu, kGreater | kUnordered},
      {mod::geu, kGreater | kEqual | kUnordered},
      {mod::num, kEqual | kLess | kGreater},
      {mod::nan, kUnordered},
  };
  for (const auto& row : kTable) {
    if (flags & row.mods) return row.outcomes;
  }
  return 0;
}

// The relation to compute, with kSwapped and kInverted. Integers are always ordered.
uint16_t relation_of(uint16_t outcomes, bool is_real) {
  const uint16_t all = is_real ? 15 : 7;
  for (uint16_t inverted : {uint16_t{0}, uint16_t{kInverted}}) {
    switch (inverted ? all & ~outcomes : outcomes) {
      case kEqual:
        return kIsEqual | inverted;
      case kLess:
        return kIsLess | inverted;
      case kGreater:
        return uint16_t{kIsLess} | kSwapped | inverted;
    }
    if (!is_real) continue;
    switch (inverted ? all & ~outcomes : outcomes) {
      case kLess | kEqual:
        return kIsLessEqual | inverted;
      case kGreater | kEqual:
        return uint16_t{kIsLessEqual} | kSwapped | inverted;
      case kLess | kGreater:
        return kIsLessGreater | inverted;
      case kLess | kGreater | kEqual:
        return kIsOrdered | inverted;
    }
  }
  return kIsEqual;
}

bool has_bool_op(ModSet flags) { return (flags & (mod::and_ | mod::or_ | mod::xor_)) != 0; }

bool complete_setp(const Row& row, ModSet flags, const ptx::Instruction& in, ScalarSpec& spec,
                   uint16_t& extra) {
  const Type type = row.signature.type[0];
  extra = relation_of(outcomes_of(flags), ptx::is_float(type));
  if ((extra & 0xff) != row.extra || in.operands.empty()) return false;
  const bool second = in.operands[0].kind == OperandKind::pair;
  if (ptx::bits(type) == 32 && type != Type::f32 && ptx::is_float(type) && !second) return false;
  spec.leaves = 0;
  append(spec, Type::pred);
  if (second) append(spec, Type::pred);
  spec.destinations = spec.leaves;
  append(spec, type);
  append(spec, type);
  if (second) extra |= kHasSecond;
  if (has_bool_op(flags)) {
    extra |= kHasCombine;
    append(spec, Type::pred);
  }
  return true;
}

// ------------------------------------------------------------------------------------- shapes
bool complete(const Row& row, ModSet flags, const ptx::Instruction& in, ScalarSpec& spec,
              uint16_t& extra) {
  switch (row.shape) {
    case Shape::plain:
      return !is_vector(in, 0) && !is_vector(in, 1);
    case Shape::pack:
      return !is_vector(in, 0) && is_vector(in, 1);
    case Shape::unpack:
      return is_vector(in, 0) && !is_vector(in, 1);
    case Shape::setp:
      return complete_setp(row, flags, in, spec, extra);
    case Shape::set:
      extra |= outcomes_of(flags);
      if (has_bool_op(flags)) {
        extra |= kHasCombine;
        append(spec, Type::pred);
      }
      return true;
    case Shape::optional_predicate:
      if (in.operands.empty() || in.operands[0].kind != OperandKind::pair) return true;
      extra |= kHasSecond;
      std::copy_backward(spec.type.begin() + 1, spec.type.begin() + spec.leaves,
                         spec.type.begin() + spec.leaves + 1);
      spec.type[1] = Type::pred;
      ++spec.leaves;
      ++spec.destinations;
      return true;
    case Shape::lop3: {
      if (in.operands.size() < 5 || in.operands[4].kind != OperandKind::integer) return false;
      extra = static_cast<uint16_t>(in.operands[4].value & 0xff);
      return true;
    }
  }
  return false;
}

uint64_t pack_imm(ModSet flags, uint16_t extra) {
  constexpr uint64_t kRuntime = (uint64_t{1} << 48) - 1;
  return (static_cast<uint64_t>(flags) & kRuntime) | uint64_t{extra} << 48;
}

// --------------------------------------------------------------------------------- conversions
bool is_integer(Type t) {
  switch (t) {
    case Type::u8:
    case Type::s8:
    case Type::u16:
    case Type::s16:
    case Type::u32:
    case Type::s32:
    case Type::u64:
    case Type::s64:
      return true;
    default:
      return false;
  }
}
bool is_real(Type t) {
  return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64;
}
uint16_t describe(Type t) {
  return static_cast<uint16_t>(ptx::bits(t) | (ptx::is_signed(t) ? kSignedInteger : 0));
}
// An 8-bit immediate is splat as the 16-bit register it would sit in.
Type in_register(Type t) { return t == Type::u8 ? Type::u16 : t == Type::s8 ? Type::s16 : t; }

// Register width of a conversion's operand: integers may sit in wider registers, floats may not.
int operand_bytes(const LeafInfo& leaf, Type type) {
  const int least = register_bytes(type);
  if (leaf.kind != LeafInfo::Kind::reg) return leaf.kind == LeafInfo::Kind::pred ? 0 : least;
  if (is_integer(type)) return leaf.bytes >= least && leaf.bytes <= 8 ? leaf.bytes : 0;
  return leaf.bytes == least ? least : 0;
}

ScalarSpec find_integer_cvt(const Level& level, ModSet flags, Type to, Type from,
                            const std::array<LeafInfo, 8>& leaves, int count) {
  ScalarSpec spec;
  if (count != 2 || leaves[0].kind == LeafInfo::Kind::immediate) return spec;
  const int to_bytes = operand_bytes(leaves[0], to), from_bytes = operand_bytes(leaves[1], from);
  if (to_bytes == 0 || from_bytes == 0) return spec;
  constexpr ModSet kRounds = mod::rn | mod::rz | mod::rm | mod::rp;
  constexpr ModSet kRoundInts = mod::rni | mod::rzi | mod::rmi | mod::rpi;
  const uint64_t runtime = pack_imm(flags, 0);
  uint16_t extra = 0;
  if (is_integer(to) && is_integer(from)) {
    if (!may(mod::sat).accept(flags)) return spec;
    extra = static_cast<uint16_t>(describe(to) | describe(from) << 8);
    spec.handler = level.cvt_int_to_int(to_bytes, from_bytes, extra, (flags & mod::sat) != 0);
  } else if (is_integer(from)) {
    if (!(one_of(kRounds) + may(mod::sat)).accept(flags)) return spec;
    extra = describe(from);
    spec.handler = level.cvt_int_to_float(to, from_bytes, extra, runtime);
  } else {
    if (!(one_of(kRoundInts) + may(mod::sat | mod::ftz)).accept(flags)) return spec;
    extra = describe(to);
    spec.handler = level.cvt_float_to_int(to_bytes, from, extra, runtime);
  }
  spec.leaves = 2;
  spec.destinations = 1;
  spec.type[0] = to;
  spec.type[1] = in_register(from);
  spec.imm = pack_imm(flags, extra);
  return spec;
}

// Whatever the types of a video instruction, its registers are words.
ScalarSpec find_video(const Level& level, const ptx::Instruction& in,
                      const std::array<LeafInfo, 8>& leaves, int count) {
  ScalarSpec spec;
  const VideoInstruction video = video_instruction(in);
  if (video.sources == 0 || count != video.sources + 1 || !video_agrees(in, video.form))
    return spec;
  spec.leaves = static_cast<uint8_t>(count);
  spec.destinations = 1;
  for (int i = 0; i < count; ++i) spec.type[static_cast<size_t>(i)] = Type::u32;
  spec.imm = video.form.pack();
  if (operands_fit(spec, leaves, count)) spec.handler = level.video(in.op, video.sources);
  return spec;
}

}  // namespace

const Levels& available_levels() {
  static const Levels levels = [] {
    Levels l;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) l.level[l.count++] = level_v4::tables();
    if (__builtin_cpu_supports("x86-64-v3")) l.level[l.count++] = level_v3::tables();
    l.level[l.count++] = level_v2::tables();
    return l;
  }();
  return levels;
}

ScalarSpec find(const Level& level, const ptx::Instruction& in,
                const std::array<LeafInfo, 8>& leaves, int count) {
  if (video_instruction(in).sources != 0) return find_video(level, in, leaves, count);
  ModSet flags = 0;
  if (count < 0 || count > 8 || in.mods->types.size() > 3 || !in.mods->spaces.empty() ||
      !collect(in.mods, flags)) {
    return {};
  }
  const Types types(in.mods.type(0), in.mods.type(1), in.mods.type(2));
  if (in.op == Op::cvt && types.c == Type::none &&
      ((is_integer(types.a) && (is_integer(types.b) || is_real(types.b))) ||
       (is_real(types.a) && is_integer(types.b)))) {
    return find_integer_cvt(level, flags, types.a, types.b, leaves, count);
  }
  for (const Row* row : rows_of(level, in.op)) {
    if (!(row->types == types) || !row->flags.accept(flags)) continue;
    ScalarSpec spec;
    spec.leaves = row->signature.leaves;
    spec.destinations = row->signature.destinations;
    std::copy_n(row->signature.type, spec.type.size(), spec.type.begin());
    uint16_t extra = row->extra;
    if (!complete(*row, flags, in, spec, extra) || !operands_fit(spec, leaves, count)) continue;
    spec.imm = pack_imm(flags, extra);
    spec.handler = row->handler;
    return spec;
  }
  return {};
}

}  // namespace ptxbench::emu::scalar

namespace ptxbench::emu {

ScalarSpec find_scalar(const ptx::Instruction& instruction, const std::array<LeafInfo, 8>& leaves,
                       int count) {
  return scalar::find(scalar::available_levels().level[0], instruction, leaves, count);
}

}  // namespace ptxbench::emu
