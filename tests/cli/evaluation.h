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

struct Evaluation {
  int exit_code = -1;
  std::string out, err;
  Json verdict = Json::object();  // empty if none was written
};

// ptxbench eval FILE --task TASK MORE..., within wall_s seconds.
inline Evaluation evaluate(const std::filesystem::path& file, const std::string& task,
                           const std::vector<std::string>& more, double wall_s = 300) {
  TempDir folder = TempDir::create("evaluation").take();
  const std::string json = (folder.path() / "verdict.json").string();
  ProcessSpec spec;
  spec.argv = {std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench",
               "eval",
               file.string(),
               "--task",
               task,
               "--seed",
               test_seed(),
               "--quiet",
               "--json",
               json};
  spec.argv.insert(spec.argv.end(), more.begin(), more.end());
  spec.wall_s = wall_s;
  const auto result = run_process(spec);
  EXPECT_TRUE(result.ok());
  if (!result.ok()) return {};
  EXPECT_EQ(result->signal, 0) << result->err;
  EXPECT_FALSE(result->timed_out);
  Evaluation evaluation{result->exit_code, result->out, result->err, Json::object()};
  const auto text = read_file(json);
  EXPECT_TRUE(text.ok()) << result->err;
  if (text.ok()) evaluation.verdict = parse_json(*text).take();
  return evaluation;
}

}  // namespace ptxbench
