#pragma once
// The safetensors format: 8 bytes (little endian) with the length of a JSON header, the header
// {NAME: {dtype, shape, data_offsets [begin, end)}}, then the tensors' bytes, row-major.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::bench {

struct SafeTensor {
  std::string dtype;  // under FlashInfer Trace's name: "bfloat16"
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// One tensor of a file; the others are not read. Errors: "not-found"; "lfs-pointer" where Git LFS
// left a pointer in the blob's place; "bad-safetensors" for anything that does not add up.
Result<SafeTensor> read_safetensor(const std::filesystem::path& path, const std::string& key);

// Errors: "io", "unsupported" for a dtype that the format has no name for.
Result<void> write_safetensors(const std::filesystem::path& path,
                               const std::map<std::string, SafeTensor>& tensors);

}  // namespace ptxbench::bench
