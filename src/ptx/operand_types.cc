// Types of registers and constants (PTX ISA, "Operand type checking"): untyped registers (.b32)
// agree with every type of their size, integers with each other, floating-point types with
// themselves alone, and the packed and narrow formats (bf16x2, e4m3x2, f32x2, ...) have no register
// type but .bN.

#include <fmt/format.h>

#include "ptx/parser.h"
#include "ptx/verifier_impl.h"

namespace ptxbench::ptx {
namespace {

enum class Class : uint8_t { predicate, untyped, integer, floating, packed };

Class class_of(Type type) {
  switch (type) {
    case Type::pred:
      return Class::predicate;
    case Type::b1:
    case Type::b8:
    case Type::b16:
    case Type::b32:
    case Type::b64:
    case Type::b128:
    case Type::b1024:
      return Class::untyped;
    case Type::f16:
    case Type::f16x2:
    case Type::f32:
    case Type::f64:
      return Class::floating;
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64:
      return Class::integer;
    default:
      return Class::packed;
  }
}

// The type that the form gives the operand; none: any.
struct Wanted {
  Type type = Type::none;
  int bits = 0;
  bool relaxed = false;
};

Wanted wanted(const OperandPattern& p, const Modifiers& mods) {
  using Width = OperandPattern::Width;
  Wanted w;
  switch (p.width) {
    case Width::none:
      return w;
    case Width::fixed:
      w.type = p.type;
      break;
    case Width::wide:
      w.type = mods.type(0);
      break;
    default:
      if (!mods.types.empty())
        w.type = mods.types[std::min<size_t>(p.index, mods.types.size() - 1)];
      w.relaxed = p.width == Width::at_least;
  }
  w.bits = bits(w.type);
  if (p.width == Width::wide && mods.has(Mod::wide)) w.bits *= 2;
  return w;
}

class OperandChecker {
 public:
  OperandChecker(const Context& c, const Form& form) : c_(c), i_(c.instruction), form_(form) {}
  Complaint run();

 private:
  Complaint operand(const Operand& o, const OperandPattern& p);
  Complaint pair(const Operand& o, const OperandPattern& p);
  Complaint elements(const Operand& o, const OperandPattern& p);
  Complaint value(const Operand& o, const OperandPattern& p, const Wanted& w);
  Complaint reg(const Operand& o, const OperandPattern& p, const Wanted& w);
  Complaint constant(const Operand& o, const OperandPattern& p, const Wanted& w);
  Complaint special(const Operand& o, const Wanted& w);
  Complaint address(const Operand& o);
  Complaint wrong_register(const Operand& o, const Wanted& w);

  const Context& c_;
  const Instruction& i_;
  const Form& form_;
};

Complaint OperandChecker::run() {
  Assignment pattern_of{};
  if (!assign_operands(form_, i_, &pattern_of)) return "the operands do not fit";
  for (size_t k = 0; k < i_.operands.size(); ++k)
    if (Complaint bad = operand(i_.operands[k], form_.operands[pattern_of[k]])) return bad;
  return {};
}

Complaint OperandChecker::operand(const Operand& o, const OperandPattern& p) {
  using Kind = Operand::Kind;
  if (o.kind == Kind::address) return address(o);
  if (o.kind == Kind::pair) return pair(o, p);
  if (p.role == Role::label || p.role == Role::table) return {};
  bool one = p.elements == OperandPattern::Elements::one;
  if (o.kind == Kind::vector || (!one && o.kind != Kind::sink)) return elements(o, p);
  return value(o, p, wanted(p, i_.mods));
}

Complaint OperandChecker::pair(const Operand& o, const OperandPattern& p) {
  const Operand &first = o.elements[0], &second = o.elements[1];
  if (first.kind == Operand::Kind::sink && !p.may_sink)
    return fmt::format("the first result of {} cannot be '_'", mnemonic(i_));
  if (Complaint bad = value(first, p, wanted(p, i_.mods))) return bad;
  if (second.kind == Operand::Kind::sink && p.role != Role::predicate_destination)
    return fmt::format("{} needs a predicate register behind the '|'", mnemonic(i_));
  if (second.kind == Operand::Kind::reg && c_.reg(second).type != Type::pred)
    return fmt::format("'{}' behind the '|' of {} must be a predicate register",
                       c_.reg(second).name, mnemonic(i_));
  return {};
}

Complaint OperandChecker::elements(const Operand& o, const OperandPattern& p) {
  using Elements = OperandPattern::Elements;
  size_t have = o.kind == Operand::Kind::vector ? o.elements.size() : 1;
  if (o.kind == Operand::Kind::reg && o.selector == 0) have = c_.reg(o).vector;
  size_t want = p.count;
  if (p.elements == Elements::by_vector_word)
    want = i_.mods.has(Mod::v2)    ? 2
           : i_.mods.has(Mod::v4)  ? 4
           : i_.mods.has(Mod::v8)  ? 8
           : i_.mods.has(Mod::v16) ? 16
                                   : 1;
  if (p.elements != Elements::any && have != want)
    return fmt::format("{} takes {} element{} here, but {} given", mnemonic(i_), want,
                       want == 1 ? "" : "s", have == 1 ? "1 is" : fmt::format("{} are", have));
  Wanted w = wanted(p, i_.mods);
  bool whole =
      p.elements == Elements::by_vector_word && (want == 1 || o.kind == Operand::Kind::reg);
  if (o.kind != Operand::Kind::vector) {
    if (!whole) return fmt::format("{} needs a vector {{...}} here", mnemonic(i_));
    return value(o, p, w);
  }
  for (const Operand& e : o.elements) {
    if (e.kind == Operand::Kind::sink && p.elements_may_sink) continue;
    if (Complaint bad = value(e, p, w)) return bad;
  }
  return {};
}

Complaint OperandChecker::value(const Operand& o, const OperandPattern& p, const Wanted& w) {
  using Kind = Operand::Kind;
  switch (o.kind) {
    case Kind::reg:
      return reg(o, p, w);
    case Kind::integer:
    case Kind::floating:
      if (p.role == Role::destination || !p.constant)
        return fmt::format("{} needs a register here, not a constant", mnemonic(i_));
      return constant(o, p, w);
    case Kind::special:
      return special(o, w);
    case Kind::variable:
    case Kind::function:
      if (!p.any_value) return fmt::format("{} needs a register here", mnemonic(i_));
      if (class_of(w.type) == Class::floating || w.bits < 32)
        return fmt::format("an address cannot be a .{} of {}", name(w.type), mnemonic(i_));
      return {};
    case Kind::sink:
      if (!p.may_sink) return fmt::format("'_' cannot stand here in {}", mnemonic(i_));
      return {};
    default:
      return fmt::format("{} cannot take this operand", mnemonic(i_));
  }
}

Complaint OperandChecker::wrong_register(const Operand& o, const Wanted& w) {
  const Register& r = c_.reg(o);
  std::string_view at_least = w.relaxed ? "at least " : "";
  if (bits(r.type) != w.bits && !(w.relaxed && bits(r.type) > w.bits))
    return fmt::format("register '{}' is .{}, but {} needs {}{} bits here", r.name, name(r.type),
                       mnemonic(i_), at_least, w.bits);
  return fmt::format("register '{}' is .{}, which does not agree with the .{} that {} needs here",
                     r.name, name(r.type), name(w.type), mnemonic(i_));
}

Complaint OperandChecker::reg(const Operand& o, const OperandPattern& p, const Wanted& w) {
  const Register& r = c_.reg(o);
  if (o.selector > 4) {  // parts of video operands
    if (name(i_.op)[0] != 'v') return fmt::format("{} takes no part of a register", mnemonic(i_));
    if (o.negated && i_.op != Op::vmad) return fmt::format("{} negates nothing", mnemonic(i_));
    return {};
  }
  bool predicate = p.role == Role::predicate_destination || p.role == Role::predicate_source ||
                   w.type == Type::pred;
  if (predicate && r.type != Type::pred)
    return fmt::format("'{}' of {} must be a predicate register", r.name, mnemonic(i_));
  if (o.negated && (!predicate || p.role == Role::predicate_destination))
    return fmt::format("'!{}': this operand of {} cannot be negated", r.name, mnemonic(i_));
  if (predicate) return {};
  if (r.type == Type::pred)
    return fmt::format("'{}' is a predicate register, but {} needs a value here", r.name,
                       mnemonic(i_));
  if (r.vector != 1 && o.selector == 0 && p.elements == OperandPattern::Elements::one)
    return fmt::format("'{}' is a vector, but {} needs one value here", r.name, mnemonic(i_));
  if (p.integers_only && (class_of(r.type) == Class::floating ||
                          (w.type == Type::none && bits(r.type) != 32 && bits(r.type) != 64)))
    return fmt::format("register '{}' is .{}, but {} needs an integer here", r.name, name(r.type),
                       mnemonic(i_));
  if (w.type == Type::none) return {};
  if (w.bits != bits(w.type)) {  // the product of mul.wide
    bool whole = class_of(r.type) == Class::untyped || class_of(r.type) == Class::integer;
    if (whole && bits(r.type) == w.bits) return {};
    return wrong_register(o, w);
  }
  if (agrees(r.type, w.type, w.relaxed)) return {};
  return wrong_register(o, w);
}

Complaint OperandChecker::constant(const Operand& o, const OperandPattern& p, const Wanted& w) {
  if (p.role == Role::immediate) {
    int64_t value = static_cast<int64_t>(o.value);
    if (!p.ranged || (value >= p.low && value <= p.high)) return {};
    if (p.low == p.high)
      return fmt::format("the constant {} of {} must be {}", value, mnemonic(i_), p.low);
    return fmt::format("the constant {} of {} must lie in {}..{}", value, mnemonic(i_), p.low,
                       p.high);
  }
  bool floating = o.kind == Operand::Kind::floating;
  if (floating && p.integers_only)
    return fmt::format("{} needs an integer here, not a floating-point constant", mnemonic(i_));
  if (w.type == Type::none || p.role == Role::predicate_source) return {};
  bool ok = false;
  switch (class_of(w.type)) {
    case Class::floating:
      ok = floating && w.bits >= 32 && w.type != Type::f16x2;
      break;
    case Class::untyped:
      ok = !floating || w.bits == (o.is_f32 ? 32 : 64);
      break;
    case Class::integer:
    case Class::predicate:
      ok = !floating;
      break;
    case Class::packed:
      break;
  }
  if (ok) return {};
  return fmt::format("{} constant does not agree with the .{} that {} needs here",
                     floating ? "a floating-point" : "an integer", name(w.type), mnemonic(i_));
}

Complaint OperandChecker::special(const Operand& o, const Wanted& w) {
  Special s = static_cast<Special>(o.index);
  int have = bits(type_of(s));
  Class c = class_of(w.type);
  bool dimension = s == Special::tid || s == Special::ntid || s == Special::ctaid ||
                   s == Special::nctaid;  // 16 bits wide in early PTX
  bool ok = c == Class::untyped || c == Class::integer || (c == Class::predicate && have == 1);
  bool fits = w.bits == have || (w.bits == 16 && dimension) ||
              (w.bits == 32 && s == Special::gridid) || i_.op == Op::cvt;
  if (ok && fits && (have > 1 || c == Class::predicate)) return {};
  return fmt::format("the special register '{}' is .{}, which {} cannot take", name(s),
                     name(type_of(s)), mnemonic(i_));
}

Complaint OperandChecker::address(const Operand& o) {
  if (o.base == Operand::Base::none) {
    if (i_.mods.space() == Space::local) return {};
    return fmt::format(
        "{} needs a register or a variable in the brackets: constant addresses are "
        "for .local alone",
        mnemonic(i_));
  }
  if (o.base != Operand::Base::reg) return {};
  const Register& r = c_.reg(o);
  Class c = class_of(r.type);
  if (c != Class::untyped && c != Class::integer)
    return fmt::format("register '{}' is .{}; an address needs an integer register", r.name,
                       name(r.type));
  return {};
}

}  // namespace

bool agrees(Type have, Type want, bool relaxed) {
  int n = bits(have), m = bits(want);
  if (relaxed ? n < m : n != m) return false;
  Class h = class_of(have), w = class_of(want);
  if (h == Class::predicate || w == Class::predicate) return h == w;
  if (h == Class::untyped || have == want) return true;
  if (have == Type::f16x2 && (w == Class::integer || want == Type::u16x2 || want == Type::s16x2))
    return true;
  if (w == Class::packed) return false;
  return w == Class::untyped || (h == Class::integer && w == Class::integer);
}

Complaint check_operand_types(const Context& context, const Form& form) {
  if (!form.operands.empty() && form.operands[0].role == Role::call) return {};
  return OperandChecker(context, form).run();
}

}  // namespace ptxbench::ptx
