#pragma once
// Starts one child with its own pipes and rlimits, feeds and drains it, and ends it at the
// deadline.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptxbench::sandbox {

struct ChildSpec {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value
  std::string working_directory;         // "" keeps the current one
  std::string stdin_text;
  double wall_s = 60;
  uint64_t output_bytes = 0;
  std::vector<std::pair<int, uint64_t>> limits;  // RLIMIT_* and value
  std::vector<std::pair<int, int>> inherit;  // {fd here, number in the child}; numbers from 3 on
  std::vector<int> cgroup_fds;               // the child writes "0" to each to join
  bool first_to_go = false;                  // the kernel's first choice when memory runs out
  bool status_pipe = false;                  // child's fd kStatusFd is collected into `status`
  // What to kill at the deadline, given the status text so far; default: the child's process group.
  std::function<void(pid_t child, const std::string& status)> kill_all;
};

constexpr int kStatusFd = 9;

struct ChildResult {
  int wait_status = 0;
  bool timed_out = false;
  bool output_truncated = false;
  bool started = false;  // false: exec failed with exec_errno
  int exec_errno = 0;
  std::string out, err, status;
  double wall_ms = 0;
};

// Error kinds: "io".
Result<ChildResult> run_child(const ChildSpec& spec);

}  // namespace ptxbench::sandbox
