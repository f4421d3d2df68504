#include "ptx/instruction_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <unordered_map>

namespace ptxbench::ptx {
namespace {

struct Row {
  Op op;
  std::string_view forms, modifiers, types, spaces;
  int ptx;
  std::string_view target, family;
};

constexpr Row kRows[] = {
#define PTX_INSTRUCTION(op, forms, modifiers, types, spaces, ptx, target, family) \
  {Op::op, forms, modifiers, types, spaces, ptx, target, family},
#include "ptx/instructions.def"
#undef PTX_INSTRUCTION
};
static_assert(std::size(kRows) == kOpCount, "instructions.def must have one row for each opcode");

struct Group {
  std::string_view name, words;
};
constexpr Group kGroups[] = {
    {"$rnd", "rn rz rm rp"},
    {"$irnd", "rni rzi rmi rpi"},
    {"$cmp", "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"},
    {"$bool", "and or xor"},
    {"$scope", "cta cluster gpu sys"},
    {"$sem", "relaxed acquire release acq_rel sc weak volatile mmio"},
    {"$cachebasic", "ca cg cs cv lu wb wt"},
    {"$cache",
     "ca cg cs cv lu nc wb wt L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last "
     "L1::no_allocate L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B "
     "L2::128B "
     "L2::256B"},
    {"$L2", "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"},
    {"$vec", "v2 v4 v8"},
    {"$dim", "1d 2d 3d 4d 5d"},
    {"$tile", "tile tile::gather4 tile::scatter4 im2col im2col::w im2col::w::128 im2col_no_offs"},
    {"$sync", "sync aligned"},
    {"$group", "cta_group::1 cta_group::2"},
    {"$kind",
     "kind::f16 kind::tf32 kind::i8 kind::f8f6f4 kind::mxf4 kind::mxf8f6f4 kind::mxf4nvf4"},
    {"$mma",
     "block_scale scale_vec::1X scale_vec::2X scale_vec::4X block16 block32 collector::a::fill "
     "collector::a::use collector::a::lastuse collector::a::discard collector::b0::fill "
     "collector::b0::use collector::b0::lastuse collector::b0::discard collector::b1::fill "
     "collector::b1::use collector::b1::lastuse collector::b1::discard collector::b2::fill "
     "collector::b2::use collector::b2::lastuse collector::b2::discard collector::b3::fill "
     "collector::b3::use collector::b3::lastuse collector::b3::discard ashift"},
    {"$tmem", "16x64b 16x128b 16x256b 32x32b 16x32bx2 x1 x2 x4 x8 x16 x32 x64 x128"},
    {"$geom", "1d 2d 3d a1d a2d cube acube 2dms a2dms"},
    {"$sint", "s16 s32 s64"},
    {"$int", "u16 u32 u64 s16 s32 s64"},
    {"$bit", "b16 b32 b64"},
    {"$half", "f16 f16x2 bf16 bf16x2"},
    {"$mem", "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"},
    {"$cvt",
     "u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 tf32 f32 f64 e4m3x2 e5m2x2 e4m3x4 e5m2x4 "
     "e2m3x2 e3m2x2 e2m3x4 e3m2x4 e2m1x2 e2m1x4 ue8m0x2"},
    {"$data", "global local shared shared::cta shared::cluster"},
};

// Calls f for each blank-separated word, with groups expanded.
template <class F>
void for_each_word(std::string_view words, F&& f) {
  size_t i = 0;
  while (i < words.size()) {
    size_t end = std::min(words.find(' ', i), words.size());
    std::string_view word = words.substr(i, end - i);
    if (!word.empty()) {
      const Group* group = nullptr;
      if (word[0] == '$' && word != "$shape") {
        for (const Group& g : kGroups)
          if (g.name == word) group = &g;
        assert(group && "unknown group in instructions.def");
      }
      if (group) {
        for_each_word(group->words, f);
      } else {
        f(word);
      }
    }
    i = end + 1;
  }
}

using WordMap = std::unordered_map<std::string_view, Modifiers::Word>;

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

Type type_named(std::string_view word) {
  auto it = word_map().find(word);
  assert(it != word_map().end() && it->second.kind == Modifiers::Word::Kind::type);
  return static_cast<Type>(it->second.value);
}

Role role_of(char c) {
  switch (c) {
    case 'd':
      return Role::destination;
    case 'x':
      return Role::in_out;
    case 'p':
      return Role::predicate_destination;
    case 's':
      return Role::source;
    case 'q':
      return Role::predicate_source;
    case 'i':
      return Role::immediate;
    case 'm':
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

OperandPattern parse_pattern(std::string_view token) {
  OperandPattern p;
  p.role = role_of(token[0]);
  if (token.back() == '?') {
    p.optional = true;
    token.remove_suffix(1);
  }
  if (token.size() < 3) return p;
  token.remove_prefix(2);
  using Width = OperandPattern::Width;
  if (token == "w") {
    p.width = Width::wide;
  } else if (token[0] == '+') {
    p.width = Width::at_least;
    p.index = static_cast<uint8_t>(token[1] - '0');
  } else if (token[0] >= '0' && token[0] <= '9') {
    p.width = Width::exact;
    p.index = static_cast<uint8_t>(token[0] - '0');
  } else {
    p.width = Width::fixed;
    p.type = type_named(token);
  }
  return p;
}

Form parse_form(std::string_view text) {
  Form form;
  form.text = std::string(text);
  for_each_word(text, [&](std::string_view word) {
    if (word == "-") return;
    if (word[0] == '@') {
      form.conditional = true;
      form.condition = static_cast<Mod>(word_map().at(word.substr(1)).value);
      return;
    }
    form.operands.push_back(parse_pattern(word));
    if (!form.operands.back().optional) ++form.required;
  });
  return form;
}

Requirement parse_requirement(int ptx, std::string_view target) {
  Requirement r;
  r.ptx = ptx;
  if (target == "tcgen05") {
    r.kind = Requirement::Kind::tcgen05;
    r.sm = 100;
    return r;
  }
  int sm = 0;
  size_t i = 3;
  for (; i < target.size() && target[i] >= '0' && target[i] <= '9'; ++i)
    sm = sm * 10 + target[i] - '0';
  r.sm = sm;
  std::string_view rest = target.substr(i);
  if (rest == "a") r.kind = Requirement::Kind::exactly_a;
  if (rest == "a+") r.kind = Requirement::Kind::a_and_later;
  return r;
}

InstructionInfo parse_row(const Row& row) {
  InstructionInfo out;
  std::string_view forms = row.forms;
  while (true) {
    size_t slash = forms.find(" / ");
    out.forms.push_back(parse_form(forms.substr(0, slash)));
    if (slash == std::string_view::npos) break;
    forms.remove_prefix(slash + 3);
  }
  for_each_word(row.modifiers, [&](std::string_view word) {
    if (word == "$shape") {
      out.shape = true;
      return;
    }
    auto it = word_map().find(word);
    assert(it != word_map().end() && it->second.kind == Modifiers::Word::Kind::mod);
    out.mods.set(it->second.value);
  });
  for_each_word(row.types, [&](std::string_view word) {
    out.types |= uint64_t{1} << static_cast<unsigned>(type_named(word));
  });
  for_each_word(row.spaces, [&](std::string_view word) {
    auto it = word_map().find(word);
    assert(it != word_map().end() && it->second.kind == Modifiers::Word::Kind::space);
    out.spaces |= uint32_t{1} << it->second.value;
  });
  out.requirement = parse_requirement(row.ptx, row.target);
  for_each_word(row.family, [&](std::string_view word) {
    if (word == "space") {
      out.family_space = true;
    } else {
      out.family_mods.push_back(static_cast<Mod>(word_map().at(word).value));
    }
  });
  return out;
}
static_assert(static_cast<unsigned>(Type::b1024) < 64, "InstructionInfo::types has a bit per type");

const std::vector<InstructionInfo>& table() {
  static const std::vector<InstructionInfo>* rows = [] {
    auto* t = new std::vector<InstructionInfo>(kOpCount);
    for (const Row& row : kRows) (*t)[static_cast<size_t>(row.op)] = parse_row(row);
    return t;
  }();
  return *rows;
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

bool is_register_like(const Operand& o) {
  using Kind = Operand::Kind;
  return o.kind == Kind::reg || o.kind == Kind::vector || o.kind == Kind::sink ||
         o.kind == Kind::pair;
}

}  // namespace

const InstructionInfo& info(Op op) { return table()[static_cast<size_t>(op)]; }

bool fits(const OperandPattern& pattern, const Operand& o) {
  using Kind = Operand::Kind;
  bool immediate = o.kind == Kind::integer || o.kind == Kind::floating;
  bool source = o.kind == Kind::reg || immediate || o.kind == Kind::special ||
                o.kind == Kind::variable || o.kind == Kind::function || o.kind == Kind::vector;
  switch (pattern.role) {
    case Role::destination:
    case Role::in_out:
      return is_register_like(o);
    case Role::predicate_destination:
      return o.kind == Kind::reg || o.kind == Kind::sink || o.kind == Kind::pair;
    case Role::source:
      return source;
    case Role::predicate_source:
      return o.kind == Kind::reg || o.kind == Kind::special || immediate;
    case Role::immediate:
      return immediate;
    case Role::address:
      return o.kind == Kind::address;
    case Role::source_or_address:
      return source || o.kind == Kind::address;
    case Role::label:
      return o.kind == Kind::label;
    case Role::table:
      return o.kind == Kind::string;
    case Role::call:
      return true;
  }
  return false;
}

const Form* matching_form(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  for (const Form& form : info(instruction.op).forms) {
    if (form.conditional && !instruction.mods.has(form.condition)) continue;
    if (form.required == 1 && form.operands[0].role == Role::call) return &form;
    if (operands.size() < form.required || operands.size() > form.operands.size()) continue;
    bool all = true;
    for (size_t i = 0; i < operands.size() && all; ++i) all = fits(form.operands[i], operands[i]);
    if (all) return &form;
  }
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
    auto* m = new std::unordered_map<std::string_view, Op>;
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
