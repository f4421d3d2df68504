#pragma once
// A limit on the number of processes that also holds for root, where RLIMIT_NPROC does not count:
// a control group of its own, if this process may create one (v1 or v2 hierarchy).

#include <cstdint>
#include <string>

namespace ptxbench::sandbox {

class PidsCgroup {
 public:
  explicit PidsCgroup(uint32_t max_processes);
  ~PidsCgroup();  // removes the group; its processes must be gone
  PidsCgroup(const PidsCgroup&) = delete;
  PidsCgroup& operator=(const PidsCgroup&) = delete;

  // Open for writing, close-on-exec: a process that writes "0" to it joins. -1 if there is no
  // group.
  int join_fd() const { return join_fd_; }

 private:
  std::string directory_;
  int join_fd_ = -1;
};

}  // namespace ptxbench::sandbox
