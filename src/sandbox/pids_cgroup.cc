#include "sandbox/pids_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace ptxbench::sandbox {
namespace {

bool write_text(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

}  // namespace

PidsCgroup::PidsCgroup(uint32_t max_processes) {
  static std::atomic<uint64_t> serial{0};
  const std::string name = fmt::format("ptxbench-{}-{}", getpid(), serial++);
  for (const char* root : {"/sys/fs/cgroup/pids/", "/sys/fs/cgroup/"}) {
    if (access((std::string(root) + "cgroup.procs").c_str(), W_OK) != 0) continue;
    directory_ = root + name;
    if (mkdir(directory_.c_str(), 0755) != 0) {
      directory_.clear();
      continue;
    }
    if (write_text(directory_ + "/pids.max", fmt::format("{}", max_processes)))
      join_fd_ = open((directory_ + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (join_fd_ >= 0) return;
    rmdir(directory_.c_str());
    directory_.clear();
  }
}

PidsCgroup::~PidsCgroup() {
  if (join_fd_ >= 0) close(join_fd_);
  if (directory_.empty()) return;
  // A reaped process may stay listed for a moment.
  for (int attempt = 0; attempt < 200 && rmdir(directory_.c_str()) != 0; ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace ptxbench::sandbox
