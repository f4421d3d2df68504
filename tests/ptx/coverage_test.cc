// docs/ptx-coverage.md: the instruction table for people.
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
             "emulator executes of them is another matter: it refuses the rest by name.\n",
             kOpCount, forms) +
         body;
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
