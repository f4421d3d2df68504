#pragma once
// The attention kernels that attention_check.cu compares, by name.

#include <vector>

#include "../../kernels/sm_80/attention_backward_mma.cuh"
#include "../../kernels/sm_80/attention_forward_mma.cuh"
#include "../../kernels/sm_90a/attention_backward_launch.cuh"
#include "../../kernels/sm_90a/attention_forward_launch.cuh"

struct AttentionTensors {
  const void *q, *k, *v;  // bf16 [heads, seq, d]
  void* o;
  float* lse;
  const void* d_o;
  void *d_q, *d_k, *d_v;
  void* workspace;
  int heads, seq;
};

struct Variant {
  const char* name;
  cudaError_t (*run)(const AttentionTensors&);
};

#if HEAD_DIM <= 128
inline size_t attention_workspace_bytes(int heads, int seq) {
  return ptxbench::sm90::attention_backward_workspace(heads, seq, HEAD_DIM);
}
#else
inline size_t attention_workspace_bytes(int, int) { return 0; }
#endif

template <typename Config>
cudaError_t run_forward(const AttentionTensors& t) {
  int sm_count = 0;
  cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, 0);
  return ptxbench::sm90::launch_attention_forward_config<Config>(
      {t.q, t.k, t.v, t.o}, {t.lse, t.heads, t.seq, 1 / std::sqrt(float(HEAD_DIM))}, sm_count, 0);
}

template <typename Config>
cudaError_t run_forward_unspecialised(const AttentionTensors& t) {
  return ptxbench::sm90::launch_attention_forward_unspecialised_config<Config>(
      {t.q, t.k, t.v, t.o}, {t.lse, t.heads, t.seq, 1 / std::sqrt(float(HEAD_DIM))}, 0);
}

inline cudaError_t run_forward_mma(const AttentionTensors& t) {
  auto in = [](const void* p) { return static_cast<const __nv_bfloat16*>(p); };
  return ptxbench::sm80::launch_attention_forward_mma<HEAD_DIM, HEAD_CAUSAL>(
      {in(t.q), in(t.k), in(t.v), static_cast<__nv_bfloat16*>(t.o), t.lse, t.heads, t.seq,
       1 / std::sqrt(float(HEAD_DIM))},
      0);
}

inline std::vector<Variant> forward_variants() {
  return {
    {"wgmma", run_forward<ptxbench::sm90::AttentionForwardChoice<HEAD_DIM, HEAD_CAUSAL>::Config>},
        {"wgmma unspecialised",
         run_forward_unspecialised<
             ptxbench::sm90::UnspecialisedForwardChoice<HEAD_DIM, HEAD_CAUSAL>::Config>},
        {"mma.sync", run_forward_mma},
#if defined(ALL_TILES) && HEAD_DIM == 128
        {"wgmma n128 no token",
         run_forward<
             ptxbench::sm90::AttentionForwardConfig<HEAD_DIM, 128, 2, 2, HEAD_CAUSAL, false>>},
        {"wgmma n160",
         run_forward<ptxbench::sm90::AttentionForwardConfig<HEAD_DIM, 160, 2, 2, HEAD_CAUSAL>>},
#endif
  };
}

#if HEAD_DIM <= 128
inline cudaError_t run_backward(const AttentionTensors& t) {
  return ptxbench::sm90::launch_attention_backward<HEAD_DIM, HEAD_CAUSAL>(
      {t.q, t.k, t.v, t.o, t.d_o, t.lse, t.d_q, t.d_k, t.d_v},
      {static_cast<float*>(t.workspace), t.heads, t.seq, 1 / std::sqrt(float(HEAD_DIM))}, 0);
}

template <typename Config>
cudaError_t run_backward_config(const AttentionTensors& t) {
  return ptxbench::sm90::launch_attention_backward_config<Config>(
      {t.q, t.k, t.v, t.o, t.d_o, t.lse, t.d_q, t.d_k, t.d_v},
      {static_cast<float*>(t.workspace), t.heads, t.seq, 1 / std::sqrt(float(HEAD_DIM))}, 0);
}

template <typename Keys, typename Queries>
cudaError_t run_backward_split(const AttentionTensors& t) {
  return ptxbench::sm90::launch_attention_backward_split_config<Keys, Queries>(
      {t.q, t.k, t.v, t.o, t.d_o, t.lse, t.d_q, t.d_k, t.d_v},
      {static_cast<float*>(t.workspace), t.heads, t.seq, 1 / std::sqrt(float(HEAD_DIM))}, 0);
}

inline cudaError_t run_backward_mma(const AttentionTensors& t) {
  auto in = [](const void* p) { return static_cast<const __nv_bfloat16*>(p); };
  auto out = [](void* p) { return static_cast<__nv_bfloat16*>(p); };
  return ptxbench::sm80::launch_attention_backward_mma<HEAD_DIM, HEAD_CAUSAL>(
      {in(t.q), in(t.k), in(t.v), in(t.o), in(t.d_o), t.lse, out(t.d_q), out(t.d_k), out(t.d_v),
       static_cast<float*>(t.workspace), t.heads, t.seq, 1 / std::sqrt(float(HEAD_DIM))},
      0);
}

using SplitChoice = ptxbench::sm90::BackwardSplitChoice<HEAD_DIM, HEAD_CAUSAL>;

inline std::vector<Variant> backward_variants() {
  using namespace ptxbench::sm90;
  constexpr int kDim = HEAD_DIM;
  constexpr bool kCausal = HEAD_CAUSAL;
  (void)kDim, (void)kCausal;
  return {
    {"backward wgmma", run_backward},
        {"backward split", run_backward_split<SplitChoice::Keys, SplitChoice::Queries>},
#if defined(ALL_TILES)
        {"backward split, queries n64",
         run_backward_split<SplitChoice::Keys, BackwardQueriesConfig<kDim, 64, 2, 3, kCausal>>},
#if HEAD_DIM == 64
        {"backward split, queries 3 x n64",
         run_backward_split<SplitChoice::Keys, BackwardQueriesConfig<kDim, 64, 3, 3, kCausal>>},
#endif
#if HEAD_DIM <= 96
        {"backward not ahead",
         run_backward_config<AttentionBackwardConfig<kDim, 64, 2, kCausal, false>>},
#endif
#endif
    {
      "backward mma.sync", run_backward_mma
    }
  };
}
#else
inline std::vector<Variant> backward_variants() { return {}; }
#endif
