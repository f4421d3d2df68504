#pragma once
// Runs one command and waits for it. The child leads its own process group, and the whole group is
// killed when the time is up and once the command has ended, so nothing it started in the
// background stays. Isolation is the sandbox's affair (src/sandbox), not this file's.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptxbench {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] with a slash: that path; without: looked up on PATH
  // The whole environment if set; the caller's environment if not.
  std::optional<std::vector<std::pair<std::string, std::string>>> environment;
  std::filesystem::path working_directory;     // empty: the caller's
  std::string stdin_text;                      // empty: /dev/null
  double wall_s = 0;                           // 0: no limit
  uint64_t output_bytes = uint64_t{16} << 20;  // of stdout and of stderr kept; the rest is dropped
  // Also kill the command when this process dies (PR_SET_PDEATHSIG of the calling thread).
  bool die_with_parent = true;
  // Further descriptors that the child inherits, under the same numbers; all others are closed.
  std::vector<int> inherit_fds;
};

struct ProcessResult {
  int exit_code = 0;       // valid if signal == 0
  int signal = 0;          // the terminating signal, 0 if it exited
  bool timed_out = false;  // killed because wall_s was over (signal is then SIGKILL)
  bool output_truncated = false;
  std::string out, err;
  double wall_ms = 0;

  bool succeeded() const { return signal == 0 && exit_code == 0 && !timed_out; }
};

// Kinds: "not-found" (no such program), "usage" (empty argv), "io" (anything else that kept the
// command from being started).
Result<ProcessResult> run_process(const ProcessSpec& spec);

// The full path of a program as a shell would find it, or an Error "not-found".
Result<std::filesystem::path> find_program(const std::string& name);

}  // namespace ptxbench
