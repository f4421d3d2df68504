#pragma once
// Whole files in and out, with errors that name the file.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptxbench {

// Reads a regular file (a pipe or device is refused) of at most `limit` bytes.
// Kinds: "not-found", "not-a-file", "too-large", "io".
Result<std::string> read_file(const std::filesystem::path& path,
                              uint64_t limit = uint64_t{64} << 20);
Result<std::vector<uint8_t>> read_bytes(const std::filesystem::path& path,
                                        uint64_t limit = uint64_t{1} << 30);

// Writes a neighbour and renames it over the file: readers see the old or the new one, never half.
// Symlinks are followed, not replaced; a device, a pipe or a symlink to nothing is opened and
// written as it is. A missing parent folder is an error. Kinds: "io", "not-found".
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const uint8_t> bytes);

// Text has no NUL byte and few other control characters in its first 8 KiB.
bool is_probably_binary(std::string_view bytes);

}  // namespace ptxbench
