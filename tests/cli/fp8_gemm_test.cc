// An FP8 task computed in bf16: right values by the wrong means.
#include <gtest/gtest.h>

#include "evaluation.h"

namespace ptxbench {
namespace {

// Dequantises A and B to bf16 and leaves the rest to the expert bf16 GEMM.
constexpr const char* kIncludes =
    "#include <cuda_fp8.h>\n#include <ptxbench/candidate.cuh>\n#include \"gemm_bf16_launch.cuh\"\n";
constexpr const char* kUpcast = R"(
namespace ptxbench::candidate {

__global__ void dequantise(const __nv_fp8_e4m3* x, const float* scales, __nv_bfloat16* out,
                           int rows, int k, int scale_rows) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= int64_t{rows} * k) return;
  const int row = static_cast<int>(i / k), block = static_cast<int>(i % k) / 128;
  out[i] = __float2bfloat16(float(x[i]) * scales[row / scale_rows * (k / 128) + block]);
}

void run(TensorView a, TensorView scale_a, TensorView b, TensorView scale_b, TensorView d) {
  const int m = a.size(0), n = b.size(0), k = a.size(1);
  cudaStream_t stream = stream_of(a);
  Workspace memory((size_t(m) + n) * k * 2, stream);
  auto* wide_a = reinterpret_cast<__nv_bfloat16*>(memory.floats());
  __nv_bfloat16* wide_b = wide_a + size_t(m) * k;
  dequantise<<<(int64_t{m} * k + 255) / 256, 256, 0, stream>>>(
      data_of<__nv_fp8_e4m3>(a), data_of<float>(scale_a), wide_a, m, k, 1);
  dequantise<<<(int64_t{n} * k + 255) / 256, 256, 0, stream>>>(
      data_of<__nv_fp8_e4m3>(b), data_of<float>(scale_b), wide_b, n, k, 128);
  throw_unless_ok("gemm", sm90::launch_gemm_bf16(wide_a, wide_b, d.data_ptr(), {m, n, k},
                                                 a.device().device_id, stream));
}

}  // namespace ptxbench::candidate

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, ptxbench::candidate::run);
)";

TEST(Fp8Gemm, ComputedInBf16IsLevel4) {
  const std::string task = "fp8_gemm_nt_1d2d_n4096_k7168";
  Json sources =
      Json::array({{{"path", "main.cu"}, {"content", std::string(kIncludes) + kUpcast}}});
  for (const char* header : {"gemm_bf16_launch.cuh", "gemm_bf16.cuh", "gemm_bf16_plan.h",
                             "gemm_launch.cuh", "tensor_map.h"}) {
    auto text = read_file(std::string(PTXBENCH_SOURCE_DIR) + "/kernels/sm_90a/" + header);
    ASSERT_TRUE(text.ok()) << header;
    sources.push_back({{"path", header}, {"content", *text}});
  }
  const Json solution = {{"name", "upcast"},
                         {"definition", task},
                         {"spec", {{"language", "cuda"}, {"entry_point", "main.cu::run"}}},
                         {"sources", sources}};
  TempDir folder = TempDir::create("fp8").take();
  const std::filesystem::path candidate = folder.path() / "upcast.json";
  ASSERT_TRUE(write_file_atomically(candidate, dump_json(solution)).ok());
  const auto [exit_code, out, err, verdict] = evaluate(candidate, task, {"--workload", "smoke"});
  EXPECT_EQ(exit_code, 1) << out << err;
  EXPECT_EQ(verdict.value("level", 0), 4) << dump_json(verdict).substr(0, 4000);
  EXPECT_EQ(verdict.value("reason", ""), "wrong-compute-type");
  EXPECT_EQ(verdict.value("message", ""),
            "computed in bf16.bf16.f32 where e4m3.e4m3.f32 is declared");
  EXPECT_TRUE(verdict.at("correctness").at("passed").get<bool>());
}

}  // namespace
}  // namespace ptxbench
