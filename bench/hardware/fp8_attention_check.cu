// Checks and times the FP8 attention kernels of one head dimension (HEAD_DIM, HEAD_CAUSAL at
// compile time) against the definition in fp64. e4m3 inputs are exact in bf16, so the reference is
// that of attention_check.cu.
//   fp8_attention_check check HEADS SEQ     every element
//   fp8_attention_check time HEADS SEQ      medians, L2 flushed before every run
// Exit 0: all right, 1: wrong values, 2: error.

#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../../kernels/sm_80/fp8_attention_forward_mma.cuh"
#include "../../kernels/sm_90a/fp8_attention_launch.cuh"
#include "attention_reference.cuh"
#include "check.cuh"

namespace {

constexpr int kDim = HEAD_DIM;
constexpr bool kCausal = HEAD_CAUSAL;
// Of Q, K, V; O keeps its size, so that e4m3's smallest numbers do not matter.
constexpr float kDescale[3] = {0.02f, 0.03f, 2.0f};

struct Problem {
  int heads, seq;
  uint8_t *q, *k, *v, *o;
  float *lse, *descale;
  __nv_bfloat16* wide[3];  // Q, K, V in bf16
  size_t size() const { return size_t(heads) * seq * kDim; }
  float scale() const { return 1 / std::sqrt(float(kDim)); }
};

__global__ void fill(__nv_fp8_e4m3* out, __nv_bfloat16* wide, size_t count, float factor,
                     uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint64_t bits = hardware::mix(hardware::mix(seed) ^ i);
    const float u = (static_cast<uint32_t>(bits >> 40) + 1) * 0x1p-24f;
    const float v = static_cast<uint32_t>(bits & 0xFFFFFF) * 0x1p-24f;
    out[i] = __nv_fp8_e4m3(sqrtf(-2 * logf(u)) * cospif(2 * v) * factor);
    wide[i] = __float2bfloat16(float(out[i]));
  }
}

__global__ void multiply(double* values, size_t count, double factor) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    values[i] *= factor;
  }
}

Problem make(int heads, int seq) {
  Problem p{heads, seq};
  uint8_t** inputs[] = {&p.q, &p.k, &p.v, &p.o};
  for (uint8_t** input : inputs) HW_CHECK(cudaMalloc(input, p.size()));
  HW_CHECK(cudaMalloc(&p.lse, size_t(heads) * seq * 4));
  HW_CHECK(cudaMalloc(&p.descale, sizeof kDescale));
  HW_CHECK(cudaMemcpy(p.descale, kDescale, sizeof kDescale, cudaMemcpyHostToDevice));
  for (int i = 0; i < 3; ++i) {
    HW_CHECK(cudaMalloc(&p.wide[i], p.size() * 2));
    fill<<<1024, 256>>>(reinterpret_cast<__nv_fp8_e4m3*>(*inputs[i]), p.wide[i], p.size(),
                        i == 2 ? 8.f : 50.f, 5 + i);
  }
  HW_CHECK(cudaDeviceSynchronize());
  return p;
}

cudaError_t run_wgmma(const Problem& p) {
  return ptxbench::sm90::launch_fp8_attention<kDim, kCausal>(
      {p.q, p.k, p.v, p.o},
      {p.descale, p.descale + 1, p.descale + 2, p.lse, p.heads, p.seq, p.scale()}, 0);
}

cudaError_t run_mma(const Problem& p) {
  return ptxbench::sm80::launch_fp8_attention_mma<kDim, kCausal>(
      {p.q, p.k, p.v, p.descale, p.descale + 1, p.descale + 2, p.o, p.lse, p.heads, p.seq,
       p.scale()},
      0);
}

struct Variant {
  const char* name;
  cudaError_t (*run)(const Problem&);
};
const Variant kVariants[] = {{"wgmma", run_wgmma}, {"mma.sync", run_mma}};

template <typename Type>
bool compare(const char* what, const Type* got, const double* want, int64_t head_size, int heads,
             double relative, double absolute, double frobenius) {
  hardware::Deviation *out, d;
  HW_CHECK(cudaMalloc(&out, sizeof d));
  HW_CHECK(cudaMemset(out, 0, sizeof d));
  hardware::deviation<<<256, 256>>>(got, want, head_size, 1, heads, relative, absolute, out);
  HW_CHECK(cudaMemcpy(&d, out, sizeof d, cudaMemcpyDeviceToHost));
  HW_CHECK(cudaFree(out));
  const double error = std::sqrt(d.error_square / d.reference_square);
  const bool good = d.bad == 0 && d.checked == size_t(head_size) * heads && error < frobenius;
  std::printf("  %-4s %-4s checked %llu off %llu relative error %.2e\n", good ? "ok" : "BAD", what,
              d.checked, d.bad, error);
  return good;
}

int check(const Problem& p) {
  double *out, *lse;
  HW_CHECK(cudaMalloc(&out, p.size() * 8));
  HW_CHECK(cudaMalloc(&lse, size_t(p.heads) * p.seq * 8));
  const hardware::AttentionProblem definition{
      p.wide[0], p.wide[1], p.wide[2],
      nullptr,   nullptr,   p.seq,
      kDim,      kCausal,   double(kDescale[0]) * kDescale[1] / std::sqrt(double(kDim))};
  HW_CHECK(cudaFuncSetAttribute(hardware::reference_forward,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, p.seq * 8));
  hardware::reference_forward<<<dim3(p.seq, p.heads), 128, p.seq * 8>>>(definition, 1, out, lse);
  multiply<<<256, 256>>>(out, p.size(), kDescale[2]);
  HW_CHECK(cudaDeviceSynchronize());
  bool good = true;
  for (const Variant& variant : kVariants) {
    std::printf("fp8 %s d%d%s heads %d seq %d\n", variant.name, kDim, kCausal ? " causal" : "",
                p.heads, p.seq);
    HW_CHECK(cudaMemset(p.o, 0xFF, p.size()));
    HW_CHECK(cudaMemset(p.lse, 0xFF, size_t(p.heads) * p.seq * 4));
    HW_CHECK(variant.run(p));
    HW_CHECK(cudaDeviceSynchronize());
    // Half an ulp of O's e4m3 is a sixteenth; weights err by as much and average out.
    good &= compare("O", reinterpret_cast<const __nv_fp8_e4m3*>(p.o), out, int64_t(p.seq) * kDim,
                    p.heads, 0.11, 0.6, 0.05);
    good &= compare("LSE", p.lse, lse, p.seq, p.heads, 1e-3, 1e-3, 1e-3);
  }
  return good ? 0 : 1;
}

void time_all(const Problem& p) {
  constexpr size_t kFlush = size_t{192} << 20;
  void* flush;
  HW_CHECK(cudaMalloc(&flush, kFlush));
  cudaEvent_t start, stop;
  HW_CHECK(cudaEventCreate(&start));
  HW_CHECK(cudaEventCreate(&stop));
  for (const Variant& variant : kVariants) {
    std::vector<float> times;
    for (int round = 0; round < 9; ++round) {
      HW_CHECK(cudaMemsetAsync(flush, round, kFlush));
      HW_CHECK(cudaEventRecord(start));
      HW_CHECK(variant.run(p));
      HW_CHECK(cudaEventRecord(stop));
      HW_CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      HW_CHECK(cudaEventElapsedTime(&ms, start, stop));
      if (round >= 2) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    const double ms = times[times.size() / 2];
    const double flop = 4.0 * p.heads * p.seq * p.seq * kDim * (kCausal ? 0.5 : 1.0);
    std::printf("time fp8 %s d%d%s heads %d seq %d: %.3f ms %.0f TFLOP/s\n", variant.name, kDim,
                kCausal ? " causal" : "", p.heads, p.seq, ms, flop / ms / 1e9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: fp8_attention_check check|time HEADS SEQ\n"), 2;
  const int heads = std::atoi(argv[2]), seq = std::atoi(argv[3]);
  if (heads < 1 || seq < 1) return std::fprintf(stderr, "HEADS and SEQ must be positive\n"), 2;
  const Problem p = make(heads, seq);
  if (std::strcmp(argv[1], "check") == 0) return check(p);
  time_all(p);
  return 0;
}
