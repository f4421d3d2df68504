#include "te/kernels/fused_cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "te/device_array.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

struct Shape {
  int64_t rows, cols;
};
// The published shapes of cast_transpose's own tests in small, aligned and ragged, and single rows
// and columns.
const Shape kShapes[] = {{1, 1},      {1, 130},  {131, 1},  {17, 33},   {64, 64},  {120, 208},
                         {128, 128},  {8, 8},    {48, 520}, {208, 137}, {16, 264}, {300, 640},
                         {120, 2080}, {1, 3221}, {2333, 1}, {1481, 677}};

struct Case {
  CastOp op = CastOp::cast_bf16;
  Fp8Format format = Fp8Format::e4m3;
  Shape shape;
  float scale = 3.5f;
  bool data = true, transpose = true, dbias = false;
  size_t shift = 0;  // elements off alignment
};

// Runs a case on the device and compares everything with fp64.
class CastCheck {
 public:
  explicit CastCheck(const Case& c)
      : c_(c),
        out_cols_(c.shape.cols * (c.op == CastOp::dswiglu ? 2 : 1)),
        in_cols_(c.shape.cols * (is_gated(c.op) ? 2 : 1)),
        in_(test::random_bf16(c.shape.rows * in_cols_, 1, 2)),
        grad_(test::random_bf16(c.shape.rows * c.shape.cols, 2)),
        f32_(test::random_f32(c.shape.rows * in_cols_, 3)) {}

  std::vector<uint16_t>& in() { return in_; }

  void go(const char* name) {
    SCOPED_TRACE(testing::Message() << name << " op " << int(c_.op) << " " << fp8_name(c_.format)
                                    << " " << c_.shape.rows << "x" << c_.shape.cols);
    const int64_t elements = c_.shape.rows * out_cols_;
    DeviceArray<uint16_t> in(in_, c_.shift), grad(grad_, c_.shift);
    DeviceArray<float> f32(f32_, c_.shift), scale(std::vector<float>{c_.scale}), scale_inv(1),
        amax(std::vector<float>{0});
    DeviceArray<uint8_t> data(elements, 0xee, c_.shift), transpose(elements, 0xee, c_.shift);
    DeviceArray<float> dbias(out_cols_);
    FusedCast call;
    call.op = c_.op, call.format = c_.format;
    call.rows = c_.shape.rows, call.cols = c_.shape.cols;
    call.in = c_.op == CastOp::cast_f32 ? static_cast<const void*>(f32.get()) : in.get();
    call.grad = is_backward(c_.op) ? grad.get() : nullptr;
    call.out = {c_.data ? data.get() : nullptr, c_.transpose ? transpose.get() : nullptr,
                scale.get(), scale_inv.get(), amax.get()};
    DeviceArray<uint8_t> workspace(
        std::vector<uint8_t>(fused_cast_workspace(c_.op, call.rows, call.cols), 0));
    if (c_.dbias) {
      call.dbias = dbias.get();
      call.workspace = workspace.get();
      call.workspace_bytes = fused_cast_workspace(c_.op, call.rows, call.cols);
    }
    // Twice: the workspace must come back fit for the next call.
    for (int i = 0; i < (c_.dbias ? 2 : 1); ++i) {
      auto done = fused_cast(call, nullptr);
      ASSERT_TRUE(done.ok()) << done.error().message;
    }
    compare(data.fetch(), transpose.fetch(), dbias.fetch(), amax.fetch()[0]);
    EXPECT_EQ(scale_inv.fetch()[0], 1.0f / c_.scale);
  }

 private:
  double value(int64_t row, int64_t col) const {  // of the output, before the scale
    const int64_t cols = c_.shape.cols;
    auto x = [&](int64_t r, int64_t k) { return test::bf16(in_[r * in_cols_ + k]); };
    auto g = [&](int64_t k) { return test::bf16(grad_[row * cols + k]); };
    switch (c_.op) {
      case CastOp::cast_bf16:
        return x(row, col);
      case CastOp::cast_f32:
        return f32_[row * cols + col];
      case CastOp::gelu:
        return test::gelu(x(row, col));
      case CastOp::swiglu:
        return test::silu(x(row, col)) * x(row, cols + col);
      case CastOp::dgelu:
        return g(col) * test::derivative(test::gelu, x(row, col));
      case CastOp::dswiglu:
        return col < cols ? g(col) * x(row, cols + col) * test::derivative(test::silu, x(row, col))
                          : g(col - cols) * test::silu(x(row, col - cols));
    }
    return NAN;
  }

  void compare(const std::vector<uint8_t>& data, const std::vector<uint8_t>& transpose,
               const std::vector<float>& dbias, float amax) const {
    const bool exact = c_.op == CastOp::cast_bf16 || c_.op == CastOp::cast_f32;
    double largest = 0;
    int64_t bad = 0, compared = 0;
    for (int64_t col = 0; col < out_cols_; ++col) {
      double sum = 0, magnitude = 0;
      for (int64_t row = 0; row < c_.shape.rows; ++row) {
        const double v = value(row, col);
        // fp32 arithmetic: a few ulp of the value, and of terms that cancel (gradients near zero).
        const double slack = exact ? 0 : 4e-6 * std::fabs(v) + 1e-6;
        const uint8_t straight = data[row * out_cols_ + col];
        const uint8_t turned = transpose[col * c_.shape.rows + row];
        if (c_.data) bad += !test::is_cast_of(straight, v, c_.scale, c_.format, slack), ++compared;
        if (c_.transpose)
          bad += !test::is_cast_of(turned, v, c_.scale, c_.format, slack), ++compared;
        if (c_.data && c_.transpose) bad += straight != turned;
        largest = std::fmax(largest, std::fabs(v));
        sum += v, magnitude += std::fabs(v);
      }
      if (c_.dbias) {
        ASSERT_NEAR(dbias[col], sum, 1e-5 * magnitude + 1e-5) << "bias " << col;
      }
    }
    EXPECT_EQ(bad, 0);
    EXPECT_EQ(compared, c_.shape.rows * out_cols_ * (c_.data + c_.transpose));
    if (exact)
      EXPECT_EQ(amax, static_cast<float>(largest));
    else
      EXPECT_NEAR(amax, largest, 4e-6 * largest);
  }

  Case c_;
  int64_t out_cols_, in_cols_;
  std::vector<uint16_t> in_, grad_;
  std::vector<float> f32_;
};

TEST(FusedCast, CastTransposeOnAllShapes) {
  for (const Shape& s : kShapes)
    for (Fp8Format f : {Fp8Format::e4m3, Fp8Format::e5m2}) {
      CastCheck({CastOp::cast_bf16, f, s}).go("bf16");
      CastCheck({CastOp::cast_f32, f, s, 0.375f}).go("f32");
    }
}

TEST(FusedCast, EitherCopyAlone) {
  for (const Shape& s : {Shape{17, 33}, Shape{64, 128}}) {
    CastCheck({.shape = s, .transpose = false}).go("data only");
    CastCheck({.shape = s, .data = false}).go("transpose only");
  }
}

TEST(FusedCast, MisalignedPointersAreRight) {
  for (const Shape& s : {Shape{64, 64}, Shape{128, 256}})
    for (CastOp op : {CastOp::cast_bf16, CastOp::cast_f32, CastOp::dgelu})
      CastCheck({.op = op, .shape = s, .dbias = true, .shift = 1}).go("shifted");
}

TEST(FusedCast, Activations) {
  for (const Shape& s : {Shape{1, 130}, Shape{17, 33}, Shape{64, 264}, Shape{144, 72}})
    for (CastOp op : {CastOp::gelu, CastOp::swiglu})
      for (Fp8Format f : {Fp8Format::e4m3, Fp8Format::e5m2})
        CastCheck({op, f, s, 16}).go("forward");
}

TEST(FusedCast, ActivationGradientsAndBias) {
  for (const Shape& s :
       {Shape{1, 130}, Shape{17, 33}, Shape{64, 264}, Shape{208, 72}, Shape{131, 1}})
    for (CastOp op : {CastOp::cast_bf16, CastOp::dgelu, CastOp::dswiglu})
      for (Fp8Format f : {Fp8Format::e4m3, Fp8Format::e5m2})
        CastCheck({.op = op, .format = f, .shape = s, .scale = 16, .dbias = true}).go("backward");
}

// More tiles than the large shape needs to be chosen, in every kernel that has it.
TEST(FusedCast, LargeTiles) {
  const Shape s = {2048 + 16, 2560 + 8};
  const std::vector<uint16_t> in = test::random_bf16(s.rows * s.cols, 1, 2);
  DeviceArray<uint16_t> x(in);
  for (CastTile tile : kCastTiles)
    for (bool down_first : {false, true}) {
      DeviceArray<uint8_t> data(s.rows * s.cols), transpose(s.rows * s.cols);
      DeviceArray<float> amax(std::vector<float>{0}), dbias(s.cols);
      const size_t bytes = fused_cast_workspace(CastOp::cast_bf16, s.rows, s.cols);
      DeviceArray<uint8_t> workspace(std::vector<uint8_t>(bytes, 0));
      FusedCast call;
      call.rows = s.rows, call.cols = s.cols, call.in = x.get();
      call.out.data = data.get(), call.out.transpose = transpose.get(), call.out.amax = amax.get();
      call.dbias = dbias.get(), call.workspace = workspace.get(), call.workspace_bytes = bytes;
      FusedCastPlan plan = plan_fused_cast(call, 132);
      EXPECT_EQ(plan.tile, CastTile::t64x256);
      EXPECT_TRUE(plan.vector);
      plan = cut(call, tile);
      plan.vector = true, plan.down_first = down_first;
      // As many CTAs as tiles, or runs of several tiles, some shorter than others.
      if (down_first) plan.runs = balanced_runs(plan, 200);
      ASSERT_TRUE(fused_cast(call, plan, nullptr).ok());
      const auto got = data.fetch(), turned = transpose.fetch();
      const auto sums = dbias.fetch();
      int64_t bad = 0;
      float largest = 0;
      for (int64_t c = 0; c < s.cols; ++c) {
        double sum = 0, magnitude = 0;
        for (int64_t r = 0; r < s.rows; ++r) {
          const float v = numeric::bf16_to_float(in[r * s.cols + c]);
          const uint8_t expected = numeric::e4m3_from_float(v);
          bad += got[r * s.cols + c] != expected;
          bad += turned[c * s.rows + r] != expected;
          largest = std::fmax(largest, std::fabs(v));
          sum += v, magnitude += std::fabs(v);
        }
        ASSERT_NEAR(sums[c], sum, 1e-5 * magnitude);
      }
      EXPECT_EQ(bad, 0) << plan.describe();
      EXPECT_EQ(amax.fetch()[0], largest);
    }
}

// Every 37th row and 41st column of a large call, of both copies; all of the bias gradients'
// columns sampled.
TEST(FusedCast, FourThousandSquareSampled) {
  const int64_t n = 4096;
  const std::vector<uint16_t> x = test::random_bf16(n * n, 8), dy = test::random_bf16(n * n, 9);
  DeviceArray<uint16_t> dx(x), ddy(dy);
  DeviceArray<uint8_t> data(n * n), transpose(n * n);
  DeviceArray<float> dbias(n), scale(std::vector<float>{8});
  const size_t bytes = fused_cast_workspace(CastOp::dgelu, n, n);
  DeviceArray<uint8_t> workspace(std::vector<uint8_t>(bytes, 0));
  FusedCast call;
  call.op = CastOp::dgelu, call.format = Fp8Format::e5m2, call.rows = call.cols = n;
  call.in = dx.get(), call.grad = ddy.get(), call.out.data = data.get();
  call.out.transpose = transpose.get(), call.out.scale = scale.get();
  call.dbias = dbias.get(), call.workspace = workspace.get(), call.workspace_bytes = bytes;
  ASSERT_TRUE(fused_cast(call, nullptr).ok());
  const auto got = data.fetch(), turned = transpose.fetch();
  const auto sums = dbias.fetch();
  int64_t bad = 0, compared = 0;
  auto value = [&](int64_t r, int64_t c) {
    return test::bf16(dy[r * n + c]) * test::derivative(test::gelu, test::bf16(x[r * n + c]));
  };
  for (int64_t c = 5; c < n; c += 41)
    for (int64_t r = 3; r < n; r += 37) {
      const double v = value(r, c), slack = 4e-6 * std::fabs(v) + 1e-6;
      bad += !test::is_cast_of(got[r * n + c], v, 8, call.format, slack);
      bad += got[r * n + c] != turned[c * n + r];
      ++compared;
    }
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(compared, 100 * 111);
  for (int64_t c = 7; c < n; c += 401) {
    double sum = 0, magnitude = 0;
    for (int64_t r = 0; r < n; ++r) sum += value(r, c), magnitude += std::fabs(value(r, c));
    EXPECT_NEAR(sums[c], sum, 1e-5 * magnitude);
  }
}

TEST(FusedCast, ActivationsOfOddValues) {
  const float inf = std::numeric_limits<float>::infinity();
  for (CastOp op : {CastOp::gelu, CastOp::swiglu})
    for (auto [x, expected] : {std::pair{inf, uint8_t{0x7e}},
                               {-inf, uint8_t{0x80}},
                               {-300.0f, uint8_t{0x80}},
                               {300.0f, uint8_t{0x79}}}) {
      std::vector<uint16_t> in(64 * 128, numeric::bf16_from_float(1));
      for (int r = 0; r < 64; ++r)
        in[r * (op == CastOp::swiglu ? 128 : 64)] = numeric::bf16_from_float(x);
      DeviceArray<uint16_t> device(in);
      DeviceArray<uint8_t> data(64 * 64);
      FusedCast call;
      call.op = op, call.rows = call.cols = 64, call.in = device.get(), call.out.data = data.get();
      ASSERT_TRUE(fused_cast(call, nullptr).ok());
      EXPECT_EQ(data.fetch()[0], expected) << x;
    }
  for (CastOp op : {CastOp::gelu, CastOp::swiglu, CastOp::dgelu, CastOp::dswiglu}) {
    DeviceArray<uint16_t> nan(std::vector<uint16_t>(64 * 128, 0x7fff)),
        grad(std::vector<uint16_t>(64 * 64, numeric::bf16_from_float(1)));
    DeviceArray<uint8_t> data(64 * 128);
    FusedCast call;
    call.op = op, call.rows = call.cols = 64, call.in = nan.get(), call.grad = grad.get();
    call.out.data = data.get();
    ASSERT_TRUE(fused_cast(call, nullptr).ok());
    EXPECT_EQ(data.fetch()[0] & 0x7f, 0x7f);
  }
}

TEST(FusedCast, OddValues) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, NAN, -0.0f, 1e-40f}) {
    std::vector<uint16_t> in(64 * 64, numeric::bf16_from_float(0.5f));
    in[65] = numeric::bf16_from_float(odd);
    DeviceArray<uint16_t> x(in);
    DeviceArray<uint8_t> data(64 * 64), transpose(64 * 64);
    DeviceArray<float> amax(std::vector<float>{0.25f});
    FusedCast call;
    call.rows = call.cols = 64, call.in = x.get();
    call.out.data = data.get(), call.out.transpose = transpose.get(), call.out.amax = amax.get();
    ASSERT_TRUE(fused_cast(call, nullptr).ok());
    const auto got = data.fetch(), turned = transpose.fetch();
    const uint8_t expected = numeric::e4m3_from_float(odd);
    EXPECT_EQ(got[65], expected);
    EXPECT_EQ(turned[65], expected);  // row 1, column 1: on the diagonal
    EXPECT_EQ(got[66], numeric::e4m3_from_float(0.5f));
    EXPECT_EQ(amax.fetch()[0], std::isinf(odd) ? inf : 0.5f) << odd;  // NaN is not recorded
  }
}

TEST(FusedCast, AmaxIsNeverLowered) {
  DeviceArray<uint16_t> x(test::random_bf16(64 * 64, 5));
  DeviceArray<uint8_t> data(64 * 64);
  DeviceArray<float> amax(std::vector<float>{1000});
  FusedCast call;
  call.rows = call.cols = 64, call.in = x.get(), call.out.data = data.get(),
  call.out.amax = amax.get();
  ASSERT_TRUE(fused_cast(call, nullptr).ok());
  EXPECT_EQ(amax.fetch()[0], 1000);
}

TEST(FusedCast, NoopFlagWritesNothing) {
  for (float flag : {0.0f, 1.0f}) {
    DeviceArray<uint16_t> x(test::random_bf16(64 * 64, 5));
    DeviceArray<uint8_t> data(64 * 64), transpose(64 * 64);
    DeviceArray<float> amax(std::vector<float>{0}), noop(std::vector<float>{flag});
    FusedCast call;
    call.rows = call.cols = 64, call.in = x.get(), call.noop = noop.get();
    call.out.data = data.get(), call.out.transpose = transpose.get(), call.out.amax = amax.get();
    ASSERT_TRUE(fused_cast(call, nullptr).ok());
    const std::vector<uint8_t> untouched(64 * 64, 0xee);
    EXPECT_EQ(data.fetch() == untouched, flag == 1);
    EXPECT_EQ(transpose.fetch() == untouched, flag == 1);
    EXPECT_EQ(amax.fetch()[0] == 0, flag == 1);
  }
}

TEST(FusedCast, OneLaunch) {
  DeviceArray<uint16_t> x(test::random_bf16(256 * 256, 5)), grad(test::random_bf16(256 * 256, 6));
  DeviceArray<uint8_t> data(256 * 256), transpose(256 * 256);
  DeviceArray<float> dbias(256);
  for (CastOp op :
       {CastOp::cast_bf16, CastOp::gelu, CastOp::swiglu, CastOp::dgelu, CastOp::dswiglu}) {
    FusedCast call;
    call.op = op, call.rows = 128, call.cols = 128, call.in = x.get(), call.grad = grad.get();
    call.out.data = data.get(), call.out.transpose = transpose.get();
    const size_t bytes = fused_cast_workspace(op, 128, 128);
    DeviceArray<uint8_t> workspace(std::vector<uint8_t>(bytes, 0));
    call.dbias = dbias.get(), call.workspace = workspace.get(), call.workspace_bytes = bytes;
    EXPECT_EQ(test::work_of([&](cudaStream_t s) { EXPECT_TRUE(fused_cast(call, s).ok()); }),
              test::kOneKernel);
  }
}

TEST(FusedCast, PlansSayWhatTheyDo) {
  FusedCast call;
  call.rows = 8192, call.cols = 4096;
  call.in = call.out.data = call.out.transpose = reinterpret_cast<uint8_t*>(4096);
  EXPECT_EQ(plan_fused_cast(call, 132).describe(),
            "64x256 tiles, 128 down x 16 across, 16-byte accesses, across first");
  float sums = 0;
  call.dbias = &sums;
  EXPECT_EQ(plan_fused_cast(call, 132).describe(),
            "64x256 tiles, 128 down x 16 across, 16 CTAs a column, 16-byte accesses, across first");
  call.dbias = nullptr;
  call.cols = 4095;
  EXPECT_EQ(plan_fused_cast(call, 132).describe(),
            "64x64 tiles, 128 down x 64 across, element by element, across first");
  // More elements than 32 bits count.
  call.rows = int64_t{1} << 20, call.cols = 1 << 13;
  const FusedCastPlan big = plan_fused_cast(call, 132);
  EXPECT_EQ(int64_t{big.tile_rows} * big.tile_cols, (int64_t{1} << 33) / (64 * 256));
  EXPECT_GT(fused_cast_workspace(CastOp::dswiglu, call.rows, call.cols), size_t{1} << 30);
}

TEST(FusedCast, BadArgumentsAreNamed) {
  DeviceArray<uint16_t> x(64);
  DeviceArray<uint8_t> data(64);
  FusedCast good;
  good.rows = good.cols = 8, good.in = x.get(), good.out.data = data.get();
  auto message = [&](auto change) {
    FusedCast call = good;
    change(call);
    auto done = fused_cast(call, nullptr);
    return done.ok() ? std::string("accepted") : done.error().kind + ": " + done.error().message;
  };
  EXPECT_EQ(message([](FusedCast& c) { c.rows = 0; }),
            "usage: fused cast: the tensor is empty (0 x 8)");
  EXPECT_EQ(message([](FusedCast& c) { c.in = nullptr; }),
            "usage: fused cast: in is a null pointer");
  EXPECT_EQ(message([](FusedCast& c) { c.in = reinterpret_cast<void*>(uintptr_t(c.in) + 1); }),
            "usage: fused cast: in is not aligned to its 2-byte elements");
  EXPECT_EQ(message([](FusedCast& c) { c.op = CastOp::dgelu; }),
            "usage: fused cast: grad is a null pointer");
  EXPECT_EQ(message([](FusedCast& c) { c.out.data = nullptr; }),
            "usage: fused cast: neither data nor transpose is asked for");
  EXPECT_NE(
      message([&](FusedCast& c) { c.dbias = reinterpret_cast<float*>(x.get()); }).find("workspace"),
      std::string::npos);
  EXPECT_NE(message([](FusedCast& c) { c.rows = int64_t{1} << 40; }).find("2^40"),
            std::string::npos);
}

}  // namespace
}  // namespace ptxbench::te
