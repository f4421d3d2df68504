// The missing instruction put in and reassembled, with the real assembler.
#include "bench/repair.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/temp_dir.h"

namespace ptxbench::bench {
namespace {

const std::string kFence = "wgmma.fence.sync.aligned;\n",
                  kCommit = "wgmma.commit_group.sync.aligned;\n",
                  kWait = "wgmma.wait_group.sync.aligned 0;\n";

// One wgmma between its synchronising instructions; its accumulators are stored.
std::string kernel(const std::string& fence, const std::string& commit, const std::string& wait) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .u64 p0, .param .u64 p1) {\n"
         ".reg .f32 %f<5>; .reg .b64 %rd<4>;\n"
         "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];\n"
         "mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000;\n"
         "mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f00000000;\n" +
         fence +
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 1, "
         "1, 1, 0, 0;\n" +
         commit + wait +
         "st.global.f32 [%rd1], %f1;\nst.global.f32 [%rd1+4], %f2;\n"
         "st.global.f32 [%rd1+8], %f3;\nst.global.f32 [%rd1+12], %f4;\nret;\n}\n";
}

plan::Finding finding_at(const std::string& ptx, const char* kind, const std::string& instruction) {
  plan::Finding f;
  f.kind = kind;
  f.kernel = "k";
  const auto at = ptx.begin() + static_cast<ptrdiff_t>(ptx.find(instruction));
  f.ptx_line = 1 + static_cast<int>(std::count(ptx.begin(), at, '\n'));
  return f;
}

Repair tried(const std::string& ptx, const plan::Finding& finding) {
  static const TempDir cache = TempDir::create("repair").take();
  const Result<Repair> done =
      reassemble(ptx, finding, "sm_90a", [](toolchain::CompileRequest request) {
        request.cache_dir = cache.path();
        return toolchain::compile(request);
      });
  EXPECT_TRUE(done.ok()) << done.error().to_string();
  return done.ok() ? *done : Repair::not_tried;
}

TEST(Repair, TheInstructionStandsBeforeTheCitedOne) {
  const std::string ptx = kernel("", kCommit, kWait);
  EXPECT_EQ(with_missing_instruction(ptx, finding_at(ptx, "wgmma-fence-missing", "wgmma.mma")),
            kernel(kFence, kCommit, kWait));
  const std::string open = kernel(kFence, "", kWait);
  EXPECT_EQ(with_missing_instruction(open, finding_at(open, "wgmma-commit-missing", "wgmma.wait")),
            kernel(kFence, kCommit, kWait));
  EXPECT_EQ(with_missing_instruction(ptx, finding_at(ptx, "data-race", "wgmma.mma")), "");
}

TEST(Repair, MissingFenceAndCommitAreMendedToTheSameCode) {
  const std::string fence = kernel("", kCommit, kWait), commit = kernel(kFence, "", kWait);
  EXPECT_EQ(tried(fence, finding_at(fence, "wgmma-fence-missing", "wgmma.mma")), Repair::same);
  EXPECT_EQ(tried(commit, finding_at(commit, "wgmma-commit-missing", "wgmma.wait")), Repair::same);
}

// A place that the finding does not name: a wait in front of the wgmma is another program.
TEST(Repair, AnotherProgramIsToldApart) {
  const std::string moved = kernel(kFence, kCommit, "");
  EXPECT_EQ(tried(moved, finding_at(moved, "wgmma-register-access", "ret;")), Repair::other);
}

TEST(Repair, WhatDoesNotAssembleIsNotTried) {
  const std::string ptx = kernel("", "nonsense;\n", kWait);
  EXPECT_EQ(tried(ptx, finding_at(ptx, "wgmma-fence-missing", "wgmma.mma")), Repair::not_tried);
}

}  // namespace
}  // namespace ptxbench::bench
