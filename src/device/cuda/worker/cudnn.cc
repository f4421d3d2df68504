// cuDNN's attention as a baseline, through the graphs of its frontend headers. The library is
// opened at run time; without the headers at build time (CMakeLists.txt) the routines are refused
// by name.
#include <fmt/format.h>

#include "device/cuda/worker/program.h"

#ifdef PTXBENCH_CUDNN_FRONTEND
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#define NV_CUDNN_FRONTEND_DISABLE_LOGGING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cmath>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend's own name for the library that was opened
}

namespace ptxbench::device::cuda {
namespace {

namespace fe = cudnn_frontend;
using Node = std::shared_ptr<fe::graph::Tensor_attributes>;

class CudnnAttention : public LibraryProgram {
 public:
  CudnnAttention(const Context& context, const LoadLibrary& request)
      : context_(context), request_(request) {
    b_ = request.sizes[0], h_ = request.sizes[1], s_ = request.sizes[2], d_ = request.sizes[3];
  }

  Result<void> prepare() {
    const bool fp8 = request_.routine == "cudnn-sdpa-fp8";
    if (fe::detail::create_handle(&handle_) != CUDNN_STATUS_SUCCESS ||
        fe::detail::set_stream(handle_, reinterpret_cast<cudaStream_t>(context_.stream())) !=
            CUDNN_STATUS_SUCCESS)
      return Error{"no-library", "cuDNN does not start"};
    graph_.set_io_data_type(fp8 ? fe::DataType_t::FP8_E4M3 : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (request_.routine == "cudnn-sdpa") forward();
    if (request_.routine == "cudnn-sdpa-backward") backward();
    if (fp8) PB_RETURN_IF_ERROR(forward_fp8());
    PB_RETURN_IF_ERROR(expect(graph_.validate()));
    PB_RETURN_IF_ERROR(expect(graph_.build_operation_graph(handle_)));
    PB_RETURN_IF_ERROR(expect(graph_.create_execution_plans({fe::HeurMode_t::A})));
    PB_RETURN_IF_ERROR(expect(graph_.check_support()));
    int64_t bytes = 1;
    for (int64_t i = 0; i < graph_.get_execution_plan_count(); ++i) {
      if (plans_.size() == kOffers || graph_.build_plan_at_index(i).is_bad()) continue;
      const int64_t needed = graph_.get_workspace_size_plan_at_index(i);
      if (needed > kWorkspaceBytes) continue;
      bytes = std::max(bytes, needed);
      plans_.push_back(i);
    }
    offered_ = plans_.size();
    if (offered_ == 0) return Error{"unsupported", "cuDNN builds no plan for " + sizes()};
    return add_buffer("workspace", static_cast<uint64_t>(bytes), 0);
  }

  Failure enqueue(std::span<const CUdeviceptr> arguments) override {
    std::unordered_map<int64_t, void*> pack;
    for (size_t i = 0; i < arguments.size(); ++i)
      pack[static_cast<int64_t>(i)] = reinterpret_cast<void*>(arguments[i]);
    for (size_t i = 0; i + 1 < own_.size(); ++i)  // the last one is the workspace
      pack[kOwn + static_cast<int64_t>(i)] = reinterpret_cast<void*>(own_[i].address());
    void* workspace = reinterpret_cast<void*>(own_.back().address());
    fe::error_t status = graph_.execute_plan_at_index(handle_, pack, workspace, plans_[chosen_]);
    if (status.is_good()) return {};
    return {CUDA_ERROR_UNKNOWN, "launch", "cuDNN: " + status.get_message(), 0};
  }

  std::string description() const override {
    return fmt::format("cuDNN {} {}, plan {} of {} offered", fe::detail::get_backend_version(),
                       request_.routine.substr(6), chosen_ + 1, offered_);
  }

 private:
  static constexpr int64_t kOwn = 1000;  // identifiers of buffers that are no arguments
  static constexpr size_t kOffers = 16;
  static constexpr int64_t kWorkspaceBytes = int64_t{8} << 30;

  std::string sizes() const {
    return fmt::format("{} at B={} H={} S={} D={}", request_.routine, b_, h_, s_, d_);
  }
  Result<void> expect(fe::error_t status) const {
    if (status.is_good()) return {};
    return Error{"unsupported", fmt::format("cuDNN refuses {}: {}", sizes(), status.get_message())};
  }
  // Buffers of the program's own, filled with copies of `word`.
  Result<void> add_buffer(const char* name, uint64_t bytes, uint32_t word) {
    PB_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::create(context_, name, bytes));
    const CUresult code =
        context_.driver().cuMemsetD32Async(buffer.address(), word, bytes / 4, context_.stream());
    if (code != CUDA_SUCCESS) return driver_error(context_.driver(), "filling a buffer", code);
    own_.push_back(std::move(buffer));
    return {};
  }

  Node input(int64_t id, std::vector<int64_t> dims, fe::DataType_t type) {
    return graph_.tensor(describe(fe::graph::Tensor_attributes(), id, std::move(dims), type));
  }
  static fe::graph::Tensor_attributes describe(fe::graph::Tensor_attributes tensor, int64_t id,
                                               std::vector<int64_t> dims, fe::DataType_t type) {
    std::vector<int64_t> strides(4, 1);
    for (size_t i = 3; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
    tensor.set_uid(id).set_dim(dims).set_stride(strides).set_data_type(type);
    return tensor;
  }
  void output(const Node& node, int64_t id, std::vector<int64_t> dims, fe::DataType_t type) {
    *node = describe(*node, id, std::move(dims), type);
    node->set_output(true);
  }
  std::vector<int64_t> matrix() const { return {b_, h_, s_, d_}; }
  std::vector<int64_t> column() const { return {b_, h_, s_, 1}; }
  Node matrix(int64_t id, fe::DataType_t type = fe::DataType_t::BFLOAT16) {
    return input(id, matrix(), type);
  }
  Node scalar(int64_t id) { return input(id, {1, 1, 1, 1}, fe::DataType_t::FLOAT); }
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(d_))); }

  void forward() {
    auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(scale());
    if (request_.causal) options.set_causal_mask(true);
    const Node q = matrix(0), k = matrix(1), v = matrix(2);
    auto [o, lse] = graph_.sdpa(q, k, v, options);
    output(o, 3, matrix(), fe::DataType_t::BFLOAT16);
    output(lse, 4, column(), fe::DataType_t::FLOAT);
  }

  void backward() {
    auto options = fe::graph::SDPA_backward_attributes().set_attn_scale(scale());
    if (request_.causal) options.set_causal_mask(true);
    const Node q = matrix(0), k = matrix(1), v = matrix(2), o = matrix(3), d_o = matrix(4),
               lse = input(5, column(), fe::DataType_t::FLOAT);
    auto [dq, dk, dv] = graph_.sdpa_backward(q, k, v, o, d_o, lse, options);
    output(dq, 6, matrix(), fe::DataType_t::BFLOAT16);
    output(dk, 7, matrix(), fe::DataType_t::BFLOAT16);
    output(dv, 8, matrix(), fe::DataType_t::BFLOAT16);
  }

  // Probabilities are at most one: times 256 they use the range of e4m3.
  Result<void> forward_fp8() {
    constexpr uint32_t kOne = 0x3f800000u, k256 = 0x43800000u, kOneOver256 = 0x3b800000u;
    const auto type = fe::DataType_t::FP8_E4M3;
    auto options =
        fe::graph::SDPA_fp8_attributes().set_generate_stats(true).set_attn_scale(scale());
    if (request_.causal) options.set_causal_mask(true);
    const Node q = matrix(0, type), k = matrix(1, type), v = matrix(2, type), descale_q = scalar(3),
               descale_k = scalar(4), descale_v = scalar(5), descale_s = scalar(kOwn),
               scale_s = scalar(kOwn + 1), scale_o = scalar(kOwn + 2);
    auto [o, lse, amax_s, amax_o] = graph_.sdpa_fp8(q, k, v, descale_q, descale_k, descale_v,
                                                    descale_s, scale_s, scale_o, options);
    output(o, 6, matrix(), type);
    output(lse, 7, column(), fe::DataType_t::FLOAT);
    output(amax_s, kOwn + 3, {1, 1, 1, 1}, fe::DataType_t::FLOAT);
    output(amax_o, kOwn + 4, {1, 1, 1, 1}, fe::DataType_t::FLOAT);
    PB_RETURN_IF_ERROR(add_buffer("descale_s", 4, kOneOver256));
    PB_RETURN_IF_ERROR(add_buffer("scale_s", 4, k256));
    PB_RETURN_IF_ERROR(add_buffer("scale_o", 4, kOne));
    PB_RETURN_IF_ERROR(add_buffer("amax_s", 4, 0));
    return add_buffer("amax_o", 4, 0);
  }

  const Context& context_;
  LoadLibrary request_;
  int64_t b_ = 0, h_ = 0, s_ = 0, d_ = 0;
  cudnnHandle_t handle_ = nullptr;
  fe::graph::Graph graph_;
  std::vector<int64_t> plans_;  // those that could be built
  std::vector<GuardedBuffer> own_;
};

Result<std::unique_ptr<LibraryProgram>> create(const Context& context, const LoadLibrary& request) {
  if (request.sizes.size() != 4)
    return Error{"infrastructure", "attention needs the sizes B, H, S and D"};
  void* library = dlopen(request.path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    return Error{"no-library", fmt::format("cuDNN does not open: {}", dlerror())};
  fe::cudnn_dlhandle = library;
  auto program = std::make_unique<CudnnAttention>(context, request);
  PB_RETURN_IF_ERROR(program->prepare());
  return std::unique_ptr<LibraryProgram>(std::move(program));
}

}  // namespace

Result<std::unique_ptr<LibraryProgram>> create_cudnn(const Context& context,
                                                     const LoadLibrary& request) {
  // The frontend throws where a symbol or a library is missing.
  try {
    return create(context, request);
  } catch (const std::exception& e) {
    return Error{"no-library", fmt::format("cuDNN: {}", e.what())};
  }
}

}  // namespace ptxbench::device::cuda

#else

namespace ptxbench::device::cuda {

Result<std::unique_ptr<LibraryProgram>> create_cudnn(const Context&, const LoadLibrary& request) {
  return Error{"no-library",
               fmt::format("{}: this program was built without cuDNN's headers", request.routine)};
}

}  // namespace ptxbench::device::cuda

#endif
