#pragma once
// An FP8 tensor as the kernels write it: views of device memory that somebody else owns.

#include <cstdint>

#include "te/fp8/format.h"

namespace ptxbench::te {

// What a casting operation writes; null where not wanted. Rows and columns come with the operation.
struct Fp8Target {
  uint8_t* data = nullptr;  // [rows][cols]
  uint8_t* transpose =
      nullptr;  // [cols][rows]; Hopper's FP8 GEMM wants the reduced dimension inside
  const float* scale = nullptr;  // read: multiplies before the cast; null: 1
  float* scale_inv = nullptr;    // written: 1/scale, rounded to nearest; decodes data and transpose
  // Raised to the largest magnitude before scaling, never lowered. NaN is not recorded, infinity
  // is.
  float* amax = nullptr;
};

}  // namespace ptxbench::te
