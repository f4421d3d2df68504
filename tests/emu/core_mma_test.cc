// mma.sync in kernels: recorded operands through the decoder, what the ledger counts, refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "emu/hw_vectors.h"
#include "emu/mma_forms.h"
#include "emu/ptx_runner.h"

namespace ptxbench::emu {
namespace {

using test::buffer_of;
using test::output_of;
using test::PtxRun;

std::string list(char name, int count) {
  std::string s;
  for (int r = 0; r < count; ++r) s += fmt::format("{}%{}{}", r ? "," : "{", name, r);
  return s + "}";
}

// A kernel in which every thread loads its fragments, executes `instruction` once and stores D.
std::string kernel(const std::string& instruction, const MmaRegisters& count, bool wide) {
  const char* type = wide ? "f64" : "b32";
  const int bytes = wide ? 8 : 4;
  std::string s = ".visible .entry k(.param .u64 a,.param .u64 b,.param .u64 c,.param .u64 d) {\n";
  s += fmt::format(".reg .{} %a<8>,%b<8>,%c<8>,%d<8>;\n.reg .b32 %t;\n.reg .b64 %p;\n", type);
  s += "mov.u32 %t,%tid.x;\n";
  auto each = [&](char name, int n, bool store) {
    s += fmt::format("ld.param.u64 %p,[{}];\nmad.wide.u32 %p,%t,{},%p;\n", name, n * bytes);
    for (int r = 0; r < n; ++r)
      s += store ? fmt::format("st.global.{} [%p+{}],%{}{};\n", type, r * bytes, name, r)
                 : fmt::format("ld.global.{} %{}{},[%p+{}];\n", type, name, r, r * bytes);
  };
  each('a', count.a, false), each('b', count.b, false), each('c', count.c, false);
  s += fmt::format("{} {},{},{},{};\n", instruction, list('d', count.d), list('a', count.a),
                   list('b', count.b), list('c', count.c));
  each('d', count.d, true);
  return s + "ret;\n}\n";
}

TEST(CoreMma, RecordedOperandsInKernels) {
  const hw::Group& g = hw::group("matrix_warp");
  size_t cases = 0;
  for (const hw::Json& c : g.cases("mma_raw")) {
    const std::string ptx = c.at("ptx");
    const std::string instruction = ptx.substr(0, ptx.find(' '));
    const MmaForm form = parse_mma(instruction);
    auto bytes = [&](const char* key) {
      auto b = g.array(c.at(key)).bytes;
      return std::vector<uint8_t>(b.begin(), b.end());
    };
    const std::vector<uint8_t> want = bytes("d");
    PtxRun r;
    r.ptx = kernel(instruction, registers_of(form), form.a == ptx::Type::f64);
    r.buffers = {buffer_of("a", bytes("a"), true), buffer_of("b", bytes("b"), true),
                 buffer_of("c", bytes("c"), true), output_of("d", want.size())};
    const uint32_t warps = static_cast<uint32_t>(g.array(c.at("d")).shape[0]);
    r.block = {32 * warps, 1, 1};
    r.go();
    ASSERT_EQ(r.error, "") << ptx;
    EXPECT_EQ(r.kinds(), "") << ptx;
    EXPECT_TRUE(r.buffers[3].bytes == want) << ptx;
    EXPECT_EQ(r.warps("mma"), warps);
    const double flop = warps * 2.0 * form.m * form.n * form.k;
    EXPECT_EQ(r.result.kernels.at(0).tensor_flop, flop);
    const std::string types =
        fmt::format("{}.{}.{}", ptx::name(form.a), ptx::name(form.b), ptx::name(form.d));
    ASSERT_EQ(r.result.kernels.at(0).tensor_flop_by_type.size(), 1u);
    EXPECT_EQ(r.result.kernels.at(0).tensor_flop_by_type[0].first, types);
    for (const plan::FamilyCount& f : r.result.families)
      EXPECT_EQ(f.tensor_flop, f.family == "mma" ? flop : 0) << f.family;
    ++cases;
  }
  EXPECT_EQ(cases, 61u);
}

TEST(CoreMma, ThreadsAndGuards) {
  PtxRun r;
  MmaForm form{16, 8, 16, ptx::Type::f32, ptx::Type::bf16, ptx::Type::bf16, ptx::Type::f32};
  std::string text =
      kernel("@%q mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", registers_of(form), false);
  const std::string declare = ".reg .b32 %t;\n";
  text.insert(text.find(declare), ".reg .pred %q;\n");
  const std::string tid = "mov.u32 %t,%tid.x;\n";
  text.insert(text.find(tid) + tid.size(), "setp.lt.u32 %q,%t,64;\n");
  r.ptx = text;
  std::vector<uint32_t> ones(96 * 4, 0x3f803f80);
  r.buffers = {buffer_of("a", ones, true),
               buffer_of("b", std::vector<uint32_t>(96 * 2, 0x3f803f80)),
               buffer_of("c", std::vector<float>(96 * 4, 0.5f)), output_of("d", 96 * 16)};
  r.block = {96, 1, 1};
  r.go();
  ASSERT_EQ(r.error, "");
  for (const plan::FamilyCount& f : r.result.families)
    if (f.family == "mma") {
      EXPECT_EQ(f.static_count, 1u);
      EXPECT_EQ(f.warps, 2u);
      EXPECT_EQ(f.threads, 64u);
      EXPECT_EQ(f.tensor_flop, 2 * 4096.0);
    }
  auto d = test::values_of<float>(r.buffers[3]);
  for (int i = 0; i < 64 * 4; ++i) EXPECT_EQ(d[i], 16.5f);
}

TEST(CoreMma, RefusalsNameTheInstruction) {
  auto error = [](const std::string& instruction, MmaRegisters count) {
    PtxRun r;
    r.ptx = kernel(instruction, count, false);
    r.buffers = {output_of("a", 4096), output_of("b", 4096), output_of("c", 4096),
                 output_of("d", 4096)};
    r.block = {32, 1, 1};
    return r.go().error;
  };
  const std::string good = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
  EXPECT_EQ(error(good, {4, 2, 4, 4}), "");
  EXPECT_NE(error(good, {4, 2, 4, 2}).find("takes 4 elements here, but 2 are given"),
            std::string::npos);
  EXPECT_NE(error(good, {2, 2, 4, 4}).find("m16n8k16"), std::string::npos);
}

}  // namespace
}  // namespace ptxbench::emu
