// Which launches the outputs depend on.
#include "device/dataflow.h"

#include <gtest/gtest.h>

namespace ptxbench::device {
namespace {

constexpr uint64_t kA = 1, kC = 2, kScratch = 3;

StepEffect step(const char* kernel, std::vector<BufferTouch> touched) {
  StepEffect e;
  e.kernel = kernel;
  e.touched = std::move(touched);
  return e;
}
BufferTouch reads(uint64_t base) { return {base, 100, 100, 0}; }
BufferTouch writes(uint64_t base, uint64_t bytes = 100) { return {base, 100, 0, bytes}; }

using Flags = std::vector<bool>;

TEST(Dataflow, ChainThroughScratchCounts) {
  EXPECT_EQ(contributes({step("gemm", {reads(kA), writes(kScratch)}),
                         step("convert", {reads(kScratch), writes(kC)})},
                        {kC}),
            (Flags{true, true}));
}

TEST(Dataflow, JunkNobodyReadsDoesNot) {
  EXPECT_EQ(contributes({step("decoy", {reads(kA), writes(kScratch)}),
                         step("simt", {reads(kA), writes(kC)})},
                        {kC}),
            (Flags{false, true}));
}

TEST(Dataflow, OverwrittenResultDoesNot) {
  EXPECT_EQ(
      contributes({step("decoy", {reads(kA), writes(kC)}), step("simt", {reads(kA), writes(kC)})},
                  {kC}),
      (Flags{false, true}));
}

TEST(Dataflow, PartsAndUpdatesOfAnOutputAllCount) {
  EXPECT_EQ(contributes({step("body", {reads(kA), writes(kC, 90)}),
                         step("edge", {reads(kA), writes(kC, 10)})},
                        {kC}),
            (Flags{true, true}));
  EXPECT_EQ(
      contributes({step("gemm", {reads(kA), writes(kC)}), step("epilogue", {{kC, 100, 100, 100}})},
                  {kC}),
      (Flags{true, true}));
  // A memset, then accumulation into it.
  EXPECT_EQ(
      contributes({step("", {writes(kC)}), step("add", {reads(kA), {kC, 100, 100, 100}})}, {kC}),
      (Flags{true, true}));
}

TEST(Dataflow, MergedCountsKeepStaticSitesOnce) {
  StepEffect e = step("gemm", {});
  e.families = {{"fma", 4, 10, 320}};
  e.kernels = {
      {.kernel = "gemm", .launches = 1, .tensor_flop = 8, .tensor_flop_by_type = {{"f32", 8}}}};
  plan::RunResult r;
  merge_counts(e, &r);
  merge_counts(e, &r);
  ASSERT_EQ(r.families.size(), 1u);
  EXPECT_EQ(r.families[0].static_count, 4u);
  EXPECT_EQ(r.families[0].warps, 20u);
  ASSERT_EQ(r.kernels.size(), 1u);
  EXPECT_EQ(r.kernels[0].launches, 2u);
  EXPECT_EQ(r.kernels[0].tensor_flop, 16);
}

}  // namespace
}  // namespace ptxbench::device
