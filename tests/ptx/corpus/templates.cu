// Templates over types, unrolled loops, vector loads, local arrays, dynamic and static shared
// memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T, int kUnroll>
__global__ void __launch_bounds__(256, 2) axpy(const T* __restrict__ x, T* y, float a, int n) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    int i = (blockIdx.x * kUnroll + u) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = T(float(x[i]) * a + float(y[i]));
  }
}
template __global__ void axpy<float, 4>(const float*, float*, float, int);
template __global__ void axpy<__half, 2>(const __half*, __half*, float, int);
template __global__ void axpy<__nv_bfloat16, 2>(const __nv_bfloat16*, __nv_bfloat16*, float, int);

__global__ void copy4(const float4* a, float4* b, const double2* c, double2* d) {
  extern __shared__ float4 tile[];
  int i = threadIdx.x;
  tile[i] = a[i];
  __syncthreads();
  b[i] = tile[blockDim.x - 1 - i];
  d[i] = c[i];
}

__global__ void local_array(int* out, int n) {
  int table[24];
  for (int i = 0; i < 24; ++i) table[i] = out[i] * i;
  out[threadIdx.x] = table[n % 24] + table[(n + threadIdx.x) % 24];
}

__global__ void transpose(float* out, const float* in, int width) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int j = 0; j < 32; j += 8)
    tile[threadIdx.y + j][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y + j) * width + x];
  __syncthreads();
  for (int j = 0; j < 32; j += 8)
    out[(blockIdx.x * 32 + threadIdx.y + j) * width + blockIdx.y * 32 + threadIdx.x] =
        tile[threadIdx.x][threadIdx.y + j];
}
