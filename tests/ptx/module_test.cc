// Declarations, scopes, labels, calls, source locations.
#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

TEST(Module, HeaderAndTarget) {
  Module m = parse_ok(".version 8.7\n.target sm_100a, debug\n.address_size 64\n");
  EXPECT_EQ(m.version_major, 8);
  EXPECT_EQ(m.version_minor, 7);
  EXPECT_EQ(m.target, "sm_100a");
  EXPECT_EQ(m.target_options, std::vector<std::string>{"debug"});
  EXPECT_EQ(m.address_size, 64);
}

TEST(Module, Parameters) {
  Module m =
      parse_ok(header() +
               ".visible .entry k(.param .u8 a, .param .align 64 .b8 map[128], .param .u16 b,\n"
               ".param .u64 .ptr .global .align 16 c, .param .v2 .f32 d)\n"
               ".maxntid 256, 1, 1\n.minnctapersm 2\n.maxnreg 128\n.explicitcluster\n"
               ".reqnctapercluster 2, 1, 1\n.reqntid 128\n.maxclusterrank 8\n{ ret; }\n");
  const Function& f = *m.find_function("k");
  EXPECT_TRUE(f.is_entry);
  EXPECT_EQ(f.linkage, Linkage::visible);
  EXPECT_EQ(f.param_offsets, (std::vector<uint32_t>{0, 64, 192, 200, 208}));
  EXPECT_EQ(f.param_bytes, 216u);
  EXPECT_TRUE(f.params[3].ptr);
  EXPECT_EQ(f.params[3].ptr_space, Space::global);
  EXPECT_EQ(f.params[3].ptr_align, 16u);
  EXPECT_EQ(f.directives.maxntid, (std::vector<uint32_t>{256, 1, 1}));
  EXPECT_EQ(f.directives.reqnctapercluster, (std::vector<uint32_t>{2, 1, 1}));
  EXPECT_EQ(f.directives.minnctapersm, 2u);
  EXPECT_EQ(f.directives.maxnreg, 128u);
  EXPECT_EQ(f.directives.maxclusterrank, 8u);
  EXPECT_TRUE(f.directives.explicitcluster);
}

TEST(Module, Initialisers) {
  Module m = parse_ok(header() + R"(
.extern .shared .align 128 .b8 smem[];
.visible .global .align 8 .b8 bytes[16] = {1, 0xff, -1};
.const .f32 one = 1.0;
.const .f64 two[2] = {0d4000000000000000, 2};
.global .s16 rows[2][3] = {{1}, {-2, 3}};
.global .u64 address = bytes+4;
.global .u64 addresses[2] = {generic(bytes), generic(rows)+8};
.global .b8 split[3] = {0xff(bytes), 0xff00(bytes), 0xFF0000(bytes+1)};
.global .u32 counted[] = {1, 2, 3};
.weak .global .attribute(.managed) .u32 m;
)");
  EXPECT_EQ(m.find_variable("smem")->size, 0u);
  EXPECT_EQ(m.find_variable("smem")->align, 128u);
  EXPECT_EQ(m.find_variable("smem")->linkage, Linkage::extern_);
  const Variable& bytes = *m.find_variable("bytes");
  EXPECT_EQ(bytes.size, 16u);
  ASSERT_EQ(bytes.init.size(), 3u);
  EXPECT_EQ(bytes.init[2].value, 0xffu);
  EXPECT_EQ(m.find_variable("one")->init[0].value, 0x3f800000u);
  EXPECT_EQ(m.find_variable("two")->init[1].value, 0x4000000000000000u);
  const Variable& rows = *m.find_variable("rows");
  ASSERT_EQ(rows.init.size(), 6u);
  EXPECT_EQ(rows.init[0].value, 1u);
  EXPECT_EQ(rows.init[1].value, 0u);
  EXPECT_EQ(rows.init[3].value, 0xfffeu);
  const InitElement& address = m.find_variable("address")->init[0];
  EXPECT_TRUE(address.is_symbol);
  EXPECT_EQ(m.variables[address.symbol].name, "bytes");
  EXPECT_EQ(address.addend, 4);
  EXPECT_TRUE(m.find_variable("addresses")->init[1].generic);
  EXPECT_EQ(m.find_variable("addresses")->init[1].addend, 8);
  const Variable& split = *m.find_variable("split");
  EXPECT_EQ(split.init[1].mask_shift, 8);
  EXPECT_EQ(split.init[1].mask_bytes, 1);
  EXPECT_EQ(split.init[2].mask_shift, 16);
  EXPECT_EQ(m.find_variable("counted")->size, 12u);
  EXPECT_TRUE(m.find_variable("m")->is_managed);
}

TEST(Module, ScopesShadow) {
  Module m =
      parse_ok(kernel("mov.b32 %r1, 1; { .reg .b32 %r1; .reg .pred p; mov.b32 %r1, 2; "
                      "{ .reg .pred p; setp.eq.b32 p, %r1, 0; } setp.eq.b32 p, %r1, 1; } "
                      "mov.b32 %r1, 3;"));
  const Function& f = m.functions[0];
  auto list = instructions(f);
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].operands[0].index, list[4].operands[0].index);
  EXPECT_NE(list[0].operands[0].index, list[1].operands[0].index);
  EXPECT_EQ(list[1].operands[0].index, list[2].operands[1].index);
  EXPECT_NE(list[2].operands[0].index, list[3].operands[0].index);
  EXPECT_EQ(f.registers[list[2].operands[0].index].type, Type::pred);
}

TEST(Module, LabelsPerScope) {
  Module m =
      parse_ok(kernel("{ bra DONE; L: bra L; DONE: }\n{ bra.uni DONE; L: bra L; DONE: }\n"
                      "{ bra OUT; }\nOUT: ret;"));
  const Function& f = m.functions[0];
  auto list = instructions(f);
  ASSERT_EQ(list.size(), 6u);
  auto target = [&](int i) { return list[i].operands[0].index; };
  EXPECT_NE(target(0), target(2));
  EXPECT_NE(target(1), target(3));
  EXPECT_EQ(f.labels[target(0)].name, "DONE");
  EXPECT_LT(f.labels[target(0)].statement, f.labels[target(2)].statement);
  EXPECT_EQ(f.labels[target(4)].name, "OUT");
  for (const Label& label : f.labels)
    EXPECT_TRUE(std::holds_alternative<LabelMark>(f.body[label.statement]));
}

TEST(Module, BranchTables) {
  Module m = parse_ok(kernel("ts: .branchtargets A, B, A;\nbrx.idx %r1, ts;\nA: ret;\nB: ret;"));
  const Function& f = m.functions[0];
  const BranchTargets* table = nullptr;
  for (const Statement& s : f.body)
    if (auto* t = std::get_if<BranchTargets>(&s)) table = t;
  ASSERT_TRUE(table);
  ASSERT_EQ(table->targets.size(), 3u);
  EXPECT_EQ(table->targets[0], table->targets[2]);
  EXPECT_EQ(f.labels[table->targets[1]].name, "B");
  EXPECT_EQ(instructions(f)[0].operands[1].index, table->label);
}

TEST(Module, Calls) {
  Module m = parse_ok(header() + R"(
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.func (.reg .b32 out) add(.reg .b32 a, .reg .b32 b) { add.s32 out, a, b; ret; }
.func none() .noreturn { trap; }
.func other();
.alias other, none;
.entry k() {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  { .param .b64 p0; .param .b64 p1; .param .b32 r0;
    st.param.b64 [p0], %rd1; st.param.b64 [p1+0], 0;
    call.uni (r0), vprintf, (p0, p1);
    ld.param.b32 %r1, [r0+0]; }
  call (%r1), add, (%r2, 7);
  mov.u64 %rd1, none;
  proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[24]) .noreturn;
  { .param .b64 x; .param .align 8 .b8 y[24]; .param .b32 z; call (z), %rd1, (x, y), proto; }
  call none;
}
)");
  const Function& k = *m.find_function("k");
  auto list = instructions(k);
  ASSERT_EQ(list.size(), 8u);
  const Instruction& printf_call = list[2];
  EXPECT_EQ(m.functions[printf_call.operands[1].index].name, "vprintf");
  EXPECT_EQ(printf_call.operands[0].elements.size(), 1u);
  EXPECT_EQ(printf_call.operands[2].elements.size(), 2u);
  EXPECT_TRUE(printf_call.operands[2].elements[0].is_local);
  const Function& add = *m.find_function("add");
  EXPECT_EQ(add.params[1].reg, 2u);
  EXPECT_EQ(add.registers[2].name, "b");
  const Instruction& indirect = list[6];
  ASSERT_EQ(indirect.operands.size(), 4u);
  EXPECT_EQ(indirect.operands[1].kind, Operand::Kind::reg);
  const Label& proto = k.labels[indirect.operands[3].index];
  const auto* mark = std::get_if<CallPrototype>(&k.body[proto.statement]);
  ASSERT_TRUE(mark);
  const Prototype& prototype = k.prototypes.at(mark->prototype);
  EXPECT_EQ(prototype.params[1].size, 24u);
  EXPECT_TRUE(prototype.noreturn);
  EXPECT_EQ(list[7].operands.size(), 3u);
  EXPECT_TRUE(m.find_function("none")->directives.noreturn);
  ASSERT_EQ(m.aliases.size(), 1u);
  EXPECT_EQ(m.functions[m.aliases[0].target].name, "none");
}

TEST(Module, SourceLocations) {
  Module m = parse_ok(header() + R"(
.entry k() {
  .reg .b32 %r<4>;
  .loc 1 20 3
  mov.b32 %r1, 0;
  .loc 2 5 9, function_name $L__info_string0, inlined_at 1 20 3
  mov.b32 %r1, 1;
  .loc 3 7 1, function_name $L__info_string0+4, inlined_at 2 5 9
  mov.b32 %r1, 2;
  .loc 3 8 1, function_name $L__info_string0, inlined_at 9 9 9
  mov.b32 %r1, 3;
}
.file 1 "a.cu"
.file 2 "b.h", 1234, 99
.section .debug_str
{
$L__info_string0:
.b8 95,90,52,102
.b8 111,111,0
}
)");
  auto list = instructions(m.functions[0]);
  ASSERT_EQ(list.size(), 4u);
  const SourceLine& third = m.locations[list[2].loc];
  EXPECT_EQ(third.line, 7u);
  EXPECT_EQ(m.debug_strings[third.function_name], "oo");
  const SourceLine& second = m.locations[third.inlined_at];
  EXPECT_EQ(third.inlined_at, list[1].loc);
  EXPECT_EQ(m.debug_strings[second.function_name], "_Z4foo");
  EXPECT_EQ(second.inlined_at, list[0].loc);
  EXPECT_EQ(m.locations[second.inlined_at].inlined_at, kNone);
  const SourceLine& invented = m.locations[m.locations[list[3].loc].inlined_at];
  EXPECT_EQ(invented.file, 9u);
  EXPECT_EQ(invented.line, 9u);
  EXPECT_EQ(m.files[2], "b.h");
}

TEST(Module, DeclarationThenDefinition) {
  Module m = parse_ok(header() +
                      ".visible .func f(.param .b32 a);\n.extern .global .u32 v;\n"
                      ".entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, v; mov.u64 %rd1, f; }\n"
                      ".visible .global .u32 v = 3;\n"
                      ".visible .func f(.param .b32 a) { ret; }\n");
  ASSERT_EQ(m.functions.size(), 2u);
  EXPECT_EQ(m.functions[0].name, "f");
  EXPECT_FALSE(m.functions[0].is_declaration);
  ASSERT_EQ(m.variables.size(), 1u);
  EXPECT_EQ(m.variables[0].init.size(), 1u);
  EXPECT_EQ(m.order.size(), 5u);
}

}  // namespace
}  // namespace ptxbench::ptx
