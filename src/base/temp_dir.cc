#include "base/temp_dir.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ptxbench {

namespace fs = std::filesystem;

Result<TempDir> TempDir::create(std::string_view prefix) {
  const char* root = getenv("TMPDIR");
  std::string pattern = fmt::format("{}/ptxbench-{}-XXXXXX", root && *root ? root : "/tmp", prefix);
  if (!mkdtemp(pattern.data()))
    return Error{"io", fmt::format("cannot create a directory {}: {}", pattern, strerror(errno))};
  return TempDir(fs::path(pattern));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::move(other.path_);
    other.path_.clear();
  }
  return *this;
}

TempDir::~TempDir() { remove(); }

fs::path TempDir::release() { return std::exchange(path_, fs::path()); }

void TempDir::remove() noexcept {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (!fs::exists(path_, ignored)) return;
  // A child may have left folders without write permission behind.
  for (fs::recursive_directory_iterator
           it(path_, fs::directory_options::skip_permission_denied, ignored),
       end;
       it != end; it.increment(ignored)) {
    if (it->is_directory(ignored) && !it->is_symlink(ignored))
      fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
  fs::remove_all(path_, ignored);
}

}  // namespace ptxbench
