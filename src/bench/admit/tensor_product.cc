#include "bench/admit/tensor_product.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "emu/tensor_core.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

constexpr int kStepK = 16, kTileM = 64, kMostN = 128;

// Operands of one step without swizzle: 8x16-byte blocks, the two halves of K side by side.
constexpr uint32_t kBlock = 128, kGroup = 2 * kBlock, kBaseB = kTileM / 8 * kGroup;
uint64_t descriptor(uint32_t address) {
  return uint64_t{kGroup >> 4} << 32 | uint64_t{kBlock >> 4} << 16 | address >> 4;
}

struct Machine {
  alignas(16) uint8_t shared[kBaseB + kMostN / 8 * kGroup];
  uint32_t d[4][128][32];
};

// Rows first.. of `from` at columns k.. as a step's operand; zeros outside.
void load(std::span<const uint16_t> from, int64_t rows, int64_t k_total, int64_t first, int64_t k,
          int count, uint8_t* to) {
  for (int r = 0; r < count; ++r)
    for (int half = 0; half < 2; ++half) {
      uint16_t row[8] = {};
      const int64_t at = k + 8 * half;
      if (first + r < rows && at < k_total)
        std::copy_n(&from[static_cast<size_t>((first + r) * k_total + at)],
                    std::min<int64_t>(8, k_total - at), row);
      std::memcpy(to + r / 8 * kGroup + half * kBlock + r % 8 * 16, row, 16);
    }
}

struct Tile {
  int64_t row = 0, column = 0;
  int n = 0;  // columns of the instruction
};

// f(element of sums, accumulator word, its half) for every accumulator inside the matrix.
template <class F>
void for_each_sum(const TensorProduct& p, const Tile& tile, bool half, Machine& machine,
                  float* sums, F f) {
  for (int w = 0; w < 4; ++w)
    for (int r = 0; r < tile.n / 2; ++r)
      for (int lane = 0; lane < 32; ++lane) {
        const int64_t i = tile.row + 16 * w + lane / 4 + 8 * (r / 2 % 2);
        const int64_t j = tile.column + 8 * (r / 4) + 2 * (lane % 4) + r % 2;
        if (i < p.m && j < p.n)
          f(sums[i * p.n + j], machine.d[w][half ? r / 2 : r][lane], half ? r % 2 : 0);
      }
}

}  // namespace

void accumulate(const TensorProduct& p, float* sums) {
  const auto machine = std::make_unique<Machine>();
  const bool half = p.accumulator == ptx::Type::f16;
  const int tile_n = static_cast<int>(std::min<int64_t>(kMostN, (p.n + 7) / 8 * 8));
  emu::WgmmaForm form;
  form.n = tile_n;
  form.a = form.b = half ? ptx::Type::f16 : ptx::Type::bf16;
  form.d = p.accumulator;
  emu::WgmmaOperands operands;
  operands.shared = machine->shared;
  operands.shared_bytes = sizeof(machine->shared);
  operands.a_descriptor = descriptor(0);
  operands.b_descriptor = descriptor(kBaseB);
  for (int w = 0; w < 4; ++w)
    for (int r = 0; r < 128; ++r) operands.d[w][r] = machine->d[w][r];
  for (int64_t row = 0; row < p.m; row += kTileM)
    for (int64_t column = 0; column < p.n; column += tile_n) {
      const Tile tile{row, column, tile_n};
      std::memset(machine->d, 0, sizeof(machine->d));
      if (!half)
        for_each_sum(p, tile, half, *machine, sums,
                     [](float& sum, uint32_t& word, int) { word = std::bit_cast<uint32_t>(sum); });
      for (int64_t k = 0; k < p.k; k += kStepK) {
        if (p.takes && !p.takes(k)) continue;
        load(p.a, p.m, p.k, row, k, kTileM, machine->shared);
        load(p.b, p.n, p.k, column, k, tile_n, machine->shared + kBaseB);
        emu::wgmma(form, operands, p.mode);
      }
      for_each_sum(p, tile, half, *machine, sums, [half](float& sum, uint32_t& word, int part) {
        if (half)
          sum += numeric::f16_to_float(static_cast<uint16_t>(word >> (part * 16)));
        else
          sum = std::bit_cast<float>(word);
      });
    }
}

}  // namespace ptxbench::bench::admit
