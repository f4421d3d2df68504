// plan/tensor_map against the driver's recorded answers.
#include "plan/tensor_map.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tensor_map_args.h"

namespace ptxbench {
namespace {

// The driver's address space starts at some allocation; any 1 KiB aligned one will do.
constexpr uint64_t kAllocation = 0x7f0000000000;

TEST(TensorMap, EncoderAgreesWithTheDriver) {
  int refused = 0, encoded = 0;
  for (const hw::Json& c : hw::group("tma").cases("encode")) {
    std::string name = c.at("name");
    if (name == "1d with a null globalStrides pointer") {
      EXPECT_EQ(c.at("encode_result"),
                1);  // a pointer, not an argument set: the API layer refuses it
      continue;
    }
    plan::TensorMapArgs args = map_args(c);
    args.global_address = kAllocation + c.at("address_offset").get<uint64_t>();
    auto checked = plan::check(args);
    EXPECT_EQ(checked.ok(), c.at("encode_result") == 0) << name;
    if (!checked.ok()) {
      EXPECT_EQ(checked.error().kind, "tensor-map");
      EXPECT_FALSE(checked.error().message.empty());
      ++refused;
      continue;
    }
    std::array<uint8_t, 128> got = plan::encode(args);
    for (int i = 0; i < 16; ++i) {
      uint64_t word;
      std::memcpy(&word, got.data() + 8 * i, 8);
      if (i == 0) word -= kAllocation;
      EXPECT_EQ(word, c.at("words")[i].get<uint64_t>()) << name << " word " << i;
    }
    ++encoded;
  }
  EXPECT_EQ(refused, 27);
  EXPECT_EQ(encoded, 26);
}

TEST(TensorMap, DecodeInvertsEncode) {
  int n = 0;
  for (const hw::Json& c : hw::group("tma").cases()) {
    if (!c.contains("box") || c.at("rank").get<int>() > 5) continue;
    plan::TensorMapArgs args = map_args(c);
    args.global_address = kAllocation;
    args.l2_promotion = n % 4;
    if (!plan::check(args).ok()) continue;
    auto back = plan::decode(plan::encode(args).data());
    ASSERT_TRUE(back.ok()) << back.error().message;
    for (uint32_t i = args.rank; i < 5; ++i)
      args.dims[i] = args.box[i] = args.element_strides[i] = 0;
    for (uint32_t i = args.rank - 1; i < 4; ++i) args.strides[i] = 0;
    EXPECT_TRUE(*back == args) << c.dump();
    ++n;
  }
  EXPECT_GT(n, 400);
}

TEST(TensorMap, DecodeRefusesOtherBytes) {
  std::array<uint8_t, 128> bytes{};
  EXPECT_FALSE(plan::decode(bytes.data()).ok());
  plan::TensorMapArgs args{plan::MapType::bf16, 2, 0x1000, {64, 40}, {128}, {32, 16}, {1, 1}};
  const std::array<uint8_t, 128> good = plan::encode(args);
  ASSERT_TRUE(plan::decode(good.data()).ok());
  int survived = 0;  // flips in address, dims, strides and box give other valid maps, beyond the
                     // rank too, as do box bytes and alignment (a map that tensormap.replace
                     // changed keeps them); others do not
  for (int bit = 0; bit < 1024; ++bit) {
    bytes = good;
    bytes[bit / 8] ^= 1 << (bit % 8);
    survived += plan::decode(bytes.data()).ok();
  }
  EXPECT_LT(survived, 450);
  bytes.fill(0xff);
  EXPECT_FALSE(plan::decode(bytes.data()).ok());
}

}  // namespace
}  // namespace ptxbench
