#pragma once
// Attention and its gradient from the definition, in fp64 without tensor cores, for some heads of a
// larger problem. One CTA a row. All tensors [heads, seq, d]; S = scale Q K^T.

#include <cuda_bf16.h>

#include <cstdint>

namespace hardware {

struct AttentionProblem {
  const __nv_bfloat16 *q, *k, *v, *o, *d_o;  // o and d_o for the gradient only
  int seq, d;
  bool causal;
  double scale;
};

__device__ inline double dot(const __nv_bfloat16* a, const __nv_bfloat16* b, int d) {
  double sum = 0;
  for (int i = 0; i < d; ++i) sum += double(__bfloat162float(a[i])) * __bfloat162float(b[i]);
  return sum;
}

// Sum (or maximum) over the CTA's 128 threads.
__device__ inline double over_block(double x, bool maximum) {
  __shared__ double parts[128];
  __syncthreads();
  parts[threadIdx.x] = x;
  __syncthreads();
  double result = parts[0];
  for (int i = 1; i < 128; ++i) result = maximum ? fmax(result, parts[i]) : result + parts[i];
  return result;
}

// grid (seq, heads checked), 128 threads, seq doubles of dynamic shared memory. Head blockIdx.y *
// step. out [checked, seq, d], lse [checked, seq].
__global__ void reference_forward(AttentionProblem p, int step, double* out, double* lse) {
  extern __shared__ double weights[];
  const int row = blockIdx.x;
  const int64_t head = int64_t(blockIdx.y) * step * p.seq * p.d;
  const int keys = p.causal ? row + 1 : p.seq;
  double top = -INFINITY, sum = 0;
  for (int j = threadIdx.x; j < keys; j += 128) {
    weights[j] = p.scale * dot(p.q + head + int64_t(row) * p.d, p.k + head + int64_t(j) * p.d, p.d);
    top = fmax(top, weights[j]);
  }
  top = over_block(top, true);
  for (int j = threadIdx.x; j < keys; j += 128) sum += weights[j] = exp(weights[j] - top);
  sum = over_block(sum, false);
  const int64_t out_row = int64_t(blockIdx.y) * p.seq + row;
  if (threadIdx.x == 0) lse[out_row] = top + log(sum);
  for (int c = threadIdx.x; c < p.d; c += 128) {
    double value = 0;
    for (int j = 0; j < keys; ++j)
      value += weights[j] * __bfloat162float(p.v[head + int64_t(j) * p.d + c]);
    out[out_row * p.d + c] = value / sum;
  }
}

// delta[row] = sum_c dO O, from the O that the gradient is told. grid (seq, checked), 128 threads.
__global__ void reference_delta(AttentionProblem p, int step, double* delta) {
  const int64_t at = (int64_t(blockIdx.y) * step * p.seq + blockIdx.x) * p.d;
  double sum = 0;
  for (int c = threadIdx.x; c < p.d; c += 128)
    sum += double(__bfloat162float(p.o[at + c])) * __bfloat162float(p.d_o[at + c]);
  sum = over_block(sum, false);
  if (threadIdx.x == 0) delta[int64_t(blockIdx.y) * p.seq + blockIdx.x] = sum;
}

// dQ of one row. Dynamic shared memory: seq doubles.
__global__ void reference_d_q(AttentionProblem p, int step, const double* lse, const double* delta,
                              double* d_q) {
  extern __shared__ double weights[];
  const int row = blockIdx.x;
  const int64_t head = int64_t(blockIdx.y) * step * p.seq * p.d;
  const int64_t out_row = int64_t(blockIdx.y) * p.seq + row;
  const int keys = p.causal ? row + 1 : p.seq;
  for (int j = threadIdx.x; j < keys; j += 128) {
    const int64_t i = head + int64_t(row) * p.d, at = head + int64_t(j) * p.d;
    const double probability = exp(p.scale * dot(p.q + i, p.k + at, p.d) - lse[out_row]);
    weights[j] = probability * (dot(p.d_o + i, p.v + at, p.d) - delta[out_row]) * p.scale;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < p.d; c += 128) {
    double sum = 0;
    for (int j = 0; j < keys; ++j)
      sum += weights[j] * __bfloat162float(p.k[head + int64_t(j) * p.d + c]);
    d_q[out_row * p.d + c] = sum;
  }
}

// dK and dV of one row of keys. Dynamic shared memory: 2 seq doubles.
__global__ void reference_d_kv(AttentionProblem p, int step, const double* lse, const double* delta,
                               double* d_k, double* d_v) {
  extern __shared__ double weights[];
  const int key = blockIdx.x;
  const int64_t head = int64_t(blockIdx.y) * step * p.seq * p.d;
  const int64_t rows = int64_t(blockIdx.y) * p.seq;
  const int first = p.causal ? key : 0;
  for (int i = first + threadIdx.x; i < p.seq; i += 128) {
    const int64_t at = head + int64_t(i) * p.d, k = head + int64_t(key) * p.d;
    const double probability = exp(p.scale * dot(p.q + at, p.k + k, p.d) - lse[rows + i]);
    weights[i] = probability;
    weights[p.seq + i] = probability * (dot(p.d_o + at, p.v + k, p.d) - delta[rows + i]) * p.scale;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < p.d; c += 128) {
    double sum_k = 0, sum_v = 0;
    for (int i = first; i < p.seq; ++i) {
      sum_v += weights[i] * __bfloat162float(p.d_o[head + int64_t(i) * p.d + c]);
      sum_k += weights[p.seq + i] * __bfloat162float(p.q[head + int64_t(i) * p.d + c]);
    }
    d_k[(rows + key) * p.d + c] = sum_k;
    d_v[(rows + key) * p.d + c] = sum_v;
  }
}

struct Deviation {
  unsigned long long checked, bad;
  double error_square, reference_square, worst;
};

// Elements of head y * step against reference head y. `bad`: not finite, or off by more than
// relative * |want| + absolute.
template <typename Type>
__global__ void deviation(const Type* got, const double* want, int64_t head_size, int step,
                          int heads, double relative, double absolute, Deviation* out) {
  Deviation mine = {};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < head_size * heads;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t head = i / head_size;
    const double g = float(got[head * step * head_size + i % head_size]), w = want[i];
    const double error = fabs(g - w);
    ++mine.checked;
    if (!(error <= relative * fabs(w) + absolute)) ++mine.bad;
    mine.error_square += error * error;
    mine.reference_square += w * w;
  }
  atomicAdd(&out->checked, mine.checked);
  atomicAdd(&out->bad, mine.bad);
  atomicAdd(&out->error_square, mine.error_square);
  atomicAdd(&out->reference_square, mine.reference_square);
}

}  // namespace hardware
