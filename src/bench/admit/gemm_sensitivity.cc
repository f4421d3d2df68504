// The reference is linear in each input, so what a changed slice moves is the product of the change
// with the other input's slice; nothing else needs computing again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/admit/gemm_models.h"
#include "bench/blas.h"
#include "bench/tile_map.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

constexpr int64_t kSliceLength = 64;  // of K; a remainder belongs to the last slice

std::vector<double> slice(const Words& from, int64_t rows, int64_t k, int64_t begin, int64_t end) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(rows * (end - begin)));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = begin; i < end; ++i)
      values.push_back(
          static_cast<double>(numeric::bf16_to_float(from[static_cast<size_t>(r * k + i)])));
  return values;
}

// Norms of 16x16 tiles.
std::vector<double> tile_norms(const std::vector<double>& values, int64_t m, int64_t n) {
  const int64_t columns = (n + kTile - 1) / kTile;
  std::vector<double> squares(static_cast<size_t>((m + kTile - 1) / kTile * columns));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double x = values[static_cast<size_t>(i * n + j)];
      squares[static_cast<size_t>(i / kTile * columns + j / kTile)] += x * x;
    }
  for (double& x : squares) x = std::sqrt(x);
  return squares;
}

double median_ratio(const std::vector<double>& part, const std::vector<double>& whole) {
  std::vector<double> ratios;
  for (size_t i = 0; i < part.size(); ++i) ratios.push_back(whole[i] > 0 ? part[i] / whole[i] : 0);
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

}  // namespace

Result<Sensitivity> gemm_sensitivity(const GemmCase& g, const GemmCase& other, double tolerance) {
  const std::vector<double> norms = tile_norms(g.right, g.m, g.n);
  std::vector<double> move(g.right.size());
  Sensitivity result;
  const int64_t slices = std::max<int64_t>(1, g.k / kSliceLength);
  for (const bool of_a : {true, false})
    for (int64_t s = 0; s < slices; ++s) {
      const int64_t begin = s * kSliceLength, end = s + 1 == slices ? g.k : begin + kSliceLength;
      std::vector<double> a = slice(g.a, g.m, g.k, begin, end);
      std::vector<double> b = slice(g.b, g.n, g.k, begin, end);
      const std::vector<double> changed =
          of_a ? slice(other.a, g.m, g.k, begin, end) : slice(other.b, g.n, g.k, begin, end);
      std::vector<double>& delta = of_a ? a : b;
      for (size_t i = 0; i < delta.size(); ++i) delta[i] = changed[i] - delta[i];
      PB_RETURN_IF_ERROR(dgemm_nt(g.m, g.n, end - begin, a.data(), b.data(), move.data(), 1));
      const double moved = median_ratio(tile_norms(move, g.m, g.n), norms) / tolerance;
      result.add(moved, of_a ? "A" : "B", fmt::format("[:, {}..{}]", begin, end - 1));
    }
  return result;
}

}  // namespace ptxbench::bench::admit
