// Why an instruction fits no form: in words for people.

#include <fmt/format.h>

#include "ptx/parser.h"
#include "ptx/verifier_impl.h"

namespace ptxbench::ptx {
namespace {

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

std::string list(const ModSet& words) {
  std::string out;
  size_t left = words.count();
  for (size_t m = 0; m < words.size(); ++m) {
    if (!words[m]) continue;
    if (!out.empty()) out += left == 1 ? " or " : ", ";
    out.append(".").append(name(static_cast<Mod>(m)));
    --left;
  }
  return out;
}

std::string list_types(uint64_t types) {
  std::string out;
  for (unsigned t = 1; t <= static_cast<unsigned>(Type::b1024); ++t) {
    if (!((types >> t) & 1)) continue;
    if (!out.empty()) out += (types >> t) == 1 ? " or " : ", ";
    out.append(".").append(name(static_cast<Type>(t)));
  }
  return out;
}

std::string list_spaces(uint32_t spaces) {
  std::string out;
  for (unsigned s = 1; s <= static_cast<unsigned>(Space::tex); ++s) {
    if (!((spaces >> s) & 1)) continue;
    if (!out.empty()) out += (spaces >> s) == 1 ? " or " : ", ";
    out.append(".").append(name(static_cast<Space>(s)));
  }
  return out;
}

// What separates the modifiers from one form: how much, and the first of it as a sentence.
struct Miss {
  size_t cost = 0;
  std::string text;
  void add(size_t more, std::string sentence) {
    if (cost == 0) text = std::move(sentence);
    cost += more;
  }
};

void miss_types(const Instruction& i, const Form& form, Miss* miss) {
  const std::vector<Type>& types = i.mods->types;
  size_t next = 0, required = 0;
  for (const TypeSlot& slot : form.types) required += !slot.optional;
  for (const TypeSlot& slot : form.types) {
    bool fits = next < types.size() && ((slot.any_of >> static_cast<unsigned>(types[next])) & 1);
    if (fits) {
      ++next;
    } else if (slot.optional) {
      continue;
    } else if (next >= types.size()) {
      miss->add(2, fmt::format("{} needs {}, {}", mnemonic(i),
                               types.empty() ? "a type" : "another type", list_types(slot.any_of)));
    } else {
      miss->add(2, fmt::format("'.{}' is no type of {} here; it takes {}", name(types[next]),
                               mnemonic(i), list_types(slot.any_of)));
      ++next;
    }
  }
  if (next < types.size())
    miss->add(2 * (types.size() - next),
              fmt::format("{} takes {} type{}, but {} are given", mnemonic(i), required,
                          required == 1 ? "" : "s", types.size()));
}

void miss_spaces(const Instruction& i, const Form& form, Miss* miss) {
  const std::vector<Space>& spaces = i.mods->spaces;
  size_t next = 0;
  for (const SpaceSlot& slot : form.spaces) {
    bool fits = next < spaces.size() && ((slot.any_of >> static_cast<unsigned>(spaces[next])) & 1);
    if (fits) {
      ++next;
    } else if (!slot.optional) {
      miss->add(3,
                fmt::format("{} needs the state space {}", mnemonic(i), list_spaces(slot.any_of)));
      ++next;
    }
  }
  if (next < spaces.size())
    miss->add(2, fmt::format("'.{}' is no state space of {} with these modifiers",
                             name(spaces[next]), mnemonic(i)));
}

void miss_words(const Instruction& i, const Form& form, Miss* miss) {
  const Modifiers& mods = i.mods;
  for (const ModSlot& slot : form.slots) {
    ModSet have = slot.any_of & mods.flags;
    if (have.none() && !slot.optional)
      miss->add(slot.any_of.count() == 1 ? 2 : 1,
                fmt::format("{} needs {}", mnemonic(i), list(slot.any_of)));
    if (have.several() && !slot.repeats)
      miss->add(2, fmt::format("{} has {}, which exclude each other", mnemonic(i), list(have)));
  }
  ModSet extra = mods.flags - form.allowed;
  for (size_t m = 0; m < extra.size(); ++m)
    if (extra[m])
      miss->add(2, fmt::format("'.{}' does not go with the rest of {}", name(static_cast<Mod>(m)),
                               mnemonic(i)));
}

void miss_shape(const Instruction& i, const Form& form, Miss* miss) {
  bool wants = form.any_shape || !form.shapes.empty(), has = i.mods->shape.m != 0;
  if (wants && !has) miss->add(2, fmt::format("{} needs a matrix shape", mnemonic(i)));
  if (!wants && has) miss->add(2, fmt::format("{} has no matrix shape", mnemonic(i)));
  if (!wants || !has || form.any_shape) return;
  for (const MatrixShape& shape : form.shapes)
    if (shape == i.mods->shape) return;
  const MatrixShape& s = form.shapes.front();
  miss->add(3, fmt::format("{} has no such matrix shape; there is m{}n{}{} for one", mnemonic(i),
                           s.m, s.n, s.k ? fmt::format("k{}", s.k) : ""));
}

}  // namespace

std::string describe(const Form& form, const Modifiers& mods) {
  std::string out;
  for (const OperandPattern& p : form.operands) {
    if (p.conditional && !mods.has(p.condition)) continue;
    if (!out.empty()) out += ", ";
    out += p.optional ? fmt::format("{{{}}}", role_name(p.role)) : std::string(role_name(p.role));
  }
  return out.empty() ? "no operands" : out;
}

std::string diagnose_modifiers(const Instruction& i) {
  Miss best;
  best.cost = SIZE_MAX;
  for (const Form& form : info(i.op).forms) {
    Miss miss;
    miss_shape(i, form, &miss);
    miss_words(i, form, &miss);
    miss_types(i, form, &miss);
    miss_spaces(i, form, &miss);
    if (miss.cost < best.cost) best = std::move(miss);
  }
  return best.text.empty() ? fmt::format("the modifiers of {} do not go together", mnemonic(i))
                           : best.text;
}

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

}  // namespace ptxbench::ptx
