// Casts without an activation.
#include "te/kernels/fused_cast.cuh"

namespace ptxbench::te::device {

cudaError_t launch_cast(const FusedCastArgs& args, cudaStream_t stream) {
  return args.op == CastOp::cast_f32 ? launch_source<PlainF32>(args, stream)
                                     : launch_source<PlainBf16>(args, stream);
}

}  // namespace ptxbench::te::device
