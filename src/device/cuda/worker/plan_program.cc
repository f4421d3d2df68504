// Replays a launch plan through the driver, with buffers of the worker's own.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/cuda/worker/program.h"
#include "plan/launch_plan.h"

namespace ptxbench::device::cuda {

Failure failure(const Driver& driver, const char* stage, CUresult code, int step) {
  if (code == CUDA_SUCCESS) return {};
  return {static_cast<int32_t>(code), stage, driver.describe(code), step};
}

namespace {

struct Variable {  // of a module, writable by device code
  std::string name;
  CUdeviceptr address = 0;
  std::vector<uint8_t> image;  // as loaded
};

class PlanProgram : public Program {
 public:
  PlanProgram(const Context& context, plan::LaunchPlan plan)
      : context_(context), driver_(context.driver()), plan_(std::move(plan)) {}

  Result<Loaded> load(const LoadPlan& request) {
    Loaded loaded;
    offsets_ = request.offsets;
    offsets_.resize(plan_.steps.size());
    for (size_t m = 0; m < plan_.modules.size() && !loaded.failure; ++m)
      loaded.failure = load_module(plan_.modules[m], request, loaded);
    if (loaded.failure) return loaded;
    PB_RETURN_IF_ERROR(prepare_launches(loaded));
    if (loaded.failure) return loaded;
    PB_RETURN_IF_ERROR(place_buffers(loaded));
    if (loaded.failure) return loaded;
    PB_RETURN_IF_ERROR(keep_images(request.state, loaded));
    return loaded;
  }

  Result<void> restore() override {
    for (const Variable& v : variables_) {
      const CUresult code = driver_.cuMemcpyHtoDAsync_v2(v.address, v.image.data(), v.image.size(),
                                                         context_.stream());
      if (code != CUDA_SUCCESS) return driver_error(driver_, "restoring a module variable", code);
    }
    for (const GuardedBuffer& s : scratch_) {  // NaN: what nobody wrote must not look right
      const CUresult code =
          driver_.cuMemsetD8Async(s.address(), 0xff, s.bytes(), context_.stream());
      if (code != CUDA_SUCCESS) return driver_error(driver_, "poisoning scratch memory", code);
    }
    return {};
  }

  Failure enqueue(std::span<const CUdeviceptr> arguments) override {
    std::vector<uint64_t> addresses = fixed_;
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      if (plan_.buffers[i].role == plan::BufferRole::argument)
        addresses[i] = arguments[plan_.buffers[i].argument];
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      step_ = static_cast<int>(i);
      Failure failed =
          std::visit([&](const auto& s) { return enqueue(s, addresses); }, plan_.steps[i]);
      if (failed) return failed;
    }
    return {};
  }

  Result<void> check(Checked& checked) override {
    for (const GuardedBuffer& s : scratch_) {
      PB_ASSIGN_OR_RETURN(std::optional<Damage> damage, s.damage());
      if (damage) checked.guards.push_back(*damage);
    }
    for (const Variable& v : variables_) {
      std::vector<uint8_t> now(v.image.size());
      CUresult code =
          driver_.cuMemcpyDtoHAsync_v2(now.data(), v.address, now.size(), context_.stream());
      if (code == CUDA_SUCCESS) code = context_.synchronize();
      if (code != CUDA_SUCCESS) return driver_error(driver_, "reading a module variable", code);
      uint64_t changed = 0;
      for (size_t i = 0; i < now.size(); ++i) changed += now[i] != v.image[i];
      if (changed > 0) checked.state.push_back({v.name, changed});
    }
    checked.differing_maps += differing_maps_;
    checked.map_difference = map_difference_;
    return {};
  }

 private:
  // Assembles text apart from loading it, so that the machine code can be handed back; empty where
  // the driver does not do that.
  std::vector<uint8_t> assemble(const std::string& ptx) const {
    std::vector<uint8_t> image;
    if (driver_.emulated || driver_.cuLinkCreate_v2 == nullptr ||
        driver_.cuLinkAddData_v2 == nullptr || driver_.cuLinkComplete == nullptr ||
        driver_.cuLinkDestroy == nullptr)
      return image;
    CUlinkState link = nullptr;
    if (driver_.cuLinkCreate_v2(0, nullptr, nullptr, &link) != CUDA_SUCCESS) return image;
    void* cubin = nullptr;
    size_t bytes = 0;
    CUresult code = driver_.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()),
                                             ptx.size() + 1, "plan", 0, nullptr, nullptr);
    if (code == CUDA_SUCCESS) code = driver_.cuLinkComplete(link, &cubin, &bytes);
    if (code == CUDA_SUCCESS)
      image.assign(static_cast<uint8_t*>(cubin), static_cast<uint8_t*>(cubin) + bytes);
    driver_.cuLinkDestroy(link);
    return image;
  }

  // Where images are wanted, what is loaded is the image handed back.
  Failure load_module(const plan::Module& module, const LoadPlan& request, Loaded& loaded) {
    const bool text = request.from_ptx || module.cubin.empty();
    std::vector<uint8_t> machine_code;
    if (!text)
      machine_code = module.cubin;
    else if (request.want_images)
      machine_code = assemble(module.ptx);
    std::vector<char> log(16 << 10, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const bool ready = !machine_code.empty();
    const void* image = ready ? static_cast<const void*>(machine_code.data())
                              : static_cast<const void*>(module.ptx.c_str());
    CUmodule handle = nullptr;
    const CUresult code =
        driver_.cuModuleLoadDataEx(&handle, image, ready ? 0 : 2, options, values);
    if (code != CUDA_SUCCESS) {
      Failure failed = failure(driver_, "load", code);
      log.back() = '\0';
      if (log[0] != '\0') failed.what += fmt::format(": {}", std::string(log.data()));
      return failed;
    }
    modules_.push_back(handle);
    if (request.want_images) loaded.images.push_back(std::move(machine_code));
    return {};
  }

  Result<void> prepare_launches(Loaded& loaded) {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto* launch = std::get_if<plan::Launch>(&plan_.steps[i]);
      functions_.push_back(nullptr);
      if (launch == nullptr) continue;
      CUfunction function = nullptr;
      CUresult code =
          driver_.cuModuleGetFunction(&function, modules_[launch->module], launch->kernel.c_str());
      if (code == CUDA_SUCCESS && launch->max_dynamic_shared_bytes > 0)
        code = driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          static_cast<int>(launch->max_dynamic_shared_bytes));
      if (code == CUDA_SUCCESS && launch->cluster.count() > 8)
        code = driver_.cuFuncSetAttribute(function,
                                          CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
      if (code != CUDA_SUCCESS) {
        loaded.failure = failure(driver_, "launch", code, static_cast<int>(i));
        return {};
      }
      functions_.back() = function;
      describe(*launch, function, loaded);
    }
    return {};
  }

  void describe(const plan::Launch& launch, CUfunction function, Loaded& loaded) const {
    KernelInfo info;
    info.name = launch.kernel;
    auto get = [&](CUfunction_attribute which) {
      int value = 0;
      driver_.cuFuncGetAttribute(&value, which, function);
      return value;
    };
    info.registers = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    info.local_bytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    info.static_shared = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    info.max_threads = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    int resident = 0;
    if (driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor != nullptr &&
        driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &resident, function, static_cast<int>(launch.block.count()),
            launch.dynamic_shared_bytes) == CUDA_SUCCESS)
      info.resident_ctas = resident;
    loaded.kernels.push_back(info);
  }

  Result<void> place_buffers(Loaded& loaded) {
    for (const plan::Buffer& b : plan_.buffers) {
      CUdeviceptr address = 0;
      if (b.role == plan::BufferRole::scratch) {
        PB_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::create(context_, b.name, b.size));
        address = buffer.address();
        scratch_.push_back(std::move(buffer));
      } else if (b.role == plan::BufferRole::symbol) {
        size_t bytes = 0;
        const CUresult code =
            driver_.cuModuleGetGlobal_v2(&address, &bytes, modules_[b.module], b.name.c_str());
        if (code != CUDA_SUCCESS) {
          loaded.failure = failure(driver_, "load", code);
          loaded.failure.what += fmt::format(": variable {}", b.name);
          return {};
        }
        if (bytes < b.size)
          return Error{"bad-plan", fmt::format("variable {} has {} bytes, the plan says {}", b.name,
                                               bytes, b.size)};
      }
      fixed_.push_back(address);
    }
    return {};
  }

  Result<void> keep_images(const std::vector<StateVariable>& state, Loaded& loaded) {
    for (const StateVariable& s : state) {
      Variable v{s.name, 0, {}};
      size_t bytes = 0;
      if (s.module >= modules_.size()) return Error{"infrastructure", "no such module"};
      // A variable that no kernel uses may be gone from the machine code.
      if (driver_.cuModuleGetGlobal_v2(&v.address, &bytes, modules_[s.module], s.name.c_str()) !=
          CUDA_SUCCESS)
        continue;
      v.image.resize(bytes);
      CUresult code =
          driver_.cuMemcpyDtoHAsync_v2(v.image.data(), v.address, bytes, context_.stream());
      if (code == CUDA_SUCCESS) code = context_.synchronize();
      if (code != CUDA_SUCCESS) return driver_error(driver_, "reading a module variable", code);
      loaded.state_bytes += bytes;
      variables_.push_back(std::move(v));
    }
    return {};
  }

  // The blob with addresses, its tensor maps as the driver of this card encodes them.
  Failure fill(const plan::Blob& blob, const std::vector<uint64_t>& addresses,
               std::vector<uint8_t>& bytes) {
    auto filled = plan::materialize(blob, plan_, addresses);
    if (!filled.ok()) return {CUDA_ERROR_INVALID_VALUE, "launch", filled.error().message, step_};
    bytes = filled.take();
    for (const plan::TensorMapPatch& patch : blob.tensor_maps) {
      const plan::TensorMap& map = plan_.tensor_maps[patch.map];
      alignas(64) CUtensorMap encoded;
      const CUresult code =
          encode(map.args, addresses[map.address.buffer] + map.address.offset, encoded);
      if (code != CUDA_SUCCESS) return failure(driver_, "launch", code, step_);
      note_difference(bytes.data() + patch.at, encoded);
      std::memcpy(bytes.data() + patch.at, &encoded, sizeof encoded);
    }
    return {};
  }

  void note_difference(const uint8_t* ours, const CUtensorMap& theirs) {
    for (size_t word = 0; word < 16; ++word) {
      uint64_t a = 0, b = 0;
      std::memcpy(&a, ours + 8 * word, 8);
      std::memcpy(&b, reinterpret_cast<const uint8_t*>(&theirs) + 8 * word, 8);
      if (a == b) continue;
      if (differing_maps_++ == 0)
        map_difference_ = fmt::format("word {}: driver {:#018x}, ours {:#018x}", word, b, a);
      return;
    }
  }

  CUresult encode(const plan::TensorMapArgs& a, uint64_t address, CUtensorMap& out) const {
    cuuint64_t dims[5], strides[5];
    cuuint32_t box[5], steps[5];
    std::copy(a.dims.begin(), a.dims.end(), dims);
    std::copy(a.strides.begin(), a.strides.end(), strides);
    std::copy(a.box.begin(), a.box.end(), box);
    std::copy(a.element_strides.begin(), a.element_strides.end(), steps);
    return driver_.cuTensorMapEncodeTiled(
        &out, static_cast<CUtensorMapDataType>(a.type), a.rank, reinterpret_cast<void*>(address),
        dims, strides, box, steps, static_cast<CUtensorMapInterleave>(a.interleave),
        static_cast<CUtensorMapSwizzle>(a.swizzle),
        static_cast<CUtensorMapL2promotion>(a.l2_promotion),
        a.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                   : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }

  Failure enqueue(const plan::Launch& l, const std::vector<uint64_t>& addresses) {
    std::vector<uint8_t> params;
    if (Failure failed = fill(l.params, addresses, params)) return failed;
    CUlaunchAttribute attributes[3] = {};
    CUlaunchConfig config = {};
    config.gridDimX = l.grid.x, config.gridDimY = l.grid.y, config.gridDimZ = l.grid.z;
    config.blockDimX = l.block.x, config.blockDimY = l.block.y, config.blockDimZ = l.block.z;
    config.sharedMemBytes = l.dynamic_shared_bytes;
    config.hStream = context_.stream();
    config.attrs = attributes;
    if (l.explicit_cluster) {
      CUlaunchAttribute& a = attributes[config.numAttrs++];
      a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      a.value.clusterDim.x = l.cluster.x;
      a.value.clusterDim.y = l.cluster.y;
      a.value.clusterDim.z = l.cluster.z;
    }
    if (l.cooperative) {
      CUlaunchAttribute& a = attributes[config.numAttrs++];
      a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      a.value.cooperative = 1;
    }
    // A first launch has no predecessor of the candidate's to overlap with.
    if (l.programmatic_stream_serialization && step_ > 0) {
      CUlaunchAttribute& a = attributes[config.numAttrs++];
      a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      a.value.programmaticStreamSerializationAllowed = 1;
    }
    const auto at = static_cast<size_t>(step_);
    const size_t bytes = params.size();
    params.resize(bytes + 4096);  // the driver reads as many bytes as the machine code says
    std::vector<void*> values;
    for (const uint32_t offset : offsets_[at]) {
      if (offset >= bytes)
        return {CUDA_ERROR_INVALID_VALUE, "launch", "a parameter lies behind the block", step_};
      values.push_back(params.data() + offset);
    }
    return failure(driver_, "launch",
                   driver_.cuLaunchKernelEx(&config, functions_[at],
                                            values.empty() ? nullptr : values.data(), nullptr),
                   step_);
  }

  Failure enqueue(const plan::Memset& m, const std::vector<uint64_t>& addresses) {
    if (m.bytes == 0) return {};
    const CUdeviceptr to = addresses[m.dst.buffer] + m.dst.offset;
    const uint64_t count = m.bytes / m.element_size;
    CUresult code = CUDA_ERROR_INVALID_VALUE;
    if (m.element_size == 1)
      code = driver_.cuMemsetD8Async(to, static_cast<uint8_t>(m.value), count, context_.stream());
    if (m.element_size == 2)
      code = driver_.cuMemsetD16Async(to, static_cast<uint16_t>(m.value), count, context_.stream());
    if (m.element_size == 4) code = driver_.cuMemsetD32Async(to, m.value, count, context_.stream());
    return failure(driver_, "launch", code, step_);
  }

  Failure enqueue(const plan::CopyHostToDevice& c, const std::vector<uint64_t>& addresses) {
    if (c.data.bytes.empty()) return {};
    std::vector<uint8_t> bytes;
    if (Failure failed = fill(c.data, addresses, bytes)) return failed;
    return failure(driver_, "launch",
                   driver_.cuMemcpyHtoDAsync_v2(addresses[c.dst.buffer] + c.dst.offset,
                                                bytes.data(), bytes.size(), context_.stream()),
                   step_);
  }

  Failure enqueue(const plan::CopyDeviceToDevice& c, const std::vector<uint64_t>& addresses) {
    if (c.bytes == 0) return {};
    return failure(driver_, "launch",
                   driver_.cuMemcpyDtoDAsync_v2(addresses[c.dst.buffer] + c.dst.offset,
                                                addresses[c.src.buffer] + c.src.offset, c.bytes,
                                                context_.stream()),
                   step_);
  }

  // Scratch memory stays until the worker goes.
  Failure enqueue(const plan::Free&, const std::vector<uint64_t>&) { return {}; }

  const Context& context_;
  const Driver& driver_;
  plan::LaunchPlan plan_;
  std::vector<CUmodule> modules_;
  std::vector<CUfunction> functions_;  // by step
  std::vector<uint64_t> fixed_;        // by buffer; 0 for arguments
  std::vector<GuardedBuffer> scratch_;
  std::vector<Variable> variables_;
  std::vector<std::vector<uint32_t>> offsets_;  // of parameters, by step
  uint32_t differing_maps_ = 0;
  std::string map_difference_;
  int step_ = 0;
};

}  // namespace

Result<LoadedProgram> load_plan(const Context& context, const LoadPlan& request) {
  PB_ASSIGN_OR_RETURN(plan::LaunchPlan plan, plan::deserialize(request.plan));
  PB_RETURN_IF_ERROR(plan::validate(plan));
  auto program = std::make_unique<PlanProgram>(context, std::move(plan));
  LoadedProgram out;
  PB_ASSIGN_OR_RETURN(out.loaded, program->load(request));
  if (!out.loaded.failure) out.program = std::move(program);
  return out;
}

}  // namespace ptxbench::device::cuda
