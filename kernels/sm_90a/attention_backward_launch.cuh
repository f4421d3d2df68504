#pragma once
// Host side of attention_backward.cuh and attention_backward_split.cuh.

#include <cuda_runtime.h>

#include "attention_backward.cuh"
#include "attention_backward_split.cuh"
#include "tensor_map.h"

namespace ptxbench::sm90 {

// bf16 [heads, seq, HeadDim], contiguous, 16-byte aligned; lse fp32 [heads, seq].
struct AttentionBackwardTensors {
  const void *q, *k, *v, *o, *d_o;
  const float* lse;
  void *d_q, *d_k, *d_v;
};

// Bytes; split: of attention_backward_split.cuh.
inline size_t attention_backward_workspace(int heads, int seq, int head_dim, bool split = false) {
  return static_cast<size_t>(BackwardWorkspace(heads, seq, head_dim, !split).end) * sizeof(float);
}

// The tensor maps that a Config's kernel reads: boxes of the tiles it names.
struct AttentionBackwardMaps {
  CUtensorMap q, k, v, d_o;

  template <typename Config>
  bool encode(EncodeTiled encode, const AttentionBackwardTensors& t,
              const AttentionBackwardArguments& args) {
    auto heads = [&](CUtensorMap* map, const void* data, int rows) {
      return encode_heads(encode, map, data, args.heads, args.seq, Config::kHeadDim, rows,
                          Config::TileQ::kColumns);
    };
    return heads(&q, t.q, Config::TileQ::kRows) && heads(&k, t.k, Config::TileKV::kRows) &&
           heads(&v, t.v, Config::TileKV::kRows) && heads(&d_o, t.d_o, Config::TileQ::kRows);
  }
};

// A result, stored in boxes of the 16 rows of a warp.
template <typename Config>
bool encode_gradient(EncodeTiled encode, CUtensorMap* map, void* data,
                     const AttentionBackwardArguments& args) {
  return encode_heads(encode, map, data, args.heads, args.seq, Config::kHeadDim, 16,
                      Config::TileQ::kColumns);
}

template <int HeadDim, bool Sums>
void launch_backward_prepare(const AttentionBackwardTensors& t,
                             const AttentionBackwardArguments& args, cudaStream_t stream) {
  const int rows = backward_padded(args.seq) * args.heads;
  attention_backward_prepare<HeadDim, Sums>
      <<<rows / 8, 256, 0, stream>>>(static_cast<const __nv_bfloat16*>(t.o),
                                     static_cast<const __nv_bfloat16*>(t.d_o), t.lse, args);
}

template <typename Config>
cudaError_t launch_attention_backward_config(const AttentionBackwardTensors& t,
                                             const AttentionBackwardArguments& args,
                                             cudaStream_t stream) {
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  AttentionBackwardMaps maps;
  CUtensorMap map_d_k, map_d_v;
  if (!maps.encode<Config>(encode, t, args) ||
      !encode_gradient<Config>(encode, &map_d_k, t.d_k, args) ||
      !encode_gradient<Config>(encode, &map_d_v, t.d_v, args)) {
    return cudaErrorInvalidValue;
  }
  auto kernel = attention_backward_kernel<Config>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes);
  if (status != cudaSuccess) return status;
  const int key_blocks = (args.seq + Config::kKeys - 1) / Config::kKeys * args.heads;
  launch_backward_prepare<Config::kHeadDim, true>(t, args, stream);
  kernel<<<key_blocks, Config::kThreads, Config::kSharedBytes, stream>>>(
      maps.q, maps.k, maps.v, maps.d_o, map_d_k, map_d_v, args);
  attention_backward_finish<Config>
      <<<backward_padded(args.seq) / kSumRows * args.heads, 256, 0, stream>>>(
          static_cast<__nv_bfloat16*>(t.d_q), args);
  return cudaGetLastError();
}

template <typename Keys, typename Queries>
cudaError_t launch_attention_backward_split_config(const AttentionBackwardTensors& t,
                                                   const AttentionBackwardArguments& args,
                                                   cudaStream_t stream) {
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  AttentionBackwardMaps of_keys, of_queries;
  CUtensorMap map_d_q, map_d_k, map_d_v;
  if (!of_keys.encode<Keys>(encode, t, args) || !of_queries.encode<Queries>(encode, t, args) ||
      !encode_gradient<Keys>(encode, &map_d_k, t.d_k, args) ||
      !encode_gradient<Keys>(encode, &map_d_v, t.d_v, args) ||
      !encode_gradient<Queries>(encode, &map_d_q, t.d_q, args)) {
    return cudaErrorInvalidValue;
  }
  auto keys = attention_backward_keys_kernel<Keys>;
  auto queries = attention_backward_queries_kernel<Queries>;
  cudaError_t status =
      cudaFuncSetAttribute(keys, cudaFuncAttributeMaxDynamicSharedMemorySize, Keys::kSharedBytes);
  if (status != cudaSuccess) return status;
  status = cudaFuncSetAttribute(queries, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                Queries::kSharedBytes);
  if (status != cudaSuccess) return status;
  launch_backward_prepare<Keys::kHeadDim, false>(t, args, stream);
  keys<<<(args.seq + Keys::kKeys - 1) / Keys::kKeys * args.heads, Keys::kThreads,
         Keys::kSharedBytes, stream>>>(of_keys.q, of_keys.k, of_keys.v, of_keys.d_o, map_d_k,
                                       map_d_v, args);
  queries<<<(args.seq + Queries::kBlockM - 1) / Queries::kBlockM * args.heads, Queries::kThreads,
            Queries::kSharedBytes, stream>>>(of_queries.q, of_queries.k, of_queries.v,
                                             of_queries.d_o, map_d_q, args);
  return cudaGetLastError();
}

template <int HeadDim, bool Causal>
cudaError_t launch_attention_backward(const AttentionBackwardTensors& tensors,
                                      const AttentionBackwardArguments& args, cudaStream_t stream) {
  return launch_attention_backward_config<AttentionBackwardConfig<HeadDim, 64, 2, Causal>>(
      tensors, args, stream);
}

// Tiles of the split kernels.
template <int HeadDim, bool Causal>
struct BackwardSplitChoice {
  using Keys = BackwardKeysConfig<HeadDim, 64, 2, 3, Causal>;
  using Queries = BackwardQueriesConfig<HeadDim, HeadDim == 128 ? 96 : 128, 2, 3, Causal>;
};

template <int HeadDim, bool Causal>
cudaError_t launch_attention_backward_split(const AttentionBackwardTensors& tensors,
                                            const AttentionBackwardArguments& args,
                                            cudaStream_t stream) {
  using Choice = BackwardSplitChoice<HeadDim, Causal>;
  return launch_attention_backward_split_config<typename Choice::Keys, typename Choice::Queries>(
      tensors, args, stream);
}

}  // namespace ptxbench::sm90
