// Runs the expert GEMM on the inputs of gemm_bits.h and prints a digest of C per shape. The
// emulator's digests (bench/emu/gemm_bits, --tensor=hw) must be the same.
//   nvcc -std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a -I include -o gemm_bits
//   bench/hardware/gemm_bits.cu

#include <cstdio>
#include <cstdlib>

#include "../../kernels/sm_90a/gemm_bf16_launch.cuh"
#include "gemm_bits.h"

namespace {
void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  std::exit(2);
}
}  // namespace

int main() {
  using namespace ptxbench;
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "device");
  for (const bits::Shape& s : bits::kShapes) {
    const size_t size[3] = {size_t(s.m) * s.k, size_t(s.n) * s.k, size_t(s.m) * s.n};
    const auto a = bits::matrix(size[0], 1), b = bits::matrix(size[1], 2);
    std::vector<uint16_t> c(size[2]);
    void* d[3];
    for (int i = 0; i < 3; i++) check(cudaMalloc(&d[i], 2 * size[i]), "malloc");
    check(cudaMemcpy(d[0], a.data(), 2 * size[0], cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d[1], b.data(), 2 * size[1], cudaMemcpyHostToDevice), "copy");
    check(cudaMemset(d[2], 0xff, 2 * size[2]), "memset");
    // The order of accumulation is the same for every tile.
    auto show = [&](const char* tile, cudaError_t launched) {
      check(launched, "launch");
      check(cudaDeviceSynchronize(), "kernel");
      check(cudaMemcpy(c.data(), d[2], 2 * size[2], cudaMemcpyDeviceToHost), "copy");
      check(cudaMemset(d[2], 0xff, 2 * size[2]), "memset");
      std::printf("M %d N %d K %d, %s: %016llx\n", s.m, s.n, s.k, tile,
                  static_cast<unsigned long long>(bits::digest(c)));
    };
    const sm90::GemmShape shape{s.m, s.n, s.k};
    show("chosen tile", sm90::launch_gemm_bf16(d[0], d[1], d[2], shape, 0, nullptr));
    show("128x128", sm90::launch_gemm_config<sm90::GemmConfig<128, 6, 1>>(d[0], d[1], d[2], shape,
                                                                          sms, 16, nullptr));
    show("128x64", sm90::launch_gemm_config<sm90::GemmConfig<64, 8, 1>>(d[0], d[1], d[2], shape,
                                                                        sms, 16, nullptr));
    for (void* p : d) cudaFree(p);
  }
}
