#include "te/fp8/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "te/fp8/scaling.h"

namespace ptxbench::te {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr char kMagic[8] = {'t', 'e', 's', 'c', 'a', 'l', 'e', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMostTensors = 1u << 20, kLongestHistory = 65536;

struct Header {
  char magic[8];
  uint32_t version, algorithm, tensors, history_len;
};

// FNV-1a over everything before it.
uint64_t checksum(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : bytes) h = (h ^ c) * 0x100000001b3u;
  return h;
}

void append(std::string& out, const std::vector<float>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}
void take(std::string_view& bytes, std::vector<float>& values, size_t count) {
  values.resize(count);
  std::memcpy(values.data(), bytes.data(), count * sizeof(float));
  bytes.remove_prefix(count * sizeof(float));
}
Error bad(const std::string& what) { return {"format", "FP8 state: " + what}; }

}  // namespace

Result<ScalingState> make_state(const DelayedScaling& recipe, std::span<const Fp8Format> formats) {
  PB_RETURN_IF_ERROR(validate(recipe));
  if (formats.empty() || formats.size() > kMostTensors)
    return Error{"usage",
                 fmt::format("{} tensors: there must be 1..{}", formats.size(), kMostTensors)};
  ScalingState s;
  s.tensors = static_cast<uint32_t>(formats.size());
  s.history_len = static_cast<uint32_t>(recipe.amax_history_len);
  s.algorithm = recipe.amax_algorithm;
  s.scale.assign(s.tensors, 1.0f);
  s.history.assign(size_t{s.history_len} * s.tensors, 0.0f);
  for (Fp8Format f : formats) s.scaled_max.push_back(std::ldexp(fp8_max(f), -recipe.margin));
  return s;
}

void update(ScalingState& s, std::span<const float> reduced) {
  for (uint32_t k = 0; k < s.tensors; ++k) {
    auto row = [&](uint32_t i) -> float& { return s.history[size_t{i} * s.tensors + k]; };
    const float last = !reduced.empty() && reduced[k] != 0 ? reduced[k] : row(0);
    float amax = last;
    if (last != 0) {
      // The sample that drops out of the window still counts in this step. fmax drops NaN.
      for (uint32_t i = 1; i < s.history_len; ++i) amax = std::fmax(amax, row(i));
      for (uint32_t i = 1; i + 1 < s.history_len; ++i) row(i) = row(i + 1);
      if (s.history_len > 1) row(s.history_len - 1) = last;
      row(0) = 0;
    }
    if (s.algorithm == AmaxAlgorithm::most_recent) amax = last;
    s.scale[k] = delayed_scale(amax, s.scale[k], s.scaled_max[k]);
  }
}

std::string serialize(const ScalingState& s) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.version = kVersion;
  h.algorithm = static_cast<uint32_t>(s.algorithm);
  h.tensors = s.tensors;
  h.history_len = s.history_len;
  std::string out(reinterpret_cast<const char*>(&h), sizeof h);
  append(out, s.scale);
  append(out, s.history);
  append(out, s.scaled_max);
  const uint64_t sum = checksum(out);
  out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return out;
}

Result<ScalingState> deserialize(std::string_view bytes) {
  Header h;
  if (bytes.size() < sizeof h + 8) return bad("the checkpoint is cut short");
  std::memcpy(&h, bytes.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) return bad("this is no checkpoint of it");
  if (h.version != kVersion)
    return bad(fmt::format("version {}; this program reads version {}", h.version, kVersion));
  if (h.tensors == 0 || h.tensors > kMostTensors || h.history_len == 0 ||
      h.history_len > kLongestHistory || h.algorithm > 1)
    return bad("impossible sizes");
  const size_t floats = size_t{h.tensors} * (size_t{h.history_len} + 2);
  if (bytes.size() != sizeof h + floats * sizeof(float) + 8)
    return bad(fmt::format("{} bytes for {} tensors with {} samples", bytes.size(), h.tensors,
                           h.history_len));
  uint64_t sum;
  std::memcpy(&sum, bytes.data() + bytes.size() - 8, 8);
  if (sum != checksum(bytes.substr(0, bytes.size() - 8))) return bad("the checksum is wrong");
  ScalingState s;
  s.tensors = h.tensors;
  s.history_len = h.history_len;
  s.algorithm = static_cast<AmaxAlgorithm>(h.algorithm);
  bytes.remove_prefix(sizeof h);
  take(bytes, s.scale, s.tensors);
  take(bytes, s.history, size_t{s.tensors} * s.history_len);
  take(bytes, s.scaled_max, s.tensors);
  return s;
}

void resize_history(ScalingState& s, uint32_t history_len) {
  std::vector<float> resized(size_t{history_len} * s.tensors, 0.0f);
  std::copy_n(s.history.begin(), s.tensors, resized.begin());
  const uint32_t kept = std::min(s.history_len, history_len) - 1;  // rows of the past
  std::copy(s.history.end() - size_t{kept} * s.tensors, s.history.end(),
            resized.end() - size_t{kept} * s.tensors);
  s.history = std::move(resized);
  s.history_len = history_len;
}

}  // namespace ptxbench::te
