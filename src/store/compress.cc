#include "store/compress.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

namespace ptxbench::store {
namespace {

constexpr int kGzip = 15 + 16;  // window bits, with gzip's header and checksum

}  // namespace

std::string zstd_pack(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 6);
  packed.resize(ZSTD_isError(size) ? 0 : size);
  return packed;
}

Result<std::string> zstd_unpack(std::string_view packed, uint64_t size) {
  // The size is what the store says; a document larger than this was not written by it.
  constexpr uint64_t kLargest = uint64_t{256} << 20;
  if (size > kLargest || ZSTD_getFrameContentSize(packed.data(), packed.size()) != size)
    return Error{"corrupt", "a document does not have the size that the store says"};
  std::string text(size, '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != size) return Error{"corrupt", "a document does not unpack"};
  return text;
}

std::string gzip_pack(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Result<std::string> gzip_unpack(std::string_view packed, uint64_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) return Error{"memory", "out of memory"};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text, block(size_t{1} << 18, '\0');
  int state = Z_OK;
  while (state == Z_OK && text.size() <= limit) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state == Z_OK && stream.avail_in == 0 && stream.avail_out == block.size()) break;
    text.append(block, 0, block.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (text.size() > limit)
    return Error{"too-large", fmt::format("unpacks to more than {} MiB", limit >> 20)};
  if (state != Z_STREAM_END) return Error{"corrupt", "is no whole gzip file"};
  return text;
}

bool looks_gzipped(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

}  // namespace ptxbench::store
