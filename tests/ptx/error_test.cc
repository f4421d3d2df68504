// One clear error for each mistake, with its place.
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

struct Mistake {
  std::string name, text;
  int line, column;
  std::string message;  // a part of it
};

class SyntaxError : public testing::TestWithParam<Mistake> {};

TEST_P(SyntaxError, IsPrecise) {
  const Mistake& m = GetParam();
  auto module = parse(m.text, "t.ptx");
  ASSERT_FALSE(module.ok());
  const Error& e = module.error();
  EXPECT_EQ(e.kind, "ptx-syntax");
  EXPECT_EQ(e.where.file, "t.ptx");
  EXPECT_EQ(e.where.line, m.line) << e.to_string();
  EXPECT_EQ(e.where.column, m.column) << e.to_string();
  EXPECT_NE(e.message.find(m.message), std::string::npos) << e.message;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, SyntaxError,
    testing::Values(
        Mistake{"empty", "", 1, 1, "'.version'"},
        Mistake{"no_target", ".version 9.0\n", 2, 1, "'.target'"},
        Mistake{"binary",
                std::string("\x7f"
                            "ELF\0\1",
                            6),
                1, 1, "'\\x7f'"},
        Mistake{"opcode", kernel("wgma.fence.sync.aligned;"), 7, 1, "did you mean 'wgmma'?"},
        Mistake{"opcode_second_word", kernel("redux.add.s32 %r1, %r2, 31;"), 7, 1, "'redux.sync'"},
        Mistake{"modifier", kernel("  ld.global.volatil.u32 %r1, [%rd1];"), 7, 13,
                "did you mean '.volatile'?"},
        Mistake{"two_spaces", kernel(".local .reg .b8 x[8];"), 7, 8, "second state space"},
        Mistake{"type", kernel("add.u23 %r1, %r1, %r1;"), 7, 5, "did you mean '.u32'?"},
        Mistake{"modifier_of_another", kernel("add.global.u32 %r1, %r1, 1;"), 7, 5,
                "no modifier of add"},
        Mistake{"twice", kernel("add.rn.rn.f32 %f1, %f1, %f1;"), 7, 8, "twice"},
        Mistake{"register", kernel("mov.b32 %r1, %r99;"), 7, 14, "'%r99'"},
        Mistake{"leading_zero", kernel("mov.b32 %r1, %r01;"), 7, 14, "'%r01'"},
        Mistake{"variable", kernel("mov.u64 %rd1, nowhere;"), 7, 15, "'nowhere' is not declared"},
        Mistake{"label", kernel("bra NOWHERE;"), 7, 5, "no label 'NOWHERE'"},
        Mistake{"inner_label", kernel("{ L: } bra L;"), 7, 12, "no label 'L'"},
        Mistake{"label_twice", kernel("L: L: ret;"), 7, 4, "twice"},
        Mistake{"semicolon", kernel("ret\nret;"), 8, 1, "expected"},
        Mistake{"number", kernel("mov.b32 %r1, 0x1g;"), 7, 14, "'0x1g'"},
        Mistake{"division", kernel("mov.b32 %r1, 1/0;"), 7, 15, "division by zero"},
        Mistake{"bracket", kernel("ld.b32 %r1, [%rd1;"), 7, 18, "expected ']'"},
        Mistake{"special", kernel("mov.u32 %r1, %tidx;"), 7, 14,
                "neither a declared nor a special"},
        Mistake{"component", kernel("mov.u32 %r1, %tid;"), 7, 18, "needs .x"},
        Mistake{"negated_special", kernel("mov.u32 %r1, -%tid.x;"), 7, 14, "applies to a register"},
        Mistake{"callee", kernel("call.uni nobody, ();"), 7, 10, "'nobody'"},
        Mistake{"redeclared", kernel(".reg .b32 a; .reg .b32 a;"), 7, 24, "declared twice"},
        Mistake{"open_body", header() + ".entry k() {\n ret;\n", 6, 1, "not closed"},
        Mistake{"align", header() + ".global .align 3 .b8 x[4];", 4, 16, "power of two"},
        Mistake{"too_many_values", header() + ".global .b8 x[2] = {1,2,3};", 4, 20, "3 values"},
        Mistake{"negative_size", header() + ".global .b8 x[-2];", 4, 15, "negative"}),
    [](const auto& info) { return info.param.name; });

struct Refused {
  std::string name, target, body, kind, message;
};
class VerifyError : public testing::TestWithParam<Refused> {};

TEST_P(VerifyError, IsPrecise) {
  const Refused& r = GetParam();
  Module m = parse_ok(kernel(r.body, r.target));
  auto result = verify(m, "t.ptx");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, r.kind) << result.error().message;
  EXPECT_EQ(result.error().where.line, 7);
  EXPECT_NE(result.error().message.find(r.message), std::string::npos) << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, VerifyError,
    testing::Values(
        Refused{"wgmma_sm_90", "sm_90", "wgmma.fence.sync.aligned;", "ptx-target",
                "needs target sm_90a"},
        Refused{"wgmma_blackwell", "sm_100a",
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, "
                "%rd2, %p1, 1, 1, "
                "0, 0;",
                "ptx-target", "tcgen05.mma"},
        Refused{"tcgen05_hopper", "sm_90a",
                "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "ptx-target",
                "wgmma.mma_async"},
        Refused{"setmaxnreg", "sm_90", "setmaxnreg.inc.sync.aligned.u32 232;", "ptx-target",
                "sm_90a"},
        Refused{"v8", "sm_90a", "st.global.v8.b32 [%rd1], {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8};",
                "ptx-target", "sm_100"},
        Refused{"cluster_sm_80", "sm_80", "mapa.shared::cluster.u32 %r1, %r2, 0;", "ptx-target",
                "sm_90"},
        Refused{"count", "sm_90a", "add.s32 %r1, %r2;", "ptx-operands",
                "destination, source, source"},
        Refused{"kind", "sm_90a", "ld.global.b32 %r1, %rd1;", "ptx-operands", "[address]"},
        Refused{"width", "sm_90a", "add.s32 %r1, %rd1, %r2;", "ptx-operands", "'%rd1' is .b64"},
        Refused{"narrow_load", "sm_90a", "ld.global.b64 %r1, [%rd1];", "ptx-operands",
                "at least 64 bits"},
        Refused{"predicate", "sm_90a", "setp.eq.s32 %r1, %r2, 0;", "ptx-operands",
                "predicate register"},
        Refused{"before_volta", "sm_90a", "shfl.bfly.b32 %r1, %r2, 1, 31;", "ptx-operands",
                "shfl.sync takes a mask of lanes"},
        Refused{"integer", "sm_90a", "nanosleep.u32 %f1;", "ptx-operands", "needs an integer"},
        Refused{"integer_constant", "sm_90a", "nanosleep.u32 1.5;", "ptx-operands",
                "needs an integer"},
        Refused{"no_count", "sm_90a", "mbarrier.arrive.b64 %rd1, [%rd1], 0;", "ptx-operands",
                "the count"},
        Refused{"leading_word", "sm_90a", "barrier.rank.arrive %r1, %r2;", "ptx-operands",
                "must follow 'barrier' at once"},
        Refused{"guard", "sm_90a", "@%r1 ret;", "ptx-operands", "no predicate register"},
        Refused{"space", "sm_90a", ".shared .b32 s; ld.global.b32 %r1, [s];", "ptx-operands",
                "lies in .shared"},
        Refused{"vector", "sm_90a", "ld.global.v4.b32 {%r1,%r2}, [%rd1];", "ptx-operands",
                "4 elements"},
        Refused{"no_type", "sm_90a", "add %r1, %r2, %r3;", "ptx-operands", "needs a type"},
        Refused{"no_lo", "sm_90a", "mul.s32 %r1, %r2, %r3;", "ptx-operands", ".lo"},
        Refused{"no_compare", "sm_90a", "setp.s32 %p1, %r2, %r3;", "ptx-operands", "needs .eq"},
        Refused{"accumulators", "sm_90a",
                "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, "
                "%rd2, %p1, 1, 1, "
                "0, 0;",
                "ptx-operands", "8 accumulator"},
        Refused{"shape", "sm_90a",
                "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%f1,%f2}, %rd1, %rd2, %p1, "
                "1, 1, 0, 0;",
                "ptx-operands", "N = 8"},
        Refused{"move", "sm_90a", "mov.b32 %r1, {%r2, %r3};", "ptx-operands", "moves 32 bits"},
        Refused{"negated", "sm_90a", "add.s32 %r1, !%r2, 0;", "ptx-operands", "cannot be negated"}),
    [](const auto& info) { return info.param.name; });

// One misspelt modifier among 5,000 lines: the line, the word, the nearest legal one.
TEST(SyntaxError, MisspeltModifierInALongFile) {
  std::string body;
  for (int i = 0; i < 5000; ++i)
    body += i == 3210 ? "ld.relaxed.gpu.global.L1::no_alocate.u32 %r1, [%rd1];\n"
                      : "fma.rn.f32 %f1, %f2, %f3, %f1;\n";
  auto module = parse(kernel(body), "long.ptx");
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().to_string(),
            "long.ptx:3217:23: '.L1::no_alocate' is no modifier of ld; did you mean "
            "'.L1::no_allocate'?");
}

TEST(Verifier, OldVersionIsRefused) {
  std::string text = kernel("tcgen05.wait::ld.sync.aligned;", "sm_100a");
  text.replace(text.find("9.0"), 3, "8.5");
  auto result = verify(parse_ok(text));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("needs PTX 8.6"), std::string::npos)
      << result.error().message;
}

TEST(Verifier, UndefinedCalleeIsRefused) {
  Module m = parse_ok(header() + ".func f();\n.entry k() { call f; }");
  EXPECT_FALSE(verify(m).ok());
}

}  // namespace
}  // namespace ptxbench::ptx
