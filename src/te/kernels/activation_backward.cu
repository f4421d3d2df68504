// Activations backward.
#include "te/kernels/fused_cast.cuh"

namespace ptxbench::te::device {

cudaError_t launch_activation_backward(const FusedCastArgs& args, cudaStream_t stream) {
  return args.op == CastOp::dswiglu ? launch_source<SwigluBackward>(args, stream)
                                    : launch_source<GeluBackward>(args, stream);
}

}  // namespace ptxbench::te::device
