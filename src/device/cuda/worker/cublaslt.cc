// cuBLASLt as a baseline: C[m,n] = A[m,k] B[n,k]^T, bf16 in and out, fp32 accumulation. The library
// is opened at run time and its few entry points are declared here, so that building needs no
// cuBLAS headers. Column-major as the library sees it: C^T[n,m] = op(B) A^T with op = transpose.

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

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
constexpr int kR32F = 0, kR16BF = 14, kCompute32F = 68;
constexpr int kTransA = 3, kMaxWorkspace = 1, kOpTranspose = 1;

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

class CublasLtGemm : public LibraryProgram {
 public:
  CublasLtGemm(const Context& context, Api api) : context_(context), api_(api) {}

  Result<void> prepare(int64_t m, int64_t n, int64_t k) {
    auto u = [](int64_t x) { return static_cast<uint64_t>(x); };
    const int transpose = kOpTranspose;
    const uint64_t workspace = kWorkspaceBytes;
    PB_RETURN_IF_ERROR(expect(api_.create(&handle_), "cublasLtCreate"));
    PB_RETURN_IF_ERROR(expect(api_.desc_create(&desc_, kCompute32F, kR32F), "MatmulDescCreate"));
    PB_RETURN_IF_ERROR(
        expect(api_.desc_set(desc_, kTransA, &transpose, sizeof transpose), "MatmulDescSet"));
    PB_RETURN_IF_ERROR(expect(api_.layout_create(&first_, kR16BF, u(k), u(n), k), "MatrixLayout"));
    PB_RETURN_IF_ERROR(expect(api_.layout_create(&second_, kR16BF, u(k), u(m), k), "MatrixLayout"));
    PB_RETURN_IF_ERROR(expect(api_.layout_create(&out_, kR16BF, u(n), u(m), n), "MatrixLayout"));
    PB_RETURN_IF_ERROR(expect(api_.preference_create(&preference_), "PreferenceCreate"));
    PB_RETURN_IF_ERROR(
        expect(api_.preference_set(preference_, kMaxWorkspace, &workspace, sizeof workspace),
               "Preference"));
    int found = 0;
    PB_RETURN_IF_ERROR(
        expect(api_.heuristic(handle_, desc_, first_, second_, out_, out_, preference_,
                              static_cast<int>(offers_.size()), offers_.data(), &found),
               "cublasLtMatmulAlgoGetHeuristic"));
    offered_ = static_cast<size_t>(found);
    if (offered_ == 0) return Error{"unsupported", "cuBLASLt offers no algorithm for this size"};
    PB_ASSIGN_OR_RETURN(GuardedBuffer buffer,
                        GuardedBuffer::create(context_, "workspace", kWorkspaceBytes));
    workspace_.push_back(std::move(buffer));
    return {};
  }

  Result<void> restore() override { return {}; }
  Result<void> check(Checked&) override { return {}; }

  Failure enqueue(std::span<const CUdeviceptr> arguments) override {
    const float one = 1, zero = 0;
    auto at = [&](size_t i) { return reinterpret_cast<void*>(arguments[i]); };
    const Status status = api_.matmul(handle_, desc_, &one, at(1), first_, at(0), second_, &zero,
                                      at(2), out_, at(2), out_, &offers_[chosen_].algorithm,
                                      reinterpret_cast<void*>(workspace_[0].address()),
                                      kWorkspaceBytes, context_.stream());
    if (status == 0) return {};
    return {CUDA_ERROR_UNKNOWN, "launch", fmt::format("cublasLtMatmul: status {}", status), 0};
  }

  std::string description() const override {
    return fmt::format("cuBLASLt {} bf16, algorithm {} of {} offered", api_.version(), chosen_ + 1,
                       offered_);
  }

  Result<std::string> tune(std::span<const CUdeviceptr> arguments,
                           const std::function<Result<void>()>& before) override {
    constexpr int kRounds = 5;
    const Driver& driver = context_.driver();
    CUevent begin = nullptr, end = nullptr;
    driver.cuEventCreate(&begin, CU_EVENT_DEFAULT);
    driver.cuEventCreate(&end, CU_EVENT_DEFAULT);
    std::array<std::vector<float>, kOffers> times;
    for (int round = 0; round < kRounds; ++round) {
      for (chosen_ = 0; chosen_ < offered_; ++chosen_) {
        PB_RETURN_IF_ERROR(before());
        driver.cuEventRecord(begin, context_.stream());
        if (enqueue(arguments)) continue;
        driver.cuEventRecord(end, context_.stream());
        if (const CUresult code = context_.synchronize(); code != CUDA_SUCCESS)
          return driver_error(driver, "cublasLtMatmul", code);
        float ms = 0;
        driver.cuEventElapsedTime_v2(&ms, begin, end);
        times[chosen_].push_back(ms);
      }
    }
    size_t best = offered_;
    float best_ms = 0;
    for (size_t i = 0; i < offered_; ++i) {
      if (times[i].size() < kRounds) continue;
      std::nth_element(times[i].begin(), times[i].begin() + kRounds / 2, times[i].end());
      if (best == offered_ || times[i][kRounds / 2] < best_ms)
        best = i, best_ms = times[i][kRounds / 2];
    }
    if (best == offered_) return Error{"unsupported", "none of cuBLASLt's algorithms runs"};
    chosen_ = best;
    return description();
  }

 private:
  static constexpr size_t kOffers = 16;
  static constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;

  Result<void> expect(Status status, const char* call) const {
    if (status == 0) return {};
    return Error{"infrastructure", fmt::format("cuBLASLt: {} returned status {}", call, status)};
  }

  const Context& context_;
  Api api_;
  Handle handle_ = nullptr, desc_ = nullptr, first_ = nullptr, second_ = nullptr, out_ = nullptr,
         preference_ = nullptr;
  std::array<HeuristicResult, kOffers> offers_ = {};
  size_t offered_ = 0, chosen_ = 0;
  std::vector<GuardedBuffer> workspace_;
};

}  // namespace

Result<std::unique_ptr<LibraryProgram>> LibraryProgram::create(const Context& context,
                                                               const LoadLibrary& request) {
  if (request.routine != "cublaslt-bf16")
    return Error{"unsupported", fmt::format("no library routine '{}'", request.routine)};
  PB_ASSIGN_OR_RETURN(Api api, open(request.path));
  auto program = std::make_unique<CublasLtGemm>(context, api);
  PB_RETURN_IF_ERROR(program->prepare(request.m, request.n, request.k));
  return std::unique_ptr<LibraryProgram>(std::move(program));
}

}  // namespace ptxbench::device::cuda
