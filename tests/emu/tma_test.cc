// Bulk tensor copies against recordings of an H200.
#include "emu/tma.h"

#include <gtest/gtest.h>

#include <cstring>

#include <set>

#include "emu/tensor_map_args.h"
#include "emu/tma_walk.h"

namespace ptxbench::emu {
namespace {

constexpr uint32_t kBase = 0x400;  // of the image in shared memory: a 1024-byte boundary

Coordinates coordinates(const hw::Json& c) {
  Coordinates at{};
  for (size_t i = 0; i < c.at("coords").size(); ++i) at[i] = c["coords"][i];
  return at;
}

// Global memory large enough for the tensor, filled with the pattern that the recorder used.
std::vector<uint8_t> global_memory(const plan::TensorMapArgs& map, int pattern) {
  uint64_t element = plan::element_size(map.type), bytes = map.dims[0] * element;
  for (uint32_t i = 1; i < map.rank; ++i) bytes = std::max(bytes, map.dims[i] * map.strides[i - 1]);
  bytes += 4096;
  std::vector<uint8_t> out(bytes / element * element);
  for (uint64_t e = 0; e < out.size() / element; ++e) {
    uint64_t v = pattern == 0   ? e + 1
                 : pattern == 1 ? ((e + 1) * 0x9E3779B97F4A7C15) >> (64 - 8 * element)
                                : (e % 200 + 1) << (element == 4 ? 9 : 0);
    std::memcpy(out.data() + e * element, &v, element);
  }
  return out;
}

std::vector<uint8_t> bytes_of(const hw::Group& g, const hw::Json& value, size_t size) {
  if (value.is_number()) return std::vector<uint8_t>(size, value.get<uint8_t>());
  auto bytes = g.array(value).bytes;
  return {bytes.begin(), bytes.end()};
}

plan::MapType reduction_type(std::string_view name) {
  using plan::MapType;
  if (name == "b32" || name == "u32") return MapType::u32;
  if (name == "b64" || name == "u64") return MapType::u64;
  if (name == "s32") return MapType::s32;
  if (name == "s64") return MapType::s64;
  if (name == "f16") return MapType::f16;
  if (name == "bf16") return MapType::bf16;
  return name == "f32" ? MapType::f32 : MapType::f64;
}

ReduceOp reduce_op(const std::string& name) {
  static const char* const names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (int i = 0; i < 8; ++i)
    if (name == names[i]) return static_cast<ReduceOp>(i);
  throw std::runtime_error("unknown reduction " + name);
}

TEST(Tma, Loads) {
  const hw::Group& g = hw::group("tma");
  int compared = 0, faults = 0;
  for (const hw::Json& c : g.cases("tma_load")) {
    plan::TensorMapArgs map = map_args(c);
    Coordinates at = coordinates(c);
    uint32_t address = kBase + c.at("shared_offset").get<uint32_t>();
    std::string why = check_copy(map, at, address, false);
    EXPECT_EQ(!why.empty(), c.contains("fault")) << c.dump() << why;
    if (c.contains("fault")) {
      ++faults;
      continue;
    }
    ASSERT_TRUE(supported(map).ok());
    EXPECT_EQ(transaction_bytes(map), c.at("tx_count").get<uint32_t>()) << c.dump();
    std::vector<uint8_t> global = global_memory(map, c.at("pattern"));
    std::vector<uint8_t> shared(kBase + 200000, 0xaa);
    tma_load(map, at, address, shared.data(), global.data());
    auto image = g.array(c.at("image")).bytes;  // what follows is 0xAA
    std::vector<uint8_t> want(shared.size(), 0xaa);
    std::copy(image.begin(), image.end(), want.begin() + kBase);
    EXPECT_EQ(shared, want) << c.dump();
    EXPECT_LE(image.size(), c.at("shared_offset").get<uint32_t>() + box_span(map));
    ++compared;
  }
  EXPECT_EQ(compared, 286);
  EXPECT_EQ(faults, 9);
}

TEST(Tma, StoresAndReductions) {
  const hw::Group& g = hw::group("tma");
  int stores = 0, reductions = 0, faults = 0;
  for (const hw::Json& c : g.cases()) {
    bool reduce = c["kind"] == "tma_reduce";
    if (c["kind"] != "tma_store" && !reduce) continue;
    plan::TensorMapArgs map = map_args(c);
    Coordinates at = coordinates(c);
    uint32_t address = kBase + c.at("shared_offset").get<uint32_t>();
    EXPECT_EQ(!check_copy(map, at, address, true).empty(), c.contains("fault")) << c.dump();
    if (c.contains("fault")) {
      ++faults;
      continue;
    }
    std::vector<uint8_t> shared(kBase, 0);
    auto image = g.array(c.at("image")).bytes;
    shared.insert(shared.end(), image.begin(), image.end());
    shared.resize(shared.size() + 65536);
    auto want = g.array(c.at("after")).bytes;
    std::vector<uint8_t> global = bytes_of(g, c.at("before"), want.size());
    if (reduce)
      tma_reduce(map, at, address, shared.data(), global.data(), reduce_op(c.at("reduction")));
    else
      tma_store(map, at, address, shared.data(), global.data());
    EXPECT_TRUE(std::equal(global.begin(), global.end(), want.begin(), want.end())) << c.dump();
    ++(reduce ? reductions : stores);
  }
  EXPECT_EQ(stores, 55);
  EXPECT_EQ(reductions, 38);
  EXPECT_EQ(faults, 4);
}

TEST(Tma, Multicast) {
  const hw::Group& g = hw::group("tma");
  auto cases = g.cases("tma_multicast");
  for (const hw::Json& c : cases) {
    plan::TensorMapArgs map = map_args(c);
    std::vector<uint8_t> global = global_memory(map, c.at("pattern"));
    auto image = g.array(c.at("image"));
    size_t bytes = image.shape[1];
    for (uint32_t cta = 0; cta < 2; ++cta) {
      bool member = (c.at("cta_mask").get<uint32_t>() >> cta) & 1;
      std::vector<uint8_t> shared(kBase + 65536, 0xaa);
      // The shared address of rank 1 carries its rank; only the offset picks the byte.
      uint32_t address = (cta << 24) + kBase + c.at("shared_offset").get<uint32_t>();
      if (member) tma_load(map, coordinates(c), address, shared.data(), global.data());
      EXPECT_EQ(c.at("tx_count")[cta].get<uint32_t>(), member ? transaction_bytes(map) : 0);
      EXPECT_TRUE(std::equal(shared.begin() + kBase, shared.begin() + kBase + bytes,
                             image.bytes.begin() + cta * bytes))
          << c.dump();
    }
  }
  EXPECT_EQ(cases.size(), 6u);
}

TEST(Tma, ImageToColumns) {
  const hw::Group& g = hw::group("tma");
  auto cases = g.cases("tma_im2col");
  for (const hw::Json& c : cases) {
    plan::TensorMapArgs map = im2col_args(c);
    ASSERT_TRUE(plan::check(map).ok()) << c.dump();
    EXPECT_EQ(transaction_bytes(map), c.at("tx_count").get<uint32_t>());
    Coordinates at = coordinates(c);
    for (size_t i = 0; i < 2; ++i) at[kImageOffsets + i] = c.at("im2col_offsets")[i];
    std::vector<uint8_t> global = global_memory(map, 0);
    std::vector<uint8_t> shared(kBase + 4096, 0xaa);
    tma_load(map, at, kBase, shared.data(), global.data());
    auto image = g.array(c.at("image")).bytes;
    EXPECT_TRUE(std::equal(image.begin(), image.end(), shared.begin() + kBase)) << c.dump();
    const auto back = plan::decode(plan::encode(map).data());
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(plan::encode(*back), plan::encode(map));
    EXPECT_TRUE(back->im2col && back->pixels == map.pixels && back->lower == map.lower &&
                back->upper == map.upper);
  }
  EXPECT_EQ(cases.size(), 12u);
}

TEST(Tma, PlainBulkReductions) {
  const hw::Group& g = hw::group("tma");
  int n = 0;
  for (const hw::Json& c : g.cases("bulk")) {
    std::string ptx = c.at("ptx");
    if (!ptx.starts_with("cp.reduce")) continue;
    std::string tail = ptx.substr(ptx.find("bulk_group.") + 11);
    std::string op = tail.substr(0, tail.find('.')), type = tail.substr(tail.rfind('.') + 1);
    plan::MapType map_type = reduction_type(type);
    auto source = g.array(c.at("source")).bytes;
    auto before = g.array(c.at("before")).bytes, want = g.array(c.at("after")).bytes;
    std::vector<uint8_t> global(before.begin(), before.end());
    reduce_elements(map_type, reduce_op(op), global.data() + 32, source.data() + 64,
                    336 / plan::element_size(map_type));
    EXPECT_TRUE(std::equal(global.begin(), global.end(), want.begin(), want.end())) << ptx;
    ++n;
  }
  EXPECT_EQ(n, 18);
}

// Pieces partition the box: every element of a load comes once, and pieces never cross a 16-byte
// chunk where the image is swizzled.
TEST(Tma, PiecesPartitionTheBox) {
  int n = 0;
  for (const hw::Json& c : hw::group("tma").cases("tma_load")) {
    plan::TensorMapArgs map = map_args(c);
    std::set<uint32_t> seen;
    uint64_t total = 0;
    for_each_piece(map, coordinates(c), kBase, false, [&](const CopyPiece& p) {
      if (map.swizzle != plan::MapSwizzle::none) {
        EXPECT_LE(p.shared_address % 16 + p.bytes, 16u);
      }
      EXPECT_LE(p.shared_address + p.bytes, kBase + box_span(map));
      for (uint32_t i = 0; i < p.bytes; ++i) seen.insert(p.shared_address + i);
      total += p.bytes;
    });
    EXPECT_EQ(total, transaction_bytes(map));
    EXPECT_EQ(seen.size(), total);
    ++n;
  }
  EXPECT_EQ(n, 295);
}

TEST(Tma, RefusesByName) {
  plan::TensorMapArgs map{plan::MapType::bf16, 3, 0, {8, 8, 8}, {128, 1024}, {8, 4, 4}, {1, 1, 1}};
  EXPECT_TRUE(supported(map).ok());
  map.interleave = plan::MapInterleave::b16;
  EXPECT_TRUE(supported(map).ok());
  map.element_strides[1] = 2;
  ASSERT_FALSE(supported(map).ok());
  EXPECT_EQ(supported(map).error().kind, "unsupported");
  EXPECT_NE(supported(map).error().message.find("interleave"), std::string::npos);
  map.interleave = plan::MapInterleave::none;
  EXPECT_NE(check_copy(map, {}, 0x440, false).find("128-byte"), std::string::npos);
  EXPECT_NE(check_copy(map, {3}, 0x400, false).find("multiple of 16"), std::string::npos);
  EXPECT_NE(check_copy(map, {0, -1}, 0x400, true).find("negative"), std::string::npos);
  EXPECT_EQ(check_copy(map, {0, -1}, 0x400, false), "");
}

}  // namespace
}  // namespace ptxbench::emu
