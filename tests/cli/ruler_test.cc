// `tasks admit` and `eval --tile-map` as a user runs them.
#include <gtest/gtest.h>

#include "evaluation.h"

namespace ptxbench {
namespace {

class Ruler : public ::testing::Test {
 protected:
  Ruler() : folder_(TempDir::create("ruler").take()) {}
  ProcessResult run(const std::vector<std::string>& arguments) {
    return run_ptxbench(arguments, 300);
  }
  void expect_refused(const std::vector<std::string>& arguments, const char* words) {
    const ProcessResult r = run(arguments);
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
  }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  TempDir folder_;
};

TEST_F(Ruler, AdmitRefusesBadUse) {
  expect_refused({"tasks", "admit"}, "names of tasks or --all");
  expect_refused({"tasks", "admit", "gemm_n128_k2048", "--all"}, "names of tasks or --all");
  expect_refused({"tasks", "admit", "--all", "--sample", "--write"}, "--sample");
  expect_refused({"tasks", "admit", "gemm_n128_k2049"}, "gemm_n128_k2048");
  expect_refused({"tasks", "admit", "--all", "--tasks", path("nowhere")}, "nowhere");
  expect_refused({"tasks", "admit", "gemm_n128_k2048", "--seed", "xyz"}, "seed");
}

// A user's task: not admitted, then admitted and stored, then with a ruler that accepts anything.
TEST_F(Ruler, AUsersTaskIsTriedAndStored) {
  const auto from = std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks/gemm_n128_k2048";
  const auto task = folder_.path() / "tasks/gemm_n128_k2048";
  std::filesystem::create_directories(task);
  for (const char* file : {"definition.json", "requirements.json", "calibration.json"})
    std::filesystem::copy(from / file, task / file);
  ASSERT_TRUE(write_file_atomically(
                  task / "workloads.jsonl",
                  std::string_view(R"({"uuid": "tiny", "axes": {"M": 40, "N": 48, "K": 512},)"
                                   R"( "published": false})"))
                  .ok());
  const std::string tasks = path("tasks");
  EXPECT_NE(run({"tasks", "list", "--tasks", tasks}).out.find("NOT ADMITTED"), std::string::npos);
  ProcessResult r = run({"tasks", "admit", "--all", "--tasks", tasks, "--write", "--quiet",
                         "--seed", test_seed(), "--json", path("report.json")});
  EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
  const Json report = parse_json(read_file(path("report.json")).take()).take();
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0], parse_json(read_file(task / "admission.json").take()).take());
  EXPECT_EQ(run({"tasks", "list", "--tasks", tasks}).out.find("NOT ADMITTED"), std::string::npos);

  std::string calibration = read_file(task / "calibration.json").take();
  const std::string bound = "\"rel_frobenius_factor\": 2.0";
  ASSERT_NE(calibration.find(bound), std::string::npos);
  calibration.replace(calibration.find(bound), bound.size(), "\"rel_frobenius_factor\": 0.25");
  ASSERT_TRUE(write_file_atomically(task / "calibration.json", std::string_view(calibration)).ok());
  r = run(
      {"tasks", "admit", "gemm_n128_k2048", "--tasks", tasks, "--quiet", "--seed", test_seed()});
  EXPECT_EQ(r.exit_code, 1) << r.out << r.err;
  EXPECT_NE(r.out.find("is rejected at tiny"), std::string::npos) << r.out;
}

TEST_F(Ruler, TileMapIsWrittenWhateverTheVerdict) {
  const std::string source = "__global__ void k() {}\n#error nothing\n";
  ASSERT_TRUE(write_file_atomically(path("bad.cu"), std::string_view(source)).ok());
  const std::string candidate = PTXBENCH_SOURCE_DIR "/examples/candidates/naive_simt.cu";
  for (const std::string& file : {path("bad.cu"), candidate}) {
    const ProcessResult r =
        run({"eval", file, "--task", "gemm_n7168_k5120", "--axes", "M=40,N=64,K=64", "--quiet",
             "--seed", test_seed(), "--tile-map", path("map.svg")});
    EXPECT_EQ(r.exit_code, 1) << r.out << r.err;
    const std::string svg = read_file(path("map.svg")).take();
    EXPECT_EQ(svg.substr(0, 5), "<svg ");
    EXPECT_EQ(svg.find("nothing was compared") == std::string::npos, file == candidate);
    EXPECT_EQ(svg.find("0 of 12 tiles wrong") != std::string::npos, file == candidate) << svg;
  }
  // Known before any work is done.
  const ProcessResult r = run({"eval", candidate, "--task", "gemm_n7168_k5120", "--axes",
                               "M=40,N=64,K=64", "--quiet", "--tile-map", path("nowhere/map.svg")});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("nowhere"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace ptxbench
