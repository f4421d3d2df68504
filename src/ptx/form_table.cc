// Reads instructions.def into InstructionInfo, once.

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <unordered_map>

#include "ptx/instruction_table.h"

namespace ptxbench::ptx {
namespace {

struct Row {
  enum class Kind : uint8_t { group, instruction, form, needs, anywhere, twice, memory } kind{};
  Op op{};
  std::string_view first, second;  // name, words; ledger words; modifiers, operands; words
  int ptx = 0;
  std::string_view target;
};

constexpr Row kRows[] = {
#define PTX_GROUP(name, words) {Row::Kind::group, {}, name, words, 0, ""},
#define PTX_ANYWHERE(words) {Row::Kind::anywhere, {}, words, "", 0, ""},
#define PTX_TWICE(words) {Row::Kind::twice, {}, words, "", 0, ""},
#define PTX_MEMORY(proxy, alignment) {Row::Kind::memory, {}, proxy, alignment, 0, ""},
#define PTX_INSTRUCTION(op, ledger) {Row::Kind::instruction, Op::op, ledger, "", 0, ""},
#define PTX_FORM(modifiers, operands, ptx, target) \
  {Row::Kind::form, {}, modifiers, operands, ptx, target},
#define PTX_NEEDS(words, ptx, target) {Row::Kind::needs, {}, words, "", ptx, target},
#include "ptx/instructions.def"
#undef PTX_GROUP
#undef PTX_ANYWHERE
#undef PTX_TWICE
#undef PTX_MEMORY
#undef PTX_INSTRUCTION
#undef PTX_FORM
#undef PTX_NEEDS
};
constexpr size_t count_rows(Row::Kind kind) {
  size_t n = 0;
  for (const Row& row : kRows) n += row.kind == kind;
  return n;
}
static_assert(count_rows(Row::Kind::instruction) == kOpCount,
              "instructions.def must have one instruction for each opcode");
static_assert(static_cast<unsigned>(Type::b1024) < 64, "type sets have a bit per type");

std::string_view group(std::string_view name) {
  for (const Row& row : kRows)
    if (row.kind == Row::Kind::group && row.first == name) return row.second;
  assert(false && "unknown group in instructions.def");
  return {};
}

// Calls f for each part between separators.
template <class F>
void split(std::string_view text, char separator, F&& f) {
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0) f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The alternatives of a|b|$group.
template <class F>
void for_each_choice(std::string_view choices, F&& f) {
  split(choices, '|', [&](std::string_view word) {
    if (word[0] == '$') {
      for_each_choice(group(word), f);
    } else {
      f(word);
    }
  });
}

bool take_suffix(std::string_view* text, std::string_view suffix) {
  if (!text->ends_with(suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

Modifiers::Word word_of(std::string_view text) {
  WordMeaning meaning = find_word(text);
  assert(meaning.known && "unknown word in instructions.def");
  return meaning.word;
}

Type type_named(std::string_view word) { return static_cast<Type>(word_of(word).value); }

Requirement requirement_from(int ptx, std::string_view targets) {
  Requirement r;
  r.ptx = ptx;
  for_each_choice(targets, [&](std::string_view target) {
    TargetChoice choice;
    size_t i = 3;
    for (; i < target.size() && target[i] >= '0' && target[i] <= '9'; ++i)
      choice.sm = static_cast<int16_t>(choice.sm * 10 + target[i] - '0');
    if (i < target.size()) choice.suffix = target[i];
    assert(r.count < r.any_of.size());
    r.any_of[r.count++] = choice;
  });
  return r;
}

Role role_of(char c) {
  switch (c) {
    case 'd':
    case '_':
      return Role::destination;
    case 'x':
      return Role::in_out;
    case 'p':
      return Role::predicate_destination;
    case 's':
    case 'r':
    case 'c':
    case 'S':
      return Role::source;
    case 'q':
      return Role::predicate_source;
    case 'i':
      return Role::immediate;
    case 'm':
    case 'M':
      return Role::address;
    case 'o':
      return Role::source_or_address;
    case 'l':
      return Role::label;
    case 't':
      return Role::table;
    default:
      assert(c == 'f');
      return Role::call;
  }
}

void read_width(std::string_view text, OperandPattern* p) {
  using Width = OperandPattern::Width;
  if (text == "w") {
    p->width = Width::wide;
  } else if (text[0] == '+') {
    p->width = Width::at_least;
    p->index = static_cast<uint8_t>(text[1] - '0');
  } else if (text.size() == 1) {
    p->width = Width::exact;
    p->index = static_cast<uint8_t>(text[0] - '0');
  } else {
    p->width = Width::fixed;
    p->type = type_named(text);
  }
}

void read_range(std::string_view text, OperandPattern* p) {
  size_t dots = text.find("..");
  p->ranged = true;
  p->low = std::atol(std::string(text.substr(0, dots)).c_str());
  p->high = dots == std::string_view::npos ? p->low
                                           : std::atol(std::string(text.substr(dots + 2)).c_str());
}

void read_elements(std::string_view text, OperandPattern* p) {
  using Elements = OperandPattern::Elements;
  if (text.empty()) {
    p->elements = Elements::any;
  } else if (text == "v") {
    p->elements = Elements::by_vector_word;
  } else {
    p->elements = Elements::fixed;
    p->count = static_cast<uint8_t>(std::atoi(std::string(text).c_str()));
  }
}

OperandPattern read_pattern(std::string_view token) {
  OperandPattern p;
  p.role = role_of(token[0]);
  p.constant = token[0] != 'r' && token[0] != 'o';
  p.any_value = token[0] == 'S';
  p.special = token[0] == 'S' || token[0] == 'c';
  p.parts = token[0] == 'M';
  p.may_sink = p.must_sink = token[0] == '_';
  p.optional = take_suffix(&token, "?");
  if (size_t at = token.find('@'); at != std::string_view::npos) {
    p.conditional = true;
    p.condition = static_cast<Mod>(word_of(token.substr(at + 1)).value);
    token = token.substr(0, at);
  }
  if (size_t star = token.find('*'); star != std::string_view::npos) {
    read_elements(token.substr(star + 1), &p);
    token = token.substr(0, star);
  }
  size_t colon = token.find(':');
  for (char flag : token.substr(1, colon == std::string_view::npos ? colon : colon - 1)) {
    if (flag == '_') p.may_sink = true;
    if (flag == '~') p.elements_may_sink = true;
    if (flag == '#') p.integers_only = true;
    if (flag == '|' || flag == '!') p.may_pair = true;
    if (flag == '!') p.must_pair = true;
  }
  if (colon != std::string_view::npos) {
    if (p.role == Role::immediate) {
      read_range(token.substr(colon + 1), &p);
    } else {
      read_width(token.substr(colon + 1), &p);
    }
  }
  return p;
}

// One slot of the modifiers: its words are all modifiers, all types or all state spaces.
void read_slot(std::string_view token, Form* form) {
  bool optional = take_suffix(&token, "?"), repeats = take_suffix(&token, "+");
  if (token == "$shape") {
    form->any_shape = true;
    return;
  }
  if (token == "$layout") form->two_layouts = true;
  ModSlot mods{{}, optional, repeats};
  TypeSlot types{0, optional};
  SpaceSlot spaces{0, optional};
  for_each_choice(token, [&](std::string_view word) {
    MatrixShape shape;
    if (parse_shape(word, &shape)) {
      form->shapes.push_back(shape);
      if (word == "m8n8") form->allowed.set(static_cast<size_t>(Mod::m8n8));
      return;
    }
    Modifiers::Word meaning = word_of(word);
    switch (meaning.kind) {
      case Modifiers::Word::Kind::mod:
        mods.any_of.set(meaning.value);
        break;
      case Modifiers::Word::Kind::type:
        types.any_of |= uint64_t{1} << meaning.value;
        break;
      default:
        spaces.any_of |= uint32_t{1} << meaning.value;
    }
  });
  form->allowed |= mods.any_of;
  if (mods.any_of.any() && token != "$layout") form->slots.push_back(mods);
  if (types.any_of) form->types.push_back(types);
  if (spaces.any_of) form->spaces.push_back(spaces);
}

Form read_form(const Row& row, std::string_view operands) {
  Form form;
  form.modifiers_text = row.first;
  form.operands_text = operands;
  form.requirement = requirement_from(row.ptx, row.target);
  split(row.first, ' ', [&](std::string_view token) { read_slot(token, &form); });
  if (operands == "-") return form;
  split(operands, ' ', [&](std::string_view token) {
    form.operands.push_back(read_pattern(token));
    const OperandPattern& p = form.operands.back();
    if (!p.optional && !p.conditional) ++form.required;
  });
  return form;
}

WordNeed read_need(const Row& row) {
  WordNeed need;
  need.requirement = requirement_from(row.ptx, row.target);
  split(row.first, ' ', [&](std::string_view text) {
    Modifiers::Word word = word_of(text);
    if (word.kind == Modifiers::Word::Kind::mod) need.mods.set(word.value);
    if (word.kind == Modifiers::Word::Kind::type) need.types |= uint64_t{1} << word.value;
    if (word.kind == Modifiers::Word::Kind::space) need.spaces |= uint32_t{1} << word.value;
  });
  return need;
}

void add_form(Form form, InstructionInfo* info) {
  info->mods |= form.allowed;
  for (const TypeSlot& slot : form.types) info->types |= slot.any_of;
  for (const SpaceSlot& slot : form.spaces) info->spaces |= slot.any_of;
  info->shape |= form.any_shape || !form.shapes.empty();
  info->forms.push_back(std::move(form));
}

struct Table {
  std::vector<InstructionInfo> rows = std::vector<InstructionInfo>(kOpCount);
  std::vector<WordNeed> common;
  ModSet anywhere, twice;
};

void read_words(std::string_view words, ModSet* set) {
  split(words, ' ', [&](std::string_view word) { set->set(word_of(word).value); });
}

void read_ledger(std::string_view words, InstructionInfo* info) {
  split(words, ' ', [&](std::string_view word) {
    if (word == "space") {
      info->family_space = true;
    } else {
      info->family_mods.push_back(static_cast<Mod>(word_of(word).value));
    }
  });
}

const Table& table() {
  static const Table* whole = [] {
    auto* t = new Table;
    InstructionInfo* current = nullptr;
    std::string_view operands;
    for (const Row& row : kRows) {
      if (row.kind == Row::Kind::instruction) {
        current = &t->rows[static_cast<size_t>(row.op)];
        read_ledger(row.first, current);
      } else if (row.kind == Row::Kind::memory) {
        current->proxy = row.first;
        current->alignment = row.second;
      } else if (row.kind == Row::Kind::form) {
        if (!row.second.empty()) operands = row.second;
        add_form(read_form(row, operands), current);
      } else if (row.kind == Row::Kind::needs) {
        (current ? current->needs : t->common).push_back(read_need(row));
      } else if (row.kind == Row::Kind::anywhere) {
        read_words(row.first, &t->anywhere);
      } else if (row.kind == Row::Kind::twice) {
        read_words(row.first, &t->twice);
      }
    }
    return t;
  }();
  return *whole;
}

}  // namespace

const InstructionInfo& info(Op op) { return table().rows[static_cast<size_t>(op)]; }
const std::vector<WordNeed>& common_needs() { return table().common; }
bool stands_anywhere(Mod mod) { return table().anywhere.has(mod); }
bool stands_twice(Mod mod) { return table().twice.has(mod); }

}  // namespace ptxbench::ptx
