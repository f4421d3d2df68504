// Speed of the emulated wgmma beside OpenBLAS's sgemm on one core, in the same run: rounds
// alternate, the table shows the median of seven and the spread. Time is CPU time of this thread,
// so that neighbours on a shared machine count less.
//
//   build/bin/tensor_bench [PART-OF-A-NAME]

#include <cblas.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emu/tensor_core_levels.h"

extern "C" void openblas_set_num_threads(int);
extern "C" char* openblas_get_corename();

namespace {

using namespace ptxbench;
using namespace ptxbench::emu;

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// One warpgroup working through a ring of four stages of a 64 x 256 tile, K = 64 a stage, as a GEMM
// does.
struct Warpgroup {
  static constexpr int kStages = 4, kSteps = 4;
  std::vector<uint8_t> shared = std::vector<uint8_t>(kStages * 40960 + 1024);
  std::unique_ptr<uint32_t[][128][32]> d{new (std::align_val_t(64)) uint32_t[4][128][32]()};
  WgmmaForm form{256, 16, ptx::Type::bf16, ptx::Type::bf16, ptx::Type::f32};
  WgmmaOperands operands;

  explicit Warpgroup(ptx::Type type) {
    form.a = form.b = type;
    uint32_t state = 1;
    for (size_t i = 0; i < shared.size(); i += 2) {  // about normal(0, 1) in size, either sign
      state = state * 1664525 + 1013904223;
      const uint32_t exponent =
          type == ptx::Type::bf16 ? (124 + (state >> 28) % 4) << 7 : (12 + (state >> 28) % 4) << 10;
      const uint16_t h =
          static_cast<uint16_t>((state >> 31) << 15 | exponent | (state >> 8 & 0x7f));
      std::memcpy(&shared[i], &h, 2);
    }
    operands.shared = shared.data();
    operands.shared_bytes = static_cast<uint32_t>(shared.size());
    for (int w = 0; w < 4; ++w)
      for (int r = 0; r < 128; ++r) operands.d[w][r] = d[w][r];
  }

  double flop() const { return 2.0 * 64 * form.n * form.k * kStages * kSteps; }
  void run(plan::TensorMode mode, const tensor::Kernels& level) {
    for (int stage = 0; stage < kStages; ++stage)
      for (int step = 0; step < kSteps; ++step) {
        const uint64_t start = static_cast<uint64_t>(stage * 40960 + step * 32) >> 4;
        constexpr uint64_t kSwizzle128 =
            1ull << 62 | 64ull << 32;  // 1024 bytes between groups of rows
        operands.a_descriptor = kSwizzle128 | start;
        operands.b_descriptor = kSwizzle128 | (start + (8192 >> 4));
        operands.scale_d = stage + step != 0;
        tensor::wgmma_at(form, operands, mode, level);
      }
  }
};

// One warp on a 64 x 32 tile of C, K = 16 at a time, as an mma.sync GEMM does: 16 accumulators.
struct WarpTiles {
  static constexpr double kFlop = 2.0 * 16 * 16 * 8 * 16;
  alignas(64) uint32_t a[4][4][32], b[4][2][32], d[16][4][32] = {};

  WarpTiles() {
    uint32_t state = 1;
    auto fill = [&](uint32_t* p, size_t n) {
      for (size_t i = 0; i < n; ++i) {
        state = state * 1664525 + 1013904223;
        p[i] = (state & 0x807f807f) | 0x3f003f00;  // 0.5 to 1, either sign
      }
    };
    fill(&a[0][0][0], sizeof a / 4), fill(&b[0][0][0], sizeof b / 4);
  }
  void run(plan::TensorMode mode, const tensor::Kernels& level) {
    const MmaForm form{16, 8, 16, ptx::Type::f32, ptx::Type::bf16, ptx::Type::bf16, ptx::Type::f32};
    for (int i = 0; i < 16; ++i) {
      MmaOperands o;
      for (int r = 0; r < 4; ++r) o.a[r] = a[i / 4][r], o.c[r] = o.d[r] = d[i][r];
      for (int r = 0; r < 2; ++r) o.b[r] = b[i % 4][r];
      tensor::mma_at(form, o, mode, level);
    }
  }
};

struct Contest {
  std::string name;
  double flop;
  std::function<void()> run;
  std::vector<double> gflops = {};
};

void measure(Contest& c) {
  int repeats = 0;
  const double start = cpu_seconds();
  double spent = 0;
  while (spent < 0.03) {
    c.run();
    ++repeats;
    spent = cpu_seconds() - start;
  }
  c.gflops.push_back(c.flop * repeats / spent * 1e-9);
}

// OpenBLAS does not know every CPU and then falls back to its oldest kernels: ask for its AVX-512
// ones, which it reads from the environment when it is loaded.
void choose_core(char** argv) {
  if (!__builtin_cpu_supports("avx512bw") || getenv("OPENBLAS_CORETYPE")) return;
  setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  choose_core(argv);
  openblas_set_num_threads(1);
  constexpr int kSize = 768;
  std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f), c(kSize * kSize);
  std::vector<Contest> contests;
  contests.push_back({fmt::format("OpenBLAS sgemm 768 ({})", openblas_get_corename()),
                      2.0 * kSize * kSize * kSize, [&] {
                        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kSize, kSize, kSize, 1,
                                    a.data(), kSize, b.data(), kSize, 0, c.data(), kSize);
                      }});
  Warpgroup bf16(ptx::Type::bf16), f16(ptx::Type::f16);
  WarpTiles warp;
  const tensor::Levels& levels = tensor::levels();
  for (int i = 0; i < levels.count; ++i) {
    const tensor::Kernels& level = *levels.level[i];
    auto add = [&](const char* what, Warpgroup& w, plan::TensorMode mode) {
      contests.push_back({fmt::format("wgmma m64n256k16 {:<9} {}", what, level.level), w.flop(),
                          [&w, mode, &level] { w.run(mode, level); }});
    };
    add("bf16 f32", bf16, plan::TensorMode::f32);
    add("f16 f32", f16, plan::TensorMode::f32);
    add("bf16 hw", bf16, plan::TensorMode::hw);
    add("f16 hw", f16, plan::TensorMode::hw);
    for (auto [what, mode] :
         {std::pair{"bf16 f32", plan::TensorMode::f32}, {"bf16 hw", plan::TensorMode::hw}})
      contests.push_back({fmt::format("mma m16n8k16     {:<9} {}", what, level.level),
                          WarpTiles::kFlop, [&warp, mode, &level] { warp.run(mode, level); }});
    if (level.dot) add("bf16 fast", bf16, plan::TensorMode::fast);
  }
  if (argc > 1)  // keep the reference and what the argument names
    std::erase_if(contests, [&](const Contest& x) {
      return x.name[0] != 'O' && x.name.find(argv[1]) == std::string::npos;
    });
  for (int round = 0; round < 7; ++round)
    for (Contest& contest : contests) measure(contest);
  fmt::print("{:<52} {:>8}  {:>15}  {}\n", "one core, CPU time, median of 7", "GFLOP/s",
             "lowest-highest", "of sgemm");
  double reference = 0;
  for (Contest& contest : contests) {
    std::sort(contest.gflops.begin(), contest.gflops.end());
    const double median = contest.gflops[3];
    if (reference == 0) reference = median;
    fmt::print("{:<52} {:>8.1f}  {:>7.1f}-{:<7.1f}  {:.2f}\n", contest.name, median,
               contest.gflops.front(), contest.gflops.back(), median / reference);
  }
  return 0;
}
