// A second opinion on how long cuBLASLt takes: the CUDA runtime, its own buffers, eviction and
// events, nothing of this project. Reads commands from stdin, one a line:
//   load M N K ALGORITHM FILE_A FILE_B   row-major bf16; ALGORITHM counts the heuristic's offers
//   from 1 run                                  one timed launch, cold L2; prints milliseconds
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                            \
  do {                                                                         \
    if (const int status = static_cast<int>(call); status != 0) {              \
      std::fprintf(stderr, "line %d: %s gives %d\n", __LINE__, #call, status); \
      std::exit(2);                                                            \
    }                                                                          \
  } while (false)

namespace {

constexpr int kCopies = 6;
constexpr size_t kWorkspace = size_t{64} << 20;

std::vector<char> read_all(const char* path, size_t bytes) {
  std::vector<char> data(bytes);
  FILE* file = std::fopen(path, "rb");
  if (file == nullptr || std::fread(data.data(), 1, bytes, file) != bytes) {
    std::fprintf(stderr, "%s: not %zu bytes\n", path, bytes);
    std::exit(2);
  }
  std::fclose(file);
  return data;
}

}  // namespace

int main() {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm;
  void *a[kCopies], *b[kCopies], *c[kCopies], *workspace, *evict;
  cudaEvent_t begin, end;
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  const size_t evict_bytes = 4 * static_cast<size_t>(card.l2CacheSize);
  CHECK(cublasLtCreate(&handle));
  CHECK(cudaMalloc(&workspace, kWorkspace));
  CHECK(cudaMalloc(&evict, evict_bytes));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  int turn = 0;
  char line[4096];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    long long m, n, k;
    int wanted;
    char file_a[1024], file_b[1024];
    if (std::sscanf(line, "load %lld %lld %lld %d %1000s %1000s", &m, &n, &k, &wanted, file_a,
                    file_b) == 6) {
      const auto host_a = read_all(file_a, 2 * m * k), host_b = read_all(file_b, 2 * n * k);
      for (int i = 0; i < kCopies; ++i) {
        CHECK(cudaMalloc(&a[i], host_a.size()));
        CHECK(cudaMalloc(&b[i], host_b.size()));
        CHECK(cudaMalloc(&c[i], 2 * m * n));
        CHECK(cudaMemcpy(a[i], host_a.data(), host_a.size(), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(b[i], host_b.data(), host_b.size(), cudaMemcpyHostToDevice));
      }
      CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
      const cublasOperation_t transpose = CUBLAS_OP_T;
      CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                           sizeof transpose));
      CHECK(cublasLtMatrixLayoutCreate(&left, CUDA_R_16BF, k, n, k));
      CHECK(cublasLtMatrixLayoutCreate(&right, CUDA_R_16BF, k, m, k));
      CHECK(cublasLtMatrixLayoutCreate(&out, CUDA_R_16BF, n, m, n));
      cublasLtMatmulPreference_t preference;
      CHECK(cublasLtMatmulPreferenceCreate(&preference));
      CHECK(cublasLtMatmulPreferenceSetAttribute(
          preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace));
      cublasLtMatmulHeuristicResult_t offers[16];
      int found = 0;
      CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation, left, right, out, out, preference, 16,
                                           offers, &found));
      if (wanted < 1 || wanted > found) return 2;
      algorithm = offers[wanted - 1].algo;
      std::printf("%d\n", found);
    } else if (std::strncmp(line, "run", 3) == 0 && operation != nullptr) {
      const float one = 1, zero = 0;
      const int i = turn++ % kCopies;
      CHECK(cudaMemsetAsync(evict, 0x5a, evict_bytes, nullptr));
      CHECK(cudaEventRecord(begin, nullptr));
      CHECK(cublasLtMatmul(handle, operation, &one, b[i], left, a[i], right, &zero, c[i], out, c[i],
                           out, &algorithm, workspace, kWorkspace, nullptr));
      CHECK(cudaEventRecord(end, nullptr));
      CHECK(cudaEventSynchronize(end));
      float ms = 0;
      CHECK(cudaEventElapsedTime(&ms, begin, end));
      std::printf("%.6f\n", ms);
    } else {
      std::fprintf(stderr, "unknown command: %s", line);
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}
