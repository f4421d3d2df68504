// The live runtime call by call: programs/live_api.cu checks each case itself; findings, texts and
// exit codes of `ptxbench emulate` are checked here.
#include <gmock/gmock.h>

#include "cudart/live_programs.h"

namespace ptxbench::cudart {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kApi = "tests/cudart/programs/live_api.cu";

TEST_F(LivePrograms, CallsDoWhatCudaDoes) {
  for (const char* name : {"graphs", "capture", "memory", "symbols", "heap", "launches",
                           "callbacks", "modules", "indirect"}) {
    const Emulated run = emulate(build(kApi), {name});
    EXPECT_EQ(run.exit_code, 0) << name << ": " << run.err;
    EXPECT_THAT(run.out, HasSubstr("ok\n")) << name;
    EXPECT_THAT(run.kinds(), IsEmpty()) << name;
  }
  EXPECT_EQ(emulate(build(kApi), {"no such case"}).exit_code, 2);
}

TEST_F(LivePrograms, DevicePrintfEqualsTheHosts) {
  const Emulated run = emulate(build(kApi), {"print"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  ASSERT_THAT(run.out, ::testing::EndsWith("ok\n"));
  const std::string text = run.out.substr(0, run.out.size() - 3);
  ASSERT_GT(text.size(), 200u);
  EXPECT_EQ(text.substr(0, text.size() / 2), text.substr(text.size() / 2));
}

TEST_F(LivePrograms, FaultsStopTheDeviceAndSayWhy) {
  struct Case {
    const char *name, *kind, *text;
    int status;
  };
  for (const Case& c :
       {Case{"bounds", "out-of-bounds", "past the end of allocation 1 (64 bytes)", 700},
        Case{"null", "out-of-bounds", "0x0", 700}, Case{"freed", "out-of-bounds", "freed", 700},
        Case{"misaligned", "misaligned", "not aligned", 716},
        Case{"assert", "device-assert", "block: [0,0,0], thread: [33,0,0]", 710},
        Case{"trap", "trap", "trap", 719}, Case{"free", "bad-free", "device heap", 719}}) {
    const Emulated run = emulate(build(kApi), {"fault", c.name}, {"--check"});
    EXPECT_EQ(run.exit_code, 1) << c.name << run.err;  // by --check: the program expected the fault
    EXPECT_EQ(run.out, "ok\n") << c.name << run.err;
    EXPECT_THAT(run.err, HasSubstr(c.text)) << c.name;
    EXPECT_THAT(run.kinds(), ElementsAre(c.kind)) << c.name;
    EXPECT_EQ(run.process()["error"]["status"], c.status) << c.name;
  }
}

TEST_F(LivePrograms, MissingEntriesNameThemselvesOnce) {
  const Emulated run = emulate(build(kApi), {"unsupported"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "ptxbench: not emulated: cudaCreateTextureObject\n");
  EXPECT_THAT(run.process()["unsupported"], ElementsAre("cudaCreateTextureObject"));
}

TEST_F(LivePrograms, ProgramsThatCannotWorkAreToldWhatToDo) {
  const char* const source = "tests/cudart/programs/empty_kernel.cu";
  const auto refused = [](const Emulated& run, const char* advice) {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(advice));
  };
  refused(emulate(build(source, {"-arch=sm_90a"})), "nvcc -cudart shared");
  const std::string machine_code =
      build(source, {"-gencode", "arch=compute_90a,code=sm_90a", "-cudart", "shared"});
  refused(emulate(machine_code), "nvcc -arch=sm_90a");
  const std::string shared = build(source);
  EXPECT_EQ(emulate(shared).exit_code, 0);
  // nvcc -arch=sm_90a adds PTX for plain sm_90, which a B200 runs; this has none.
  const std::string hopper_only =
      build(source, {"-gencode", "arch=compute_90a,code=compute_90a", "-cudart", "shared"});
  refused(emulate(hopper_only, {}, {"--device-profile=b200"}), "nvcc -arch=sm_100a");
  refused(emulate(shared, {}, {"--device-profile=h900"}), "h100, h200 or b200");
  refused(emulate(shared, {}, {"--tensor=best"}), "hw, f32 or fast");
  refused(emulate("/no/such/program"), "/no/such/program");
  // Not a CUDA program: it runs, and its silence is not taken for success.
  const Emulated other = emulate("/bin/true", {}, {"--check"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("did not use the emulated CUDA runtime"));
  EXPECT_EQ(emulate("/bin/sh", {"-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(emulate("/bin/sh", {"-c", "kill -9 $$"}).exit_code, 137);
}

}  // namespace
}  // namespace ptxbench::cudart
