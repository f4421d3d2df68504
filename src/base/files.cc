#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace ptxbench {

namespace fs = std::filesystem;

namespace {

struct Fd {
  int fd = -1;
  ~Fd() {
    if (fd >= 0) close(fd);
  }
};

Error io_error(const char* what, const fs::path& path) {
  int code = errno;
  std::string kind = code == ENOENT || code == ENOTDIR ? "not-found" : "io";
  return Error{kind, fmt::format("cannot {} {}: {}", what, path.string(), strerror(code))};
}

template <class Bytes>
Result<Bytes> read_all(const fs::path& path, uint64_t limit) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  Fd file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) return io_error("read", path);
  if (!S_ISREG(info.st_mode))
    return Error{"not-a-file", fmt::format("{} is not a regular file", path.string())};
  auto too_large = [&](uint64_t size) {
    return Error{"too-large", fmt::format("{} has {} bytes, more than the limit of {}",
                                          path.string(), size, limit)};
  };
  if (static_cast<uint64_t>(info.st_size) > limit) return too_large(info.st_size);
  // One byte more than the size, to notice the end in one go; files in /proc claim size 0.
  Bytes bytes;
  bytes.resize(static_cast<size_t>(info.st_size) + 1);
  size_t used = 0;
  while (true) {
    ssize_t n = read(file.fd, bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("read", path);
    if (n == 0) break;
    used += n;
    if (used > limit) return too_large(used);
    if (used == bytes.size()) bytes.resize(std::min<uint64_t>(2 * used + 4096, limit + 1));
  }
  bytes.resize(used);
  return bytes;
}

Result<void> write_all(int fd, const char* data, size_t size, const fs::path& path) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("write", path);
    data += n;
    size -= n;
  }
  return {};
}

Result<void> write_in_place(const fs::path& path, std::string_view bytes) {
  Fd file{open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.fd < 0) return io_error("write", path);
  return write_all(file.fd, bytes.data(), bytes.size(), path);
}

Result<void> replace_file(const fs::path& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  fs::path neighbour = path;
  neighbour += fmt::format(".{}.{}.tmp", getpid(), counter++);
  Fd file{open(neighbour.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
  if (file.fd < 0) return io_error("write", path);
  Result<void> written = write_all(file.fd, bytes.data(), bytes.size(), path);
  if (written.ok() && rename(neighbour.c_str(), path.c_str()) != 0)
    written = io_error("replace", path);
  if (!written.ok()) unlink(neighbour.c_str());
  return written;
}

}  // namespace

Result<std::string> read_file(const fs::path& path, uint64_t limit) {
  return read_all<std::string>(path, limit);
}

Result<std::vector<uint8_t>> read_bytes(const fs::path& path, uint64_t limit) {
  return read_all<std::vector<uint8_t>>(path, limit);
}

Result<void> write_file_atomically(const fs::path& path, std::string_view bytes) {
  struct stat info;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return Error{"io", fmt::format("cannot write {}: no such directory", path.string())};
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return write_in_place(path, bytes);
    std::error_code code;
    const fs::path target = fs::canonical(path, code);
    return replace_file(code ? path : target, bytes);
  }
  // A symlink that leads nowhere yet: the file is made where it points.
  if (lstat(path.c_str(), &info) == 0) return write_in_place(path, bytes);
  return replace_file(path, bytes);
}

Result<void> write_file_atomically(const fs::path& path, std::span<const uint8_t> bytes) {
  return write_file_atomically(
      path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

bool is_probably_binary(std::string_view bytes) {
  bytes = bytes.substr(0, 8192);
  size_t strange = 0;
  for (unsigned char c : bytes) {
    if (c == 0) return true;
    if ((c < 32 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 27) || c == 127)
      ++strange;
  }
  return strange * 50 > bytes.size();
}

}  // namespace ptxbench
