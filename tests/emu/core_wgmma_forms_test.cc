// wgmma forms beyond the dense floating-point ones, in kernels: what the decoder makes of operands,
// flags and metadata must be what emu::wgmma computes from the same registers and memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "emu/ptx_runner.h"
#include "emu/wgmma_forms.h"

namespace ptxbench::emu {
namespace {

constexpr uint32_t kImageBytes = 32768, kOffsetB = 16384;

// One wgmma by one warpgroup: image to shared memory, registers from and to global memory. `tail`
// follows the descriptor of B: metadata and selector, then scale-d and the immediates.
std::string kernel(const std::string& instruction, const std::string& a, const std::string& tail,
                   int registers) {
  std::string s = fmt::format(
      ".visible .entry k(.param .u64 image,.param .u64 regs,.param .u64 c,.param .u64 out) {{\n"
      ".shared .align 1024 .b8 buffer[{}];\n.reg .b32 %t,%i,%s,%x,%e,%a<4>,%d<{}>;\n"
      ".reg .b64 %p,%q,%da,%db;\n.reg .pred %l;\n"
      "mov.u32 %t,%tid.x;\nld.param.u64 %p,[image];\nmov.u32 %s,buffer;\nmov.u32 %i,%t;\n"
      "$copy:\nmul.wide.u32 %q,%i,4;\nadd.u64 %q,%p,%q;\nld.global.b32 %x,[%q];\n"
      "mad.lo.u32 %e,%i,4,%s;\nst.shared.b32 [%e],%x;\nadd.u32 %i,%i,128;\n"
      "setp.lt.u32 %l,%i,{};\n@%l bra $copy;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n",
      kImageBytes, registers, kImageBytes / 4);
  s += "ld.param.u64 %p,[regs];\nmad.wide.u32 %p,%t,20,%p;\n";
  for (int r = 0; r < 4; ++r) s += fmt::format("ld.global.b32 %a{},[%p+{}];\n", r, 4 * r);
  s += "ld.global.b32 %e,[%p+16];\n";
  auto accumulators = [&](const char* name, bool store) {
    s += fmt::format("ld.param.u64 %p,[{}];\nmad.wide.u32 %p,%t,{},%p;\n", name, 4 * registers);
    for (int r = 0; r < registers; ++r)
      s += store ? fmt::format("st.global.b32 [%p+{}],%d{};\n", 4 * r, r)
                 : fmt::format("ld.global.b32 %d{},[%p+{}];\n", r, 4 * r);
  };
  accumulators("c", false);
  // Descriptors: start in units of 16 bytes, leading 128, stride 512 (A) and 1024 (B) bytes.
  s += fmt::format("shr.u32 %x,%s,4;\ncvt.u64.u32 %q,%x;\nadd.u64 %da,%q,{};\nadd.u64 %db,%q,{};\n",
                   8ull << 16 | 32ull << 32, (8ull << 16 | 64ull << 32) + (kOffsetB >> 4));
  std::string d;
  for (int r = 0; r < registers; ++r) d += fmt::format("{}%d{}", r ? "," : "{", r);
  s += fmt::format("wgmma.fence.sync.aligned;\n{} {}}},{},%db,{};\n", instruction, d, a, tail);
  s += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  accumulators("out", true);
  return s + "ret;\n}\n";
}

void run(const std::string& instruction, WgmmaForm f, const std::string& tail) {
  ASSERT_TRUE(check(f).ok()) << check(f).error().message;
  const int registers = f.n / (f.d == ptx::Type::f16 ? 4 : 2);
  std::mt19937 random(static_cast<uint32_t>(instruction.size() + f.a_in_registers));
  std::vector<uint8_t> image(kImageBytes);
  std::vector<uint32_t> regs(128 * 5), c(static_cast<size_t>(128 * registers));
  // f16, bf16 and tf32 patterns near 1; bytes are any.
  const bool any = bytes_of(f.a) == 1;
  auto word = [&] { return any ? random() : (random() & 0x83ff83ff) | 0x3c003c00; };
  for (size_t i = 0; i < image.size(); i += 4) {
    const uint32_t w = word();
    std::memcpy(&image[i], &w, 4);
  }
  for (size_t i = 0; i < regs.size(); ++i) {
    regs[i] = word();
    if (i % 5 != 4) continue;
    regs[i] = 0;
    for (int b = 0; b < 32; b += 4)
      regs[i] |= (f.a == ptx::Type::tf32 ? (random() & 1 ? 14u : 4u)
                  : random() & 1         ? 9u
                                         : 13u)
                 << b;
  }
  for (uint32_t& x : c) x = f.d == ptx::Type::s32 ? random() : word();
  test::PtxRun p;
  p.ptx = kernel(instruction, f.a_in_registers ? "{%a0,%a1,%a2,%a3}" : "%da", tail, registers);
  p.buffers = {test::buffer_of("image", image, true), test::buffer_of("regs", regs, true),
               test::buffer_of("c", c, true), test::output_of("out", c.size() * 4)};
  p.block = {128, 1, 1};
  p.go();
  ASSERT_EQ(p.error, "") << instruction;
  EXPECT_EQ(p.kinds(), "") << instruction;
  // The same at another place in memory.
  auto run = std::make_unique<Fragments>();
  uint32_t metadata[4][32];
  for (size_t t = 0; t < 128; ++t) {
    for (size_t r = 0; r < 4; ++r) run->a[t / 32][r][t % 32] = regs[t * 5 + r];
    metadata[t / 32][t % 32] = regs[t * 5 + 4];
    for (size_t r = 0; r < static_cast<size_t>(registers); ++r)
      run->d[t / 32][r][t % 32] = c[t * static_cast<size_t>(registers) + r];
  }
  WgmmaOperands& o = run->operands;
  o.shared = image.data(), o.shared_bytes = kImageBytes;
  o.a_descriptor = 8ull << 16 | 32ull << 32;
  o.b_descriptor = (8ull << 16 | 64ull << 32) + (kOffsetB >> 4);
  for (int w = 0; w < 4; ++w) o.metadata[w] = metadata[w];
  wgmma(f, o, plan::TensorMode::hw);
  auto got = test::values_of<uint32_t>(p.buffers[3]);
  size_t bad = 0, changed = 0;
  for (size_t t = 0; t < 128; ++t)
    for (size_t r = 0; r < static_cast<size_t>(registers); ++r) {
      const size_t at = t * static_cast<size_t>(registers) + r;
      bad += got[at] != run->d[t / 32][r][t % 32];
      changed += got[at] != c[at];
    }
  EXPECT_EQ(bad, 0u) << instruction;
  EXPECT_GT(changed, c.size() / 2) << instruction;
  EXPECT_EQ(p.result.kernels.at(0).tensor_flop, 2.0 * 64 * f.n * f.k);
}

TEST(CoreWgmmaForms, MatchTheArithmetic) {
  using ptx::Type;
  for (bool registers : {false, true}) {
    auto form = [&](int k, Type d, Type t, bool sparse, int selector = 0) {
      WgmmaForm f{16, k, t, t, d};
      f.a_in_registers = registers, f.sparse = sparse, f.selector = selector;
      return f;
    };
    const std::string majors = registers ? ",0" : ",0,0";
    run("wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16",
        form(32, Type::f32, Type::f16, true, 1), "%e,1,1,1,1" + majors);
    run("wgmma.mma_async.sp.sync.aligned.m64n16k32.f16.f16.f16",
        form(32, Type::f16, Type::f16, true), "%e,0,1,1,1" + majors);
    run("wgmma.mma_async.sp.sync.aligned.m64n16k16.f32.tf32.tf32",
        form(16, Type::f32, Type::tf32, true, 1), "%e,1,1,1,1");
    run("wgmma.mma_async.sp.sync.aligned.m64n16k64.f32.e4m3.e4m3",
        form(64, Type::f32, Type::e4m3, true), "%e,0,1,1,1");
    run("wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.s8.s8", form(64, Type::s32, Type::s8, true),
        "%e,0,1");
    run("wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc",
        form(256, Type::s32, Type::b1, false), "1");
    WgmmaForm clamped = form(32, Type::s32, Type::s8, false);
    clamped.saturate = true;
    run("wgmma.mma_async.sync.aligned.m64n16k32.satfinite.s32.s8.s8", clamped, "1");
    WgmmaForm negated = form(16, Type::f32, Type::bf16, false);
    negated.negate_a = true;
    run("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", negated, "1,-1,1" + majors);
  }
}

}  // namespace
}  // namespace ptxbench::emu
