// Replays a recording of bench/hardware/record_matrix.py on the emulator and compares bit for bit.
//   gunzip -k DIR/matrix_more.out.bin.gz if it was packed; build/bin/replay_matrix DIR
// One line for each form that differs; exit 1 if any does.

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/files.h"
#include "emu/mma.h"
#include "emu/tensor_core.h"

namespace {

using namespace ptxbench;
using namespace ptxbench::emu;
using nlohmann::json;

std::string blob;

template <class T>
const T* array(const json& reference) {
  return reinterpret_cast<const T*>(blob.data() + reference.at("offset").get<size_t>());
}

ptx::Type type_named(const std::string& text) {
#define PTX_TYPE(name, word, bits) \
  if (text == word) return ptx::Type::name;
#include "ptx/types.def"
#undef PTX_TYPE
  throw std::runtime_error("unknown type " + text);
}

struct Count {
  size_t values = 0, different = 0;
};

MmaForm mma_form(const std::string& text, int selector) {
  static const std::regex pattern(
      R"(mma(\.sp::ordered_metadata)?\.sync\.aligned\.m(\d+)n8k(\d+)\.(row|col)\.(row|col)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)(\.xor\.popc|\.and\.popc)?)");
  std::smatch m;
  if (!std::regex_match(text, m, pattern)) throw std::runtime_error("cannot read " + text);
  MmaForm f;
  f.sparse = m[1].matched, f.selector = std::max(selector, 0);
  f.m = std::stoi(m[2]), f.k = std::stoi(m[3]);
  f.a_columns = m[4] == "col", f.b_rows = m[5] == "row";
  f.saturate = m[6].matched;
  f.d = type_named(m[7]), f.a = type_named(m[8]), f.b = type_named(m[9]), f.c = type_named(m[10]);
  f.exclusive_or = m[11] == ".xor.popc";
  return f;
}

Count replay_mma(const json& test) {
  const MmaForm f = mma_form(test.at("ptx"), test.value("selector", -1));
  const MmaRegisters n = registers_of(f);
  const size_t wide = f.a == ptx::Type::f64 ? 2 : 1;
  Count count;
  std::array<std::array<uint64_t, 32>, 32> storage{};
  for (size_t warp = 0; warp < 2; ++warp) {
    MmaOperands o;
    size_t next = 0;
    auto fragment = [&](const char* name, int registers, auto* pointers) {
      const auto* from = name ? array<uint8_t>(test.at(name)) : nullptr;
      for (int r = 0; r < registers; ++r) {
        auto* lanes = reinterpret_cast<uint8_t*>(storage[next++].data());
        for (size_t l = 0; l < 32 && from; ++l)
          std::memcpy(
              lanes + l * 4 * wide,
              from + ((warp * 32 + l) * static_cast<size_t>(registers) + static_cast<size_t>(r)) *
                         4 * wide,
              4 * wide);
        pointers[r] = reinterpret_cast<uint32_t*>(lanes);
      }
    };
    fragment("a", n.a, o.a), fragment("b", n.b, o.b), fragment("c", n.c, o.c);
    fragment(nullptr, n.d, o.d);
    if (f.sparse) o.metadata = array<uint32_t>(test.at("e")) + 32 * warp;
    mma(f, o, plan::TensorMode::hw);
    const auto* want = array<uint8_t>(test.at("d"));
    for (size_t r = 0; r < static_cast<size_t>(n.d); ++r)
      for (size_t l = 0; l < 32; ++l, ++count.values)
        count.different +=
            std::memcmp(reinterpret_cast<uint8_t*>(o.d[r]) + l * 4 * wide,
                        want + ((warp * 32 + l) * static_cast<size_t>(n.d) + r) * 4 * wide,
                        4 * wide) != 0;
  }
  return count;
}

Count replay_wgmma(const json& test) {
  static const std::regex pattern(
      R"(wgmma\.mma_async(\.sp)?\.sync\.aligned\.m64n(\d+)k(\d+)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)(\.and\.popc)? \{d\}, (\{a\}|a-desc), b-desc, p(, (-?1), (-?1).*)?;)");
  std::smatch m;
  const std::string text = test.at("ptx");
  if (!std::regex_match(text, m, pattern)) throw std::runtime_error("cannot read " + text);
  WgmmaForm f;
  f.sparse = m[1].matched, f.selector = std::max(test.value("selector", -1), 0);
  f.n = std::stoi(m[2]), f.k = std::stoi(m[3]);
  f.saturate = m[4].matched;
  f.d = type_named(m[5]), f.a = type_named(m[6]), f.b = type_named(m[7]);
  f.a_in_registers = m[9] == "{a}";
  f.negate_a = m[11] == "-1", f.negate_b = m[12] == "-1";
  const size_t registers = static_cast<size_t>(f.n) / (f.d == ptx::Type::f16 ? 4 : 2);
  constexpr uint32_t kBase = 1024;  // the image stood at such a boundary
  std::vector<uint8_t> shared(kBase + 32768);
  std::memcpy(shared.data() + kBase, array<uint8_t>(test.at("image")), 32768);
  WgmmaOperands o;
  o.shared = shared.data(), o.shared_bytes = static_cast<uint32_t>(shared.size());
  o.a_descriptor = test.at("a_desc").get<uint64_t>() + (kBase >> 4);
  o.b_descriptor = test.at("b_desc").get<uint64_t>() + (kBase >> 4);
  auto lanes = std::make_unique<uint32_t[][4][136][32]>(1);
  auto& w = lanes[0];
  const auto *a = array<uint32_t>(test.at("a_regs")), *c = array<uint32_t>(test.at("c"));
  for (size_t t = 0; t < 128; ++t) {
    for (size_t r = 0; r < registers; ++r) w[t / 32][r][t % 32] = c[t * registers + r];
    for (size_t r = 0; r < 4; ++r) w[t / 32][128 + r][t % 32] = a[t * 4 + r];
  }
  for (size_t x = 0; x < 4; ++x) {
    for (size_t r = 0; r < registers; ++r) o.d[x][r] = w[x][r];
    for (size_t r = 0; r < 4; ++r) o.a[x][r] = w[x][128 + r];
    if (f.sparse) o.metadata[x] = array<uint32_t>(test.at("e")) + 32 * x;
  }
  wgmma(f, o, plan::TensorMode::hw);
  Count count;
  const auto* want = array<uint32_t>(test.at("d"));
  for (size_t t = 0; t < 128; ++t)
    for (size_t r = 0; r < registers; ++r, ++count.values)
      count.different += w[t / 32][r][t % 32] != want[t * registers + r];
  return count;
}

int run(const std::string& folder) {
  auto text = read_file(folder + "/matrix_more.json"),
       data = read_file(folder + "/matrix_more.out.bin");
  if (!text.ok()) return fmt::print(stderr, "{}\n", text.error().to_string()), 2;
  if (!data.ok()) return fmt::print(stderr, "{}\n", data.error().to_string()), 2;
  blob = data.take();
  size_t values = 0, different = 0, cases = 0;
  for (const json& test : json::parse(*text).at("tests")) {
    const Count c = test.at("kind") == "mma_raw" ? replay_mma(test) : replay_wgmma(test);
    values += c.values, different += c.different, ++cases;
    if (c.different)
      fmt::print("{} ({}, selector {}): {} of {} differ\n", test.at("ptx").get<std::string>(),
                 test.at("fill").get<std::string>(), test.value("selector", -1), c.different,
                 c.values);
  }
  fmt::print("{} cases, {} values, {} differ\n", cases, values, different);
  return different || !values;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return fmt::print(stderr, "usage: replay_matrix DIR\n"), 2;
  return run(argv[1]);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
