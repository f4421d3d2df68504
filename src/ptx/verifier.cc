#include "ptx/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/parser.h"

namespace ptxbench::ptx {
namespace {

struct RequiredWord {
  Op op;
  std::string_view what;
  std::vector<Mod> any_of;
  bool integers_only = false;
};

// Opcodes that say nothing without one of these words.
const std::vector<RequiredWord>& required_words() {
  static const auto* words = new std::vector<RequiredWord>{
      {Op::mul, ".lo, .hi or .wide", {Mod::lo, Mod::hi, Mod::wide}, true},
      {Op::mad, ".lo, .hi or .wide", {Mod::lo, Mod::hi, Mod::wide}, true},
      {Op::shfl_sync, ".up, .down, .bfly or .idx", {Mod::up, Mod::down, Mod::bfly, Mod::idx}},
      {Op::bar, ".sync, .arrive or .red", {Mod::sync, Mod::arrive, Mod::red}},
      {Op::barrier, ".sync, .arrive or .red", {Mod::sync, Mod::arrive, Mod::red}},
      {Op::vote_sync, ".all, .any, .uni or .ballot", {Mod::all, Mod::any, Mod::uni, Mod::ballot}},
      {Op::match_sync, ".any or .all", {Mod::any, Mod::all}},
      {Op::setmaxnreg, ".inc or .dec", {Mod::inc, Mod::dec}},
      {Op::cp_async, ".ca or .cg", {Mod::ca, Mod::cg}},
      {Op::shf, ".l or .r", {Mod::l, Mod::r}},
      {Op::cp_async_bulk_tensor,
       "its dimensions, .1d to .5d",
       {Mod::dim1d, Mod::dim2d, Mod::dim3d, Mod::dim4d, Mod::dim5d}},
      {Op::tcgen05_wait, "::ld or ::st", {Mod::ld_, Mod::st_}},
      {Op::atom,
       "an operation such as .add",
       {Mod::and_, Mod::or_, Mod::xor_, Mod::cas, Mod::exch, Mod::add, Mod::inc, Mod::dec, Mod::min,
        Mod::max}},
      {Op::red,
       "an operation such as .add",
       {Mod::and_, Mod::or_, Mod::xor_, Mod::add, Mod::inc, Mod::dec, Mod::min, Mod::max}}};
  return *words;
}

std::string_view role_name(Role role) {
  switch (role) {
    case Role::destination:
      return "destination";
    case Role::in_out:
      return "accumulators";
    case Role::predicate_destination:
      return "predicate destination";
    case Role::source:
      return "source";
    case Role::predicate_source:
      return "predicate";
    case Role::immediate:
      return "constant";
    case Role::address:
      return "[address]";
    case Role::source_or_address:
      return "source or [address]";
    case Role::label:
      return "label";
    case Role::table:
      return "branch table";
    case Role::call:
      return "call";
  }
  return "";
}

std::string describe(const Form& form) {
  if (form.operands.empty()) return "no operands";
  std::string out;
  for (const OperandPattern& p : form.operands) {
    if (!out.empty()) out += ", ";
    out += p.optional ? fmt::format("{{{}}}", role_name(p.role)) : std::string(role_name(p.role));
  }
  return out;
}

// The counterpart of an instruction that another architecture has, for messages.
std::string_view counterpart(Op op, const Target& target) {
  std::string_view text = name(op);
  bool hopper = target.sm >= 90 && target.sm < 100, blackwell = target.sm >= 100 && target.sm < 120;
  if (text.starts_with("wgmma.mma_async") && blackwell)
    return "; its counterpart on Blackwell (sm_100a) is tcgen05.mma";
  if (text == "wgmma.wait_group" && blackwell)
    return "; its counterpart on Blackwell (sm_100a) is tcgen05.commit with an mbarrier wait";
  if (text.starts_with("wgmma") && blackwell)
    return "; its counterpart on Blackwell (sm_100a) is tcgen05.mma with tcgen05.commit and "
           "tcgen05.fence";
  if (text.starts_with("wgmma") && target.sm >= 120) return "; sm_120 has mma.sync only";
  if (text.starts_with("tcgen05.mma") && hopper)
    return "; its counterpart on Hopper (sm_90a) is wgmma.mma_async";
  if (text.starts_with("tcgen05") && hopper)
    return "; Hopper (sm_90a) has no tensor memory, wgmma.mma_async keeps accumulators in "
           "registers";
  if (text.starts_with("tcgen05") && target.sm >= 120)
    return "; sm_120 has no tensor memory, its tensor cores are reached by mma.sync";
  return "";
}

class Verifier {
 public:
  Verifier(const Module& module, std::string_view file)
      : module_(module), file_(file), target_(parse_target(module.target)) {}
  Result<void> run();

 private:
  Result<void> function(const Function& f);
  Result<void> instruction(const Instruction& i);
  Result<void> requirement(const Instruction& i);
  Result<void> modifiers(const Instruction& i);
  Result<void> operands(const Instruction& i);
  Result<void> widths(const Instruction& i, const Form& form);
  Result<void> width(const Instruction& i, const OperandPattern& p, const Operand& o);
  Result<void> vector_length(const Instruction& i);
  Result<void> space(const Instruction& i);
  Result<void> move(const Instruction& i);
  Result<void> wgmma(const Instruction& i);
  Result<void> call(const Instruction& i);
  int register_bits(const Operand& o) const;
  Error error(const Instruction& i, std::string message, std::string kind = "ptx-operands") const {
    return {std::move(kind),
            std::move(message),
            {file_, static_cast<int>(i.line), static_cast<int>(i.column)}};
  }

  const Module& module_;
  const Function* function_ = nullptr;
  std::string file_;
  Target target_;
};

Result<void> Verifier::run() {
  if (target_.sm == 0)
    return Error{"ptx-target", fmt::format("'{}' is no target", module_.target), {file_, 0, 0}};
  for (const Function& f : module_.functions) PB_RETURN_IF_ERROR(function(f));
  return {};
}

Result<void> Verifier::function(const Function& f) {
  constexpr uint32_t kMaxParams = 32764;  // PTX 8.1 and sm_70; 4352 before
  function_ = &f;
  SourceLocation where{file_, static_cast<int>(f.line), 0};
  if (f.is_entry && f.param_bytes > kMaxParams)
    return Error{"ptx-operands",
                 fmt::format("the parameters of '{}' take {} bytes, more than {}", f.name,
                             f.param_bytes, kMaxParams),
                 where};
  bool clusters = !f.directives.reqnctapercluster.empty() || f.directives.explicitcluster ||
                  f.directives.maxclusterrank;
  if (clusters && target_.sm < 90)
    return Error{"ptx-target",
                 fmt::format("'{}' asks for clusters, which need sm_90 or later; the target is {}",
                             f.name, module_.target),
                 where};
  for (const Statement& s : f.body)
    if (auto* i = std::get_if<Instruction>(&s)) PB_RETURN_IF_ERROR(instruction(*i));
  return {};
}

Result<void> Verifier::instruction(const Instruction& i) {
  PB_RETURN_IF_ERROR(requirement(i));
  if (i.guard != kNone && function_->registers[i.guard].type != Type::pred)
    return error(i, fmt::format("the guard '{}' is no predicate register",
                                function_->registers[i.guard].name));
  PB_RETURN_IF_ERROR(modifiers(i));
  return operands(i);
}

Result<void> Verifier::requirement(const Instruction& i) {
  Requirement r = requirement_of(i);
  if (!satisfies(r, target_))
    return error(i,
                 fmt::format("{} needs target {}; this module's target is {}{}", mnemonic(i),
                             to_string(r), module_.target, counterpart(i.op, target_)),
                 "ptx-target");
  int version = module_.version_major * 10 + module_.version_minor;
  if (version < r.ptx)
    return error(i,
                 fmt::format("{} needs PTX {}.{}; this module's version is {}.{}", mnemonic(i),
                             r.ptx / 10, r.ptx % 10, module_.version_major, module_.version_minor),
                 "ptx-target");
  return {};
}

Result<void> Verifier::modifiers(const Instruction& i) {
  bool typed = info(i.op).types != 0 && i.op != Op::bar && i.op != Op::barrier;
  if (typed && i.mods.types.empty()) return error(i, fmt::format("{} needs a type", mnemonic(i)));
  if (i.op == Op::cvt && i.mods.types.size() < 2)
    return error(i, "cvt needs two types, the result's and the operand's");
  for (const RequiredWord& word : required_words()) {
    if (word.op != i.op || (word.integers_only && is_float(i.mods.type()))) continue;
    auto has = [&](Mod m) { return i.mods.has(m); };
    if (!std::any_of(word.any_of.begin(), word.any_of.end(), has))
      return error(i, fmt::format("{} needs {}", mnemonic(i), word.what));
  }
  if (i.op == Op::setp || i.op == Op::set) {
    bool compares = false;
    for (size_t m = static_cast<size_t>(Mod::eq); m <= static_cast<size_t>(Mod::nan); ++m)
      compares |= i.mods.flags[m];
    if (!compares) return error(i, fmt::format("{} needs a comparison such as .lt", mnemonic(i)));
  }
  return {};
}

Result<void> Verifier::operands(const Instruction& i) {
  if (i.op == Op::call) return call(i);
  const Form* form = matching_form(i);
  if (!form) {
    std::string expected;
    for (const Form& f : info(i.op).forms) {
      if (f.conditional && !i.mods.has(f.condition)) continue;
      if (!expected.empty()) expected += "; or ";
      expected += describe(f);
    }
    return error(i,
                 fmt::format("the operands of {} do not fit: it takes {}", mnemonic(i), expected));
  }
  PB_RETURN_IF_ERROR(widths(i, *form));
  PB_RETURN_IF_ERROR(vector_length(i));
  PB_RETURN_IF_ERROR(space(i));
  if (i.op == Op::mov) return move(i);
  if (i.op == Op::wgmma_mma_async || i.op == Op::wgmma_mma_async_sp) return wgmma(i);
  return {};
}

Result<void> Verifier::widths(const Instruction& i, const Form& form) {
  for (size_t k = 0; k < i.operands.size(); ++k) {
    const Operand& o = i.operands[k];
    const OperandPattern& p = form.operands[k];
    if (o.kind == Operand::Kind::vector) {
      for (const Operand& e : o.elements) PB_RETURN_IF_ERROR(width(i, p, e));
    } else if (o.kind == Operand::Kind::pair) {
      PB_RETURN_IF_ERROR(width(i, p, o.elements[0]));
    } else {
      PB_RETURN_IF_ERROR(width(i, p, o));
    }
  }
  return {};
}

int Verifier::register_bits(const Operand& o) const {
  const Register& r = function_->registers[o.index];
  return bits(r.type) * (o.selector == 0 ? r.vector : 1);
}

Result<void> Verifier::width(const Instruction& i, const OperandPattern& p, const Operand& o) {
  if (o.kind != Operand::Kind::reg || o.selector > 4) return {};
  const Register& r = function_->registers[o.index];
  bool predicate = p.role == Role::predicate_destination || p.role == Role::predicate_source;
  if (o.negated && !predicate)
    return error(i, fmt::format("'!{}': a source of {} cannot be negated", r.name, mnemonic(i)));
  if (predicate) {
    if (r.type == Type::pred || i.mods.has(Mod::popc)) return {};
    return error(i, fmt::format("'{}' of {} must be a predicate register", r.name, mnemonic(i)));
  }
  using Width = OperandPattern::Width;
  if (p.width == Width::none) return {};
  Type type = p.type;
  const std::vector<Type>& types = i.mods.types;
  if (p.width != Width::fixed) {
    if (types.empty()) return {};
    size_t last = types.size() - 1;
    type = types[p.width == Width::wide ? 0 : std::min<size_t>(p.index, last)];
  }
  int want = bits(type);
  if (p.width == Width::wide && i.mods.has(Mod::wide)) want *= 2;
  int have = register_bits(o);
  bool is_pred = r.type == Type::pred;
  bool ok = p.width == Width::at_least ? have >= want : have == want;
  if (ok && is_pred == (type == Type::pred)) return {};
  return error(i, fmt::format("register '{}' is .{}, but {} needs {}{} bits", r.name, name(r.type),
                              mnemonic(i), p.width == Width::at_least ? "at least " : "", want));
}

// ld, st: as many registers as .v2/.v4/.v8 says.
Result<void> Verifier::vector_length(const Instruction& i) {
  if (i.op != Op::ld && i.op != Op::st && i.op != Op::ldu) return {};
  size_t want = i.mods.has(Mod::v2) ? 2 : i.mods.has(Mod::v4) ? 4 : i.mods.has(Mod::v8) ? 8 : 1;
  const Operand& data = i.operands[i.op == Op::st ? 1 : 0];
  size_t have = data.kind == Operand::Kind::vector ? data.elements.size() : 1;
  if (data.kind == Operand::Kind::reg && data.selector == 0)
    have = function_->registers[data.index].vector;
  if (have == want) return {};
  return error(
      i, fmt::format("{} moves {} element{}, but {} given", mnemonic(i), want, want > 1 ? "s" : "",
                     have == 1 ? "1 is" : fmt::format("{} are", have)));
}

// A variable in brackets must lie in the space that the instruction names.
Result<void> Verifier::space(const Instruction& i) {
  if (i.mods.spaces.size() != 1) return {};
  auto family = [](Space s) {
    if (s == Space::shared_cta || s == Space::shared_cluster) return Space::shared;
    if (s == Space::param_entry || s == Space::param_func) return Space::param;
    return s;
  };
  bool plain = i.op == Op::ld || i.op == Op::st || i.op == Op::atom || i.op == Op::red ||
               i.op == Op::ldu || i.op == Op::ldmatrix || i.op == Op::stmatrix ||
               name(i.op).starts_with("mbarrier.");
  if (!plain) return {};
  for (const Operand& o : i.operands) {
    if (o.kind != Operand::Kind::address || o.base != Operand::Base::variable) continue;
    const Variable& v = o.is_param    ? function_->params[o.index]
                        : o.is_return ? function_->returns[o.index]
                        : o.is_local  ? function_->variables[o.index]
                                      : module_.variables[o.index];
    if (family(v.space) != family(i.mods.space()))
      return error(i, fmt::format("'{}' lies in .{}, but {} accesses .{}", v.name, name(v.space),
                                  mnemonic(i), name(i.mods.space())));
  }
  return {};
}

// mov between registers of one size, or packing and unpacking of as many bits.
Result<void> Verifier::move(const Instruction& i) {
  int want = bits(i.mods.type());
  for (const Operand& o : i.operands) {
    int have = 0;
    bool known = true;
    auto add = [&](const Operand& e) {
      if (e.kind == Operand::Kind::reg) {
        have += register_bits(e);
      } else {
        known = false;
      }
    };
    if (o.kind == Operand::Kind::vector) {
      for (const Operand& e : o.elements) add(e);
    } else {
      add(o);
    }
    if (i.mods.has(Mod::v2) || i.mods.has(Mod::v4)) known = false;
    if (known && have != want)
      return error(
          i, fmt::format("{} moves {} bits, but its operand has {}", mnemonic(i), want, have));
  }
  return {};
}

Result<void> Verifier::wgmma(const Instruction& i) {
  const MatrixShape& shape = i.mods.shape;
  if (shape.m != 64 || shape.n < 8 || shape.n > 256 || shape.n % 8 != 0 || shape.k == 0)
    return error(
        i, fmt::format("{}: wgmma has the shapes m64nNkK with N = 8, 16, ... 256", mnemonic(i)));
  size_t want = shape.n / (i.mods.type() == Type::f16 ? 4 : 2);
  const Operand& d = i.operands[0];
  size_t have = d.kind == Operand::Kind::vector ? d.elements.size() : 1;
  if (have != want)
    return error(i, fmt::format("{} has {} accumulator registers a thread, but {} are given",
                                mnemonic(i), want, have));
  return {};
}

Result<void> Verifier::call(const Instruction& i) {
  const Operand& target = i.operands[1];
  if (target.kind == Operand::Kind::reg) {
    if (i.operands.size() < 4)
      return error(i, "an indirect call needs a prototype or a list of targets");
    return {};
  }
  const Function& f = module_.functions[target.index];
  auto names_it = [&](const Alias& a) { return a.name == target.index; };
  bool alias = std::any_of(module_.aliases.begin(), module_.aliases.end(), names_it);
  if (f.is_declaration && !alias && f.linkage != Linkage::extern_ && f.linkage != Linkage::weak)
    return error(i, fmt::format("'{}' is called but never defined", f.name));
  if (f.is_entry) return error(i, fmt::format("'{}' is a kernel and cannot be called", f.name));
  size_t results = i.operands[0].elements.size(), arguments = i.operands[2].elements.size();
  if (results != f.returns.size() || arguments != f.params.size())
    return error(i, fmt::format("'{}' takes {} arguments and returns {}, but {} and {} are given",
                                f.name, f.params.size(), f.returns.size(), arguments, results));
  return {};
}

}  // namespace

Result<void> verify(const Module& module, std::string_view file_name) {
  return Verifier(module, file_name).run();
}

}  // namespace ptxbench::ptx
