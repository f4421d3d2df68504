#pragma once
// Host side of attention_backward.cuh.

#include <cuda_runtime.h>

#include "attention_backward.cuh"
#include "tensor_map.h"

namespace ptxbench::sm90 {

// bf16 [heads, seq, HeadDim], contiguous, 16-byte aligned; lse fp32 [heads, seq].
struct AttentionBackwardTensors {
  const void *q, *k, *v, *o, *d_o;
  const float* lse;
  void *d_q, *d_k, *d_v;
};

inline size_t attention_backward_workspace(int heads, int seq, int head_dim) {
  return static_cast<size_t>(BackwardWorkspace(heads, seq, head_dim).end) * sizeof(float);
}

template <typename Config>
cudaError_t launch_attention_backward_config(const AttentionBackwardTensors& t,
                                             const AttentionBackwardArguments& args,
                                             cudaStream_t stream) {
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_q, map_k, map_v, map_d_o, map_d_k, map_d_v;
  auto heads = [&](CUtensorMap* map, const void* data, int rows) {
    return encode_heads(encode, map, data, args.heads, args.seq, Config::kHeadDim, rows,
                        TileQ::kColumns);
  };
  constexpr int kStoreRows = 16;  // of one warp
  if (!heads(&map_q, t.q, TileQ::kRows) || !heads(&map_k, t.k, TileKV::kRows) ||
      !heads(&map_v, t.v, TileKV::kRows) || !heads(&map_d_o, t.d_o, TileQ::kRows) ||
      !heads(&map_d_k, t.d_k, kStoreRows) || !heads(&map_d_v, t.d_v, kStoreRows)) {
    return cudaErrorInvalidValue;
  }
  auto kernel = attention_backward_kernel<Config>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes);
  if (status != cudaSuccess) return status;
  const int blocks = (args.seq + Config::kQueries - 1) / Config::kQueries * args.heads;
  const int key_blocks = (args.seq + Config::kKeys - 1) / Config::kKeys * args.heads;
  attention_backward_prepare<Config::kHeadDim><<<blocks*(Config::kQueries / 8), 256, 0, stream>>>(
      static_cast<const __nv_bfloat16*>(t.o), static_cast<const __nv_bfloat16*>(t.d_o), t.lse,
      args);
  kernel<<<key_blocks, Config::kThreads, Config::kSharedBytes, stream>>>(
      map_q, map_k, map_v, map_d_o, map_d_k, map_d_v, args);
  attention_backward_finish<Config>
      <<<blocks, 256, 0, stream>>>(static_cast<__nv_bfloat16*>(t.d_q), args);
  return cudaGetLastError();
}

template <int HeadDim, bool Causal, bool Deterministic>
cudaError_t launch_attention_backward(const AttentionBackwardTensors& tensors,
                                      const AttentionBackwardArguments& args, cudaStream_t stream) {
  return launch_attention_backward_config<
      AttentionBackwardConfig<HeadDim, 2, Causal, Deterministic>>(tensors, args, stream);
}

}  // namespace ptxbench::sm90
