// The worker's own kernels, as PTX inside its program: the driver assembles them for the card.
#include <cstdint>

extern "C" {

__global__ void ptxbench_empty() {}

// The self-test: y[i] = 3 x[i] + i through shared memory, so that a card in a bad state shows.
__global__ void ptxbench_self_test(const uint32_t* x, uint32_t* y, uint32_t n) {
  __shared__ uint32_t mirror[256];
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  mirror[255 - threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = 3 * mirror[255 - threadIdx.x] + i;
}

// Fills the shared memory of an SM with NaN in every format, so that reading what was never
// written does not find a predecessor's values.
__global__ void ptxbench_dirty_shared(uint32_t words, uint32_t* sink) {
  extern __shared__ uint32_t memory[];
  for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) memory[i] = 0xffffffffu;
  __syncthreads();
  if (memory[(threadIdx.x * 97) % words] == 0) *sink = 1;  // keeps the stores
}

// Adds to *count how many bytes of `b` differ from those of `a` moved on by `move`.
__global__ void ptxbench_count_differing(const uint8_t* a, const uint8_t* b, uint64_t bytes,
                                         uint64_t move, unsigned long long* count) {
  unsigned long long mine = 0;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step) {
    const uint64_t to = i + move < bytes ? i + move : i + move - bytes;
    mine += a[i] != b[to];
  }
  if (mine > 0) atomicAdd(count, mine);
}

// to[r * row_stride + b * block_stride] = from[r * blocks + b]: scales in another layout.
__global__ void ptxbench_arrange_scales(const float* from, float* to, int64_t rows, int64_t blocks,
                                        int64_t row_stride, int64_t block_stride) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < rows * blocks) to[i / blocks * row_stride + i % blocks * block_stride] = from[i];
}

}  // extern "C"
