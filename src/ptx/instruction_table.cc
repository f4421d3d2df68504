#include "ptx/instruction_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <unordered_map>

#include "ptx/text_hash.h"

namespace ptxbench::ptx {
namespace {

using WordMap = std::unordered_map<std::string_view, Modifiers::Word, TextHash>;

const WordMap& word_map() {
  static const WordMap* map = [] {
    auto* m = new WordMap;
    using Kind = Modifiers::Word::Kind;
    for (uint16_t i = 0; i < static_cast<uint16_t>(Mod::count_); ++i)
      m->emplace(name(static_cast<Mod>(i)), Modifiers::Word{Kind::mod, i});
    for (uint16_t i = 1; i <= static_cast<uint16_t>(Type::b1024); ++i)
      m->emplace(name(static_cast<Type>(i)), Modifiers::Word{Kind::type, i});
    for (uint16_t i = 1; i <= static_cast<uint16_t>(Space::tex); ++i)
      m->emplace(name(static_cast<Space>(i)), Modifiers::Word{Kind::space, i});
    return m;
  }();
  return *map;
}

// Edit distance with transpositions of neighbours; words are short.
size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, 64);
  b = b.substr(0, 64);
  using Row = std::array<size_t, 65>;
  Row before{}, last{}, row{};
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = last;
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

struct Nearest {
  std::string_view word;
  std::string_view best;
  size_t distance = std::numeric_limits<size_t>::max();
  void offer(std::string_view candidate) {
    size_t d = edit_distance(word, candidate);
    if (d < distance) {
      distance = d;
      best = candidate;
    }
  }
  std::string result() const {
    bool near = distance <= std::max<size_t>(2, word.size() / 2);
    return near ? std::string(best) : std::string();
  }
};

}  // namespace

bool modifiers_fit(const Form& form, const Modifiers& mods) {
  if ((mods.flags - form.allowed).any()) return false;
  for (const ModSlot& slot : form.slots) {
    ModSet have = slot.any_of & mods.flags;
    if (have.none() ? !slot.optional : !slot.repeats && have.several()) return false;
  }
  if (mods.shape.m != 0) {
    bool known = std::find(form.shapes.begin(), form.shapes.end(), mods.shape) != form.shapes.end();
    if (!known && !form.any_shape) return false;
  } else if (form.any_shape || !form.shapes.empty()) {
    return false;
  }
  size_t next = 0;
  for (const TypeSlot& slot : form.types) {
    if (next < mods.types.size() && (slot.any_of >> static_cast<unsigned>(mods.types[next])) & 1) {
      ++next;
    } else if (!slot.optional) {
      return false;
    }
  }
  if (next != mods.types.size()) return false;
  next = 0;
  for (const SpaceSlot& slot : form.spaces) {
    if (next < mods.spaces.size() &&
        (slot.any_of >> static_cast<unsigned>(mods.spaces[next])) & 1) {
      ++next;
    } else if (!slot.optional) {
      return false;
    }
  }
  return next == mods.spaces.size();
}

bool fits(const OperandPattern& p, const Operand& o) {
  using Kind = Operand::Kind;
  bool number = o.kind == Kind::integer || o.kind == Kind::floating;
  using Elements = OperandPattern::Elements;
  bool many = p.elements != Elements::one && o.kind == Kind::vector;
  if ((p.elements == Elements::fixed || p.elements == Elements::any) && !many &&
      o.kind != Kind::pair)
    return p.may_sink && o.kind == Kind::sink;
  bool value = (p.special && o.kind == Kind::special) ||
               (p.any_value && (o.kind == Kind::variable || o.kind == Kind::function));
  switch (p.role) {
    case Role::destination:
    case Role::in_out:
    case Role::predicate_destination:
      if (p.must_sink) return o.kind == Kind::sink;
      if (p.must_pair) return o.kind == Kind::pair;
      return o.kind == Kind::reg || many || (p.may_sink && o.kind == Kind::sink) ||
             (p.may_pair && o.kind == Kind::pair);
    case Role::source:
      return o.kind == Kind::reg || many || value || (p.constant && number);
    case Role::predicate_source:
      return o.kind == Kind::reg || o.kind == Kind::integer;
    case Role::immediate:
      return o.kind == Kind::integer;
    case Role::address:
      return o.kind == Kind::address && (p.parts || o.elements.empty());
    case Role::source_or_address:
      return o.kind == Kind::reg || (o.kind == Kind::address && o.elements.empty());
    case Role::label:
      return o.kind == Kind::label;
    case Role::table:
      return o.kind == Kind::string;
    case Role::call:
      return true;
  }
  return false;
}

bool assign_operands(const Form& form, const Instruction& instruction, Assignment* pattern_of) {
  const OperandList& operands = instruction.operands;
  if (operands.size() > pattern_of->size()) return false;
  size_t required = form.required;
  for (const OperandPattern& p : form.operands)
    required += p.conditional && instruction.mods.has(p.condition);
  if (operands.size() < required) return false;
  size_t extra = operands.size() - required, next = 0;
  for (size_t i = 0; i < form.operands.size(); ++i) {
    const OperandPattern& p = form.operands[i];
    if (p.conditional && !instruction.mods.has(p.condition)) continue;
    if (p.optional && (extra == 0 || !fits(p, operands[next]))) continue;
    if (p.optional) --extra;
    (*pattern_of)[next++] = static_cast<uint8_t>(i);
  }
  return next == operands.size();
}

bool operands_fit(const Form& form, const Instruction& instruction) {
  if (!form.operands.empty() && form.operands[0].role == Role::call) return true;
  Assignment pattern_of;
  if (!assign_operands(form, instruction, &pattern_of)) return false;
  for (size_t i = 0; i < instruction.operands.size(); ++i)
    if (!fits(form.operands[pattern_of[i]], instruction.operands[i])) return false;
  return true;
}

const Form* matching_form(const Instruction& instruction) {
  const std::vector<Form>& forms = info(instruction.op).forms;
  if (instruction.form < forms.size()) return &forms[instruction.form];
  for (const Form& form : forms)
    if (modifiers_fit(form, instruction.mods) && operands_fit(form, instruction)) return &form;
  for (const Form& form : forms)
    if (operands_fit(form, instruction)) return &form;
  return nullptr;
}

std::string family(const Instruction& instruction) {
  const InstructionInfo& row = info(instruction.op);
  std::string out(name(instruction.op));
  if (row.family_space) {
    Space space = instruction.mods.space();
    if (space == Space::shared_cta) space = Space::shared;
    if (space == Space::param_entry || space == Space::param_func) space = Space::param;
    if (space != Space::generic) out.append(".").append(name(space));
  }
  for (Mod mod : row.family_mods) {
    if (!instruction.mods.has(mod)) continue;
    bool colons = instruction.op == Op::tcgen05_wait || instruction.op == Op::tcgen05_fence;
    out.append(colons ? "::" : ".").append(name(mod));
  }
  // Bulk copies are counted by direction: the first state space is the destination.
  if (instruction.op == Op::cp_async_bulk || instruction.op == Op::cp_async_bulk_tensor)
    out.append(instruction.mods.space() == Space::global ? ".store" : ".load");
  return out;
}

bool parse_shape(std::string_view word, MatrixShape* shape) {
  auto number = [&](char letter, uint16_t* out) {
    if (word.empty() || word[0] != letter) return false;
    size_t i = 1;
    unsigned value = 0;
    while (i < word.size() && word[i] >= '0' && word[i] <= '9' && value < 1000)
      value = value * 10 + static_cast<unsigned>(word[i++] - '0');
    if (i == 1) return false;
    *out = static_cast<uint16_t>(value);
    word.remove_prefix(i);
    return true;
  };
  *shape = {};
  if (!number('m', &shape->m) || !number('n', &shape->n)) return false;
  if (!word.empty() && !number('k', &shape->k)) return false;
  return word.empty();
}

WordMeaning find_word(std::string_view word) {
  auto it = word_map().find(word);
  if (it == word_map().end()) return {};
  return {true, it->second};
}

bool find_opcode(std::string_view dotted, Op* op, size_t* length) {
  static const auto* map = [] {
    auto* m = new std::unordered_map<std::string_view, Op, TextHash>;
    for (size_t i = 0; i < kOpCount; ++i) m->emplace(name(static_cast<Op>(i)), static_cast<Op>(i));
    return m;
  }();
  std::string_view prefix = dotted;
  while (!prefix.empty()) {
    auto it = map->find(prefix);
    if (it != map->end()) {
      *op = it->second;
      *length = prefix.size();
      return true;
    }
    size_t cut = prefix.find_last_of(".:");
    if (cut == std::string_view::npos) return false;
    if (prefix[cut] == ':' && cut > 0 && prefix[cut - 1] == ':') --cut;
    prefix = prefix.substr(0, cut);
  }
  return false;
}

std::string nearest_opcode(std::string_view dotted) {
  std::string_view first = dotted.substr(0, dotted.find('.'));
  auto first_of = [](std::string_view text) { return text.substr(0, text.find('.')); };
  bool begins_well = false;  // "shfl" is right, so the second word is wrong: offer "shfl.sync"
  for (size_t i = 0; i < kOpCount; ++i) begins_well |= first_of(name(static_cast<Op>(i))) == first;
  std::string_view two =
      dotted.substr(0, dotted.find('.', std::min(first.size() + 1, dotted.size())));
  Nearest nearest{.word = begins_well ? two : first};
  for (size_t i = 0; i < kOpCount; ++i) {
    std::string_view text = name(static_cast<Op>(i));
    if (!begins_well) {
      nearest.offer(first_of(text));
    } else if (first_of(text) == first) {
      nearest.offer(text);
    }
  }
  return nearest.result();
}

std::string nearest_word(Op op, std::string_view word) {
  const InstructionInfo& row = info(op);
  Nearest nearest{.word = word};
  for (size_t i = 0; i < row.mods.size(); ++i)
    if (row.mods[i]) nearest.offer(name(static_cast<Mod>(i)));
  for (unsigned i = 1; i <= static_cast<unsigned>(Type::b1024); ++i)
    if (row.allows(static_cast<Type>(i))) nearest.offer(name(static_cast<Type>(i)));
  for (unsigned i = 1; i <= static_cast<unsigned>(Space::tex); ++i)
    if (row.allows(static_cast<Space>(i))) nearest.offer(name(static_cast<Space>(i)));
  return nearest.result();
}

}  // namespace ptxbench::ptx
