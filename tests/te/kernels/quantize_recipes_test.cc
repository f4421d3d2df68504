// Current scaling (amax, scale) and block scaling.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "te/device_array.h"
#include "te/kernels/block_cast.h"
#include "te/kernels/current_scale.h"
#include "te/kernels/fused_cast.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

// The scale by the recipe's definition, in double and rounded once.
float scale_by_definition(float amax, bool power_of_two) {
  if (amax == 0 || !std::isfinite(amax)) return 1;
  const float scale = static_cast<float>(448.0 / amax);
  return power_of_two ? static_cast<float>(std::ldexp(1, std::ilogb(scale))) : scale;
}

TEST(CurrentScale, AmaxAndScaleOfAnyLengthAndAlignment) {
  for (int64_t count : {1, 3, 7, 8, 1000, 16384 * 5 + 3})
    for (size_t shift : {0, 1, 3})
      for (bool f32 : {false, true}) {
        const auto half = test::random_bf16(count, 21);
        const auto full = test::random_f32(count, 22);
        DeviceArray<uint16_t> x16(half, shift);
        DeviceArray<float> x32(full, shift), amax(1), scale(1);
        DeviceArray<uint8_t> workspace(std::vector<uint8_t>(amax_workspace(), 0));
        AmaxCall call;
        call.f32 = f32, call.count = count;
        call.x = f32 ? static_cast<const void*>(x32.get()) : x16.get();
        call.amax = amax.get(), call.scale = scale.get();
        call.workspace = workspace.get(), call.workspace_bytes = amax_workspace();
        float expected = 0;
        for (int64_t i = 0; i < count; ++i)
          expected =
              std::fmax(expected, std::fabs(f32 ? full[i] : numeric::bf16_to_float(half[i])));
        for (int run = 0; run < 2; ++run) {
          call.recipe.power_of_two_scales = run == 1;
          auto done = compute_amax(call, nullptr);
          ASSERT_TRUE(done.ok()) << done.error().message;
          ASSERT_EQ(amax.fetch()[0], expected) << count << " shift " << shift;
          ASSERT_EQ(scale.fetch()[0], scale_by_definition(expected, run == 1));
        }
      }
}

TEST(CurrentScale, OddValues) {
  const float inf = std::numeric_limits<float>::infinity();
  for (auto [odd, amax_expected, scale_expected] :
       {std::tuple{inf, inf, 1.0f}, {NAN, 0.5f, 896.0f}, {0.0f, 0.5f, 896.0f}}) {
    DeviceArray<float> x(std::vector<float>{0.5f, odd, -0.25f}), amax(1), scale(1), later(1);
    DeviceArray<uint8_t> workspace(std::vector<uint8_t>(amax_workspace(), 0));
    AmaxCall call;
    call.f32 = true, call.count = 3, call.x = x.get(), call.amax = amax.get(),
    call.scale = scale.get();
    call.workspace = workspace.get(), call.workspace_bytes = amax_workspace();
    ASSERT_TRUE(compute_amax(call, nullptr).ok());
    EXPECT_EQ(amax.fetch()[0], amax_expected);
    EXPECT_EQ(scale.fetch()[0], scale_expected);
    ASSERT_TRUE(scale_from_amax(amax.get(), later.get(), {}, Fp8Format::e4m3, nullptr).ok());
    EXPECT_EQ(later.fetch()[0], scale_expected);
  }
}

TEST(CurrentScale, TwoLaunchesQuantizeATensor) {
  DeviceArray<uint16_t> x(test::random_bf16(64 * 64, 3));
  DeviceArray<float> amax(1), scale(1);
  DeviceArray<uint8_t> workspace(std::vector<uint8_t>(amax_workspace(), 0)), data(64 * 64);
  AmaxCall call;
  call.count = 64 * 64, call.x = x.get(), call.amax = amax.get(), call.scale = scale.get();
  call.workspace = workspace.get(), call.workspace_bytes = amax_workspace();
  FusedCast cast;
  cast.rows = cast.cols = 64, cast.in = x.get(), cast.out.data = data.get(),
  cast.out.scale = scale.get();
  EXPECT_EQ(test::work_of([&](cudaStream_t s) {
              EXPECT_TRUE(compute_amax(call, s).ok());
              EXPECT_TRUE(fused_cast(cast, s).ok());
            }),
            (test::Work{2, 0}));
}

void check_blocks(int64_t rows, int64_t cols, bool square, bool power_of_two, size_t shift) {
  SCOPED_TRACE(testing::Message() << rows << "x" << cols << (square ? " square" : " strips"));
  const auto x = test::random_bf16(rows * cols, 31, 3);
  const int64_t down = (rows + 127) / 128, across = (cols + 127) / 128;
  DeviceArray<uint16_t> in(x, shift);
  DeviceArray<uint8_t> data(rows * cols, 0xee, shift), transpose(rows * cols, 0xee, shift);
  DeviceArray<float> inv(square ? down * across : rows * across),
      inv_t(square ? down * across : cols * down);
  BlockCast call;
  call.rows = rows, call.cols = cols, call.in = in.get(), call.square = square;
  call.recipe.power_of_two_scales = power_of_two;
  call.data = data.get(), call.transpose = transpose.get();
  call.scale_inv = inv.get(), call.transpose_scale_inv = inv_t.get();
  auto done = block_cast(call, nullptr);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto got = data.fetch(), turned = transpose.fetch();
  const auto scales = inv.fetch(), scales_t = inv_t.fetch();
  auto value = [&](int64_t r, int64_t c) { return numeric::bf16_to_float(x[r * cols + c]); };
  auto amax_of = [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    float amax = 0;
    for (int64_t r = r0; r < std::min(r1, rows); ++r)
      for (int64_t c = c0; c < std::min(c1, cols); ++c)
        amax = std::fmax(amax, std::fabs(value(r, c)));
    return amax;
  };
  int64_t bad = 0;
  std::vector<float> square_scale(square ? down * across : 0);
  for (int64_t i = 0; i < static_cast<int64_t>(square_scale.size()); ++i) {
    const int64_t r = i / across * 128, c = i % across * 128;
    square_scale[i] = scale_by_definition(amax_of(r, r + 128, c, c + 128), power_of_two);
    bad += scales[i] != 1 / square_scale[i];
    bad += scales_t[i % across * down + i / across] != 1 / square_scale[i];
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t b = 0; b < across; ++b) {
      const float scale =
          square ? square_scale[r / 128 * across + b]
                 : scale_by_definition(amax_of(r, r + 1, b * 128, b * 128 + 128), power_of_two);
      if (!square) bad += scales[r * across + b] != 1 / scale;
      for (int64_t c = b * 128; c < std::min(cols, b * 128 + 128); ++c)
        bad += got[r * cols + c] != numeric::e4m3_from_float(value(r, c) * scale);
    }
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t b = 0; b < down; ++b) {
      const float scale =
          square ? square_scale[b * across + c / 128]
                 : scale_by_definition(amax_of(b * 128, b * 128 + 128, c, c + 1), power_of_two);
      if (!square) bad += scales_t[c * down + b] != 1 / scale;
      for (int64_t r = b * 128; r < std::min(rows, b * 128 + 128); ++r)
        bad += turned[c * rows + r] != numeric::e4m3_from_float(value(r, c) * scale);
    }
  EXPECT_EQ(bad, 0);
}

TEST(BlockCast, StripsAndSquares) {
  for (auto [rows, cols] : {std::pair{1, 1}, {17, 33}, {128, 128}, {144, 264}, {130, 301}})
    for (bool square : {false, true})
      for (bool power_of_two : {false, true}) check_blocks(rows, cols, square, power_of_two, 0);
  check_blocks(128, 128, false, true, 1);
  check_blocks(128, 128, true, true, 1);
}

TEST(BlockCast, OneLaunchAndNamedArguments) {
  DeviceArray<uint16_t> in(test::random_bf16(64 * 64, 3));
  DeviceArray<uint8_t> data(64 * 64);
  DeviceArray<float> inv(64);
  BlockCast call;
  call.rows = call.cols = 64, call.in = in.get(), call.data = data.get(),
  call.scale_inv = inv.get();
  EXPECT_EQ(test::work_of([&](cudaStream_t s) { EXPECT_TRUE(block_cast(call, s).ok()); }),
            test::kOneKernel);
  call.scale_inv = nullptr;
  EXPECT_EQ(block_cast(call, nullptr).error().message, "block cast: scale_inv is a null pointer");
}

}  // namespace
}  // namespace ptxbench::te
