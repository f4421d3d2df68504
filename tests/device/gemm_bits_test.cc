// The expert GEMM on the emulator equals the GPU bit for bit: digests of C recorded on an H200
// (driver 580.159.04, 2026-11-30, bench/hardware/gemm_bits.cu; three tile shapes each gave the
// same).
#include <gtest/gtest.h>

#include "../../bench/hardware/gemm_bits.h"
#include "device/recorded.h"

namespace ptxbench::device {
namespace {

struct Recorded {
  bits::Shape shape;
  uint64_t digest;
};

class GemmBits : public ::testing::TestWithParam<Recorded> {};

TEST_P(GemmBits, EqualTheGpuOnAnyNumberOfThreads) {
  const bits::Shape& s = GetParam().shape;
  auto plan = record_gemm("kernels/sm_90a/gemm_bf16.cu", s.m, s.n, s.k);
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
