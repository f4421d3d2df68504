// dgemm from OpenBLAS, fed with exact conversions of the bf16 inputs. fp64 sums of products of
// 8-bit significands are exact to far below half a bf16 ulp at any length that fits in memory.
#include "bench/oracle.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "bench/blas.h"
#include "bench/gpu/reference.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr int64_t kBlockRows = 1024;  // 1024 x 28672 outputs are 235 MB

void widen(std::span<const uint16_t> from, double* to, int threads) {
  auto work = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      to[i] = static_cast<double>(numeric::bf16_to_float(from[i]));
  };
  const size_t parts = from.size() < (1u << 20) ? 1 : static_cast<size_t>(std::max(threads, 1));
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < parts; ++t)
    helpers.emplace_back(work, from.size() * t / parts, from.size() * (t + 1) / parts);
  work(0, from.size() / parts);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

Result<void> gemm_fp64(std::span<const uint16_t> a, std::span<const uint16_t> b, int64_t m,
                       int64_t n, int64_t k, int threads, const BlockSink& sink) {
  if (device::Device* device = ReferenceOnDevice::current()) {
    std::vector<double> c(static_cast<size_t>(m * n));
    PB_RETURN_IF_ERROR(gemm_fp64_on(*device, a, b, m, n, k, c));
    for (int64_t first = 0; first < m; first += kBlockRows) {
      const int64_t count = std::min(kBlockRows, m - first);
      sink(first, count,
           std::span(c).subspan(static_cast<size_t>(first * n), static_cast<size_t>(count * n)));
    }
    return {};
  }
  std::vector<double> wide_b(b.size());
  widen(b, wide_b.data(), threads);
  const int64_t rows = std::min(m, kBlockRows);
  std::vector<double> wide_a(static_cast<size_t>(rows * k));
  std::vector<double> c(static_cast<size_t>(rows * n));
  for (int64_t first = 0; first < m; first += rows) {
    const int64_t count = std::min(rows, m - first);
    widen(a.subspan(static_cast<size_t>(first * k), static_cast<size_t>(count * k)), wide_a.data(),
          threads);
    PB_RETURN_IF_ERROR(dgemm_nt(count, n, k, wide_a.data(), wide_b.data(), c.data(), threads));
    sink(first, count, std::span<const double>(c.data(), static_cast<size_t>(count * n)));
  }
  return {};
}

}  // namespace ptxbench::bench
