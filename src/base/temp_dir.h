#pragma once
// A private directory (mode 0700) under $TMPDIR or /tmp that goes away with the object.

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace ptxbench {

class TempDir {
 public:
  // kind "io". The name starts with "ptxbench-<prefix>-".
  static Result<TempDir> create(std::string_view prefix = "tmp");

  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }
  // Leaves the directory in place (for debugging); returns its path.
  std::filesystem::path release();

  // All folders of this process that still exist, whoever owns the objects: for a process about to
  // end without unwinding (base/interrupt.h).
  static bool any();
  static void remove_all() noexcept;

 private:
  static void remove_folder(const std::filesystem::path& path) noexcept;
  explicit TempDir(std::filesystem::path path) : path_(std::move(path)) {}
  void remove() noexcept;

  std::filesystem::path path_;
};

}  // namespace ptxbench
