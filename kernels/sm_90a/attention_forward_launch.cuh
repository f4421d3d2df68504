#pragma once
// Host side of attention_forward.cuh.

#include <cuda_runtime.h>

#include <algorithm>

#include "attention_forward.cuh"
#include "attention_forward_unspecialised.cuh"
#include "tensor_map.h"

namespace ptxbench::sm90 {

struct AttentionForwardTensors {
  const void *q, *k, *v;  // bf16 [heads, seq, HeadDim], contiguous, 16-byte aligned
  void* o;                // likewise
};

// Config: of either kernel, `ctas` of which are started.
template <typename Config, typename Kernel>
cudaError_t launch_attention_forward_kernel(Kernel kernel, int ctas,
                                            const AttentionForwardTensors& t,
                                            const AttentionForwardArguments& args,
                                            cudaStream_t stream) {
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_q, map_k, map_v, map_o;
  auto heads = [&](CUtensorMap* map, const void* data, int rows) {
    return encode_heads(encode, map, data, args.heads, args.seq, Config::kHeadDim, rows,
                        TileQ::kColumns);
  };
  constexpr int kStoreRows = 16;  // of one warp
  if (!heads(&map_q, t.q, TileQ::kRows) || !heads(&map_k, t.k, TileKV::kRows) ||
      !heads(&map_v, t.v, TileKV::kRows) || !heads(&map_o, t.o, kStoreRows)) {
    return cudaErrorInvalidValue;
  }
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes);
  if (status != cudaSuccess) return status;
  kernel<<<ctas, Config::kThreads, Config::kSharedBytes, stream>>>(map_q, map_k, map_v, map_o,
                                                                   args);
  return cudaGetLastError();
}

template <typename Config>
cudaError_t launch_attention_forward_config(const AttentionForwardTensors& tensors,
                                            const AttentionForwardArguments& args, int sm_count,
                                            cudaStream_t stream) {
  const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
  const int units = (Config::kCausal ? (tiles + 1) / 2 : tiles) * args.heads;
  return launch_attention_forward_kernel<Config>(attention_forward_kernel<Config>,
                                                 std::min(units, sm_count), tensors, args, stream);
}

template <typename Config>
cudaError_t launch_attention_forward_unspecialised_config(const AttentionForwardTensors& tensors,
                                                          const AttentionForwardArguments& args,
                                                          cudaStream_t stream) {
  const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
  return launch_attention_forward_kernel<Config>(attention_forward_unspecialised_kernel<Config>,
                                                 tiles * args.heads, tensors, args, stream);
}

// The tile shapes in use.
template <int HeadDim, bool Causal>
struct AttentionForwardChoice;
template <bool Causal>
struct AttentionForwardChoice<64, Causal> {
  using Config = AttentionForwardConfig<64, 128, 3, 3, Causal>;
};
template <bool Causal>
struct AttentionForwardChoice<96, Causal> {
  using Config = AttentionForwardConfig<96, 128, 2, 2, Causal>;
};
template <bool Causal>
struct AttentionForwardChoice<128, Causal> {
  using Config = AttentionForwardConfig<128, 128, 2, 2, Causal>;
};
template <bool Causal>
struct AttentionForwardChoice<256, Causal> {
  using Config = AttentionForwardConfig<256, 80, 2, 2, Causal>;
};

// Those of the second kernel: HeadDim, keys of a block, warpgroups, stages, CTAs of an SM.
template <int HeadDim, bool Causal>
struct UnspecialisedForwardChoice;
template <bool Causal>
struct UnspecialisedForwardChoice<64, Causal> {
  using Config = UnspecialisedForwardConfig<64, 96, 2, 3, 2, Causal>;
};
template <bool Causal>
struct UnspecialisedForwardChoice<96, Causal> {
  using Config = UnspecialisedForwardConfig<96, 64, 2, 3, 2, Causal>;
};
template <bool Causal>
struct UnspecialisedForwardChoice<128, Causal> {
  using Config = UnspecialisedForwardConfig<128, 96, 3, 3, 1, Causal>;
};
template <bool Causal>
struct UnspecialisedForwardChoice<256, Causal> {
  using Config = UnspecialisedForwardConfig<256, 64, 2, 2, 1, Causal>;
};

template <int HeadDim, bool Causal>
cudaError_t launch_attention_forward_unspecialised(const AttentionForwardTensors& tensors,
                                                   const AttentionForwardArguments& args,
                                                   cudaStream_t stream) {
  return launch_attention_forward_unspecialised_config<
      typename UnspecialisedForwardChoice<HeadDim, Causal>::Config>(tensors, args, stream);
}

template <int HeadDim, bool Causal>
cudaError_t launch_attention_forward(const AttentionForwardTensors& tensors,
                                     const AttentionForwardArguments& args, int device,
                                     cudaStream_t stream) {
  int sm_count = 0;
  const cudaError_t status =
      cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  return launch_attention_forward_config<typename AttentionForwardChoice<HeadDim, Causal>::Config>(
      tensors, args, sm_count, stream);
}

}  // namespace ptxbench::sm90
