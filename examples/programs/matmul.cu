// C = A B with shared-memory tiles and cooperative groups; sizes that are no multiples of a tile.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

constexpr int kM = 150, kN = 130, kK = 170, kTile = 16;

__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile + 1];
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<kTile> row_of_threads = cg::tiled_partition<kTile>(block);
  const int x = row_of_threads.thread_rank(), y = row_of_threads.meta_group_rank();
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    tile_a[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0;
    tile_b[y][x] = column < n && k0 + y < k ? b[(k0 + y) * n + column] : 0;
    block.sync();
    // Each thread holds one element of its row of A; the row passes it around.
    const float own = tile_a[y][x];
    for (int i = 0; i < kTile; ++i) sum += row_of_threads.shfl(own, i) * tile_b[i][x];
    block.sync();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main(int argc, char** argv) {
  // Small integers: every order of summation gives the same result.
  std::vector<float> a(kM * kK), b(kK * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(mixed(i, 1) % 17) - 8;
  for (size_t i = 0; i < b.size(); ++i) b[i] = float(mixed(i, 2) % 13) - 6;
  float* c = nullptr;
  CHECK(cudaMalloc(&c, kM * kN * sizeof(float)));
  const dim3 grid((kN + kTile - 1) / kTile, (kM + kTile - 1) / kTile), block(kTile * kTile);
  matmul<<<grid, block>>>(to_device(a), to_device(b), c, kM, kN, kK);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  const std::vector<float> result = to_host(c, kM * kN);
  size_t wrong = 0;
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int l = 0; l < kK; ++l) sum += a[i * kK + l] * b[l * kN + j];
      wrong += result[i * kN + j] != sum;
    }
  return finish(argc, argv, "matmul", result, wrong);
}
