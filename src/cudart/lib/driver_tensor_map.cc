// Driver API: tensor maps.
#include <cuda.h>

#include <string>

#include "cudart/lib/backend.h"
#include "cudart/lib/driver_errors.h"

using namespace ptxbench::cudart;
using ptxbench::plan::TensorMapArgs;

namespace {

// What both kinds of maps have; CUDA_SUCCESS, or what the call returns.
struct Common {
  const char* call;
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t *dims, *strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

CUresult common_arguments(const Common& c, bool other_arrays, TensorMapArgs* args) {
  Backend* backend = ptxbench_backend();
  auto refuse = [&](const char* why) {
    return driver_result(
        backend->refuse(kInvalidValue, (std::string(c.call) + ": " + why).c_str()));
  };
  auto unsupported = [&](const char* what, int value) {
    const std::string text = std::string(c.call) + " with " + what + " " + std::to_string(value);
    return driver_result(backend->unsupported(text.c_str()));
  };
  if (c.rank < 1 || c.rank > 5) return refuse("rank is not 1..5");
  if (!c.dims || !other_arrays || !c.element_strides || (c.rank > 1 && !c.strides))
    return refuse("null array");
  if (c.type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) return unsupported("data type", c.type);
  if (static_cast<unsigned>(c.swizzle) > CU_TENSOR_MAP_SWIZZLE_128B)
    return unsupported("swizzle", c.swizzle);
  if (static_cast<unsigned>(c.interleave) > 2 || static_cast<unsigned>(c.promotion) > 3 ||
      static_cast<unsigned>(c.fill) > 1)
    return refuse("enumerator out of range");
  args->type = static_cast<ptxbench::plan::MapType>(c.type);
  args->rank = c.rank;
  args->global_address = reinterpret_cast<uint64_t>(c.address);
  for (cuuint32_t i = 0; i < c.rank; ++i) {
    args->dims[i] = c.dims[i];
    if (i + 1 < c.rank) args->strides[i] = c.strides[i];
    args->element_strides[i] = c.element_strides[i];
    args->box[i] = 1;
  }
  args->interleave = static_cast<ptxbench::plan::MapInterleave>(c.interleave);
  args->swizzle = static_cast<ptxbench::plan::MapSwizzle>(c.swizzle);
  args->l2_promotion = static_cast<uint8_t>(c.promotion);
  args->nan_fill = c.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  return CUDA_SUCCESS;
}

CUresult encode(CUtensorMap* out, const TensorMapArgs& args) {
  return driver_result(ptxbench_backend()->encode_tensor_map(args, out));
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  TensorMapArgs args;
  const Common common{"cuTensorMapEncodeTiled", type,       rank,    address,   dims, strides,
                      element_strides,          interleave, swizzle, promotion, fill};
  if (const CUresult r = common_arguments(common, box, &args); r != CUDA_SUCCESS) return r;
  for (cuuint32_t i = 0; i < rank; ++i) args.box[i] = box[i];
  return encode(out, args);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                 const int* lower, const int* upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  TensorMapArgs args;
  const Common common{"cuTensorMapEncodeIm2col", type,       rank,    address,   dims, strides,
                      element_strides,           interleave, swizzle, promotion, fill};
  if (const CUresult r = common_arguments(common, lower && upper, &args); r != CUDA_SUCCESS)
    return r;
  args.im2col = true;
  args.box[0] = channels, args.pixels = pixels;
  for (cuuint32_t i = 0; i + 2 < rank; ++i) args.lower[i] = lower[i], args.upper[i] = upper[i];
  return encode(out, args);
}

}  // extern "C"
