// Whole kernels whose outputs are compared between a card and the emulator (conformance.sh).
//
//   nvcc -std=c++20 -O2 -cudart shared -DHEAD_DIM=64 -DHEAD_CAUSAL=true -I include
//        -gencode arch=compute_90a,code=[compute_90a,sm_90a] -o conformance
//        bench/hardware/conformance.cu
//   conformance DIR      on the card, and under `ptxbench emulate --tensor hw`
//
// Writes DIR/NAME.CLASS: exact (integers, IEEE arithmetic), tensor (matrix instructions and exact
// arithmetic around them), approx (special functions inside, elements f32), attention (f32, bf16
// widened). Inputs come from integer hashes on the host, so that no library decides a bit of them.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "../../kernels/sm_80/fp8_gemm_mma.cuh"
#include "../../kernels/sm_90a/fp8_gemm_launch.cuh"
#include "../../kernels/sm_90a/gemm_bf16_launch.cuh"
#include "attention_variants.cuh"
#include "check.cuh"
#include "gemm_bits.h"

namespace {

std::string folder;

uint64_t hash(uint64_t i, uint64_t stream) {
  uint64_t z = i + stream * 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

// A multiple of 1/64 in [-2, 2): exact in bf16 and e4m3's neighbourhood.
float small(uint64_t i, uint64_t stream) { return float(int(hash(i, stream) >> 56) - 128) / 64; }

template <class T>
struct Device {
  T* data = nullptr;
  size_t n;
  explicit Device(size_t count) : n(count) {
    HW_CHECK(cudaMalloc(&data, n * sizeof(T)));
    HW_CHECK(cudaMemset(data, 0, n * sizeof(T)));
  }
  template <class F>
  Device(size_t count, F&& element) : Device(count) {
    std::vector<T> host(n);
    for (size_t i = 0; i < n; ++i) host[i] = element(i);
    HW_CHECK(cudaMemcpy(data, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Device() { cudaFree(data); }
  std::vector<T> read() const {
    HW_CHECK(cudaDeviceSynchronize());
    std::vector<T> host(n);
    HW_CHECK(cudaMemcpy(host.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
};

template <class T>
void keep(const std::string& name, const std::vector<T>& v) {
  std::ofstream(folder + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(v.data()), std::streamsize(v.size() * sizeof(T)));
  uint64_t h = 0xcbf29ce484222325ull;
  const auto* bytes = reinterpret_cast<const unsigned char*>(v.data());
  for (size_t i = 0; i < v.size() * sizeof(T); ++i) h = (h ^ bytes[i]) * 0x100000001b3ull;
  std::printf("%-32s %016llx\n", name.c_str(), static_cast<unsigned long long>(h));
}

std::vector<float> widened(const std::vector<__nv_bfloat16>& v) {
  std::vector<float> out;
  for (__nv_bfloat16 x : v) out.push_back(__bfloat162float(x));
  return out;
}

// ------------------------------------------------------------------------------------ exact
__global__ void block_scan(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t sums[32];
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  uint32_t v = in[i];
  for (int d = 1; d < 32; d *= 2) {
    const uint32_t below = __shfl_up_sync(~0u, v, d);
    if (lane >= uint32_t(d)) v += below;
  }
  if (lane == 31) sums[threadIdx.x / 32] = v;
  __syncthreads();
  for (uint32_t w = 0; w < threadIdx.x / 32; ++w) v += sums[w];
  out[i] = v;
}
__global__ void bitonic_sort(uint32_t* data) {  // a CTA sorts 1024 words
  __shared__ uint32_t s[1024];
  uint32_t* mine = data + blockIdx.x * 1024;
  s[threadIdx.x] = mine[threadIdx.x];
  for (uint32_t k = 2; k <= 1024; k *= 2)
    for (uint32_t j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      const uint32_t other = threadIdx.x ^ j;
      if (other > threadIdx.x) {
        const uint32_t a = s[threadIdx.x], b = s[other];
        if ((a > b) == ((threadIdx.x & k) == 0)) s[threadIdx.x] = b, s[other] = a;
      }
    }
  __syncthreads();
  mine[threadIdx.x] = s[threadIdx.x];
}
__global__ void histogram(const uint32_t* in, uint32_t* bins, uint32_t n) {
  __shared__ uint32_t local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
    atomicAdd(&local[in[i] >> 24], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void stencil(const float* in, float* out, int n) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  const float c = in[y * n + x];
  out[y * n + x] = c + 0.1f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] +
                               in[(y + 1) * n + x] - 4 * c);
}
__global__ void layer_norm(const float* in, float* out, int columns) {  // a warp a row
  const float* row = in + size_t(blockIdx.x) * columns;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < columns; i += 32) sum += row[i];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  const float mean = __fdiv_rn(sum, float(columns));
  for (int i = threadIdx.x; i < columns; i += 32) squares += (row[i] - mean) * (row[i] - mean);
  for (int d = 16; d; d /= 2) squares += __shfl_xor_sync(~0u, squares, d);
  const float scale = __frcp_rn(__fsqrt_rn(__fdiv_rn(squares, float(columns)) + 1e-5f));
  for (int i = threadIdx.x; i < columns; i += 32)
    out[size_t(blockIdx.x) * columns + i] = (row[i] - mean) * scale;
}
__global__ void doubles(const double* a, const double* b, double* out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const double x = a[i], y = b[i];
  out[4 * i] = x / y, out[4 * i + 1] = sqrt(fabs(x)), out[4 * i + 2] = __fma_rd(x, y, x),
          out[4 * i + 3] = fmod(x, y);
}

void exact() {
  constexpr uint32_t n = 1 << 15;
  const auto word = [](size_t i) { return uint32_t(hash(i, 3) >> 13); };
  Device<uint32_t> in(n, word), out(n), sorted(n, word), bins(256);
  block_scan<<<n / 256, 256>>>(in.data, out.data);
  keep("scan.exact", out.read());
  bitonic_sort<<<n / 1024, 1024>>>(sorted.data);
  keep("sort.exact", sorted.read());
  histogram<<<8, 256>>>(in.data, bins.data, n);
  keep("histogram.exact", bins.read());
  Device<float> grid(128 * 128, [](size_t i) { return small(i, 4); }), next(128 * 128);
  for (int step = 0; step < 4; ++step) {
    stencil<<<dim3(4, 16), dim3(32, 8)>>>(grid.data, next.data, 128);
    std::swap(grid.data, next.data);
  }
  keep("stencil.exact", grid.read());
  Device<float> rows(64 * 500, [](size_t i) { return small(i, 5) * 3; }), normed(64 * 500);
  layer_norm<<<64, 32>>>(rows.data, normed.data, 500);
  keep("layer_norm.exact", normed.read());
  const auto wide = [](uint64_t stream) {
    return [stream](size_t i) {
      return std::ldexp(double(int64_t(hash(i, stream)) >> 11), int(hash(i, stream + 9) % 60) - 80);
    };
  };
  Device<double> a(4096, wide(6)), b(4096, wide(7)), d(4 * 4096);
  doubles<<<16, 256>>>(a.data, b.data, d.data);
  keep("doubles.exact", d.read());
}

// ----------------------------------------------------------------------------------- approximate
// Eight special functions on one argument; NaN for arguments outside a function's range.
__global__ void special(const float* in, float* out) {
  const int i = blockIdx.x * 256 + threadIdx.x, n = gridDim.x * 256;
  const float x = in[i];
  float y[8];
  asm("ex2.approx.f32 %0, %1;" : "=f"(y[0]) : "f"(x));
  asm("lg2.approx.f32 %0, %1;" : "=f"(y[1]) : "f"(fabsf(x)));
  asm("rcp.approx.f32 %0, %1;" : "=f"(y[2]) : "f"(x));
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y[3]) : "f"(fabsf(x)));
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y[4]) : "f"(fabsf(x)));
  asm("sin.approx.f32 %0, %1;" : "=f"(y[5]) : "f"(fmodf(x, 3.140625f)));
  asm("cos.approx.f32 %0, %1;" : "=f"(y[6]) : "f"(fmodf(x, 3.140625f)));
  asm("tanh.approx.f32 %0, %1;" : "=f"(y[7]) : "f"(x));
  for (int f = 0; f < 8; ++f) out[f * n + i] = y[f];
}

void approximate() {
  constexpr size_t n = 1 << 15;
  Device<float> in(n, [](size_t i) {
    const uint32_t bits = uint32_t(hash(i, 8) >> 32);
    const uint32_t exponent = 100 + (bits >> 3) % 40;  // 2^-27 .. 2^12
    const uint32_t word = (bits & 0x80000000u) | exponent << 23 | (bits & 0x7fffff);
    float f;
    std::memcpy(&f, &word, 4);
    return f;
  });
  Device<float> out(8 * n);
  special<<<n / 256, 256>>>(in.data, out.data);
  const std::vector<float> all = out.read();
  const char* names[8] = {"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"};
  for (size_t f = 0; f < 8; ++f)
    keep(std::string(names[f]) + ".approx",
         std::vector<float>(all.begin() + std::ptrdiff_t(f * n),
                            all.begin() + std::ptrdiff_t((f + 1) * n)));
}

// ------------------------------------------------------------------------------ matrix kernels
void tensor() {
  using namespace ptxbench;
  for (const bits::Shape& s : bits::kShapes) {
    const auto a = bits::matrix(size_t(s.m) * s.k, 1), b = bits::matrix(size_t(s.n) * s.k, 2);
    Device<uint16_t> da(a.size(), [&](size_t i) { return a[i]; }),
        db(b.size(), [&](size_t i) { return b[i]; });
    Device<uint16_t> dc(size_t(s.m) * s.n);
    HW_CHECK(sm90::launch_gemm_bf16(da.data, db.data, dc.data, {s.m, s.n, s.k}, 0, nullptr));
    keep("gemm_bf16_m" + std::to_string(s.m) + ".tensor", dc.read());
  }
  const sm90::GemmShape shape{200, 256, 768};
  const size_t blocks = 6;
  const auto quantised = [](uint64_t stream) {
    return [stream](size_t i) { return __nv_fp8_e4m3(small(i, stream) * 32); };
  };
  const auto scale = [](uint64_t stream) {
    return [stream](size_t i) { return (1 + float(hash(i, stream) >> 40) * 0x1p-24f) / 256; };
  };
  Device<__nv_fp8_e4m3> a(size_t(shape.m) * shape.k, quantised(11)),
      b(size_t(shape.n) * shape.k, quantised(12));
  Device<float> sa(shape.m * blocks, scale(13)), sb(shape.n / 128 * blocks, scale(14));
  Device<__nv_bfloat16> d(size_t(shape.m) * shape.n);
  int sms = 0;
  HW_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  HW_CHECK((sm90::launch_fp8_gemm_config<sm90::Fp8GemmConfig<128, 5, 2>>(
      a.data, b.data, d.data, {sa.data, sb.data}, shape, sms, 16, 0)));
  keep("fp8_gemm_wgmma.tensor", d.read());
  HW_CHECK(cudaMemset(d.data, 0, d.n * 2));
  HW_CHECK(sm80::launch_fp8_gemm_mma(
      {reinterpret_cast<const uint8_t*>(a.data), reinterpret_cast<const uint8_t*>(b.data), sa.data,
       sb.data, d.data, shape.m, shape.n, shape.k},
      0));
  keep("fp8_gemm_mma.tensor", d.read());
}

void attention() {
  const int heads = 2, seq = 200;
  const size_t size = size_t(heads) * seq * HEAD_DIM;
  const auto values = [](uint64_t stream) {
    return [stream](size_t i) { return __float2bfloat16(small(i, stream)); };
  };
  Device<__nv_bfloat16> q(size, values(21)), k(size, values(22)), v(size, values(23)),
      d_o(size, values(24));
  Device<__nv_bfloat16> o(size), dq(size), dk(size), dv(size);
  Device<float> lse(size_t(heads) * seq);
  Device<uint8_t> workspace(attention_workspace_bytes(heads, seq));
  const AttentionTensors t{q.data,  k.data,  v.data,  o.data,         lse.data, d_o.data,
                           dq.data, dk.data, dv.data, workspace.data, heads,    seq};
  const char* names[] = {"wgmma", "mma"};
  for (size_t i = 0; i < 2; ++i) {
    HW_CHECK(forward_variants()[i].run(t));
    keep(std::string("attention_forward_") + names[i] + ".attention", widened(o.read()));
    keep(std::string("attention_lse_") + names[i] + ".attention", lse.read());
  }
  HW_CHECK(run_backward<true>(t));
  keep("attention_dq.attention", widened(dq.read()));
  keep("attention_dk.attention", widened(dk.read()));
  keep("attention_dv.attention", widened(dv.read()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: conformance DIR\n"), 2;
  folder = argv[1];
  exact();
  approximate();
  tensor();
  attention();
}
