// Checks and times the block-scaled FP8 GEMMs against fp64 sums of the definition.
//   fp8_gemm_check check M N K     whole matrix
//   fp8_gemm_check time M N K      medians, L2 flushed before every run
// Compiled with -DSCALE_ROWS_B=1: the 1D1D form, a scale for each row of B.
// Exit 0: all right, 1: wrong values, 2: error.

#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../../kernels/sm_80/fp8_gemm_mma.cuh"
#include "../../kernels/sm_90a/fp8_gemm_launch.cuh"
#include "check.cuh"

#ifndef SCALE_ROWS_B
#define SCALE_ROWS_B 0
#endif

namespace {

constexpr bool kRowsB = SCALE_ROWS_B;
constexpr const char* kForm = kRowsB ? "1D1D" : "1D2D";

int scales_b(int n) { return kRowsB ? n : (n + 127) / 128; }

using ptxbench::sm90::Fp8GemmConfig;
using ptxbench::sm90::GemmShape;

struct Problem {
  GemmShape shape;
  __nv_fp8_e4m3 *a, *b;
  float *scale_a, *scale_b;
  __nv_bfloat16* d;
};

__global__ void fill(__nv_fp8_e4m3* out, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint64_t bits = hardware::mix(hardware::mix(seed) ^ i);
    const float u = (static_cast<uint32_t>(bits >> 40) + 1) * 0x1p-24f;
    const float v = static_cast<uint32_t>(bits & 0xFFFFFF) * 0x1p-24f;
    out[i] = __nv_fp8_e4m3(sqrtf(-2 * logf(u)) * cospif(2 * v) * 64);
  }
}

// Scales between 1/256 and 1/64, so that leaving one out shows.
__global__ void fill_scales(float* out, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    out[i] = (1 + (hardware::mix(hardware::mix(seed) ^ i) >> 40) * 0x1p-24f * 3) / 256;
  }
}

struct Deviation {
  unsigned long long checked, bad;
  double error_square, reference_square;
};

// 16x16 outputs a CTA, sums of a block in fp32 (exact here: 128 products of 4-bit mantissas are
// not, but err by 2^-24 each), over blocks in fp64.
__global__ void verify(Problem p, Deviation* out) {
  __shared__ float tile_a[16][129], tile_b[16][129];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  const int blocks = p.shape.k / 128;
  double sum = 0;
  for (int block = 0; block < blocks; ++block) {
    __syncthreads();
    for (int i = threadIdx.x; i < 16 * 128; i += 256) {
      const int r = i / 128, c = i % 128;
      const int ra = min(int(blockIdx.y * 16 + r), p.shape.m - 1);
      const int rb = min(int(blockIdx.x * 16 + r), p.shape.n - 1);
      tile_a[r][c] = float(p.a[size_t(ra) * p.shape.k + block * 128 + c]);
      tile_b[r][c] = float(p.b[size_t(rb) * p.shape.k + block * 128 + c]);
    }
    __syncthreads();
    float part = 0;
    for (int c = 0; c < 128; ++c) part = fmaf(tile_a[y][c], tile_b[x][c], part);
    if (row < p.shape.m && column < p.shape.n) {
      sum += double(part) * p.scale_a[size_t(row) * blocks + block] *
             p.scale_b[size_t(kRowsB ? column : column / 128) * blocks + block];
    }
  }
  if (row >= p.shape.m || column >= p.shape.n) return;
  const double error = fabs(double(__bfloat162float(p.d[size_t(row) * p.shape.n + column])) - sum);
  // Half an ulp of bf16, and products kept with 14 bits inside the tensor core.
  const double allowed = 0.004 * fabs(sum) + 0.002 * sqrt(double(p.shape.k));
  atomicAdd(&out->checked, 1ull);
  if (!(error <= allowed)) atomicAdd(&out->bad, 1ull);
  atomicAdd(&out->error_square, error * error);
  atomicAdd(&out->reference_square, sum * sum);
}

struct Variant {
  const char* name;
  cudaError_t (*run)(const Problem&);
};

template <typename Config, int Group>
cudaError_t run(const Problem& p) {
  int sm_count = 0;
  cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, 0);
  return ptxbench::sm90::launch_fp8_gemm_config<Config>(
      p.a, p.b, p.d, {p.scale_a, p.scale_b, p.shape.n}, p.shape, sm_count, Group, 0);
}

template <int Stages>
cudaError_t run_unspecialised(const Problem& p) {
  return ptxbench::sm90::launch_fp8_gemm_unspecialised_config<
      ptxbench::sm90::UnspecialisedFp8Config<Stages, kRowsB>>(
      p.a, p.b, p.d, {p.scale_a, p.scale_b, p.shape.n}, p.shape, 0);
}

cudaError_t run_mma(const Problem& p) {
  return ptxbench::sm80::launch_fp8_gemm_mma<kRowsB>(
      {reinterpret_cast<const uint8_t*>(p.a), reinterpret_cast<const uint8_t*>(p.b), p.scale_a,
       p.scale_b, p.d, p.shape.m, p.shape.n, p.shape.k},
      0);
}

const Variant kVariants[] = {
    {"mma.sync", run_mma},
    {"unspecialised", run_unspecialised<4>},
    {"m128 c2", run<Fp8GemmConfig<128, 5, 2, false, kRowsB>, 16>},
    {"m128 c2 overlap", run<Fp8GemmConfig<128, 5, 2, true, kRowsB>, 16>},
#if !SCALE_ROWS_B  // no room for scales
    {"m256 c2", run<Fp8GemmConfig<256, 4, 2>, 16>},
#endif
};

Problem make(int m, int n, int k) {
  Problem p{{m, n, k}};
  const size_t blocks = k / 128;
  HW_CHECK(cudaMalloc(&p.a, size_t(m) * k));
  HW_CHECK(cudaMalloc(&p.b, size_t(n) * k));
  HW_CHECK(cudaMalloc(&p.d, size_t(m) * n * 2));
  HW_CHECK(cudaMalloc(&p.scale_a, m * blocks * 4));
  HW_CHECK(cudaMalloc(&p.scale_b, scales_b(n) * blocks * 4));
  fill<<<1024, 256>>>(p.a, size_t(m) * k, 1);
  fill<<<1024, 256>>>(p.b, size_t(n) * k, 2);
  fill_scales<<<64, 256>>>(p.scale_a, m * blocks, 3);
  fill_scales<<<64, 256>>>(p.scale_b, scales_b(n) * blocks, 4);
  HW_CHECK(cudaDeviceSynchronize());
  return p;
}

int check(const Problem& p) {
  bool all = true;
  Deviation *out, d;
  HW_CHECK(cudaMalloc(&out, sizeof(Deviation)));
  for (const Variant& variant : kVariants) {
    HW_CHECK(cudaMemset(p.d, 0xFF, size_t(p.shape.m) * p.shape.n * 2));
    HW_CHECK(cudaMemset(out, 0, sizeof(Deviation)));
    HW_CHECK(variant.run(p));
    verify<<<dim3((p.shape.n + 15) / 16, (p.shape.m + 15) / 16), 256>>>(p, out);
    HW_CHECK(cudaMemcpy(&d, out, sizeof d, cudaMemcpyDeviceToHost));
    const bool good = d.bad == 0 && d.checked == size_t(p.shape.m) * p.shape.n;
    all &= good;
    std::printf("%-4s fp8 gemm %s %s M%d N%d K%d: checked %llu off %llu relative error %.2e\n",
                good ? "ok" : "BAD", kForm, variant.name, p.shape.m, p.shape.n, p.shape.k,
                d.checked, d.bad, std::sqrt(d.error_square / d.reference_square));
  }
  return all ? 0 : 1;
}

void time_all(const Problem& p) {
  constexpr size_t kFlush = size_t{192} << 20;
  void* flush;
  HW_CHECK(cudaMalloc(&flush, kFlush));
  cudaEvent_t start, stop;
  HW_CHECK(cudaEventCreate(&start));
  HW_CHECK(cudaEventCreate(&stop));
  constexpr int kCount = sizeof kVariants / sizeof kVariants[0];
  std::vector<float> times[kCount];
  for (int round = 0; round < 17; ++round) {
    for (int i = 0; i < kCount; ++i) {
      HW_CHECK(cudaMemsetAsync(flush, round, kFlush));
      HW_CHECK(cudaEventRecord(start));
      HW_CHECK(kVariants[i].run(p));
      HW_CHECK(cudaEventRecord(stop));
      HW_CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      HW_CHECK(cudaEventElapsedTime(&ms, start, stop));
      if (round >= 2) times[i].push_back(ms);
    }
  }
  for (int i = 0; i < kCount; ++i) {
    std::sort(times[i].begin(), times[i].end());
    const double ms = times[i][times[i].size() / 2];
    std::printf("time fp8 gemm %s %s M%d N%d K%d: %.3f ms %.0f TFLOP/s\n", kForm, kVariants[i].name,
                p.shape.m, p.shape.n, p.shape.k, ms,
                2.0 * p.shape.m * p.shape.n * p.shape.k / ms / 1e9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "usage: fp8_gemm_check check|time M N K\n"), 2;
  const int m = std::atoi(argv[2]), n = std::atoi(argv[3]), k = std::atoi(argv[4]);
  if (m < 1 || n < 1 || n % 8 != 0 || k < 128 || k % 128 != 0) {
    return std::fprintf(stderr, "M >= 1, N a multiple of 8, K of 128\n"), 2;
  }
  const Problem p = make(m, n, k);
  if (std::strcmp(argv[1], "check") == 0) return check(p);
  time_all(p);
  return 0;
}
