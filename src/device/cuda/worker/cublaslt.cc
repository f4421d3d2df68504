// cuBLASLt as a baseline: C[m,n] = A[m,k] B[n,k]^T, fp32 accumulation, C in bf16; A and B in bf16,
// or in e4m3 with a scale for each 128 elements of K (and 1 or 128 rows). The library is opened at
// run time and its few entry points are declared here, so that building needs no cuBLAS headers.
// Column-major as the library sees it: C^T[n,m] = op(B) A^T with op = transpose.

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "device/cuda/worker/builtin_ptx.h"
#include "device/cuda/worker/program.h"

namespace ptxbench::device::cuda {
namespace {

// cublasLt.h of CUDA 13, as far as it is used here.
using Status = int;
using Handle = void*;
struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace;
  Status status;
  float waves;
  int reserved[4];
};
constexpr int kR32F = 0, kR16BF = 14, kR8E4M3 = 28, kCompute32F = 68;
constexpr int kTransA = 3, kScaleA = 17, kScaleB = 18, kModeA = 31, kModeB = 32;  // of a matmul
constexpr int kVec128 = 4, kBlock128 = 5;                                         // scale modes
constexpr int kMaxWorkspace = 1, kOpTranspose = 1;
constexpr int64_t kBlock = 128;

struct Api {
  Status (*create)(Handle*) = nullptr;
  size_t (*version)() = nullptr;
  Status (*desc_create)(Handle*, int, int) = nullptr;
  Status (*desc_set)(Handle, int, const void*, size_t) = nullptr;
  Status (*layout_create)(Handle*, int, uint64_t, uint64_t, int64_t) = nullptr;
  Status (*preference_create)(Handle*) = nullptr;
  Status (*preference_set)(Handle, int, const void*, size_t) = nullptr;
  Status (*heuristic)(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, HeuristicResult*,
                      int*) = nullptr;
  Status (*matmul)(Handle, Handle, const void*, const void*, Handle, const void*, Handle,
                   const void*, const void*, Handle, void*, Handle, const Algorithm*, void*, size_t,
                   CUstream) = nullptr;
};

Result<Api> open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{"no-library", fmt::format("cuBLASLt does not open: {}", dlerror())};
  Api api;
  std::string missing;
  auto get = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name));
    if (entry == nullptr) missing = name;
  };
  get(api.create, "cublasLtCreate");
  get(api.version, "cublasLtGetVersion");
  get(api.desc_create, "cublasLtMatmulDescCreate");
  get(api.desc_set, "cublasLtMatmulDescSetAttribute");
  get(api.layout_create, "cublasLtMatrixLayoutCreate");
  get(api.preference_create, "cublasLtMatmulPreferenceCreate");
  get(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  get(api.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  get(api.matmul, "cublasLtMatmul");
  if (!missing.empty()) return Error{"no-library", fmt::format("{} has no {}", path, missing)};
  return api;
}

// Scales of one operand, [rows, K / 128] in the task. The library wants one of each row and block
// (VEC128) with the row fastest, one of each 128 rows and block (BLK128x128) with the block fastest
// and rows of scales at multiples of four ("cuBLAS library", block scaling of FP8 types).
struct Scales {
  size_t argument = 0;
  bool square = false;  // of 128 rows
  int64_t rows = 0, blocks = 0;
  int mode() const { return square ? kBlock128 : kVec128; }
  int64_t row_stride() const { return square ? (blocks + 3) / 4 * 4 : 1; }
  int64_t block_stride() const { return square ? 1 : rows; }
  uint64_t bytes() const {
    return 4 * static_cast<uint64_t>(square ? rows * row_stride() : rows * blocks);
  }
};

class CublasLtGemm : public LibraryProgram {
 public:
  CublasLtGemm(const Context& context, Api api, std::string routine)
      : context_(context), api_(api), routine_(std::move(routine)) {}

  Result<void> prepare(int64_t m, int64_t n, int64_t k) {
    auto u = [](int64_t x) { return static_cast<uint64_t>(x); };
    const int transpose = kOpTranspose;
    const uint64_t workspace = kWorkspaceBytes;
    const bool fp8 = routine_ != "cublaslt-bf16";
    const int type = fp8 ? kR8E4M3 : kR16BF;
    PB_RETURN_IF_ERROR(expect(api_.create(&handle_), "cublasLtCreate"));
    PB_RETURN_IF_ERROR(expect(api_.desc_create(&desc_, kCompute32F, kR32F), "MatmulDescCreate"));
    PB_RETURN_IF_ERROR(
        expect(api_.desc_set(desc_, kTransA, &transpose, sizeof transpose), "MatmulDescSet"));
    if (fp8) {
      b_ = 2, c_ = 4;
      const bool square = routine_ == "cublaslt-fp8-1d2d";
      scales_ = {{3, square, square ? (n + kBlock - 1) / kBlock : n, k / kBlock},
                 {1, false, m, k / kBlock}};
      PB_RETURN_IF_ERROR(place_scales());
    }
    PB_RETURN_IF_ERROR(expect(api_.layout_create(&first_, type, u(k), u(n), k), "MatrixLayout"));
    PB_RETURN_IF_ERROR(expect(api_.layout_create(&second_, type, u(k), u(m), k), "MatrixLayout"));
    PB_RETURN_IF_ERROR(expect(api_.layout_create(&out_, kR16BF, u(n), u(m), n), "MatrixLayout"));
    PB_RETURN_IF_ERROR(expect(api_.preference_create(&preference_), "PreferenceCreate"));
    PB_RETURN_IF_ERROR(
        expect(api_.preference_set(preference_, kMaxWorkspace, &workspace, sizeof workspace),
               "Preference"));
    int found = 0;
    const Status status = api_.heuristic(handle_, desc_, first_, second_, out_, out_, preference_,
                                         static_cast<int>(offers_.size()), offers_.data(), &found);
    if (status == kNotSupported || (status == 0 && found == 0))
      return Error{
          "unsupported",
          fmt::format("cuBLASLt offers no algorithm for {} at M={} N={} K={}", routine_, m, n, k)};
    PB_RETURN_IF_ERROR(expect(status, "cublasLtMatmulAlgoGetHeuristic"));
    offered_ = static_cast<size_t>(found);
    PB_ASSIGN_OR_RETURN(GuardedBuffer buffer,
                        GuardedBuffer::create(context_, "workspace", kWorkspaceBytes));
    workspace_.push_back(std::move(buffer));
    return {};
  }

  Failure arrange(std::span<const CUdeviceptr> arguments) override {
    for (size_t i = 0; i < scales_.size(); ++i) {
      const Scales& s = scales_[i];
      CUdeviceptr from = arguments[s.argument], to = arranged_[i].address();
      int64_t rows = s.rows, blocks = s.blocks, row_stride = s.row_stride(),
              block_stride = s.block_stride();
      void* args[] = {&from, &to, &rows, &blocks, &row_stride, &block_stride};
      CUlaunchConfig config = {};
      config.gridDimX = static_cast<unsigned>((rows * blocks + 255) / 256);
      config.gridDimY = config.gridDimZ = 1;
      config.blockDimX = 256, config.blockDimY = config.blockDimZ = 1;
      config.hStream = context_.stream();
      if (Failure failed =
              failure(context_.driver(), "launch",
                      context_.driver().cuLaunchKernelEx(&config, arrange_, args, nullptr)))
        return failed;
    }
    return {};
  }

  Failure enqueue(std::span<const CUdeviceptr> arguments) override {
    const float one = 1, zero = 0;
    auto at = [&](size_t i) { return reinterpret_cast<void*>(arguments[i]); };
    const Status status = api_.matmul(handle_, desc_, &one, at(b_), first_, at(0), second_, &zero,
                                      at(c_), out_, at(c_), out_, &offers_[chosen_].algorithm,
                                      reinterpret_cast<void*>(workspace_[0].address()),
                                      kWorkspaceBytes, context_.stream());
    if (status == 0) return {};
    return {CUDA_ERROR_UNKNOWN, "launch", fmt::format("cublasLtMatmul: status {}", status), 0};
  }

  std::string description() const override {
    return fmt::format("cuBLASLt {} {}, algorithm {} of {} offered", api_.version(),
                       routine_.substr(routine_.find('-') + 1), chosen_ + 1, offered_);
  }

 private:
  static constexpr size_t kOffers = 16;
  static constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;
  static constexpr Status kNotSupported = 15;

  // Buffers of the library's own for scales in its layout, known to the descriptor.
  Result<void> place_scales() {
    CUmodule module = nullptr;
    const Driver& driver = context_.driver();
    CUresult code = driver.cuModuleLoadDataEx(&module, kBuiltinPtx, 0, nullptr, nullptr);
    if (code == CUDA_SUCCESS)
      code = driver.cuModuleGetFunction(&arrange_, module, "ptxbench_arrange_scales");
    if (code != CUDA_SUCCESS) return driver_error(driver, "loading the worker's kernels", code);
    for (size_t i = 0; i < scales_.size(); ++i) {
      PB_ASSIGN_OR_RETURN(GuardedBuffer buffer,
                          GuardedBuffer::create(context_, "scales", scales_[i].bytes()));
      const void* address = reinterpret_cast<const void*>(buffer.address());
      const int mode = scales_[i].mode();
      arranged_.push_back(std::move(buffer));
      PB_RETURN_IF_ERROR(
          expect(api_.desc_set(desc_, i == 0 ? kScaleA : kScaleB, &address, sizeof address),
                 "scale pointer"));
      PB_RETURN_IF_ERROR(
          expect(api_.desc_set(desc_, i == 0 ? kModeA : kModeB, &mode, sizeof mode), "scale mode"));
    }
    return {};
  }

  Result<void> expect(Status status, const char* call) const {
    if (status == 0) return {};
    return Error{"infrastructure", fmt::format("cuBLASLt: {} returned status {}", call, status)};
  }

  const Context& context_;
  Api api_;
  std::string routine_;
  Handle handle_ = nullptr, desc_ = nullptr, first_ = nullptr, second_ = nullptr, out_ = nullptr,
         preference_ = nullptr;
  std::array<HeuristicResult, kOffers> offers_ = {};
  size_t b_ = 1, c_ = 2;        // arguments; A is the first
  std::vector<Scales> scales_;  // of the library's A (the task's B) and B
  std::vector<GuardedBuffer> arranged_, workspace_;
  CUfunction arrange_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<LibraryProgram>> create_cublaslt(const Context& context,
                                                        const LoadLibrary& request) {
  if (request.sizes.size() != 3)
    return Error{"infrastructure", "a matrix product needs the sizes M, N and K"};
  PB_ASSIGN_OR_RETURN(Api api, open(request.path));
  auto program = std::make_unique<CublasLtGemm>(context, api, request.routine);
  PB_RETURN_IF_ERROR(program->prepare(request.sizes[0], request.sizes[1], request.sizes[2]));
  return std::unique_ptr<LibraryProgram>(std::move(program));
}

}  // namespace ptxbench::device::cuda
