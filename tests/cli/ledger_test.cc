// The executed counts of the expert GEMM's target instructions equal the closed form for the shape.
#include <gtest/gtest.h>

#include "../../kernels/sm_90a/gemm_bf16_plan.h"
#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace ptxbench {
namespace {

struct Case {
  const char* task;
  const char* workload;
  int sm_count;  // the workload's device.sm_count
};

class Ledger : public ::testing::TestWithParam<Case> {};

TEST_P(Ledger, EqualsTheClosedForm) {
  TempDir folder = TempDir::create("ledger").take();
  const std::string json = (folder.path() / "verdict.json").string();
  ProcessSpec spec;
  spec.argv = {std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench",
               "eval",
               std::string(PTXBENCH_SOURCE_DIR) + "/kernels/sm_90a/gemm_bf16.cu",
               "--task",
               GetParam().task,
               "--workload",
               GetParam().workload,
               "--quiet",
               "--json",
               json};
  spec.wall_s = 120;
  auto result = run_process(spec);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->exit_code, 0) << result->out << result->err;
  auto text = read_file(json);
  ASSERT_TRUE(text.ok());
  const Json verdict = parse_json(*text).take();
  const Json axes = verdict["axes"];
  const sm90::GemmShape shape{axes["M"].get<int>(), axes["N"].get<int>(), axes["K"].get<int>()};
  const sm90::GemmCounts want =
      sm90::count_gemm(shape, sm90::choose_gemm(shape, GetParam().sm_count), GetParam().sm_count);
  const Json families = verdict["evidence"]["families"];
  EXPECT_EQ(families["wgmma.mma_async"]["warps"].get<int64_t>(), want.wgmma_warps);
  EXPECT_EQ(families["wgmma.mma_async"]["threads"].get<int64_t>(), want.wgmma_warps * 32);
  for (const char* count : {"warps", "threads"}) {
    EXPECT_EQ(families["cp.async.bulk.tensor.load"][count].get<int64_t>(), want.tma_loads);
    EXPECT_EQ(families["cp.async.bulk.tensor.store"][count].get<int64_t>(), want.tma_stores);
  }
  EXPECT_GT(want.wgmma_warps, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Ledger,
                         ::testing::Values(Case{"gemm_n7168_k5120", "smoke", 4},
                                           Case{"gemm_n7168_k5120", "smoke-m70", 2},
                                           Case{"gemm_n128_k2048", "smoke", 4},
                                           Case{"gemm_n256_k7168", "smoke-m70", 1}));

}  // namespace
}  // namespace ptxbench
