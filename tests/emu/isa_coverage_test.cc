// Every instruction that a test executes fits a form of the instruction table.
#include <gtest/gtest.h>

#include "emu/isa.h"
#include "emu/isa_recorder.h"
#include "ptx/instruction_table.h"

namespace ptxbench::emu::isa {
namespace {

template <class Fits>
void note(ptx::Op op, Fits fits) {
  bool any = false;
  for (const ptx::Form& f : ptx::info(op).forms) any = any || fits(f);
  EXPECT_TRUE(any) << ptx::name(op) << " fits no form of the table";
}

}  // namespace

void executed(const ptx::Instruction& instruction) {
  note(instruction.op, [&](const ptx::Form& f) {
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
  note(op, [&](const ptx::Form& f) { return ptx::modifiers_fit(f, mods); });
}

}  // namespace ptxbench::emu::isa
