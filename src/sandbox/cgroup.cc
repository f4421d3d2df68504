#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/interrupt.h"

namespace ptxbench::sandbox {
namespace {

bool write_text(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

constexpr const char* kRoots[] = {"/sys/fs/cgroup/pids/", "/sys/fs/cgroup/memory/",
                                  "/sys/fs/cgroup/"};
constexpr const char kPrefix[] = "ptxbench-";

// Groups that exist now, so that an interrupted process can remove them.
struct Live {
  std::mutex mutex;
  std::set<std::string> directories;
};
Live& live() {
  static Live* const instance = new Live;
  return *instance;
}

// A reaped process may stay listed for a moment.
void remove_group(const std::string& directory) {
  for (int attempt = 0; attempt < 200 && rmdir(directory.c_str()) != 0 && errno != ENOENT;
       ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Groups of processes that were killed outright: of a number that no process has, and old enough
// not to belong to somebody whose processes we can't see.
void remove_stale_groups() {
  constexpr time_t kOld = 600;
  for (const char* root : kRoots) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
      const std::string name = entry.path().filename();
      struct stat info = {};
      if (name.rfind(kPrefix, 0) != 0 || stat(entry.path().c_str(), &info) != 0) continue;
      const int pid = std::atoi(name.c_str() + sizeof kPrefix - 1);
      if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH && time(nullptr) - info.st_mtime > kOld)
        rmdir(entry.path().c_str());
    }
  }
}

void prepare_once() {
  static const bool done = [] {
    remove_stale_groups();
    on_interrupt([] {
      const std::lock_guard<std::mutex> lock(live().mutex);
      for (const std::string& directory : live().directories) remove_group(directory);
    });
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

ControlGroups::ControlGroups(uint32_t max_processes, uint64_t max_memory_bytes) {
  static std::atomic<uint64_t> serial{0};
  prepare_once();
  name_ = fmt::format("{}{}-{}", kPrefix, getpid(), serial++);
  add(kRoots[0], {{"pids.max", max_processes}});
  add(kRoots[1], {{"memory.limit_in_bytes", max_memory_bytes}});
  if (directories_.empty())
    add(kRoots[2], {{"pids.max", max_processes}, {"memory.max", max_memory_bytes}});
}

bool ControlGroups::add(const std::string& root,
                        const std::vector<std::pair<std::string, uint64_t>>& limits) {
  if (access((root + "cgroup.procs").c_str(), W_OK) != 0) return false;
  const std::string directory = root + name_;
  const std::lock_guard<std::mutex> lock(live().mutex);
  if (mkdir(directory.c_str(), 0755) != 0) return false;
  bool limited = false;
  for (const auto& [file, value] : limits)
    limited |= write_text(directory + "/" + file, fmt::format("{}", value));
  const int fd = limited ? open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC) : -1;
  if (fd < 0) {
    rmdir(directory.c_str());
    return false;
  }
  live().directories.insert(directory);
  directories_.push_back(directory);
  join_fds_.push_back(fd);
  return true;
}

ControlGroups::~ControlGroups() {
  for (int fd : join_fds_) close(fd);
  for (const std::string& directory : directories_) {
    remove_group(directory);
    const std::lock_guard<std::mutex> lock(live().mutex);
    live().directories.erase(directory);
  }
}

}  // namespace ptxbench::sandbox
