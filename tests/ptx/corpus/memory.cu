// Constant and global tables with initialisers, symbols in initialisers, managed memory, volatile,
// atomics.
#include <cstdint>

__constant__ float coefficients[8] = {1.0f, -2.5f, 3.25f, 0.0f, 1e-30f, 65504.0f};
__constant__ double precise[2] = {3.141592653589793, -0.0};
__device__ int matrix[3][4] = {{1, 2}, {-3, 4, 5, 6}, {7}};
__device__ const char* names[] = {"alpha", "beta", "gamma"};
__device__ short shorts[5] = {-1, 2, -3};
__device__ int* pointer_into = &matrix[1][2];
__device__ unsigned long long counter;
__managed__ int managed_value = 7;
struct Mixed {
  char c;
  int* p;
  float f;
};
__device__ Mixed mixed = {'x', &matrix[2][0], 2.0f};

__global__ void memory(float* out, volatile int* flag, int i) {
  out[i] = coefficients[i & 7] + float(precise[i & 1]) + matrix[i % 3][i & 3] + names[i % 3][0];
  out[i + 1] = *pointer_into + shorts[i % 5] + mixed.f + mixed.c + *mixed.p + managed_value;
  while (*flag == 0) {
  }
  atomicAdd(&counter, 1ull);
  atomicAdd(out, 1.5f);
  atomicMax(reinterpret_cast<int*>(out) + 1, i);
  atomicCAS(reinterpret_cast<unsigned*>(out) + 2, 5u, 6u);
  atomicExch(out + 3, 2.0f);
  atomicAnd(reinterpret_cast<unsigned*>(out) + 4, 0xffu);
  __threadfence();
  out[5] = __ldg(out + 6) + __ldcg(out + 7) + __ldcs(out + 8);
  __stcg(out + 9, 1.0f);
  __shared__ unsigned bins[64];
  atomicAdd(&bins[i & 63], 1u);
  atomicInc(&bins[1], 10u);
  __syncthreads();
  out[10] = bins[threadIdx.x & 63];
}
