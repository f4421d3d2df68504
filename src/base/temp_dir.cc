#include "base/temp_dir.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "base/interrupt.h"

namespace ptxbench {

namespace fs = std::filesystem;

namespace {

// Never destroyed: the interrupt thread may outlive main's statics.
struct Registry {
  std::mutex mutex;
  std::set<fs::path> folders;
};
Registry& registry() {
  static auto* const registry = new Registry;
  return *registry;
}

}  // namespace

Result<TempDir> TempDir::create(std::string_view prefix) {
  const char* root = getenv("TMPDIR");
  std::string pattern = fmt::format("{}/ptxbench-{}-XXXXXX", root && *root ? root : "/tmp", prefix);
  const std::lock_guard<std::mutex> lock(registry().mutex);
  if (interrupted()) return Error{"interrupted", "interrupted by a signal"};
  if (!mkdtemp(pattern.data()))
    return Error{"io", fmt::format("cannot create a directory {}: {}", pattern, strerror(errno))};
  registry().folders.insert(pattern);
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

fs::path TempDir::release() {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().folders.erase(path_);
  return std::exchange(path_, fs::path());
}

bool TempDir::any() {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  return !registry().folders.empty();
}

void TempDir::remove_all() noexcept {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  for (const fs::path& folder : registry().folders) remove_folder(folder);
  registry().folders.clear();
}

void TempDir::remove() noexcept {
  if (path_.empty()) return;
  remove_folder(path_);
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().folders.erase(path_);
}

void TempDir::remove_folder(const fs::path& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  if (!fs::exists(path, ignored)) return;
  // A child may have left folders without write permission behind.
  for (fs::recursive_directory_iterator
           it(path, fs::directory_options::skip_permission_denied, ignored),
       end;
       it != end; it.increment(ignored)) {
    if (it->is_directory(ignored) && !it->is_symlink(ignored))
      fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
  fs::remove_all(path, ignored);
}

}  // namespace ptxbench
