// Activations forward.
#include "te/kernels/fused_cast.cuh"

namespace ptxbench::te::device {

cudaError_t launch_activation(const FusedCastArgs& args, cudaStream_t stream) {
  return args.op == CastOp::swiglu ? launch_source<SwigluForward>(args, stream)
                                   : launch_source<GeluForward>(args, stream);
}

}  // namespace ptxbench::te::device
