#include "bench/op/fp8_gemm_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "bench/blas.h"
#include "bench/gpu/reference.h"
#include "bench/op/operation.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr int64_t kBlock = Fp8Gemm::kBlock;
constexpr int64_t kElements = int64_t{1} << 22;  // of a block of rows of D
constexpr double kCut = 0x1p-13;                 // of the largest number that is added

// Columns first..first+128 of rows row.. of a matrix of e4m3, as doubles.
void widen(std::span<const uint8_t> matrix, int64_t k, int64_t row, int64_t rows, int64_t first,
           int threads, std::vector<double>& to) {
  static const std::array<double, 256> kValues = [] {
    std::array<double, 256> values{};
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(numeric::e4m3_to_float(static_cast<uint8_t>(i)));
    return values;
  }();
  to.resize(static_cast<size_t>(rows * kBlock));
  parallel_for((rows + kBlock - 1) / kBlock, threads, [&](int64_t part) {
    for (int64_t r = part * kBlock; r < std::min((part + 1) * kBlock, rows); ++r)
      for (int64_t c = 0; c < kBlock; ++c)
        to[static_cast<size_t>(r * kBlock + c)] =
            kValues[matrix[static_cast<size_t>((row + r) * k + first + c)]];
  });
}

void square(const std::vector<double>& from, std::vector<double>& to) {
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = from[i] * from[i];
}

// Variance of a block's sum, from the sum and the sum of its squared products. All are cut at a
// unit u = 2^-13 of the largest among them: of 32 products some 4 times their root mean square, or
// the running sum, on average half of the whole. Cutting n numbers towards zero costs n u^2 / 3
// where signs alternate, and u/2 for each by which one sign prevails, of which there are about
// sum / root mean square.
double block_variance(double sum, double squares) {
  if (squares == 0) return 0;
  const double sum2 = sum * sum, mean = squares / kBlock;
  const double unit2 = kCut * kCut * std::max(16 * mean, sum2 / 4);
  const double prevailing2 = std::min(sum2 / mean, double{kBlock} * kBlock);
  return unit2 * (kBlock / 3.0 + prevailing2 / 4);
}

}  // namespace

Result<void> fp8_gemm_fp64(const Fp8Gemm& gemm, int threads, const NoisyBlockSink& sink) {
  if (device::Device* device = ReferenceOnDevice::current()) {
    std::vector<double> d(static_cast<size_t>(gemm.m * gemm.n)), noise(d.size());
    PB_RETURN_IF_ERROR(fp8_gemm_fp64_on(*device,
                                        {gemm.m, gemm.n, gemm.k, gemm.scale_b_rows, gemm.a, gemm.b,
                                         gemm.scale_a, gemm.scale_b, rounding_variance(8)},
                                        d, noise));
    sink(0, gemm.m, d, noise);
    return {};
  }
  const int64_t n = gemm.n, blocks = gemm.blocks();
  const int64_t rows = std::clamp<int64_t>(kElements / n / 16 * 16, 16, 1024);
  const double output_variance = rounding_variance(8);
  std::vector<double> a, b, a2, b2, sum, squares, d, noise;
  for (int64_t first = 0; first < gemm.m; first += rows) {
    const int64_t count = std::min(rows, gemm.m - first);
    for (auto* x : {&sum, &squares, &d, &noise}) x->assign(static_cast<size_t>(count * n), 0.0);
    for (int64_t block = 0; block < blocks; ++block) {
      widen(gemm.a, gemm.k, first, count, block * kBlock, threads, a);
      widen(gemm.b, gemm.k, 0, n, block * kBlock, threads, b);
      square(a, a2);
      square(b, b2);
      PB_RETURN_IF_ERROR(dgemm_nt(count, n, kBlock, a.data(), b.data(), sum.data(), threads));
      PB_RETURN_IF_ERROR(dgemm_nt(count, n, kBlock, a2.data(), b2.data(), squares.data(), threads));
      parallel_for(count, threads, [&](int64_t row) {
        const double scale_a =
            static_cast<double>(gemm.scale_a[static_cast<size_t>((first + row) * blocks + block)]);
        for (int64_t column = 0; column < n; ++column) {
          const size_t at = static_cast<size_t>(row * n + column);
          const double scale =
              scale_a *
              static_cast<double>(
                  gemm.scale_b[static_cast<size_t>(column / gemm.scale_b_rows * blocks + block)]);
          d[at] += scale * sum[at];
          noise[at] += scale * scale * block_variance(sum[at], squares[at]);
        }
      });
    }
    for (size_t i = 0; i < d.size(); ++i) noise[i] += output_variance * d[i] * d[i];
    sink(first, count, d, noise);
  }
  return {};
}

}  // namespace ptxbench::bench
