// One evaluation by the real binary, for tests of verdicts.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace ptxbench {

// A user's evaluation draws its inputs' seed; a test that did would fail once in a few hundred
// runs. scripts/try_seeds.sh tries others and so shows how near the bounds the verdicts lie.
inline std::string test_seed() {
  const char* seed = std::getenv("PTXBENCH_TEST_SEED");
  return seed ? seed : "20261201";
}

inline ProcessResult run_ptxbench(const std::vector<std::string>& arguments, double wall_s) {
  ProcessSpec spec;
  spec.argv = {std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.wall_s = wall_s;
  const auto result = run_process(spec);
  EXPECT_TRUE(result.ok());
  if (!result.ok()) return {};
  EXPECT_EQ(result->signal, 0) << result->err;
  EXPECT_FALSE(result->timed_out);
  return *result;
}

struct Evaluation {
  int exit_code = -1;
  std::string out, err;
  Json verdict = Json::object();  // with exit code 2 an error, or nothing
};

// ptxbench eval FILE --task TASK MORE..., within wall_s seconds.
inline Evaluation evaluate(const std::filesystem::path& file, const std::string& task,
                           const std::vector<std::string>& more, double wall_s = 300) {
  TempDir folder = TempDir::create("evaluation").take();
  const std::string json = (folder.path() / "verdict.json").string();
  std::vector<std::string> arguments = {"eval",      file.string(), "--task", task, "--seed",
                                        test_seed(), "--quiet",     "--json", json};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProcessResult result = run_ptxbench(arguments, wall_s);
  Evaluation evaluation{result.exit_code, result.out, result.err, Json::object()};
  const auto text = read_file(json);
  EXPECT_TRUE(text.ok() || result.exit_code == 2) << result.err;
  if (text.ok()) evaluation.verdict = parse_json(*text).take();
  return evaluation;
}

}  // namespace ptxbench
