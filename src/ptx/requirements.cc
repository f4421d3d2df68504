// Which target and PTX version an instruction needs (PTX ISA 9.0, the notes at the end of each
// instruction).

#include <fmt/format.h>

#include <algorithm>

#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

bool satisfies(const TargetChoice& choice, const Target& t) {
  if (choice.suffix == 0) return t.sm >= choice.sm;
  if (choice.suffix == 'a') return t.sm == choice.sm && t.suffix == 'a';
  return t.suffix != 0 && t.sm >= choice.sm && t.sm / 10 == choice.sm / 10;
}

bool concerns(const WordNeed& need, const Modifiers& mods) {
  if ((need.mods & mods.flags).any()) return true;
  for (Type type : mods.types)
    if ((need.types >> static_cast<unsigned>(type)) & 1) return true;
  for (Space space : mods.spaces)
    if ((need.spaces >> static_cast<unsigned>(space)) & 1) return true;
  return false;
}

bool satisfied_by_all_of(const Requirement& r, const Requirement& stricter) {
  for (uint8_t i = 0; i < stricter.count; ++i) {
    const TargetChoice& choice = stricter.any_of[i];
    if (!satisfies(r, Target{choice.sm, choice.suffix})) return false;
  }
  return true;
}

bool moves_256_bits(const Instruction& i) {
  if (i.op != Op::ld && i.op != Op::st) return false;
  int element = bits(i.mods.type());
  return (i.mods.has(Mod::v8) && element == 32) || (i.mods.has(Mod::v4) && element == 64);
}

// Both must hold: keeps the stricter targets (those of the table are nested).
void add(const Requirement& more, Requirement* r) {
  int ptx = std::max(r->ptx, more.ptx);
  if (satisfied_by_all_of(*r, more)) *r = more;
  r->ptx = ptx;
}

}  // namespace

Target parse_target(std::string_view text) {
  Target t;
  if (!text.starts_with("sm_")) return t;
  text.remove_prefix(3);
  while (!text.empty() && text[0] >= '0' && text[0] <= '9' && t.sm < 10000) {
    t.sm = t.sm * 10 + text[0] - '0';
    text.remove_prefix(1);
  }
  if (text.size() == 1 && (text[0] == 'a' || text[0] == 'f')) {
    t.suffix = text[0];
  } else if (!text.empty()) {
    t.sm = 0;
  }
  return t;
}

bool satisfies(const Requirement& r, const Target& t) {
  for (uint8_t i = 0; i < r.count; ++i)
    if (satisfies(r.any_of[i], t)) return true;
  return false;
}

std::string to_string(const Requirement& r) {
  std::string out;
  for (uint8_t i = 0; i < r.count; ++i) {
    const TargetChoice& c = r.any_of[i];
    if (i > 0) out += i + 1 == r.count ? " or " : ", ";
    out += fmt::format("sm_{}", c.sm);
    if (c.suffix == 'a') out += "a";
    if (c.suffix == 0) out += " or later";
    if (c.suffix == 'f') out += "a/f";
  }
  return out;
}

Requirement requirement_of(const Instruction& instruction, const Form& form) {
  Requirement r = form.requirement;
  for (const WordNeed& need : info(instruction.op).needs)
    if (concerns(need, instruction.mods)) add(need.requirement, &r);
  if (moves_256_bits(instruction))
    add(Requirement{.ptx = 88, .count = 1, .any_of = {TargetChoice{100, 0}}}, &r);
  // All common needs are of state spaces and the cluster scope.
  if (instruction.mods->spaces.empty() && !instruction.mods.has(Mod::cluster)) return r;
  for (const WordNeed& need : common_needs())
    if (concerns(need, instruction.mods)) add(need.requirement, &r);
  return r;
}

Requirement requirement_of(const Instruction& instruction) {
  const Form* form = matching_form(instruction);
  return requirement_of(instruction, form ? *form : info(instruction.op).forms.front());
}

}  // namespace ptxbench::ptx
