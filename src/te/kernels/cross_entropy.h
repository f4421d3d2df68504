#pragma once
// Softmax cross-entropy with its gradient in one launch; the gradient replaces the logits in place,
// so the largest tensor of training exists once:
//
//   loss[r] = log(sum_k exp(x[r][k])) - x[r][target]        dlogits = (softmax - onehot) *
//   grad_scale
//
// Logits are bf16, arithmetic fp32. A row may be longer than the vocabulary (padding): the rest is
// not looked at, and its gradient is 0. Rows whose target is ignore_index give loss 0 and gradient
// 0.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/result.h"

namespace ptxbench::te {

struct CrossEntropy {
  int64_t rows = 0, vocabulary = 0;
  int64_t stride = 0;      // elements from row to row, >= vocabulary; the gradient fills it
  void* logits = nullptr;  // bf16 [rows][stride]; becomes dlogits
  const int32_t* targets = nullptr;  // [rows]
  int32_t ignore_index = -100;
  float* loss = nullptr;                     // [rows]
  float grad_scale = 1;                      // 1 / number of counted rows for a mean
  const float* device_grad_scale = nullptr;  // multiplies grad_scale; device memory, or null
  bool gradient = true;                      // false: logits stay, only the loss is written
  // Rows whose target is neither in the vocabulary nor ignore_index become NaN and are counted here
  // (device memory, or null).
  int* errors = nullptr;
};

// One launch. Errors "usage" and "cuda".
Result<void> cross_entropy(const CrossEntropy& call, cudaStream_t stream);

}  // namespace ptxbench::te
