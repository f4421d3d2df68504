#pragma once
// Texts in the store (zstd), published files (gzip) and what browsers can unpack (gzip).

#include <string>
#include <string_view>

#include "base/result.h"

namespace ptxbench::store {

std::string zstd_pack(std::string_view text);
// `size`: what it must unpack to; kind "corrupt".
Result<std::string> zstd_unpack(std::string_view packed, uint64_t size);

std::string gzip_pack(std::string_view text);
// Kinds: "corrupt", "too-large" (more than `limit` bytes).
Result<std::string> gzip_unpack(std::string_view packed, uint64_t limit);
bool looks_gzipped(std::string_view bytes);

}  // namespace ptxbench::store
