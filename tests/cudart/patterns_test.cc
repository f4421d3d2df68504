// Kernels in the way that libraries write them (programs/patterns.cu) on the emulator: right, the
// same on every schedule and number of threads, and without a finding while races are looked for.
// With one synchronisation left out, the race is found.
#include "cudart/live_programs.h"

namespace ptxbench::cudart {
namespace {

class Patterns : public LivePrograms {
 protected:
  static std::string program() { return build("tests/cudart/programs/patterns.cu"); }
};

TEST_F(Patterns, HonestKernelsAreSilentOnEverySchedule) {
  const auto results = result_of<float>(program(), {"--races=on"});
  ASSERT_GT(results.size(), 10000u);
  EXPECT_EQ(result_of<float>(program(), {"--races=on", "--schedule=random:3", "--async=eager"}),
            results);
  EXPECT_EQ(result_of<float>(program(), {"--races=on", "--schedule=random:11", "--threads=1"}),
            results);
  EXPECT_EQ(result_of<float>(program(), {"--threads=4"}), results);
}

TEST_F(Patterns, WhatIsLeftOutIsFound) {
  for (const char* fault : {"reduce-sync", "reduce-fence", "scan-fence", "histogram-sync",
                            "stencil-sync", "gemm-reuse"})
    for (const char* schedule : {"inorder", "random:3"}) {
      SCOPED_TRACE(std::string(fault) + " " + schedule);
      const std::string result = (folder_->path() / "faulty").string();
      const Emulated run = emulate(program(), {result, fault},
                                   {"--races=on", std::string("--schedule=") + schedule});
      const std::string kernel = std::string(fault).substr(0, std::string(fault).find('-'));
      bool found = false;
      for (const Json& f : run.process()["findings"])
        if (f["kind"] == "data-race") {
          found = true;
          EXPECT_NE(f["kernel"].get<std::string>().find(kernel), std::string::npos) << f.dump(1);
          EXPECT_GT(f["other_ptx_line"], 0);
        }
      EXPECT_TRUE(found) << run.err;
    }
}

TEST_F(Patterns, NothingIsLookedForUnlessAsked) {
  const std::string result = (folder_->path() / "faulty").string();
  for (const std::string& kind : emulate(program(), {result, "reduce-fence"}).kinds())
    EXPECT_NE(kind, "data-race");
}

}  // namespace
}  // namespace ptxbench::cudart
