// Every form of the instruction table (a line of syntax in the ISA) that sm_90a has, with every
// word it may have, has been executed by a test that passed, is listed as refused with the reason,
// or is a named gap: decoded, but shown by no vector. Counts and gaps are checked in as
// src/emu/isa_coverage.inc, from which `ptxbench doctor --isa` speaks; PTXBENCH_UPDATE_GOLDEN=1
// writes it anew. A new form without a vector changes the list and fails here.
//
// A run with a filter has executed too little to say anything: the comparison needs all tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/files.h"
#include "emu/isa.h"
#include "emu/isa_recorder.h"
#include "ptx/instruction_table.h"

namespace ptxbench::emu::isa {
namespace {

using Words = std::set<std::string>;
struct Coverage {
  std::map<std::pair<ptx::Op, size_t>, Words> words;  // by form
  std::map<ptx::Op, Words> spellings;
  void join(const Coverage& from) {
    for (const auto& [form, w] : from.words) words[form].insert(w.begin(), w.end());
    for (const auto& [op, s] : from.spellings) spellings[op].insert(s.begin(), s.end());
  }
};
Coverage pending, passed;

template <class F>
void for_each_mod(const ptx::ModSet& set, F&& f) {
  for (uint16_t m = 0; m < static_cast<uint16_t>(ptx::Mod::count_); ++m)
    if (set[m]) f(static_cast<ptx::Mod>(m));
}

std::vector<std::string> words_of(const ptx::Modifiers& m) {
  std::vector<std::string> words;
  for_each_mod(m.flags, [&](ptx::Mod mod) { words.emplace_back(ptx::name(mod)); });
  for (ptx::Space s : m.spaces) words.emplace_back(ptx::name(s));
  for (ptx::Type t : m.types) words.emplace_back(ptx::name(t));
  return words;
}

// Notes the instruction under every form that it fits.
template <class Fits>
void note(ptx::Op op, const ptx::Modifiers& mods, Fits fits) {
  const std::vector<std::string> words = words_of(mods);
  std::string spelling = std::to_string(mods.shape.m) + "x" + std::to_string(mods.shape.n) + "x" +
                         std::to_string(mods.shape.k);
  for (const std::string& w : words) spelling += "." + w;
  pending.spellings[op].insert(spelling);
  const auto& forms = ptx::info(op).forms;
  bool any = false;
  for (size_t f = 0; f < forms.size(); ++f) {
    if (!fits(forms[f])) continue;
    any = true;
    pending.words[{op, f}].insert(words.begin(), words.end());
  }
  EXPECT_TRUE(any) << ptx::name(op) << spelling << " fits no form of the table";
}

bool on_hopper(const ptx::Requirement& r) {
  for (uint8_t i = 0; i < r.count; ++i) {
    const ptx::TargetChoice& t = r.any_of[i];
    if (t.suffix == 0 ? t.sm <= 90 : t.suffix == 'a' && t.sm == 90) return true;
  }
  return r.count == 0;
}

// Words of a form that sm_90a has.
Words available(ptx::Op op, const ptx::Form& form) {
  ptx::ModSet mods = form.allowed;
  uint64_t types = 0;
  uint32_t spaces = 0;
  for (const ptx::TypeSlot& t : form.types) types |= t.any_of;
  for (const ptx::SpaceSlot& s : form.spaces) spaces |= s.any_of;
  for (const auto* needs : {&ptx::info(op).needs, &ptx::common_needs()})
    for (const ptx::WordNeed& need : *needs)
      if (!on_hopper(need.requirement))
        mods = mods - need.mods, types &= ~need.types, spaces &= ~need.spaces;
  Words out;
  for_each_mod(mods, [&](ptx::Mod m) { out.insert(std::string(ptx::name(m))); });
  for (int t = 1; t < 64; ++t)
    if (types >> t & 1) out.insert(std::string(ptx::name(static_cast<ptx::Type>(t))));
  for (int s = 1; s < 32; ++s)
    if (spaces >> s & 1) out.insert(std::string(ptx::name(static_cast<ptx::Space>(s))));
  return out;
}

Words split(std::string_view text) {
  Words out;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find(' ', i), text.size());
    if (end > i) out.insert(std::string(text.substr(i, end - i)));
    i = end + 1;
  }
  return out;
}

struct Summary {
  int forms = 0, executed = 0;  // of the table, for sm_90a
  std::string gaps;             // lines of the list
};
Summary compare(ptx::Op op) {
  Summary summary;
  const std::string name(ptx::name(op));
  Words refused_words, seen;
  for (const IsaRefusal& r : isa_refusals())
    if (r.opcode == name && r.words.find(':') == std::string_view::npos)
      refused_words.merge(split(r.words));
  const auto& forms = ptx::info(op).forms;
  for (size_t f = 0; f < forms.size(); ++f) {
    if (!on_hopper(forms[f].requirement)) continue;
    ++summary.forms;
    const auto found = passed.words.find({op, f});
    const bool executed = found != passed.words.end();
    summary.executed += executed;
    const std::string text = name + " " + std::string(forms[f].modifiers_text) + " " +
                             std::string(forms[f].operands_text);
    if (refused(op)) {
      EXPECT_FALSE(executed) << text << " is executed, yet listed as refused";
      continue;
    }
    Words missing = available(op, forms[f]);
    if (executed)
      for (const std::string& w : found->second) missing.erase(w), seen.insert(w);
    const bool named =
        std::any_of(isa_refusals().begin(), isa_refusals().end(), [&](const IsaRefusal& r) {
          return r.opcode == name && name + " " + std::string(r.words) == text;
        });
    if (named) {
      EXPECT_FALSE(executed) << text << " is executed, yet listed as refused";
      continue;
    }
    bool needs_refused = false;  // a form whose required word is refused is refused with it
    for (const ptx::ModSlot& slot : forms[f].slots) {
      if (slot.optional) continue;
      bool all = slot.any_of.any();
      for_each_mod(slot.any_of,
                   [&](ptx::Mod m) { all &= refused_words.count(std::string(ptx::name(m))) != 0; });
      needs_refused |= all;
    }
    if (needs_refused) continue;
    for (const std::string& w : refused_words) missing.erase(w);
    std::string list;
    for (const std::string& w : missing) list += (list.empty() ? "" : " ") + w;
    if (executed && list.empty()) continue;
    summary.gaps += "ISA_GAP(\"" + name + "\", \"" + text.substr(name.size() + 1) + "\", \"" +
                    (executed ? list : "") + "\")\n";
  }
  for (const std::string& w : refused_words)
    EXPECT_EQ(seen.count(w), 0u) << name << " ." << w << " is executed, yet listed as refused";
  return summary;
}

std::string compare_with_table() {
  std::string text =
      "// Written by tests/emu/isa_coverage_test.cc: forms of the instruction table that sm_90a "
      "has,\n"
      "// those executed by tests that passed, and distinct spellings executed.\n";
  std::string gaps;
  int forms = 0;
  for (size_t i = 0; i < ptx::kOpCount; ++i) {
    const ptx::Op op = static_cast<ptx::Op>(i);
    const Summary s = compare(op);
    forms += s.forms;
    gaps += s.gaps;
    if (s.forms)
      text += "ISA_OPCODE(\"" + std::string(ptx::name(op)) + "\", " + std::to_string(s.forms) +
              ", " + std::to_string(s.executed) + ", " +
              std::to_string(passed.spellings[op].size()) + ")\n";
  }
  EXPECT_GT(forms, 200);
  return text + gaps;
}

class Listener : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { pending = {}; }
  void OnTestEnd(const ::testing::TestInfo& info) override {
    if (info.result()->Passed()) passed.join(pending);
    pending = {};
  }
};

class Comparison : public ::testing::Environment {
  void SetUp() override { ::testing::UnitTest::GetInstance()->listeners().Append(new Listener); }
  void TearDown() override {
    const auto& all = *::testing::UnitTest::GetInstance();
    if (all.test_to_run_count() != all.total_test_count() - all.disabled_test_count()) return;
    const std::string now = compare_with_table();
    const std::filesystem::path path =
        std::filesystem::path(PTXBENCH_SOURCE_DIR) / "src/emu/isa_coverage.inc";
    if (std::getenv("PTXBENCH_UPDATE_GOLDEN")) std::ofstream(path) << now;
    auto before = read_file(path);
    ASSERT_TRUE(before.ok());
    EXPECT_EQ(*before, now) << "PTXBENCH_UPDATE_GOLDEN=1 writes src/emu/isa_coverage.inc";
  }
};
const auto* const comparison = ::testing::AddGlobalTestEnvironment(new Comparison);

}  // namespace

void executed(const ptx::Instruction& instruction) {
  note(instruction.op, instruction.mods, [&](const ptx::Form& f) {
    return ptx::modifiers_fit(f, instruction.mods) && ptx::operands_fit(f, instruction);
  });
}

void executed(const std::string& text) {
  const std::string dotted = text.substr(0, text.find(' '));
  ptx::Op op{};
  size_t length = 0;
  ASSERT_TRUE(ptx::find_opcode(dotted, &op, &length)) << dotted;
  ptx::Modifiers mods;
  for (size_t at = length; at < dotted.size();) {
    const size_t end = std::min(dotted.find('.', at + 1), dotted.size());
    const std::string word = dotted.substr(at + 1, end - at - 1);
    at = end;
    if (ptx::MatrixShape shape; ptx::parse_shape(word, &shape)) {
      mods.shape = shape;
      continue;
    }
    const ptx::WordMeaning meaning = ptx::find_word(word);
    ASSERT_TRUE(meaning.known) << dotted;
    using Kind = ptx::Modifiers::Word::Kind;
    if (meaning.word.kind == Kind::mod) mods.set(static_cast<ptx::Mod>(meaning.word.value));
    if (meaning.word.kind == Kind::type)
      mods.types.push_back(static_cast<ptx::Type>(meaning.word.value));
    if (meaning.word.kind == Kind::space)
      mods.spaces.push_back(static_cast<ptx::Space>(meaning.word.value));
  }
  note(op, mods, [&](const ptx::Form& f) { return ptx::modifiers_fit(f, mods); });
}

}  // namespace ptxbench::emu::isa

namespace ptxbench::emu {
namespace {

// The list can only be trusted if an unexecuted form is missed.
TEST(IsaCoverage, TheTableHasOpcodesThatTheListNames) {
  int forms = 0, spellings = 0;
  for (const IsaOpcode& o : isa_opcodes()) {
    ptx::Op op{};
    size_t length = 0;
    ASSERT_TRUE(ptx::find_opcode(o.name, &op, &length) && length == o.name.size()) << o.name;
    EXPECT_EQ(o.executed == 0, refused(op) != nullptr) << o.name;
    forms += o.executed, spellings += o.spellings;
  }
  EXPECT_GT(forms, 200);
  EXPECT_GT(spellings, 1500);
  for (const IsaRefusal& r : isa_refusals()) EXPECT_FALSE(r.reason.empty());
}

}  // namespace
}  // namespace ptxbench::emu
