// Tensor copies of the second recording: interleaved layouts, im2col maps of every rank, and what
// tensormap.replace makes of a descriptor.
#include <gtest/gtest.h>

#include <cstring>

#include "emu/tensor_map_args.h"
#include "emu/tma.h"

namespace ptxbench::emu {
namespace {

constexpr uint32_t kBase = 0x400;  // of the image in shared memory
constexpr uint64_t kAllocation = 0x7f0000000000;

plan::TensorMapArgs args_of(const hw::Json& c) {
  hw::Json full = c;
  full["nan_fill"] = 0;
  plan::TensorMapArgs map = c.contains("box") ? map_args(full) : im2col_args(full);
  map.swizzle = static_cast<plan::MapSwizzle>(c.at("swizzle").get<int>());
  return map;
}

Coordinates coordinates(const hw::Json& c) {
  Coordinates at{};
  for (size_t i = 0; i < c.at("coords").size(); ++i) at[i] = c["coords"][i];
  if (c.contains("im2col_offsets"))
    for (size_t i = 0; i < c["im2col_offsets"].size(); ++i)
      at[kImageOffsets + i] = c["im2col_offsets"][i];
  return at;
}

// Element e holds e + 1 in as many bytes as it has.
std::vector<uint8_t> counted(size_t bytes, size_t element) {
  std::vector<uint8_t> out(bytes);
  for (size_t e = 0; e < bytes / element; ++e) {
    const uint32_t v = static_cast<uint32_t>(e + 1);
    std::memcpy(&out[e * element], &v, element);
  }
  return out;
}

void expect_words(const hw::Group& g, const hw::Json& c, const plan::TensorMapArgs& map) {
  plan::TensorMapArgs placed = map;
  placed.global_address = kAllocation;
  const auto got = plan::encode(placed);
  const auto want = g.array(c.at("words")).as<uint64_t>();
  for (size_t i = 0; i < 16; ++i) {
    uint64_t word;
    std::memcpy(&word, got.data() + 8 * i, 8);
    EXPECT_EQ(word - (i == 0 ? kAllocation : 0), want[i]) << c.dump() << " word " << i;
  }
  const auto back = plan::decode(got.data());
  ASSERT_TRUE(back.ok()) << c.dump() << back.error().message;
  EXPECT_EQ(plan::encode(*back), got);
}

// False if the case faulted, as it did on silicon.
bool compare(const hw::Group& g, const hw::Json& c, bool store) {
  const plan::TensorMapArgs map = args_of(c);
  const Coordinates at = coordinates(c);
  EXPECT_TRUE(plan::check(map).ok()) << c.dump();
  EXPECT_TRUE(supported(map, store).ok()) << c.dump();
  const std::string why = check_copy(map, at, kBase, store);
  EXPECT_EQ(!why.empty(), c.contains("fault")) << c.dump() << why;
  if (c.contains("fault")) return false;
  expect_words(g, c, map);
  const auto image = g.array(c.at("image")).bytes;
  if (store) {
    std::vector<uint8_t> shared(kBase + image.size());
    std::copy(image.begin(), image.end(), shared.begin() + kBase);
    const auto want = g.array(c.at("after")).bytes;
    std::vector<uint8_t> global(1 << 18, 0xee);
    tma_store(map, at, kBase, shared.data(), global.data());
    EXPECT_TRUE(std::equal(want.begin(), want.end(), global.begin())) << c.dump();
    return true;
  }
  const uint64_t word = g.array(c.at("barrier_word")).at(0);
  EXPECT_EQ(word >> 21 & 0x1fffff, transaction_bytes(map)) << c.dump();
  const size_t element = static_cast<size_t>(plan::element_size(map.type));
  const std::vector<uint8_t> global = counted(1 << 18, element);
  std::vector<uint8_t> shared(kBase + image.size(), 0xaa);
  tma_load(map, at, kBase, shared.data(), global.data());
  EXPECT_TRUE(std::equal(image.begin(), image.end(), shared.begin() + kBase)) << c.dump();
  EXPECT_LE(box_span(map), image.size());
  return true;
}

struct Expected {
  const char* kind;
  int equal, faults;
};
class CopiesVectors : public ::testing::TestWithParam<Expected> {};

TEST_P(CopiesVectors, EqualTheRecording) {
  const hw::Group& g = hw::group("copies_more");
  int equal = 0, faults = 0;
  for (const hw::Json& c : g.cases(GetParam().kind))
    ++(compare(g, c, std::string(GetParam().kind).ends_with("store")) ? equal : faults);
  EXPECT_EQ(equal, GetParam().equal);
  EXPECT_EQ(faults, GetParam().faults);
}
INSTANTIATE_TEST_SUITE_P(Kinds, CopiesVectors,
                         ::testing::Values(Expected{"copy_tiled_load", 144, 0},
                                           Expected{"copy_tiled_store", 120, 24},
                                           Expected{"copy_im2col_load", 48, 0},
                                           Expected{"copy_im2col_store", 24, 24}),
                         [](const auto& info) { return std::string(info.param.kind); });

// `what` of a case: which statement of the recorder's kernel ran (bench/hardware/record_copies.cu).
TEST(CopiesVectors, TensormapReplace) {
  using plan::MapField;
  const hw::Group& g = hw::group("copies_more");
  std::vector<uint64_t> start;
  int compared = 0;
  for (const hw::Json& c : g.cases("replace")) {
    const int what = c.at("what");
    uint64_t value = c.at("value");
    const auto want = g.array(c.at("words")).as<uint64_t>();
    if (what == -1) {
      start.assign(want.begin(), want.end());
      continue;
    }
    ASSERT_EQ(start.size(), 16u);
    struct Field {
      int first, last;
      MapField field;
    };
    const Field fields[] = {{0, 0, MapField::global_address}, {1, 1, MapField::rank},
                            {2, 4, MapField::box_dim},        {5, 7, MapField::global_dim},
                            {8, 9, MapField::global_stride},  {10, 12, MapField::element_stride},
                            {20, 32, MapField::elemtype},     {40, 42, MapField::interleave_layout},
                            {50, 53, MapField::swizzle_mode}, {60, 61, MapField::fill_mode}};
    std::vector<uint64_t> words = start;
    for (const Field& f : fields)
      if (what >= f.first && what <= f.last) {
        const uint32_t n = static_cast<uint32_t>(what - f.first);
        if (what >= 20) value = n;  // an immediate
        auto done = plan::replace(reinterpret_cast<uint8_t*>(words.data()), f.field,
                                  what < 20 ? n : 0, value);
        EXPECT_TRUE(done.ok()) << what << " " << value << done.error().message;
        ++compared;
      }
    EXPECT_TRUE(std::equal(words.begin(), words.end(), want.begin())) << what << " " << value;
  }
  EXPECT_EQ(compared, 74);
}

}  // namespace
}  // namespace ptxbench::emu
