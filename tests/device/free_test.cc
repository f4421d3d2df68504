// Scratch memory ends where the plan frees it.
#include <gtest/gtest.h>

#include "device/device.h"

namespace ptxbench::device {
namespace {

// Copies one word from scratch memory to the output; scratch is set before and, on request, freed.
Result<RunResult> run(bool freed, std::vector<uint8_t>* out) {
  plan::LaunchPlan p;
  p.arch = "sm_90a";
  p.device_profile = "h200";
  p.buffers = {{"C", plan::BufferRole::argument, 0, 0, 4},
               {"scratch0", plan::BufferRole::scratch, 0, 0, 64}};
  p.modules = {{"free-test",
                ".version 9.0\n.target sm_90a\n.address_size 64\n"
                ".visible .entry k(.param .u64 s, .param .u64 c) {\n"
                " .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
                " ld.param.u64 %rd1, [s]; ld.param.u64 %rd2, [c];\n"
                " ld.global.u32 %r1, [%rd1+8]; st.global.u32 [%rd2], %r1; ret; }\n",
                {}}};
  plan::Launch launch;
  launch.kernel = "k";
  launch.params.bytes.resize(16);
  launch.params.pointers = {{0, {1, 0}}, {8, {0, 0}}};
  p.steps.emplace_back(plan::Memset{{1, 0}, 7, 1, 64});
  if (freed) p.steps.emplace_back(plan::Free{1});
  p.steps.emplace_back(launch);
  out->assign(4, 0xff);
  std::vector<Binding> arguments{{*out, false, false}};
  return make_emu_device("h200")->replay(p, arguments, {});
}

TEST(Free, ScratchIsUsableBeforeAndAFaultAfter) {
  std::vector<uint8_t> out;
  auto good = run(false, &out);
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_EQ(good->status, RunStatus::completed) << good->message;
  EXPECT_EQ(out, (std::vector<uint8_t>{7, 7, 7, 7}));
  auto bad = run(true, &out);
  ASSERT_TRUE(bad.ok());
  EXPECT_EQ(bad->status, RunStatus::fault);
  ASSERT_EQ(bad->findings.size(), 1u);
  EXPECT_NE(bad->findings[0].message.find("scratch0 + 8, which has been freed"), std::string::npos)
      << bad->findings[0].message;
}

}  // namespace
}  // namespace ptxbench::device
