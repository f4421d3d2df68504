// Sum, minimum and maximum in one cooperative launch: every block reduces its share, the grid
// meets, block 0 reduces what the blocks left. As many blocks as fit on the device at once.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.h"

namespace cg = cooperative_groups;

struct Partial {
  unsigned long long sum;
  uint32_t least, most;
};

__device__ Partial merged(const Partial& a, const Partial& b) {
  return {a.sum + b.sum, min(a.least, b.least), max(a.most, b.most)};
}

__device__ Partial block_reduce(Partial own) {
  __shared__ Partial of_warp[32];
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  own.sum = cg::reduce(warp, own.sum, cg::plus<unsigned long long>());
  own.least = cg::reduce(warp, own.least, cg::less<uint32_t>());
  own.most = cg::reduce(warp, own.most, cg::greater<uint32_t>());
  if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = own;
  block.sync();
  Partial all = of_warp[0];
  for (unsigned w = 1; w < warp.meta_group_size(); ++w) all = merged(all, of_warp[w]);
  block.sync();
  return all;
}

__global__ void reduce(const uint32_t* values, int n, Partial* partials, Partial* out) {
  const cg::grid_group grid = cg::this_grid();
  Partial own = {0, ~0u, 0};
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size())
    own = merged(own, {values[i], values[i], values[i]});
  own = block_reduce(own);
  if (threadIdx.x == 0) partials[blockIdx.x] = own;
  grid.sync();
  if (blockIdx.x > 0) return;
  own = {0, ~0u, 0};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) own = merged(own, partials[i]);
  own = block_reduce(own);
  if (threadIdx.x == 0) *out = own;
}

int main(int argc, char** argv) {
  int n = 300007, threads = 128, per_sm = 0;
  std::vector<uint32_t> values(n);
  for (int i = 0; i < n; ++i) values[i] = mixed(i, 5);
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce, threads, 0));
  const int blocks = device.multiProcessorCount * (per_sm < 1 ? 0 : 1);
  const uint32_t* input = to_device(values);
  Partial *partials = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&partials, blocks * sizeof(Partial)));
  CHECK(cudaMallocManaged(&out, sizeof(Partial)));
  void* arguments[] = {&input, &n, &partials, &out};
  CHECK(cudaLaunchCooperativeKernel(reduce, blocks, threads, arguments));
  CHECK(cudaDeviceSynchronize());
  Partial expected = {0, ~0u, 0};
  for (uint32_t v : values) {
    expected.sum += v;
    expected.least = v < expected.least ? v : expected.least;
    expected.most = v > expected.most ? v : expected.most;
  }
  const std::vector<unsigned long long> result = {out->sum, out->least, out->most};
  const size_t wrong =
      (result[0] != expected.sum) + (result[1] != expected.least) + (result[2] != expected.most);
  return finish(argc, argv, "grid_reduction", result, wrong);
}
