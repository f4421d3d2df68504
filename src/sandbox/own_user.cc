#include "sandbox/own_user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

namespace ptxbench::sandbox {
namespace {

namespace fs = std::filesystem;

struct Range {
  uint64_t first, count;
};
// Reserved for nobody by common convention (systemd's table of user ids); the second lies within
// the 65536 ids that many containers have, among those for short-lived services.
constexpr Range kRanges[] = {{2'000'000'000, 1'000'000}, {61'184, 4'000}};

// Whether this process's user namespace knows all ids of the range.
bool mapped(const Range& range) {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  while (map >> inside >> outside >> count)
    if (inside <= range.first && range.first + range.count <= inside + count) return true;
  return false;
}

std::optional<Range> usable_range() {
  if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0) return std::nullopt;
  for (const Range& range : kRanges)
    if (mapped(range)) return range;
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> draw_user_id() {
  static const std::optional<Range> range = usable_range();
  static std::atomic<uint64_t> serial{0};
  if (!range) return std::nullopt;
  // Other processes of this program count from other places.
  const uint64_t number = static_cast<uint64_t>(getpid()) * 131 + serial++;
  return static_cast<uint32_t>(range->first + number % range->count);
}

bool readable_by_others(const Command& command) {
  for (const fs::path& path : command.read_only) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) return false;
    const mode_t needed = S_ISDIR(info.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    if ((info.st_mode & needed) != needed) return false;
  }
  return true;
}

bool give_writable_folders(const Command& command, uint32_t uid) {
  for (const fs::path& folder : command.writable) {
    if (lchown(folder.c_str(), uid, uid) != 0) return false;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (lchown(entry.path().c_str(), uid, uid) != 0) return false;
    if (error) return false;
  }
  return true;
}

}  // namespace ptxbench::sandbox
