#include "bench/op/fp8_quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "bench/op/operation.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

// A block of zeros needs a scale, too.
constexpr float kLeastMagnitude = 1e-4f;

}  // namespace

Quantized quantize_e4m3(const Tensor& values, int64_t block_rows, int64_t block_columns,
                        int threads) {
  const int64_t columns = values.shape.back();
  const int64_t rows = static_cast<int64_t>(values.bytes.size()) / 4 / columns;
  const int64_t down = (rows + block_rows - 1) / block_rows;
  const int64_t across = (columns + block_columns - 1) / block_columns;
  Quantized result;
  result.elements.resize(static_cast<size_t>(rows * columns));
  result.scales.resize(static_cast<size_t>(down * across));
  parallel_for(down, threads, [&](int64_t block) {
    const int64_t first = block * block_rows, count = std::min(block_rows, rows - first);
    std::vector<float> x(static_cast<size_t>(count * columns));
    std::memcpy(x.data(), values.bytes.data() + first * columns * 4, x.size() * 4);
    for (int64_t c = 0; c < across; ++c) {
      const int64_t begin = c * block_columns, end = std::min(begin + block_columns, columns);
      float largest = kLeastMagnitude;
      for (int64_t r = 0; r < count; ++r)
        for (int64_t i = begin; i < end; ++i)
          largest = std::max(largest, std::abs(x[static_cast<size_t>(r * columns + i)]));
      const float scale = largest / static_cast<float>(kE4m3Max);
      result.scales[static_cast<size_t>(block * across + c)] = scale;
      for (int64_t r = 0; r < count; ++r)
        for (int64_t i = begin; i < end; ++i) x[static_cast<size_t>(r * columns + i)] /= scale;
    }
    numeric::e4m3_from_float(x, std::span(result.elements)
                                    .subspan(static_cast<size_t>(first * columns),
                                             static_cast<size_t>(count * columns)));
  });
  return result;
}

}  // namespace ptxbench::bench
