// Why not linked: OpenBLAS picks its kernels while it is being loaded, and the release in Debian 12
// (0.3.21) does not know processors younger than itself: it falls back to SSE3 kernels there.
// Naming the kernel set beforehand gave 36 instead of 8 GFLOP/s on one core of an AVX-512 machine.
// Programs that never compare anything are spared its threads, too.
#include "bench/blas.h"

#include <cblas.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

namespace ptxbench::bench {
namespace {

struct Blas {
  decltype(&cblas_dgemm) dgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string error;
};

const char* kernel_set() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
  return nullptr;
}

Blas open_blas() {
  Blas blas;
  constexpr int kOverwrite = 0;  // a user's own choice stands
  if (const char* kernels = kernel_set()) setenv("OPENBLAS_CORETYPE", kernels, kOverwrite);
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    blas.error = dlerror();
    return blas;
  }
  blas.dgemm = reinterpret_cast<decltype(blas.dgemm)>(dlsym(library, "cblas_dgemm"));
  blas.set_threads =
      reinterpret_cast<decltype(blas.set_threads)>(dlsym(library, "openblas_set_num_threads"));
  if (blas.dgemm == nullptr) blas.error = "libopenblas.so.0 has no cblas_dgemm";
  return blas;
}

}  // namespace

Result<void> dgemm(const Product& p, int threads) {
  static const Blas blas = open_blas();
  if (blas.dgemm == nullptr) return Error{"no-blas", blas.error};
  if (blas.set_threads != nullptr) blas.set_threads(std::max(threads, 1));
  const auto size = [](int64_t x) { return static_cast<int>(x); };
  blas.dgemm(CblasRowMajor, p.a_transposed ? CblasTrans : CblasNoTrans,
             p.b_transposed ? CblasTrans : CblasNoTrans, size(p.m), size(p.n), size(p.k), 1.0, p.a,
             size(p.a_transposed ? p.m : p.k), p.b, size(p.b_transposed ? p.k : p.n), p.beta, p.c,
             size(p.n));
  return {};
}

Result<void> dgemm_nt(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c,
                      int threads) {
  return dgemm({false, true, m, n, k, a, b, c, 0}, threads);
}

}  // namespace ptxbench::bench
