#pragma once
// Plans recorded from the project's kernels and examples as a user would, for tests that replay
// them.

#include <fmt/format.h>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "device/device.h"

namespace ptxbench::device {

// `source` is relative to the repository; a GEMM task with axes M, N, K.
inline Result<plan::LaunchPlan> record_gemm(const std::string& source, int m, int n, int k) {
  TempDir folder = TempDir::create("recorded").take();
  const std::string file = (folder.path() / "x.plan").string();
  ProcessSpec spec;
  spec.argv = {std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench",
               "record",
               std::string(PTXBENCH_SOURCE_DIR) + "/" + source,
               "--task",
               "gemm_n7168_k5120",
               "--axes",
               fmt::format("M={},N={},K={}", m, n, k),
               "-o",
               file};
  spec.wall_s = 120;
  auto done = run_process(spec);
  if (!done.ok()) return done.error();
  if (done->exit_code != 0) return Error{"record", done->err};
  auto text = read_file(file);
  if (!text.ok()) return text.error();
  return plan::deserialize(std::vector<uint8_t>(text->begin(), text->end()));
}

}  // namespace ptxbench::device
