#pragma once
// Host side of fp8_attention_forward.cuh.

#include <cuda_runtime.h>

#include "fp8_attention_forward.cuh"
#include "tensor_map.h"

namespace ptxbench::sm90 {

struct Fp8AttentionTensors {
  const void *q, *k, *v;  // e4m3 [heads, seq, HeadDim], contiguous, 16-byte aligned
  void* o;                // likewise
};

template <typename Config>
cudaError_t launch_fp8_attention_config(const Fp8AttentionTensors& t,
                                        const Fp8AttentionArguments& args, cudaStream_t stream) {
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_q, map_k, map_v, map_o;
  // Copies move bytes: two e4m3 go as one bf16.
  auto heads = [&](CUtensorMap* map, const void* data, int rows) {
    return encode_heads(encode, map, data, args.heads, args.seq, Config::kHeadDim / 2, rows,
                        TileQ::kColumns);
  };
  constexpr int kStoreRows = 16;  // of one warp
  if (!heads(&map_q, t.q, TileQ::kRows) || !heads(&map_k, t.k, TileKV::kRows) ||
      !heads(&map_v, t.v, TileKV::kRows) || !heads(&map_o, t.o, kStoreRows)) {
    return cudaErrorInvalidValue;
  }
  auto kernel = fp8_attention_forward_kernel<Config>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes);
  if (status != cudaSuccess) return status;
  const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
  kernel<<<tiles * args.heads, Config::kThreads, Config::kSharedBytes, stream>>>(
      map_q, map_k, map_v, map_o, args);
  return cudaGetLastError();
}

template <int HeadDim, bool Causal>
cudaError_t launch_fp8_attention(const Fp8AttentionTensors& tensors,
                                 const Fp8AttentionArguments& args, cudaStream_t stream) {
  constexpr int kWarpgroups = HeadDim >= 128 ? 2 : 3, kStages = HeadDim == 256 ? 2 : 3;
  return launch_fp8_attention_config<
      Fp8AttentionConfig<HeadDim, 128, kWarpgroups, kStages, Causal>>(tensors, args, stream);
}

}  // namespace ptxbench::sm90
