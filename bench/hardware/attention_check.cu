// Checks and times the attention kernels of one head dimension (HEAD_DIM, HEAD_CAUSAL at compile
// time) against the definition in fp64.
//   attention_check check HEADS SEQ [CHECKED]   compares CHECKED heads (default all)
//   attention_check wide HEADS SEQ [CHECKED]    forward alone, Q eight times as large: weights
//   spread
//                                               over many powers of two, maxima move late
//   attention_check time HEADS SEQ [ROUNDS]     medians, L2 flushed before every run
// Exit 0: all right, 1: wrong values, 2: error.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "attention_reference.cuh"
#include "attention_variants.cuh"
#include "check.cuh"

namespace {

constexpr int kDim = HEAD_DIM;
constexpr bool kCausal = HEAD_CAUSAL;

template <typename Type>
struct Buffer {
  Type* data = nullptr;
  size_t count;
  explicit Buffer(size_t n) : count(n) {
    HW_CHECK(cudaMalloc(&data, std::max<size_t>(n, 1) * sizeof(Type)));
  }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator Type*() const { return data; }
};

struct Problem {
  int heads, seq;
  size_t size;
  Buffer<__nv_bfloat16> q, k, v, o, d_o, d_q, d_k, d_v;
  Buffer<float> lse;
  Buffer<uint8_t> workspace;

  Problem(int h, int s)
      : heads(h),
        seq(s),
        size(size_t(h) * s * kDim),
        q(size),
        k(size),
        v(size),
        o(size),
        d_o(size),
        d_q(size),
        d_k(size),
        d_v(size),
        lse(size_t(h) * s),
        workspace(attention_workspace_bytes(h, s)) {
    __nv_bfloat16* inputs[] = {q, k, v, d_o};
    for (int i = 0; i < 4; ++i) hardware::fill_normal<<<1024, 256>>>(inputs[i], size, 11 + i);
  }
  AttentionTensors tensors() {
    return {q, k, v, o, lse, d_o, d_q, d_k, d_v, workspace, heads, seq};
  }
  void poison(bool forward) {
    if (forward) {
      HW_CHECK(cudaMemset(o, 0xFF, size * 2));
      HW_CHECK(cudaMemset(lse, 0xFF, lse.count * 4));
    }
    for (__nv_bfloat16* p : {d_q.data, d_k.data, d_v.data}) HW_CHECK(cudaMemset(p, 0xFF, size * 2));
    HW_CHECK(cudaMemset(workspace, 0xFF, workspace.count));
  }
};

__global__ void enlarge(__nv_bfloat16* data, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    data[i] = __float2bfloat16(__bfloat162float(data[i]) * 8);
  }
}

template <typename Type>
bool compare(const char* what, const Type* got, const double* want, int64_t head_size, int step,
             int heads, double relative, double absolute, double frobenius) {
  Buffer<hardware::Deviation> out(1);
  HW_CHECK(cudaMemset(out, 0, sizeof(hardware::Deviation)));
  hardware::deviation<<<256, 256>>>(got, want, head_size, step, heads, relative, absolute, out);
  hardware::Deviation d;
  HW_CHECK(cudaMemcpy(&d, out, sizeof d, cudaMemcpyDeviceToHost));
  const double error = std::sqrt(d.error_square / d.reference_square);
  const bool good = d.bad == 0 && d.checked == size_t(head_size) * heads && error < frobenius;
  std::printf("  %-4s %-4s checked %llu off %llu relative error %.2e\n", good ? "ok" : "BAD", what,
              d.checked, d.bad, error);
  return good;
}

int check(int heads, int seq, int checked, bool wide) {
  Problem problem(heads, seq);
  if (wide) enlarge<<<1024, 256>>>(problem.q, problem.size);
  checked = std::min(checked, heads);
  const int step = checked > 1 ? (heads - 1) / (checked - 1) : 1;
  const int64_t head_size = int64_t(seq) * kDim;
  const double scale = 1 / std::sqrt(double(kDim));
  Buffer<double> out(checked * head_size), lse(size_t(checked) * seq);
  hardware::AttentionProblem definition{problem.q, problem.k, problem.v, problem.o, problem.d_o,
                                        seq,       kDim,      kCausal,   scale};
  const dim3 grid(seq, checked);
  HW_CHECK(cudaFuncSetAttribute(hardware::reference_forward,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, seq * 8));
  hardware::reference_forward<<<grid, 128, seq * 8>>>(definition, step, out, lse);
  HW_CHECK(cudaDeviceSynchronize());
  bool good = true;
  for (const Variant& variant : forward_variants()) {
    std::printf("%s d%d%s heads %d seq %d\n", variant.name, kDim, kCausal ? " causal" : "", heads,
                seq);
    problem.poison(true);
    HW_CHECK(variant.run(problem.tensors()));
    HW_CHECK(cudaDeviceSynchronize());
    // bf16 probabilities and a bf16 result: a typical row's error is 2^-9 of its size.
    good &= compare("O", problem.o.data, out, head_size, step, checked, 0.02, 0.01, 4e-3);
    good &= compare("LSE", problem.lse.data, lse, seq, step, checked, 1e-5, 1e-5, 1e-5);
  }
  const std::vector<Variant> backward = backward_variants();
  if (backward.empty() || wide) return good ? 0 : 1;
  Buffer<double> delta(size_t(checked) * seq), d_k(checked * head_size), d_v(checked * head_size);
  HW_CHECK(cudaFuncSetAttribute(hardware::reference_d_q,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, seq * 8));
  HW_CHECK(cudaFuncSetAttribute(hardware::reference_d_kv,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, seq * 16));
  hardware::reference_delta<<<grid, 128>>>(definition, step, delta);
  hardware::reference_d_q<<<grid, 128, seq * 8>>>(definition, step, lse, delta, out);
  hardware::reference_d_kv<<<grid, 128, seq * 16>>>(definition, step, lse, delta, d_k, d_v);
  HW_CHECK(cudaDeviceSynchronize());
  for (const Variant& variant : backward) {
    std::printf("%s d%d%s heads %d seq %d\n", variant.name, kDim, kCausal ? " causal" : "", heads,
                seq);
    problem.poison(false);
    HW_CHECK(variant.run(problem.tensors()));
    HW_CHECK(cudaDeviceSynchronize());
    good &= compare("dQ", problem.d_q.data, out, head_size, step, checked, 0.03, 0.02, 6e-3);
    good &= compare("dK", problem.d_k.data, d_k, head_size, step, checked, 0.03, 0.02, 6e-3);
    good &= compare("dV", problem.d_v.data, d_v, head_size, step, checked, 0.03, 0.02, 6e-3);
  }
  return good ? 0 : 1;
}

void time_variants(Problem& problem, const std::vector<Variant>& variants, double products,
                   int rounds) {
  constexpr size_t kFlush = size_t{192} << 20;
  Buffer<uint8_t> flush(kFlush);
  cudaEvent_t start, stop;
  HW_CHECK(cudaEventCreate(&start));
  HW_CHECK(cudaEventCreate(&stop));
  std::vector<std::vector<float>> times(variants.size());
  for (int round = 0; round < rounds + 2; ++round) {
    for (size_t i = 0; i < variants.size(); ++i) {
      HW_CHECK(cudaMemsetAsync(flush, round, kFlush));
      HW_CHECK(cudaEventRecord(start));
      HW_CHECK(variants[i].run(problem.tensors()));
      HW_CHECK(cudaEventRecord(stop));
      HW_CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      HW_CHECK(cudaEventElapsedTime(&ms, start, stop));
      if (round >= 2) times[i].push_back(ms);
    }
  }
  const double flop =
      products * 2.0 * problem.heads * problem.seq * problem.seq * kDim * (kCausal ? 0.5 : 1.0);
  for (size_t i = 0; i < variants.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    const double ms = times[i][times[i].size() / 2];
    std::printf("time %-28s d%d%s heads %d seq %d: %.3f ms %.0f TFLOP/s\n", variants[i].name, kDim,
                kCausal ? " causal" : "", problem.heads, problem.seq, ms, flop / ms / 1e9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: attention_check check|wide|time HEADS SEQ [CHECKED|ROUNDS]\n");
    return 2;
  }
  const int heads = std::atoi(argv[2]), seq = std::atoi(argv[3]);
  const int extra = argc > 4 ? std::atoi(argv[4]) : 0;
  if (heads < 1 || seq < 1) return std::fprintf(stderr, "HEADS and SEQ must be positive\n"), 2;
  const bool wide = std::strcmp(argv[1], "wide") == 0;
  if (wide || std::strcmp(argv[1], "check") == 0) {
    return check(heads, seq, extra > 0 ? extra : heads, wide);
  }
  Problem problem(heads, seq);
  const std::vector<Variant> forward = forward_variants(), backward = backward_variants();
  if (!forward.empty()) HW_CHECK(forward[0].run(problem.tensors()));
  time_variants(problem, forward, 2, extra > 0 ? extra : 11);
  time_variants(problem, backward, 5, extra > 0 ? extra : 11);
  return 0;
}
