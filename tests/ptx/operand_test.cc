// Lists of operands own what they hold; modifiers are shared until one of the owners changes them.
#include "ptx/operand.h"

#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

Operand reg(uint32_t index) {
  Operand o;
  o.kind = Operand::Kind::reg;
  o.index = index;
  return o;
}

Operand vector(std::initializer_list<Operand> elements) {
  Operand o;
  o.kind = Operand::Kind::vector;
  o.elements = OperandList(elements);
  return o;
}

TEST(OperandList, CopiesAreApart) {
  OperandList list{reg(1), vector({reg(2), vector({reg(3)})})};
  OperandList copy = list;
  EXPECT_TRUE(copy == list);
  copy[1].elements[1].elements[0].index = 4;
  EXPECT_FALSE(copy == list);
  EXPECT_EQ(list[1].elements[1].elements[0].index, 3u);
  list = copy;
  EXPECT_TRUE(copy == list);
  list = OperandList(list);  // its own contents
  EXPECT_EQ(list.back().elements.size(), 2u);
  OperandList moved = std::move(list);
  EXPECT_EQ(moved.size(), 2u);
  EXPECT_TRUE(moved == copy);
}

TEST(OperandList, AnElementReplacesItsVector) {
  Operand o = vector({vector({reg(7)}), reg(8)});
  Operand inner = std::move(o.elements[0]);
  o = std::move(inner);
  ASSERT_EQ(o.elements.size(), 1u);
  EXPECT_EQ(o.elements.front().index, 7u);
}

TEST(OperandList, Resize) {
  OperandList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.begin(), list.end());
  list.resize(3);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2].kind, Operand::Kind::sink);
  list[0] = vector({reg(1)});
  list.resize(1);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].elements[0].index, 1u);
  list.resize(0);
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list == OperandList());
}

TEST(SharedModifiers, AChangeIsForOneOwner) {
  const Instruction first = one("add.rn.ftz.f32 %f1, %f2, %f3;");
  Instruction second = first;
  second.mods.edit().set(Mod::sat);
  EXPECT_TRUE(second.mods.has(Mod::sat));
  EXPECT_FALSE(first.mods.has(Mod::sat));
  EXPECT_FALSE(first == second);
  EXPECT_EQ(second.mods.type(), Type::f32);
  EXPECT_TRUE(first.mods == one("add.rn.ftz.f32 %f4, %f5, %f6;").mods);
  EXPECT_TRUE(SharedModifiers() == SharedModifiers(Modifiers()));
  SharedModifiers none;
  none.edit().set(Mod::rn);
  EXPECT_FALSE(SharedModifiers().has(Mod::rn));
}

}  // namespace
}  // namespace ptxbench::ptx
