#pragma once
// Limits that hold for all processes of a command together, where this process may create control
// groups (v1 or v2 hierarchy): how many there are (RLIMIT_NPROC does not count for root) and how
// much memory they use (RLIMIT_AS counts for each alone).

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::sandbox {

class ControlGroups {
 public:
  // A limit that cannot be set here is left out.
  ControlGroups(uint32_t max_processes, uint64_t max_memory_bytes);
  ~ControlGroups();  // removes the groups; their processes must be gone
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  // Open for writing, close-on-exec: a process that writes "0" to each joins.
  const std::vector<int>& join_fds() const { return join_fds_; }

 private:
  bool add(const std::string& root, const std::vector<std::pair<std::string, uint64_t>>& limits);

  std::string name_;
  std::vector<std::string> directories_;
  std::vector<int> join_fds_;
};

}  // namespace ptxbench::sandbox
