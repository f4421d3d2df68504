#pragma once
// Files of tests/ptx that zstd packed.

#include <gtest/gtest.h>
#include <zstd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ptxbench::ptx {

// The text of a file in tests/ptx, of at most 64 MiB.
inline std::string read_packed(const std::string& name) {
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/ptx/" + name, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  const std::string packed = bytes.str();
  std::string out(size_t{64} << 20, '\0');
  const size_t got = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  EXPECT_FALSE(ZSTD_isError(got)) << name << ": " << ZSTD_getErrorName(got);
  out.resize(ZSTD_isError(got) ? 0 : got);
  return out;
}

}  // namespace ptxbench::ptx
