#pragma once
// Embedding: rows of a bf16 table by token, optionally plus rows of a second one by position; and
// the gradient of a table.
//
// The gradient adds, for every index that occurs, the rows of dy with that index, in their order:
// the same bits every time, without atomics. The CTAs of the first occurrence of an index do its
// sum, the others find an earlier one and leave.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/result.h"

namespace ptxbench::te {

struct Embedding {
  int64_t tokens = 0, cols = 0, entries = 0;
  const int32_t* index = nullptr;   // [tokens]
  const void* table = nullptr;      // bf16 [entries][cols]
  const void* positions = nullptr;  // bf16 [sequence][cols], added by token % sequence; or null
  int64_t sequence = 0;
  void* y = nullptr;      // bf16 [tokens][cols]
  int* errors = nullptr;  // counts indices outside the table, whose rows become NaN; or null
};

struct EmbeddingBackward {
  int64_t tokens = 0, cols = 0, entries = 0;
  // [tokens]; null: token % entries (the gradient of a table of positions). An index outside the
  // table has no gradient.
  const int32_t* index = nullptr;
  const void* dy = nullptr;  // bf16 [tokens][cols]
  float* dtable = nullptr;   // fp32 [entries][cols]: added to
};

// One launch each. Errors "usage" and "cuda".
Result<void> embedding(const Embedding& call, cudaStream_t stream);
Result<void> embedding_backward(const EmbeddingBackward& call, cudaStream_t stream);

}  // namespace ptxbench::te
