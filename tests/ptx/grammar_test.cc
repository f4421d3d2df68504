// Constructs of a module, each with the verdict of ptxas 13.0. What is accepted is also printed and
// read back.
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

struct Construct {
  std::string name, text;  // without .version, .target and .address_size
  bool accepted = true;
};

class Grammar : public testing::TestWithParam<Construct> {};

TEST_P(Grammar, AsPtxas) {
  const Construct& c = GetParam();
  auto module = parse(header() + c.text, "t.ptx");
  if (!c.accepted) {
    EXPECT_TRUE(!module.ok() || !verify(*module).ok());
    return;
  }
  ASSERT_TRUE(module.ok()) << module.error().to_string();
  auto verified = verify(*module, "t.ptx");
  EXPECT_TRUE(verified.ok()) << verified.error().to_string();
  std::string printed = print(*module);
  auto again = parse(printed, "t.ptx");
  ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << printed;
  strip_positions(&*module);
  strip_positions(&*again);
  EXPECT_TRUE(*module == *again) << printed;
}

std::string in_kernel(const std::string& body) {
  return ".entry k() { .reg .pred p, %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n" + body +
         "\nret; }\n";
}

INSTANTIATE_TEST_SUITE_P(
    Linkage, Grammar,
    testing::Values(Construct{"alias",
                              ".visible .func f(){ret;}\n.visible .func g();\n.alias g, f;\n.entry "
                              "k(){call g; ret;}"},
                    Construct{"managed", ".global .attribute(.managed) .u32 m;"},
                    Construct{"unified_variable", ".global .attribute(.unified(19,95)) .u32 m;"},
                    Construct{"unified_function",
                              ".func .attribute(.unified(0xAB, 0xCD)) f() {ret;}"},
                    Construct{"noreturn", ".func f() .noreturn { trap; }"},
                    Construct{"common", ".common .global .u32 c;"},
                    Construct{"weak", ".weak .global .u32 c;\n.weak .func f() {ret;}"},
                    Construct{"extern",
                              ".extern .shared .align 16 .b8 s[];\n.extern .global .u32 "
                              "g;\n.extern .func h(.param .b32 a);\n" +
                                  in_kernel("mov.b32 %r1, s;")},
                    Construct{"twice", ".entry k() {ret;}\n.entry k() {ret;}", false},
                    Construct{"calls_kernel", ".entry f(){ret;}\n.entry k(){call f; ret;}", false},
                    Construct{"undefined", ".func f();\n.entry k(){call f; ret;}", false}),
    [](const auto& info) { return info.param.name; });

std::string load(const std::string& statement) {
  return in_kernel(".reg .f32 %f<8>;\n" + statement);
}

INSTANTIATE_TEST_SUITE_P(
    UnifiedAddress, Grammar,
    testing::Values(Construct{"global", load("ld.global.f32 %f1, [%rd1].unified;")},
                    Construct{"generic", load("ld.relaxed.gpu.f32 %f1, [%rd1+4].unified;")},
                    Construct{"hint", load("ld.global.L2::cache_hint.v4.f32 {%f1, %f2, %f3, %f4}, "
                                           "[%rd1].unified, %rd2;")},
                    Construct{"read_only", load("ld.global.nc.f32 %f1, [%rd1].unified;")},
                    Construct{"uniform", load("ldu.global.f32 %f1, [%rd1].unified;")},
                    Construct{"atomic", load("atom.global.add.f32 %f1, [%rd1].unified, %f2;")},
                    Construct{"shared", load("ld.shared.f32 %f1, [%rd1].unified;"), false},
                    Construct{"atomic_shared",
                              load("atom.shared.add.f32 %f1, [%rd1].unified, %f2;"), false},
                    Construct{"reduction", load("red.global.add.f32 [%rd1].unified, %f2;"), false},
                    Construct{"store", load("st.global.f32 [%rd1].unified, %f1;"), false},
                    Construct{"as_a_word", load("ld.global.unified.f32 %f1, [%rd1];"), false}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Directives, Grammar,
    testing::Values(
        Construct{"cluster", ".entry k() .explicitcluster .reqnctapercluster 2,1,1 {ret;}"},
        Construct{"cluster_rank", ".entry k() .maxclusterrank 8 {ret;}"},
        Construct{"blocks_are_clusters",
                  ".entry k() .blocksareclusters .reqntid 128,1,1 .reqnctapercluster 2,1,1 {ret;}"},
        Construct{"threads", ".entry k() .maxntid 128 .minnctapersm 2 .maxnreg 64 {ret;}"},
        Construct{"required_threads", ".entry k() .reqntid 32, 2, 2 {ret;}"},
        Construct{"pragma", ".pragma \"nounroll\";\n.entry k() { .pragma \"nounroll\"; ret;}"},
        Construct{"loc", ".file 1 \"a.cu\"\n.entry k() {\n.loc 1 2 3\nret;\n}"},
        Construct{"inlined",
                  ".file 1 \"a.cu\"\n.entry k() {\n.loc 1 1 1\n.loc 1 2 3, function_name $Ls, "
                  "inlined_at 1 1 "
                  "1\nret;\n}\n.section .debug_str {\n$Ls:\n.b8 102,0\n}"},
        Construct{"section",
                  ".entry k() {ret;}\n.section .debug_info\n{\n.b32 12\n.b8 1, 2\n.b64 "
                  "0x1234\nL1:\n.b32 L1\n}"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Variables, Grammar,
    testing::Values(
        Construct{
            "addresses",
            ".global .u32 a[2] = {1, 2};\n.global .u64 p = a;\n.global .u64 q[2] = {a+4, a};"},
        Construct{"functions", ".func f(){ret;}\n.global .u64 t[1] = {f};"},
        Construct{"expressions",
                  ".global .u32 a = (1 + 2) * 3 << 2 | 1 & 7 ^ 2;\n.global .s32 b = -5 % "
                  "3;\n.global .u32 c = 5 > "
                  "3 ? 1 : 0;\n.global .u32 d = !0 && ~0 || 3 == 4;\n.global .u64 e = (.u64) "
                  "-1;\n.global .f32 f "
                  "= 1.5 * 2.0;"},
        Construct{"literals",
                  ".global .u32 a[5] = {0x1F, 017, 0b101, 42U, 0X1fU};\n.global .f32 f[3] = "
                  "{0f3F800000, 1.0, "
                  "1.5e3};\n.global .f64 g[2] = {0d3FF0000000000000, 1e-3};"},
        Construct{"dimensions", ".global .s32 o[2][3] = {{-1,0},{0,1,2}};\n.const .b8 e[2][2];"},
        Construct{"vectors", ".global .v4 .f32 v;\n.global .v2 .u8 w[4];\n.shared .v4 .b32 s;"},
        Construct{"pointers",
                  ".entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b, .param "
                  ".align 8 .b8 c[16]) "
                  "{ret;}"},
        Construct{"tensor_map", ".entry k(.param .align 128 .b8 m[128]) {ret;}"},
        Construct{"shared_initialised", ".shared .u32 s = 3;", false},
        Construct{"local_outside", ".local .u32 s;", false},
        Construct{"too_many_constants", ".const .b8 s[70000];\n.entry k(){ret;}", false},
        Construct{"too_many_values", ".global .u32 a[2]={1,2,3};", false},
        Construct{"alignment", ".global .align 3 .b8 a[4];", false},
        Construct{"big_parameters", ".entry k(.param .b8 a[40000]){ret;}", false}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Bodies, Grammar,
    testing::Values(
        Construct{"prototype", in_kernel("q: .callprototype (.param .b32 _) _ (.param .b64 _, "
                                         ".param .align 8 .b8 _[24]);\n{ "
                                         ".param .b32 r; .param .b64 a; .param .align 8 .b8 b[24]; "
                                         "call (r), %rd1, (a, b), q; }")},
        Construct{"call_targets",
                  ".func f(){ret;}\n.func g(){ret;}\n" +
                      in_kernel("t: .calltargets f, g;\nmov.u64 %rd1, f; call %rd1, (), t;")},
        Construct{"branch_targets",
                  in_kernel("t: .branchtargets A, B;\nbrx.idx %r1, t; A: ret; B: exit;")},
        Construct{"vector_registers",
                  in_kernel(".reg .v4 .f32 v; .reg .v2 .b32 w; .reg .f32 f; mov.f32 f, v.x; "
                            "mov.b32 w.y, w.x;")},
        Construct{"scopes", in_kernel("{ .reg .b32 r; mov.b32 r, 1; L: bra M; M: } { L: }")},
        Construct{"comments", "/* a */ .entry /* b */ k() { // c\n ret; /* d\n e */ }"},
        Construct{"sinks", in_kernel("elect.sync _|%p1, -1; setp.eq.u32 %p1|_, %r1, 0;")},
        Construct{
            "video",
            in_kernel("vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h1; vadd4.u32.u32.u32 %r1.b3210, "
                      "%r2.b7654, %r3.b3210, %r4; vset.s32.s32.lt.add %r1, %r2, %r3, %r4;")},
        Construct{"video_negated", in_kernel("vmad.u32.u32.u32 %r1, %r2.b0, -%r3.b1, %r4;")},
        Construct{"video_halves", in_kernel("vadd2.u32.u32.u32 %r1.h10, %r2.h32, %r3, %r4; "
                                            "vabsdiff4.u32.u32.u32.add %r1, %r2.b7741, %r3, %r4;")},
        Construct{"register_parameters",
                  ".func (.reg .b32 o) f(.reg .b32 a){ add.u32 o, a, 1; ret;}\n" +
                      in_kernel("call (%r1), f, (3);")},
        Construct{"names", ".entry $k_1(){.reg .b32 %a, _b, $c; mov.b32 %a, _b; ret;}"},
        Construct{"register_types",
                  in_kernel(".reg .u8 a; .reg .s8 b; .reg .f16 h; .reg .f16x2 hh; .reg .b128 q;")},
        Construct{"packed_registers", in_kernel(".reg .bf16 a;"), false},
        Construct{"argument_size",
                  ".func f(.param .b32 a){ret;}\n.entry k(){.param .b64 x; call f, (x); ret;}",
                  false},
        Construct{"undeclared", ".entry k() {mov.b32 r, 1; ret;}", false},
        Construct{"no_label", ".entry k() {bra L; ret;}", false},
        Construct{"no_semicolon", ".entry k() {ret}", false},
        Construct{"guard", in_kernel("@%r1 ret;"), false}),
    [](const auto& info) { return info.param.name; });

// The header: a target needs its PTX version.
TEST(GrammarHeader, TargetAndVersion) {
  auto verdict = [](std::string_view target, std::string_view version) {
    auto module = parse(header(target, version) + ".entry k() {ret;}");
    return module.ok() && verify(*module).ok();
  };
  EXPECT_TRUE(verdict("sm_90", "7.8"));
  EXPECT_FALSE(verdict("sm_90", "7.7"));
  EXPECT_TRUE(verdict("sm_100f", "8.8"));
  EXPECT_FALSE(verdict("sm_100f", "8.6"));
  EXPECT_FALSE(verdict("sm_95", "9.0"));
  EXPECT_FALSE(verdict("sm_80a", "9.0"));
}

}  // namespace
}  // namespace ptxbench::ptx
