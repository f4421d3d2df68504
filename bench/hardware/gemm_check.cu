// Checks and times kernels/sm_90a/gemm_bf16 on a GPU, without the rest of the project.
//   gemm_check check FILE.csv [NAME]     every "gemm_n{N}_k{K},uuid,M" line, whole matrix, fp32
//   reference gemm_check one M N K [BN CLUSTER]    one shape, all variants or the given one (for
//   compute-sanitizer) gemm_check time M N K ...            variants and cuBLASLt, interleaved,
//   cold L2, medians gemm_check candidate LIB.so M N K    a compiled candidate through its TVM-FFI
//   entry point
// Exit 0: all right, 1: wrong values, 2: error.

#include <cublasLt.h>
#include <dlfcn.h>
#include <tvm/ffi/c_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "../../kernels/sm_90a/gemm_bf16_launch.cuh"
#include "check.cuh"

namespace {

using hardware::Difference;
using ptxbench::sm90::GemmConfig;
using ptxbench::sm90::GemmShape;
using ptxbench::sm90::launch_gemm_config;

constexpr size_t kGuardBytes = 1 << 20;
constexpr int kGuardByte = 0xA5;

struct Problem {
  GemmShape shape;
  __nv_bfloat16 *a, *b, *c;
  float* reference;
  Difference* difference;
  unsigned long long* changed;

  size_t outputs() const { return size_t(shape.m) * shape.n; }

  explicit Problem(const GemmShape& s, bool with_reference = true) : shape(s) {
    HW_CHECK(cudaMalloc(&a, size_t(s.m) * s.k * 2));
    HW_CHECK(cudaMalloc(&b, size_t(s.n) * s.k * 2));
    HW_CHECK(cudaMalloc(&c, outputs() * 2 + kGuardBytes));
    HW_CHECK(cudaMalloc(&reference, outputs() * 4));
    HW_CHECK(cudaMalloc(&difference, sizeof(Difference)));
    HW_CHECK(cudaMalloc(&changed, 8));
    hardware::fill_normal<<<1024, 256>>>(a, size_t(s.m) * s.k, 1 + s.m);
    hardware::fill_normal<<<1024, 256>>>(b, size_t(s.n) * s.k, 1000003 + s.n);
    if (with_reference) {
      const dim3 grid((s.n + 63) / 64, (s.m + 63) / 64);
      hardware::reference_gemm<<<grid, 256>>>(a, b, reference, s.m, s.n, s.k);
    }
    HW_CHECK(cudaDeviceSynchronize());
  }
  ~Problem() {
    for (void* p :
         {(void*)a, (void*)b, (void*)c, (void*)reference, (void*)difference, (void*)changed})
      cudaFree(p);
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  void poison() {
    HW_CHECK(cudaMemset(c, 0xFF, outputs() * 2));
    HW_CHECK(cudaMemset(reinterpret_cast<char*>(c) + outputs() * 2, kGuardByte, kGuardBytes));
  }

  // Prints one line; true if every element is right and nothing past the end was written.
  bool verify(const std::string& label) {
    HW_CHECK(cudaGetLastError());
    HW_CHECK(cudaDeviceSynchronize());
    HW_CHECK(cudaMemset(difference, 0, sizeof(Difference)));
    HW_CHECK(cudaMemset(changed, 0, 8));
    hardware::compare<<<1024, 256>>>(c, reference, outputs(), 2e-4f * std::sqrt(float(shape.k)),
                                     difference);
    hardware::count_changed<<<64, 256>>>(reinterpret_cast<uint32_t*>(c) + outputs() / 2,
                                         kGuardBytes / 4, 0x01010101u * kGuardByte, changed);
    Difference d;
    unsigned long long guard = 0;
    HW_CHECK(cudaMemcpy(&d, difference, sizeof d, cudaMemcpyDeviceToHost));
    HW_CHECK(cudaMemcpy(&guard, changed, 8, cudaMemcpyDeviceToHost));
    const bool good =
        d.failed == 0 && d.checked == outputs() && guard == 0 && d.reference_square > 0;
    std::printf(
        "%-4s M%-5d N%-5d K%-5d %-16s checked %llu failed %llu guard %llu rel_frobenius %.2e\n",
        good ? "ok" : "BAD", shape.m, shape.n, shape.k, label.c_str(), d.checked, d.failed, guard,
        std::sqrt(d.error_square / d.reference_square));
    return good;
  }
};

struct Variant {
  std::string name;
  std::function<cudaError_t(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*,
                            const GemmShape&)>
      run;
};

int sm_count() {
  int count = 0;
  HW_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

template <int BlockN, int Stages, int Cluster>
Variant variant(int group) {
  return {"bn" + std::to_string(BlockN) + "s" + std::to_string(Stages) + "c" +
              std::to_string(Cluster) + "g" + std::to_string(group),
          [group](const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                  const GemmShape& s) {
            return launch_gemm_config<GemmConfig<BlockN, Stages, Cluster>>(a, b, c, s, sm_count(),
                                                                           group, 0);
          }};
}

Variant chosen() {
  return {"chosen",
          [](const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, const GemmShape& s) {
            return ptxbench::sm90::launch_gemm_bf16(a, b, c, s, 0, 0);
          }};
}

std::vector<Variant> variants() {
  return {chosen(),
          variant<256, 4, 1>(16),
          variant<256, 4, 2>(8),
          variant<256, 4, 2>(16),
          variant<256, 4, 2>(32),
          variant<160, 5, 1>(16),
          variant<128, 6, 1>(16),
          variant<64, 8, 1>(16)};
}

// cuBLASLt's first heuristic choice: row-major C = A * B^T is column-major C^T = B * A^T.
class CublasLt {
 public:
  explicit CublasLt(const GemmShape& s) {
    must(cublasLtCreate(&handle_));
    must(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transpose = CUBLAS_OP_T;
    must(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                        sizeof transpose));
    must(cublasLtMatrixLayoutCreate(&b_, CUDA_R_16BF, s.k, s.n, s.k));
    must(cublasLtMatrixLayoutCreate(&a_, CUDA_R_16BF, s.k, s.m, s.k));
    must(cublasLtMatrixLayoutCreate(&c_, CUDA_R_16BF, s.n, s.m, s.n));
    cublasLtMatmulPreference_t preference;
    must(cublasLtMatmulPreferenceCreate(&preference));
    must(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &bytes_, sizeof bytes_));
    int found = 0;
    must(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, b_, a_, c_, c_, preference, 1,
                                        &choice_, &found));
    if (found != 1) must(CUBLAS_STATUS_NOT_SUPPORTED);
    HW_CHECK(cudaMalloc(&workspace_, bytes_));
  }
  cudaError_t run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
    const float one = 1, zero = 0;
    must(cublasLtMatmul(handle_, operation_, &one, b, b_, a, a_, &zero, c, c_, c, c_, &choice_.algo,
                        workspace_, bytes_, 0));
    return cudaSuccess;
  }

 private:
  static void must(cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::fprintf(stderr, "cublasLt: %s\n", cublasLtGetStatusString(status));
    std::exit(2);
  }
  cublasLtHandle_t handle_;
  cublasLtMatmulDesc_t operation_;
  cublasLtMatrixLayout_t a_, b_, c_;
  cublasLtMatmulHeuristicResult_t choice_;
  size_t bytes_ = 64 << 20;
  void* workspace_ = nullptr;
};

bool check_all(const char* path) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(2);
  }
  char line[256];
  int lines = 0, bad = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    GemmShape s;
    if (std::sscanf(line, "gemm_n%d_k%d,%*[^,],%d", &s.n, &s.k, &s.m) != 3) continue;
    ++lines;
    Problem problem(s);
    problem.poison();
    HW_CHECK(chosen().run(problem.a, problem.b, problem.c, s));
    bad += !problem.verify("chosen");
  }
  std::fclose(file);
  std::printf("%d workloads, %d bad\n", lines, bad);
  return lines > 0 && bad == 0;
}

bool check_one(const GemmShape& s, const std::string& only) {
  Problem problem(s);
  bool good = true, any = false;
  for (const Variant& v : variants()) {
    if (!only.empty() && v.name.find(only) == std::string::npos) continue;
    problem.poison();
    HW_CHECK(v.run(problem.a, problem.b, problem.c, s));
    good &= problem.verify(v.name);
    any = true;
  }
  return good && any;
}

void time_shape(const GemmShape& s) {
  constexpr int kSets = 2, kRounds = 15;
  std::vector<Problem*> sets;
  for (int i = 0; i < kSets; ++i) sets.push_back(new Problem(s, false));
  CublasLt library(s);
  std::vector<Variant> all = variants();
  all.push_back({"cublaslt", [&](const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                                 const GemmShape&) { return library.run(a, b, c); }});
  constexpr size_t kFlushBytes = 256 << 20;
  void* flush = nullptr;
  HW_CHECK(cudaMalloc(&flush, kFlushBytes));
  cudaEvent_t start, stop;
  HW_CHECK(cudaEventCreate(&start));
  HW_CHECK(cudaEventCreate(&stop));
  std::vector<std::vector<float>> times(all.size());
  for (int round = -2; round < kRounds; ++round) {
    Problem& set = *sets[(round + 2) % kSets];
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t v = round % 2 == 0 ? i : all.size() - 1 - i;
      HW_CHECK(cudaMemsetAsync(flush, round, kFlushBytes));
      HW_CHECK(cudaEventRecord(start));
      HW_CHECK(all[v].run(set.a, set.b, set.c, s));
      HW_CHECK(cudaEventRecord(stop));
      HW_CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      HW_CHECK(cudaEventElapsedTime(&ms, start, stop));
      if (round >= 0) times[v].push_back(ms);
    }
  }
  std::vector<float> median;
  for (auto& t : times) {
    std::sort(t.begin(), t.end());
    median.push_back(t[t.size() / 2]);
  }
  const double flop = 2.0 * s.m * s.n * s.k;
  std::printf("M%d N%d K%d\n", s.m, s.n, s.k);
  for (size_t i = 0; i < all.size(); ++i) {
    std::printf("  %-14s median %.4f ms  min %.4f max %.4f  %6.1f TFLOP/s  %.3f of cuBLASLt\n",
                all[i].name.c_str(), median[i], times[i].front(), times[i].back(),
                flop / median[i] * 1e-9, median.back() / median[i]);
  }
  std::fflush(stdout);
  for (Problem* p : sets) delete p;
  HW_CHECK(cudaFree(flush));
}

TVMFFIAny tensor_argument(DLTensor* tensor) {
  TVMFFIAny any;
  std::memset(&any, 0, sizeof any);
  any.type_index = kTVMFFIDLTensorPtr;
  any.v_ptr = tensor;
  return any;
}

bool check_candidate(const char* path, const GemmShape& s) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  auto entry = reinterpret_cast<TVMFFISafeCallType>(dlsym(library, "__tvm_ffi_run"));
  if (entry == nullptr) {
    std::fprintf(stderr, "%s exports no __tvm_ffi_run\n", path);
    std::exit(2);
  }
  Problem problem(s);
  problem.poison();
  int64_t shapes[3][2] = {{s.m, s.k}, {s.n, s.k}, {s.m, s.n}},
          strides[3][2] = {{s.k, 1}, {s.k, 1}, {s.n, 1}};
  void* data[3] = {problem.a, problem.b, problem.c};
  DLTensor tensors[3];
  TVMFFIAny arguments[3], result;
  std::memset(&result, 0, sizeof result);
  for (int i = 0; i < 3; ++i) {
    tensors[i] = {data[i], {kDLCUDA, 0}, 2, {kDLBfloat, 16, 1}, shapes[i], strides[i], 0};
    arguments[i] = tensor_argument(&tensors[i]);
  }
  if (entry(nullptr, arguments, 3, &result) != 0) {
    std::fprintf(stderr, "%s: run() failed\n", path);
    return false;
  }
  return problem.verify("candidate");
}

int usage() {
  std::fprintf(
      stderr,
      "usage: gemm_check check CSV | one M N K [VARIANT] | time M N K ... | candidate LIB M N K\n");
  return 2;
}

GemmShape shape_at(char** text) {
  return {std::atoi(text[0]), std::atoi(text[1]), std::atoi(text[2])};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  const std::string mode = argv[1];
  if (mode == "check") return check_all(argv[2]) ? 0 : 1;
  if (mode == "one" && argc >= 5)
    return check_one(shape_at(argv + 2), argc > 5 ? argv[5] : "") ? 0 : 1;
  if (mode == "candidate" && argc == 6) return check_candidate(argv[2], shape_at(argv + 3)) ? 0 : 1;
  if (mode == "time" && argc >= 5 && (argc - 2) % 3 == 0) {
    for (int i = 2; i + 2 < argc; i += 3) time_shape(shape_at(argv + i));
    return 0;
  }
  return usage();
}
