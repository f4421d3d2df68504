// The expert GEMM on the emulator equals the GPU bit for bit: digests of C recorded on an H200
// (driver 580.159.04, 2026-11-30, bench/hardware/gemm_bits.cu; three tile shapes each gave the
// same).
#include <gtest/gtest.h>

#include "../../bench/hardware/gemm_bits.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "device/device.h"

namespace ptxbench::device {
namespace {

struct Recorded {
  bits::Shape shape;
  uint64_t digest;
};

class GemmBits : public ::testing::TestWithParam<Recorded> {
 protected:
  Result<plan::LaunchPlan> record(const std::filesystem::path& file) {
    const bits::Shape& s = GetParam().shape;
    ProcessSpec spec;
    spec.argv = {std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench",
                 "record",
                 std::string(PTXBENCH_SOURCE_DIR) + "/kernels/sm_90a/gemm_bf16.cu",
                 "--task",
                 "gemm_n7168_k5120",
                 "--axes",
                 fmt::format("M={},N={},K={}", s.m, s.n, s.k),
                 "-o",
                 file.string()};
    spec.wall_s = 120;
    auto done = run_process(spec);
    if (!done.ok()) return done.error();
    if (done->exit_code != 0) return Error{"record", done->err};
    auto text = read_file(file);
    if (!text.ok()) return text.error();
    return plan::deserialize(std::vector<uint8_t>(text->begin(), text->end()));
  }
};

TEST_P(GemmBits, EqualTheGpuOnAnyNumberOfThreads) {
  const bits::Shape& s = GetParam().shape;
  TempDir folder = TempDir::create("gemm-bits").take();
  auto plan = record(folder.path() / "x.plan");
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  auto size = [](int x, int y) { return static_cast<size_t>(x) * static_cast<size_t>(y); };
  auto a = bits::matrix(size(s.m, s.k), 1), b = bits::matrix(size(s.n, s.k), 2);
  auto bind = [](std::vector<uint16_t>& v, bool input) {
    return Binding{{reinterpret_cast<uint8_t*>(v.data()), v.size() * 2}, input, input};
  };
  for (int threads : {1, 2})
    for (AsyncMode mode : {AsyncMode::late, AsyncMode::eager}) {
      std::vector<uint16_t> c(size(s.m, s.n), 0xffff);
      std::vector<Binding> arguments{bind(a, true), bind(b, true), bind(c, false)};
      RunOptions options;
      options.threads = threads;
      options.async = mode;
      auto result = make_emu_device("h200")->replay(*plan, arguments, options);
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result->status, RunStatus::completed) << result->message;
      EXPECT_TRUE(result->findings.empty()) << result->findings[0].message;
      EXPECT_EQ(bits::digest(c), GetParam().digest) << threads << " threads";
    }
}

INSTANTIATE_TEST_SUITE_P(H200, GemmBits,
                         ::testing::Values(Recorded{{200, 1024, 832}, 0xdcaf18ad66f517dd},
                                           Recorded{{70, 512, 2048}, 0xdd5fc6012a7c1074},
                                           Recorded{{93, 128, 2048}, 0x7be4faaeb7e27b0c}));

}  // namespace
}  // namespace ptxbench::device
