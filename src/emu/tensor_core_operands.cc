#include "emu/tensor_core_operands.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace ptxbench::emu {
namespace {

constexpr uint32_t kOffsetMask =
    0xffffff;  // a shared address carries the CTA's cluster rank above it
constexpr uint32_t kChunk = 16;

uint32_t swizzle_mask(const MatrixDescriptor& d) { return d.swizzle / 16 - (d.swizzle ? 1 : 0); }

uint32_t swizzled(const MatrixDescriptor& d, uint32_t offset) {
  const uint32_t a = d.start + offset;
  return a ^ ((((a >> 7) - d.base_offset) & swizzle_mask(d)) << 4);
}

// Offset of a 16-byte chunk: of row mn and byte k_byte of K (K-major), or of column k and element
// mn.
uint32_t k_major_chunk(const MatrixDescriptor& d, uint32_t mn, uint32_t k_byte) {
  if (d.swizzle == 0) return mn % 8 * 16 + mn / 8 * d.stride + k_byte / 16 * d.leading;
  return mn % 8 * d.swizzle + mn / 8 * d.stride + k_byte;
}
uint32_t mn_major_chunk(const MatrixDescriptor& d, uint32_t element_bytes, uint32_t mn,
                        uint32_t k) {
  if (d.swizzle == 0) return mn * element_bytes / 16 * d.stride + k % 8 * 16 + k / 8 * d.leading;
  const uint32_t span = d.swizzle / element_bytes;
  return mn % span * element_bytes + mn / span * d.leading + k % 8 * d.swizzle + k / 8 * d.stride;
}

}  // namespace

MatrixDescriptor decode_descriptor(uint64_t bits) {
  static constexpr uint32_t kSwizzle[4] = {0, 128, 64, 32};
  MatrixDescriptor d;
  d.start = static_cast<uint32_t>(bits & 0x3fff) << 4;
  d.leading = static_cast<uint32_t>((bits >> 16) & 0x3fff) << 4;
  d.stride = static_cast<uint32_t>((bits >> 32) & 0x3fff) << 4;
  d.base_offset = static_cast<uint32_t>((bits >> 49) & 7);
  d.swizzle = kSwizzle[bits >> 62];
  return d;
}

uint32_t element_address(const MatrixDescriptor& d, bool mn_major, int element_bytes, int mn,
                         int k) {
  const uint32_t e = static_cast<uint32_t>(element_bytes), per_chunk = kChunk / e;
  const uint32_t umn = static_cast<uint32_t>(mn), uk = static_cast<uint32_t>(k);
  if (mn_major)
    return swizzled(d, mn_major_chunk(d, e, umn / per_chunk * per_chunk, uk)) + umn % per_chunk * e;
  return swizzled(d, k_major_chunk(d, umn, uk / per_chunk * kChunk)) + uk % per_chunk * e;
}

void for_each_chunk(const MatrixDescriptor& d, bool mn_major, int element_bytes, int mn, int k,
                    const std::function<void(uint32_t address, uint32_t bytes)>& f) {
  const int per_chunk = static_cast<int>(kChunk) / element_bytes;
  const int outer = mn_major ? k : mn, inner = mn_major ? mn : k;
  for (int i = 0; i < outer; ++i)
    for (int j = 0; j < inner; j += per_chunk) {
      const uint32_t bytes = static_cast<uint32_t>(std::min(per_chunk, inner - j) * element_bytes);
      f(element_address(d, mn_major, element_bytes, mn_major ? j : i, mn_major ? i : j), bytes);
    }
}

namespace tensor {
namespace {

struct Memory {
  const uint8_t* bytes;
  uint32_t size;

  __m128i chunk(uint32_t address) const {
    const uint32_t at = address & kOffsetMask;
    if (at + kChunk <= size) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + at));
    alignas(16) uint8_t part[kChunk] = {};
    if (at < size) std::memcpy(part, bytes + at, size - at);
    return _mm_load_si128(reinterpret_cast<const __m128i*>(part));
  }
};

void put(uint8_t* to, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v); }

// Where all groups of eight rows share one swizzle pattern, which is everywhere but for odd
// strides, the sixteen chunk addresses of the first group serve all.
void fetch_k_major(const MatrixDescriptor& d, int mn, uint32_t first, const Memory& memory,
                   uint8_t (*rows)[kRowBytes]) {
  const uint32_t mask = swizzle_mask(d), period = mask ? (mask + 1) * 128 : 16;
  const uint32_t groups = static_cast<uint32_t>(mn) / 8;
  uint32_t at[16], highest = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    at[i] = swizzled(d, k_major_chunk(d, i / 2, first + i % 2 * kChunk));
    highest = std::max(highest, at[i]);
  }
  const uint64_t end = uint64_t{highest} + uint64_t{groups - 1} * d.stride + kChunk;
  if (d.stride % period || end > std::min(memory.size, kOffsetMask)) {
    for (int i = 0; i < mn; ++i)
      for (uint32_t c = 0; c < 2; ++c)
        put(rows[i] + c * kChunk,
            memory.chunk(
                swizzled(d, k_major_chunk(d, static_cast<uint32_t>(i), first + c * kChunk))));
    return;
  }
  const uint8_t* base = memory.bytes;
  for (uint32_t g = 0; g < groups; ++g, base += d.stride)
    for (uint32_t i = 0; i < 16; ++i)
      std::memcpy(rows[8 * g + i / 2] + i % 2 * kChunk, base + at[i], kChunk);
}

// 16-bit elements: a chunk is eight rows of one column; eight of them are transposed at a time.
void transpose8(const __m128i* x, uint8_t (*rows)[kRowBytes], size_t byte) {
  __m128i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
    a[i + 4] = _mm_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
  }
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < 2; ++i) {
      b[4 * h + i] = _mm_unpacklo_epi32(a[4 * h + 2 * i], a[4 * h + 2 * i + 1]);
      b[4 * h + 2 + i] = _mm_unpackhi_epi32(a[4 * h + 2 * i], a[4 * h + 2 * i + 1]);
    }
  for (int i = 0; i < 4; ++i) {
    put(rows[2 * i] + byte, _mm_unpacklo_epi64(b[2 * i], b[2 * i + 1]));
    put(rows[2 * i + 1] + byte, _mm_unpackhi_epi64(b[2 * i], b[2 * i + 1]));
  }
}

void fetch_mn_major(const MatrixDescriptor& d, int mn, uint32_t first, const Memory& memory,
                    uint8_t (*rows)[kRowBytes]) {
  for (int i = 0; i < mn; i += 8)
    for (uint32_t k = 0; k < 16; k += 8) {
      __m128i column[8];
      for (uint32_t j = 0; j < 8; ++j)
        column[j] = memory.chunk(
            swizzled(d, mn_major_chunk(d, 2, static_cast<uint32_t>(i), first / 2 + k + j)));
      transpose8(column, rows + i, k * 2);
    }
}

}  // namespace

void fetch_shared(const MatrixDescriptor& d, bool mn_major, int element_bytes, int mn,
                  const uint8_t* shared, uint32_t shared_bytes, uint8_t (*rows)[kRowBytes],
                  uint32_t first) {
  const Memory memory{shared, shared_bytes};
  if (!mn_major) return fetch_k_major(d, mn, first, memory, rows);
  if (element_bytes == 2) fetch_mn_major(d, mn, first, memory, rows);  // check() admits no other
}

// Register j, lane l: bytes 4*(l%4) + 16*(j/2) of row 16w + l/4 + 8*(j%2).
void fetch_registers(const uint32_t* const (*a)[4], uint32_t warps, uint8_t (*rows)[kRowBytes]) {
  for (int w = 0; w < 4; ++w) {
    if (!(warps >> w & 1)) continue;
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 8; ++i)
        std::memcpy(rows[16 * w + i + 8 * (j % 2)] + 16 * (j / 2), a[w][j] + 4 * i, kChunk);
  }
}

void negate(int element_bytes, int mn, uint8_t (*rows)[kRowBytes]) {
  for (int i = 0; i < mn; ++i)
    for (int b = element_bytes - 1; b < kRowBytes; b += element_bytes) rows[i][b] ^= 0x80;
}

}  // namespace tensor
}  // namespace ptxbench::emu
