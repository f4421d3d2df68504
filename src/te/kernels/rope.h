#pragma once
// Rotary position embedding (Su et al. 2021) of bf16 heads, forward and backward (the rotation by
// the opposite angle), in place or not:
//
//   halves       pair i is elements i and i + rotary/2        (GPT-NeoX, Llama in Hugging Face's
//   layout) interleaved  pair i is elements 2i and 2i+1               (GPT-J) (a, b) -> (a cos - b
//   sin, b cos + a sin),  angle of pair i at position p: table row p, column i
//
// Elements from `rotary` on are copied. Heads of a token are contiguous; tokens may lie further
// apart, so queries and keys can be turned inside a packed QKV.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/result.h"

namespace ptxbench::te {

struct Rope {
  int64_t tokens = 0, heads = 0, dim = 0;
  int64_t rotary = 0;                  // even, <= dim
  const void* x = nullptr;             // bf16 [tokens][heads][dim]
  void* y = nullptr;                   // the same shape; may be x
  int64_t x_stride = 0, y_stride = 0;  // elements from token to token, >= heads * dim
  const float* cos = nullptr;          // [positions][rotary / 2]
  const float* sin = nullptr;
  int64_t positions = 0;              // rows of the tables
  const int32_t* position = nullptr;  // [tokens], or null: token % sequence
  int64_t sequence = 0;               // with position null: 1..positions
  bool interleaved = false, backward = false;
  // Tokens whose position is outside the tables become NaN and are counted here (device memory, or
  // null).
  int* errors = nullptr;
};

// One launch. Errors "usage" and "cuda".
Result<void> rope(const Rope& call, cudaStream_t stream);

}  // namespace ptxbench::te
