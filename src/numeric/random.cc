// Philox in structure-of-arrays form: GCC turns the rounds over kLanes independent blocks into SIMD
// code, and target_clones adds an AVX2 version chosen at start-up. Normals invert the distribution:
// from p, the upper tail's probability, w = -log(4p(1-p)) and two polynomials in w (M. Giles,
// "Approximating the erfinv function", GPU Computing Gems 2, 2011; the tail's refitted so that it
// holds to p = 2^-33). Unlike Box-Muller this needs one word a value, no trigonometry, and no
// library function whose bits may vary.
#include "numeric/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "numeric/float_formats.h"

#define PTXBENCH_SIMD __attribute__((target_clones("arch=x86-64-v3", "default")))

namespace ptxbench::numeric {

namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;
constexpr int kLanes = 64;  // blocks at a time

using Key = std::array<uint32_t, 2>;
using Words = uint32_t[4 * kLanes];

// Words of blocks first .. first + kLanes - 1, in order.
PTXBENCH_SIMD void make_blocks(uint64_t first, const Key& upper, Key key, Words& words) {
  alignas(32) uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    uint64_t n = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(n);
    c1[i] = static_cast<uint32_t>(n >> 32);
    c2[i] = upper[0];
    c3[i] = upper[1];
  }
  for (int round = 0; round < kRounds; ++round) {
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < kLanes; ++i) {
      uint64_t product0 = uint64_t{kMultiplier0} * c0[i];
      uint64_t product1 = uint64_t{kMultiplier1} * c2[i];
      uint32_t n0 = static_cast<uint32_t>(product1 >> 32) ^ c1[i] ^ k0;
      uint32_t n2 = static_cast<uint32_t>(product0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<uint32_t>(product1);
      c3[i] = static_cast<uint32_t>(product0);
      c0[i] = n0;
      c2[i] = n2;
    }
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  for (int i = 0; i < kLanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

inline float to_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// Natural logarithm of a positive normal number (the polynomial of Cephes' logf).
inline float log_positive(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  // Split so that the fraction lies in [sqrt(1/2), sqrt(2)).
  int32_t shifted = static_cast<int32_t>(bits) - 0x3f3504f3;
  float exponent = static_cast<float>(shifted >> 23);
  float m = std::bit_cast<float>((static_cast<uint32_t>(shifted) & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float z = m * m;
  float y = 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  return exponent * 0.693147180559945f + (m - 0.5f * z + y * m * z);
}

inline float to_normal(uint32_t word) {
  // The top bit is the sign; the rest gives p in (0, 1/2].
  float p = (static_cast<float>(static_cast<int32_t>(word & 0x7fffffffu)) + 0.5f) * 0x1p-32f;
  float w = -log_positive(4.0f * p * (1.0f - p));
  float a = w - 2.5f;
  float central = 2.81022636e-08f;
  central = central * a + 3.43273939e-07f;
  central = central * a - 3.5233877e-06f;
  central = central * a - 4.39150654e-06f;
  central = central * a + 0.00021858087f;
  central = central * a - 0.00125372503f;
  central = central * a - 0.00417768164f;
  central = central * a + 0.246640727f;
  central = central * a + 1.50140941f;
  float b = std::sqrt(std::max(w, 5.0f)) - 3.0f;
  float tail = 2.332866238e-5f;
  tail = tail * b - 9.711282314e-5f;
  tail = tail * b - 7.857064978e-5f;
  tail = tail * b + 0.001244956375f;
  tail = tail * b - 0.003493166053f;
  tail = tail * b + 0.005773460841f;
  tail = tail * b - 0.007679080451f;
  tail = tail * b + 0.009434509135f;
  tail = tail * b + 1.001678666f;
  tail = tail * b + 2.832977055f;
  float scale = w < 5.0f ? central : tail;
  float magnitude = 1.41421356f * scale * (1.0f - 2.0f * p);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (word & 0x80000000u));
}

PTXBENCH_SIMD void words_to_normals(const uint32_t* words, float* values, int count) {
  for (int i = 0; i < count; ++i) values[i] = to_normal(words[i]);
}

PTXBENCH_SIMD void words_to_uniforms(const uint32_t* words, float* values, int count) {
  for (int i = 0; i < count; ++i) values[i] = to_uniform(words[i]);
}

PTXBENCH_SIMD void scale_to_bf16(const float* from, uint16_t* to, int count, float mean,
                                 float sigma) {
  for (int i = 0; i < count; ++i) to[i] = bf16_from_float(mean + sigma * from[i]);
}

// Calls use(words, offset in the output, count) over the words first .. first + count - 1.
template <class Use>
void for_words(uint64_t first, uint64_t count, const Key& upper, const Key& key, Use use) {
  Words words;
  uint64_t done = 0;
  while (done < count) {
    uint64_t index = first + done;
    uint64_t skip = index % 4;
    make_blocks(index / 4, upper, key, words);
    uint64_t n = std::min<uint64_t>(4 * kLanes - skip, count - done);
    use(words + skip, done, static_cast<int>(n));
    done += n;
  }
}

}  // namespace

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Random::Random(Seed seed, uint64_t stream) {
  auto low32 = [](uint64_t v) { return static_cast<uint32_t>(v); };
  auto high32 = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  auto mixed = philox4x32_10({low32(seed.low), high32(seed.low), low32(stream), high32(stream)},
                             {low32(seed.high), high32(seed.high)});
  key_ = {mixed[0], mixed[1]};
  upper_ = {mixed[2], mixed[3]};
}

uint32_t Random::word(uint64_t index) const {
  uint64_t block = index / 4;
  return philox4x32_10(
      {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), upper_[0], upper_[1]},
      key_)[index % 4];
}

uint64_t Random::word64(uint64_t index) const {
  return word(2 * index) | uint64_t{word(2 * index + 1)} << 32;
}

float Random::uniform(uint64_t index) const { return to_uniform(word(index)); }
float Random::normal(uint64_t index) const { return to_normal(word(index)); }

uint64_t Random::below(uint64_t index, uint64_t bound) const {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(word64(index)) * bound) >> 64);
}

void Random::fill_words(uint64_t first, std::span<uint32_t> values) const {
  for_words(first, values.size(), upper_, key_, [&](const uint32_t* words, uint64_t at, int n) {
    std::memcpy(values.data() + at, words, sizeof(uint32_t) * n);
  });
}

void Random::fill_uniform(uint64_t first, std::span<float> values) const {
  for_words(first, values.size(), upper_, key_, [&](const uint32_t* words, uint64_t at, int n) {
    words_to_uniforms(words, values.data() + at, n);
  });
}

void Random::fill_normal(uint64_t first, std::span<float> values) const {
  for_words(first, values.size(), upper_, key_, [&](const uint32_t* words, uint64_t at, int n) {
    words_to_normals(words, values.data() + at, n);
  });
}

void Random::fill_normal(uint64_t first, DType type, void* bytes, uint64_t count, float mean,
                         float sigma) const {
  uint8_t* out = static_cast<uint8_t*>(bytes);
  size_t size = dtype_size(type);
  for_words(first, count, upper_, key_, [&](const uint32_t* words, uint64_t at, int n) {
    float values[4 * kLanes];
    words_to_normals(words, values, n);
    if (type == DType::bfloat16) {
      scale_to_bf16(values, reinterpret_cast<uint16_t*>(out + at * size), n, mean, sigma);
      return;
    }
    for (int i = 0; i < n; ++i) values[i] = mean + sigma * values[i];
    store_elements(type, std::span<const float>(values, n), out + at * size);
  });
}

}  // namespace ptxbench::numeric
