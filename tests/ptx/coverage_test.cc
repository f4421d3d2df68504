// docs/ptx-coverage.md: the instruction table for people.
#include <map>
#include <set>

#include "ptx/generated_document.h"
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (char ch : text) out += ch == '|' ? std::string("\\|") : std::string(1, ch);
  return out;
}

std::string needs(const InstructionInfo& row) {
  std::string out;
  for (const WordNeed& need : row.needs) {
    std::string words;
    for (size_t m = 0; m < need.mods.size(); ++m)
      if (need.mods[m]) words += fmt::format(" .{}", name(static_cast<Mod>(m)));
    for (unsigned t = 1; t <= static_cast<unsigned>(Type::b1024); ++t)
      if ((need.types >> t) & 1) words += fmt::format(" .{}", name(static_cast<Type>(t)));
    for (unsigned s = 1; s <= static_cast<unsigned>(Space::tex); ++s)
      if ((need.spaces >> s) & 1) words += fmt::format(" .{}", name(static_cast<Space>(s)));
    out += fmt::format("\nWith{}: PTX {}.{}, {}.\n", words, need.requirement.ptx / 10,
                       need.requirement.ptx % 10, to_string(need.requirement));
  }
  return out;
}

struct Family {
  std::string_view sections, group, name, opcodes;
};
constexpr Family kFamilies[] = {
#define PTX_FAMILY(sections, group, name, opcodes) {sections, group, name, opcodes},
#include "ptx/families.def"
#undef PTX_FAMILY
};

std::vector<Op> opcodes_of(const Family& family) {
  std::vector<Op> out;
  std::stringstream words{std::string(family.opcodes)};
  for (std::string word; words >> word;) {
    Op op{};
    size_t length = 0;
    bool found = find_opcode(word, &op, &length) && length == word.size();
    EXPECT_TRUE(found) << word;
    if (found) out.push_back(op);
  }
  return out;
}

// Those of the words that the family's instructions may have.
std::string words_of(const Family& family, std::initializer_list<Mod> mods) {
  std::string out;
  for (Mod mod : mods) {
    bool has = false;
    for (Op op : opcodes_of(family)) has |= info(op).allows(mod);
    if (has) out += fmt::format("{}{}", out.empty() ? "" : ", ", name(mod));
  }
  return out;
}

// "all lanes": .aligned in every form; "some lanes" .sync with a mask or without .aligned.
std::string convergence(const Family& family) {
  bool sync = false, always = true, sometimes = false;
  for (Op op : opcodes_of(family)) {
    sync |= (fmt::format("{}.", name(op))).find(".sync.") != std::string::npos;
    sync |= info(op).allows(Mod::sync);
    for (const Form& form : info(op).forms) {
      bool required = false;
      for (const ModSlot& slot : form.slots)
        required |= !slot.optional && slot.any_of[static_cast<size_t>(Mod::aligned)];
      always &= required;
      sometimes |= form.allowed[static_cast<size_t>(Mod::aligned)];
    }
  }
  std::string out = sync ? ".sync" : "";
  if (sometimes) out += always ? ".aligned" : "(.aligned)";
  return out;
}

// What the table says of the family's opcodes, each once.
std::string of_table(const Family& family, std::string_view InstructionInfo::*column) {
  std::string out;
  for (Op op : opcodes_of(family)) {
    const std::string_view text = info(op).*column;
    if (text.empty() || out.find(text) != std::string::npos) continue;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", text);
  }
  return out;
}

// The proxy of its accesses, or that it fences proxies.
std::string proxy(const Family& family) {
  if (!words_of(family, {Mod::proxy, Mod::tensormap_generic}).empty()) return "fence";
  return of_table(family, &InstructionInfo::proxy);
}

std::string families() {
  std::string out;
  std::string_view group;
  for (const Family& family : kFamilies) {
    if (family.group != group)
      out += fmt::format(
          "\n**{}**\n\n| family | sections | opcodes | forms of them | lanes | order | proxy | "
          "alignment |\n|---|---|---|---|---|---|---|---|\n",
          family.group);
    group = family.group;
    std::string links;
    size_t forms = 0;
    for (Op op : opcodes_of(family)) {
      links += fmt::format("{}`{}`", links.empty() ? "" : ", ", name(op));
      forms += info(op).forms.size();
    }
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", family.name, family.sections,
                       links, forms, convergence(family),
                       words_of(family, {Mod::weak, Mod::relaxed, Mod::acquire, Mod::release,
                                         Mod::acq_rel, Mod::sc, Mod::volatile_, Mod::mmio}),
                       proxy(family), of_table(family, &InstructionInfo::alignment));
  }
  return out;
}

std::string document() {
  size_t forms = 0;
  std::string body;
  for (size_t k = 0; k < kOpCount; ++k) {
    Op op = static_cast<Op>(k);
    const InstructionInfo& row = info(op);
    forms += row.forms.size();
    body += fmt::format("\n## {}\n\n| modifiers | operands | PTX | targets |\n|---|---|---|---|\n",
                        name(op));
    for (const Form& form : row.forms)
      body += fmt::format("| `{}` | `{}` | {}.{} | {} |\n",
                          form.modifiers_text.empty() ? " " : escape(form.modifiers_text),
                          escape(form.operands_text), form.requirement.ptx / 10,
                          form.requirement.ptx % 10, to_string(form.requirement));
    body += needs(row);
  }
  return fmt::format(
             "# PTX 9.0 instructions\n\n"
             "Generated from `src/ptx/instructions.def` by the test `Coverage.DocumentIsCurrent`; "
             "`cmake "
             "--build build --target ptx_docs` writes it anew. {} opcodes in {} forms; the "
             "notation is "
             "explained at the top of the table: `word` must stand, `a|b` one of them, `?` "
             "optional. What the "
             "emulator executes of them is another matter: it refuses the rest by name.\n\n"
             "## Families\n\n"
             "The {} families that the sections of the ISA's chapter 9.7 describe, grouped as "
             "there: 194 sections with 169 headings, of 135 instructions by their first word "
             "(`tests/ptx/isa_sections.txt`). *Lanes*: what of `.sync` and `.aligned` the forms "
             "have, in parentheses where some lack it. *Order*: words of the memory model. "
             "*Proxy*: `async` where memory is accessed through the async proxy, `fence` where "
             "proxies are fenced. *Alignment*: of addresses.\n",
             kOpCount, forms, std::size(kFamilies)) +
         families() + body;
}

std::vector<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::stringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// Each section of the ISA belongs to one family, which has the name of the section's heading.
TEST(Coverage, FamiliesAreTheSectionsOfTheIsa) {
  std::map<std::string, const Family*> family_of;
  for (const Family& family : kFamilies)
    for (const std::string& section : words_of(std::string(family.sections)))
      EXPECT_TRUE(family_of.emplace(section, &family).second) << section << " is in two families";
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/ptx/isa_sections.txt");
  size_t sections = 0;
  std::set<std::vector<std::string>> headings;
  std::set<std::string> instructions;  // by their first word, as the ISA's list of them counts
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> words = words_of(line);
    const std::string section = words.front();
    words.erase(words.begin());
    ++sections;
    headings.insert(words);
    for (const std::string& word : words) instructions.insert(word.substr(0, word.find('.')));
    auto it = family_of.find(section);
    ASSERT_NE(it, family_of.end()) << "no family for " << line;
    const std::vector<std::string> family = words_of(std::string(it->second->name));
    // a variant's section (rcp.approx.ftz.f64) belongs to its instruction's family
    const bool variant = words.size() == 1 && words[0].starts_with(family[0] + ".approx.");
    EXPECT_TRUE(family == words || variant) << line << " is in family " << it->second->name;
    family_of.erase(it);
  }
  EXPECT_EQ(sections, 194u);
  EXPECT_EQ(headings.size(), 169u);
  EXPECT_EQ(instructions.size(), 135u);
  for (const auto& [section, family] : family_of)
    ADD_FAILURE() << section << " of family " << family->name << " is no section of the ISA";
}

TEST(Coverage, EveryOpcodeHasAFamily) {
  std::set<Op> seen;
  for (const Family& family : kFamilies)
    for (Op op : opcodes_of(family)) seen.insert(op);
  for (size_t k = 0; k < kOpCount; ++k)
    EXPECT_TRUE(seen.contains(static_cast<Op>(k))) << name(static_cast<Op>(k));
}

TEST(Coverage, DocumentIsCurrent) { expect_document("docs/ptx-coverage.md", document()); }

TEST(Coverage, EveryOpcodeHasFormsWithTargets) {
  for (size_t k = 0; k < kOpCount; ++k) {
    const InstructionInfo& row = info(static_cast<Op>(k));
    EXPECT_FALSE(row.forms.empty()) << name(static_cast<Op>(k));
    for (const Form& form : row.forms) {
      EXPECT_GT(form.requirement.count, 0) << name(static_cast<Op>(k));
      EXPECT_LE(form.requirement.ptx, 90) << name(static_cast<Op>(k));
    }
  }
}

}  // namespace
}  // namespace ptxbench::ptx
