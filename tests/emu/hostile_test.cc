// What a hostile or broken kernel may hand to the emulator: mutated PTX, wild pointers, garbage
// tensor maps, absurd launch sizes, endless recursion. Each ends in a finding, an error of a known
// kind or a result; a crash or a hang ends the program. PTXBENCH_HOSTILE=N tries N mutants,
// PTXBENCH_HOSTILE_SEED=S other ones (docs/fuzzing.md).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <random>

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::RunStatus;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Kernels with parameters in, out, a number, two tensor maps. They run as they are.
const char* const kSeeds[] = {
    // Tensor copy in, shared memory, reduction out, tensor copy out.
    R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<20>; .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [p1]; mov.b64 %d2, map; cvta.param.u64 %d2, %d2; mov.b64 %d3, map2; cvta.param.u64 %d3, %d3;
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r7, 0; setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d2, {%r7, %r7}], [%r3];
    READY: bar.sync 0;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
    @!%p2 bra W;
    shl.b32 %r4, %r1, 2;
    add.u32 %r5, %r2, %r4;
    ld.shared.u32 %r6, [%r5];
    st.shared.u32 [%r5], %r1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mul.wide.u32 %d5, %r1, 4;
    add.s64 %d6, %d1, %d5;
    st.global.u32 [%d6], %r6;
    @%p1 bra END;
    cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d3, {%r7, %r7}], [%r2];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    END: ret; })",
    // Cluster: remote stores, remote arrivals, st.async, barriers of the cluster.
    R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<20>; .shared .align 16 .b8 tile[512]; .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u32 %r9, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r4, %cluster_ctarank; xor.b32 %r5, %r4, 1;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    shl.b32 %r6, %r1, 2;
    add.u32 %r7, %r2, %r6;
    mapa.shared::cluster.u32 %r8, %r7, %r5;
    mapa.shared::cluster.u32 %r10, %r3, %r5;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8], %r1, [%r10];
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
    @!%p2 bra W;
    ld.shared.u32 %r11, [%r7];
    atom.shared::cta.add.u32 %r12, [%r2], %r11;
    mul.wide.u32 %d5, %r1, 4;
    add.s64 %d6, %d2, %d5;
    red.global.add.u32 [%d6], %r11;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret; })",
    // wgmma on descriptors of shared memory.
    R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<9>; .shared .align 1024 .b8 tile[8192];
    ld.param.u64 %d1, [p1]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, 0;
    shl.b32 %r4, %r1, 6;
    add.u32 %r5, %r2, %r4;
    st.shared.v4.u32 [%r5], {%r3, %r3, %r3, %r3};
    st.shared.v4.u32 [%r5+16], {%r3, %r1, %r3, %r1};
    st.shared.v4.u32 [%r5+32], {%r3, %r3, %r3, %r3};
    st.shared.v4.u32 [%r5+48], {%r3, %r3, %r3, %r3};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r6, %r2, 4;
    cvt.u64.u32 %d2, %r6;
    or.b64 %d3, %d2, 0x4000004000010000;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d3, %d3, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %d5, %r1, 4;
    add.s64 %d6, %d1, %d5;
    st.global.f32 [%d6], %f2;
    ret; })",
    // Calls, local memory, shuffles, divergence, indirect branches, allocation.
    R"(.visible .func (.param .b32 out) sum(.param .b32 in) {
    .reg .b32 %r<9>; .reg .pred %p<2>;
    ld.param.u32 %r1, [in];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra ZERO;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; st.param.b32 [a], %r2; .param .b32 b; call.uni (b), sum, (a); ld.param.b32 %r3, [b]; }
    add.u32 %r4, %r3, %r1;
    st.param.b32 [out], %r4;
    ret;
    ZERO: st.param.b32 [out], %r1;
    ret; }
    .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<20>; .local .align 16 .b8 own[64];
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7;
    { .param .b32 a; st.param.b32 [a], %r2; .param .b32 b; call.uni (b), sum, (a); ld.param.b32 %r3, [b]; }
    st.local.u32 [own+4], %r3;
    mov.u64 %d4, own;
    cvta.local.u64 %d5, %d4;
    ld.u32 %r4, [%d5+4];
    rem.u32 %r5, %r1, 3;
    ts: .branchtargets A, B, C;
    brx.idx %r5, ts;
    A: mov.u32 %r6, 10;
    bra.uni JOIN;
    B: mov.u32 %r6, 11;
    bra JOIN;
    C: mov.u32 %r6, 12;
    JOIN: shfl.sync.bfly.b32 %r7|%p1, %r4, 1, 31, -1;
    vote.sync.ballot.b32 %r8, %p1, -1;
    redux.sync.add.u32 %r9, %r7, -1;
    alloca.u64 %d7, 16, 16;
    stacksave.u64 %d8;
    stackrestore.u64 %d8;
    mul.wide.u32 %d5, %r1, 4;
    add.s64 %d6, %d1, %d5;
    ld.global.u32 %r10, [%d6];
    add.u32 %r10, %r10, %r9;
    add.s64 %d6, %d2, %d5;
    st.global.u32 [%d6], %r10;
    ret; })",
    // ldmatrix, mma.sync, cp.async, atomics of every width.
    R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    .reg .pred %p<5>; .reg .b32 %r<30>; .reg .b64 %d<20>; .reg .f32 %f<9>; .reg .b16 %h<4>; .shared .align 128 .b8 tile[4096];
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4;
    add.u32 %r4, %r2, %r3;
    cvt.u64.u32 %d3, %r3;
    add.s64 %d4, %d1, %d3;
    cp.async.cg.shared.global [%r4], [%d4], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    and.b32 %r5, %r3, 511;
    add.u32 %r5, %r5, %r2;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];
    mov.f32 %f0, 0f3f800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r6, %r7, %r8, %r9}, {%r6, %r8}, {%f0, %f1, %f2, %f3};
    cvt.rn.bf16x2.f32 %r10, %f0, %f1;
    prmt.b32 %r11, %r10, %r6, 0x5410;
    vadd4.u32.s32.u32.sat %r12, %r11, %r10, %r6;
    add.s64 %d5, %d2, %d3;
    atom.global.cas.b32 %r13, [%d5], %r11, %r12;
    atom.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%d5], {%f0, %f1, %f2, %f3};
    st.global.v2.u32 [%d5], {%r12, %r13};
    ret; })"};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  uint64_t number() {
    static constexpr uint64_t kOdd[] = {
        0,          1,          3,          7,     16,
        64,         255,        1024,       65535, 0x7fffffff,
        0x80000000, 0xffffffff, 1ull << 40, ~0ull, 0x7ffffffffffffff0,
        0x400,      0x1000400};
    return below(3) ? kOdd[below(std::size(kOdd))] : random_() >> below(64);
  }

  // Statements are lines; two of three mutations keep the text's form.
  std::string text(const std::string& seed) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < seed.size();) {
      const size_t end = std::min(seed.find('\n', at), seed.size());
      lines.push_back(seed.substr(at, end - at));
      at = end + 1;
    }
    for (uint64_t n = 1 + below(3); n > 0; --n) {
      const size_t i = below(lines.size()), j = below(lines.size());
      switch (below(9)) {
        case 0:
          lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
          break;
        case 1:
          lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), lines[j]);
          break;
        case 2:
          std::swap(lines[i], lines[j]);
          break;
        case 3:
          replace_word(lines[i], [&](const std::string&) { return foreign_word(); });
          break;
        case 4:
          if (!lines[i].empty())
            lines[i][below(lines[i].size())] = static_cast<char>(32 + below(95));
          break;
        default:
          replace_digits(lines[i]);
      }
      if (lines.empty()) lines.emplace_back();
    }
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
  }

 private:
  static bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
  }

  template <class F>
  void replace_word(std::string& line, F&& with) {
    std::vector<std::pair<size_t, size_t>> words;  // behind a dot
    for (size_t i = 0; i < line.size(); ++i)
      if (line[i] == '.') {
        size_t end = i + 1;
        while (end < line.size() && in_word(line[end])) ++end;
        words.emplace_back(i + 1, end - i - 1);
      }
    if (words.empty()) return;
    const auto [at, n] = words[below(words.size())];
    line.replace(at, n, with(line.substr(at, n)));
  }
  std::string foreign_word() {
    const std::string seed = kSeeds[below(std::size(kSeeds))];
    std::string line = seed.substr(below(seed.size()), 200), word = "u32";
    replace_word(line, [&](const std::string& w) { return word = w.empty() ? "b64" : w; });
    return word;
  }
  void replace_digits(std::string& line) {
    std::vector<std::pair<size_t, size_t>> runs;
    for (size_t i = 0; i < line.size();) {
      size_t end = i;
      while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end]))) ++end;
      if (end > i) runs.emplace_back(i, end - i);
      i = end + 1;
    }
    if (runs.empty()) return;
    const auto [at, n] = runs[below(runs.size())];
    line.replace(at, n, std::to_string(below(2) ? below(20) : number()));
  }

  std::mt19937_64 random_;
};

// Launches the text with given parameters; returns what became of it, in a word.
struct Shot {
  std::string ptx;
  plan::Dim3 grid{1}, block{64}, cluster{1};
  uint32_t dynamic_shared = 0;
  bool wild_pointers = false, garbage_maps = false, short_params = false;
};

std::string fire(const Shot& shot, Mutator& m, std::string* message) {
  Emulator emulator;
  auto module =
      emulator.load_module(".version 9.0\n.target sm_90a\n.address_size 64\n" + shot.ptx, "");
  if (!module.ok()) return *message = module.error().message, module.error().kind;
  LaunchRequest request;
  request.kernel = "k";
  request.grid = shot.grid, request.block = shot.block, request.cluster = shot.cluster;
  request.explicit_cluster = shot.cluster.x * shot.cluster.y * shot.cluster.z > 1;
  request.dynamic_shared = shot.dynamic_shared;
  std::vector<uint8_t> in(4096), out(4096);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 37);
  std::vector<uint64_t> words = {
      emulator.memory().allocate("in", in.size(), true, false, in.data()),
      emulator.memory().allocate("out", out.size(), true, false, out.data()), 5};
  plan::TensorMapArgs map{plan::MapType::u32, 2, words[0], {32, 16}, {128}, {16, 8}, {1, 1}};
  if (shot.wild_pointers) words[m.below(2)] = m.number() + m.below(2) * words[0];
  request.params.resize(24 + 40 + 256);
  std::memcpy(request.params.data(), words.data(), 24);
  for (size_t i = 0; i < 2; ++i) {
    map.global_address = words[i];
    auto bytes = plan::encode(map);
    if (shot.garbage_maps)
      for (uint64_t n = 1 + m.below(20); n > 0; --n)
        bytes[m.below(128)] = static_cast<uint8_t>(m.below(4) ? m.number() : 0);
    std::memcpy(request.params.data() + 64 + 128 * i, bytes.data(), 128);
  }
  if (shot.short_params) request.params.resize(m.below(request.params.size()));
  plan::RunOptions options;
  options.threads = 1;
  options.step_budget = 200000;
  options.schedule = m.below(2) ? "inorder" : "random:" + std::to_string(m.below(9));
  options.async = m.below(2) ? plan::AsyncMode::late : plan::AsyncMode::eager;
  plan::RunResult result;
  auto done = emulator.launch(*module, request, options, &result);
  if (!done.ok()) return *message = done.error().message, done.error().kind;
  *message = result.message;
  for (const plan::Finding& f : result.findings) *message += " " + f.kind + ": " + f.message;
  if (result.status == RunStatus::completed) return result.findings.empty() ? "clean" : "findings";
  return result.findings.empty() && result.message.empty() ? "silent failure" : "stopped";
}

// Named when the program dies, so that the mutant can be made again.
char current_case[64];
void say_case(int signal) {
  (void)!write(2, current_case, std::strlen(current_case));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

const std::vector<std::string> kKinds = {"ptx-syntax",  "ptx-operands",   "ptx-invalid",
                                         "unsupported", "unknown-kernel", "launch",
                                         "clean",       "findings",       "stopped"};

void expect_known(const std::string& outcome, const std::string& message, const Shot& shot) {
  EXPECT_NE(std::find(kKinds.begin(), kKinds.end(), outcome), kKinds.end())
      << outcome << ": " << message << "\n"
      << shot.ptx;
  EXPECT_TRUE(outcome == "clean" || outcome == "findings" || !message.empty())
      << outcome << shot.ptx;
}

TEST(Hostile, SeedsRun) {
  Mutator m(1);
  for (const char* seed : kSeeds) {
    Shot shot{seed};
    const std::string text = seed;
    if (text.find("cluster_ctarank") != std::string::npos) shot.grid = shot.cluster = {2};
    if (text.find("wgmma") != std::string::npos) shot.block = {128};
    if (text.find("ld.param.u32 %r9") == std::string::npos &&
        text.find("bulk.tensor") != std::string::npos)
      shot.block = {128};
    std::string message;
    const std::string outcome = fire(shot, m, &message);
    EXPECT_EQ(outcome, "clean") << message << seed;
  }
}

TEST(Hostile, Mutants) {
  const uint64_t count = from_environment("PTXBENCH_HOSTILE", 1500);
  const uint64_t seed = from_environment("PTXBENCH_HOSTILE_SEED", 1);
  for (int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(s, say_case);
  std::map<std::string, int> outcomes;
  for (uint64_t i = 0; i < count; ++i) {
    std::snprintf(current_case, sizeof current_case, "hostile mutant %llu of seed %llu\n",
                  static_cast<unsigned long long>(i), static_cast<unsigned long long>(seed));
    Mutator m(seed * 1000003 + i);
    const std::string text = kSeeds[m.below(std::size(kSeeds))];
    Shot shot{m.below(8) ? m.text(text) : text};
    shot.block = {m.below(4) ? 64u << m.below(2) : static_cast<uint32_t>(m.below(1100))};
    if (m.below(3) == 0) shot.grid = shot.cluster = {static_cast<uint32_t>(1 + m.below(4))};
    if (m.below(10) == 0)
      shot.grid = {static_cast<uint32_t>(m.number()), static_cast<uint32_t>(m.number()), 1};
    if (m.below(10) == 0) shot.dynamic_shared = static_cast<uint32_t>(m.number());
    shot.wild_pointers = m.below(3) == 0;
    shot.garbage_maps = m.below(3) == 0;
    shot.short_params = m.below(20) == 0;
    std::string message;
    const std::string outcome = fire(shot, m, &message);
    expect_known(outcome, message, shot);
    ++outcomes[outcome];
  }
  for (int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(s, SIG_DFL);
  std::string summary;
  for (const auto& [outcome, n] : outcomes) summary += fmt::format("{} {}; ", outcome, n);
  std::printf("%llu mutants: %s\n", static_cast<unsigned long long>(count), summary.c_str());
  // Mutants must reach every stage, or the test looks at nothing.
  if (count >= 1000) {
    for (const char* kind : {"ptx-syntax", "unsupported", "clean", "findings", "stopped"})
      EXPECT_GT(outcomes[kind], static_cast<int>(count / 200)) << kind;
  }
}

TEST(Hostile, EndlessRecursion) {
  Shot shot{R"(.visible .func down() { call.uni down, (); ret; }
  .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    call.uni down, (); ret; })"};
  Mutator m(1);
  std::string message;
  EXPECT_EQ(fire(shot, m, &message), "stopped");
  EXPECT_NE(message.find("stack"), std::string::npos) << message;
}

TEST(Hostile, AbsurdLaunches) {
  const char* const text =
      ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 "
      "map[128], "
      ".param .align 64 .b8 map2[128]) { ret; }";
  Mutator m(1);
  const uint32_t most = 0xffffffff;
  for (const Shot& shot :
       {Shot{text, {0}, {32}}, Shot{text, {1}, {0}}, Shot{text, {1}, {1025}},
        Shot{text, {1}, {most, most, most}}, Shot{text, {1}, {32}, {3}},
        Shot{text, {16}, {32}, {16, most, most}}, Shot{text, {1}, {32}, {1}, most},
        Shot{text, {1, 65536}, {32}}, Shot{text, {1u << 31}, {32}}, Shot{text, {1}, {32, 1, 65}}}) {
    std::string message;
    const std::string outcome = fire(shot, m, &message);
    EXPECT_TRUE(outcome != "clean" && outcome != "silent failure" && !message.empty())
        << shot.grid.x << " " << shot.grid.y << " " << shot.block.x << ": " << outcome << " "
        << message;
  }
}

}  // namespace
}  // namespace ptxbench::emu::test
