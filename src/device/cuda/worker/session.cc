#include "device/cuda/worker/session.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/hash.h"
#include "device/cuda/worker/builtin_ptx.h"

namespace ptxbench::device::cuda {
namespace {

constexpr uint64_t kLeastPinned = uint64_t{16} << 20;
constexpr uint64_t kLeastEviction = uint64_t{16} << 20;

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::string& driver, int device, int arena) {
  PB_ASSIGN_OR_RETURN(Context context, Context::open(driver, device));
  std::unique_ptr<Session> session(new Session(std::move(context), arena));
  PB_RETURN_IF_ERROR(session->prepare());
  return session;
}

Session::~Session() { unmap_arena(); }

void Session::unmap_arena() {
  if (mapped_ == nullptr) return;
  if (pinned_) context_.driver().cuMemHostUnregister(mapped_);
  pinned_ = false;
  munmap(mapped_, mapped_bytes_);
  mapped_ = nullptr;
}

Result<void> Session::prepare() {
  const Driver& driver = context_.driver();
  CUresult code = driver.cuModuleLoadDataEx(&builtin_, kBuiltinPtx, 0, nullptr, nullptr);
  auto get = [&](CUfunction* function, const char* name) {
    if (code == CUDA_SUCCESS) code = driver.cuModuleGetFunction(function, builtin_, name);
  };
  get(&empty_, "ptxbench_empty");
  get(&self_test_, "ptxbench_self_test");
  get(&dirty_, "ptxbench_dirty_shared");
  get(&compare_, "ptxbench_count_differing");
  if (code == CUDA_SUCCESS) code = driver.cuEventCreate(&begin_, CU_EVENT_DEFAULT);
  if (code == CUDA_SUCCESS) code = driver.cuEventCreate(&end_, CU_EVENT_DEFAULT);
  if (code == CUDA_SUCCESS)
    code = driver.cuDeviceGetAttribute(
        &shared_bytes_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, context_.device());
  if (code == CUDA_SUCCESS)
    code = driver.cuFuncSetAttribute(dirty_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     shared_bytes_);
  scratch_bytes_ = std::max(4 * context_.info().l2_bytes, kLeastEviction);
  if (context_.driver().emulated) scratch_bytes_ = 4096;  // no cache there
  if (code == CUDA_SUCCESS) code = driver.cuMemAlloc_v2(&scratch_, scratch_bytes_);
  if (code != CUDA_SUCCESS) return driver_error(driver, "setting up the worker", code);
  return {};
}

Result<uint8_t*> Session::arena(uint64_t at, uint64_t bytes) {
  if (at + bytes > mapped_bytes_) {
    struct stat info = {};
    if (fstat(arena_, &info) != 0 || static_cast<uint64_t>(info.st_size) < at + bytes)
      return Error{"infrastructure", "the shared memory is smaller than a message says"};
    unmap_arena();
    mapped_bytes_ = static_cast<uint64_t>(info.st_size);
    void* where = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, arena_, 0);
    mapped_ = where == MAP_FAILED ? nullptr : static_cast<uint8_t*>(where);
    if (mapped_ == nullptr) {
      mapped_bytes_ = 0;
      return Error{"infrastructure", "the shared memory cannot be mapped"};
    }
    // Page-locked memory is copied several times as fast; without it everything works, too.
    const Driver& driver = context_.driver();
    pinned_ = !driver.emulated && driver.cuMemHostRegister_v2 != nullptr &&
              driver.cuMemHostUnregister != nullptr && mapped_bytes_ >= kLeastPinned &&
              driver.cuMemHostRegister_v2(mapped_, mapped_bytes_, 0) == CUDA_SUCCESS;
  }
  return mapped_ + at;
}

Result<Loaded> Session::load(const LoadPlan& request) {
  library_ = nullptr;
  program_.reset();  // its memory may be needed
  PB_ASSIGN_OR_RETURN(LoadedProgram program, load_plan(context_, request));
  program_ = std::move(program.program);
  return std::move(program.loaded);
}

Result<Loaded> Session::load(const LoadLibrary& request) {
  PB_ASSIGN_OR_RETURN(std::unique_ptr<LibraryProgram> program,
                      LibraryProgram::create(context_, request));
  library_ = program.get();
  tuned_ = false;
  program_ = std::move(program);
  Loaded loaded;
  loaded.description = library_->description();
  return loaded;
}

Result<SetId> Session::set_up(const BufferSetup& request) {
  const Driver& driver = context_.driver();
  PB_ASSIGN_OR_RETURN(
      GuardedBuffer buffer,
      GuardedBuffer::create(context_, fmt::format("argument {}", request.argument), request.bytes));
  Argument argument{std::move(buffer), request.read_only, ""};
  CUresult code = CUDA_SUCCESS;
  if (request.upload) {
    PB_ASSIGN_OR_RETURN(const uint8_t* from, arena(request.arena_at, request.bytes));
    code = driver.cuMemcpyHtoDAsync_v2(argument.buffer.address(), from, request.bytes,
                                       context_.stream());
  } else {
    code = driver.cuMemsetD16Async(argument.buffer.address(), request.pattern, request.bytes / 2,
                                   context_.stream());
  }
  if (code == CUDA_SUCCESS) code = context_.synchronize();
  if (code != CUDA_SUCCESS) return driver_error(driver, "filling a buffer", code);
  if (request.read_only) {
    std::span<const uint8_t> bytes;
    if (request.upload) bytes = {mapped_ + request.arena_at, request.bytes};
    PB_RETURN_IF_ERROR(guard_input(argument, bytes));
  }
  sets_[request.set].erase(request.argument);
  sets_[request.set].emplace(request.argument, std::move(argument));
  return SetId{request.set};
}

// `moves` of an argument, valid or zero.
uint64_t Session::move_of(const Clone& request, uint32_t argument, uint64_t bytes) {
  return argument < request.moves.size() && bytes > 0 ? request.moves[argument] % bytes : 0;
}

Result<SetId> Session::clone(const Clone& request) {
  auto from = sets_.find(request.from);
  if (from == sets_.end()) return Error{"infrastructure", "no such set of buffers"};
  const Driver& driver = context_.driver();
  Set set;
  for (const auto& [index, argument] : from->second) {
    const uint64_t bytes = argument.buffer.bytes(), move = move_of(request, index, bytes);
    PB_ASSIGN_OR_RETURN(GuardedBuffer buffer,
                        GuardedBuffer::create(context_, argument.buffer.name(), bytes));
    const CUdeviceptr source = argument.buffer.address(), to = buffer.address();
    CUresult code = argument.read_only ? driver.cuMemcpyDtoDAsync_v2(
                                             to + move, source, bytes - move, context_.stream())
                                       : driver.cuMemsetD8Async(to, 0xff, bytes, context_.stream());
    if (code == CUDA_SUCCESS && argument.read_only && move > 0)
      code = driver.cuMemcpyDtoDAsync_v2(to, source + bytes - move, move, context_.stream());
    if (code == CUDA_SUCCESS) code = context_.synchronize();
    if (code != CUDA_SUCCESS) return driver_error(driver, "copying a buffer", code);
    Argument copy{std::move(buffer), argument.read_only, ""};
    if (copy.read_only) PB_RETURN_IF_ERROR(guard_input(copy, {}));
    set.emplace(index, std::move(copy));
  }
  sets_.erase(request.set);
  sets_.emplace(request.set, std::move(set));
  return SetId{request.set};
}

// An input that the driver does not map read-only is hashed instead. `bytes`: its contents, where
// they are at hand.
Result<void> Session::guard_input(Argument& argument, std::span<const uint8_t> bytes) {
  if (argument.buffer.protect()) return {};
  if (!bytes.empty() || argument.buffer.bytes() == 0) {
    argument.hash = hash_hex(bytes);
    return {};
  }
  PB_ASSIGN_OR_RETURN(argument.hash, hash_of(argument.buffer));
  return {};
}

Result<std::string> Session::hash_of(const GuardedBuffer& buffer) {
  std::vector<uint8_t> now(buffer.bytes());
  CUresult code = context_.driver().cuMemcpyDtoHAsync_v2(now.data(), buffer.address(), now.size(),
                                                         context_.stream());
  if (code == CUDA_SUCCESS) code = context_.synchronize();
  if (code != CUDA_SUCCESS) return driver_error(context_.driver(), "reading an input", code);
  return hash_hex(std::span<const uint8_t>(now));
}

Result<Compared> Session::compare(const Clone& request) {
  const auto from = sets_.find(request.from), set = sets_.find(request.set);
  if (from == sets_.end() || set == sets_.end())
    return Error{"infrastructure", "no such set of buffers"};
  const Driver& driver = context_.driver();
  Compared out;
  for (const auto& [index, argument] : from->second) {
    out.differing.push_back(0);
    const auto other = set->second.find(index);
    if (argument.read_only || other == set->second.end()) continue;
    CUdeviceptr a = argument.buffer.address(), b = other->second.buffer.address();
    uint64_t bytes = argument.buffer.bytes(), move = move_of(request, index, bytes);
    void* args[] = {&a, &b, &bytes, &move, &scratch_};
    CUresult code = driver.cuMemsetD32Async(scratch_, 0, 2, context_.stream());
    if (Failure failed = launch(compare_, 1024, 256, 0, args))
      return Error{"gpu-fault", "comparing outputs: " + failed.what};
    if (code == CUDA_SUCCESS)
      code = driver.cuMemcpyDtoHAsync_v2(&out.differing.back(), scratch_, 8, context_.stream());
    if (code == CUDA_SUCCESS) code = context_.synchronize();
    if (code != CUDA_SUCCESS) return driver_error(driver, "comparing outputs", code);
  }
  return out;
}

Result<std::vector<CUdeviceptr>> Session::addresses(uint32_t set) {
  auto found = sets_.find(set);
  if (found == sets_.end()) return Error{"infrastructure", "no such set of buffers"};
  std::vector<CUdeviceptr> out;
  for (const auto& [argument, buffer] : found->second) {
    if (argument != out.size()) return Error{"infrastructure", "an argument has no buffer"};
    out.push_back(buffer.buffer.address());
  }
  return out;
}

Failure Session::launch(CUfunction function, unsigned grid, unsigned block, unsigned shared,
                        void** args) {
  CUlaunchConfig config = {};
  config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = block, config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = shared;
  config.hStream = context_.stream();
  return failure(context_.driver(), "launch",
                 context_.driver().cuLaunchKernelEx(&config, function, args, nullptr));
}

Result<void> Session::dirty_shared() {
  auto words = static_cast<uint32_t>(shared_bytes_ / 4);
  void* args[] = {&words, &scratch_};
  const auto grid = static_cast<unsigned>(std::max(context_.info().sm_count, 1));
  if (Failure failed = launch(dirty_, grid, 1024, static_cast<unsigned>(shared_bytes_), args))
    return Error{"gpu-fault", "filling shared memory: " + failed.what};
  return {};
}

// Writes more than L2 holds, several times over: what it held of the inputs is gone, and the GPU is
// busy while the launches to be timed are enqueued.
Result<void> Session::evict() {
  const Driver& driver = context_.driver();
  if (driver.cuCtxResetPersistingL2Cache != nullptr && !driver.emulated)
    driver.cuCtxResetPersistingL2Cache();
  const CUresult code =
      driver.cuMemsetD32Async(scratch_, 0x7fc07fc1u, scratch_bytes_ / 4, context_.stream());
  if (code != CUDA_SUCCESS) return driver_error(driver, "evicting L2", code);
  return {};
}

Result<Ran> Session::run(const Run& request) {
  if (!program_) return Error{"infrastructure", "nothing is loaded"};
  const Driver& driver = context_.driver();
  PB_ASSIGN_OR_RETURN(const std::vector<CUdeviceptr> arguments, addresses(request.set));
  if (library_ != nullptr && !tuned_ && request.timing != Timing::none) {
    PB_RETURN_IF_ERROR(library_->tune(context_, arguments, [&] { return evict(); }));
    tuned_ = true;
  }
  PB_RETURN_IF_ERROR(program_->restore());
  Ran ran;
  if (library_ != nullptr) ran.failure = library_->arrange(arguments);
  if (ran.failure) return ran;
  if (request.dirty) PB_RETURN_IF_ERROR(dirty_shared());
  if (request.cold) PB_RETURN_IF_ERROR(evict());
  if (request.timing == Timing::end_to_end) context_.synchronize();
  const auto start = std::chrono::steady_clock::now();
  driver.cuEventRecord(begin_, context_.stream());
  ran.failure = program_->enqueue(arguments);
  driver.cuEventRecord(end_, context_.stream());
  const CUresult code = context_.synchronize();
  const auto stop = std::chrono::steady_clock::now();
  if (code != CUDA_SUCCESS) ran.failure = failure(driver, "run", code);
  if (ran.failure) return ran;
  float ms = 0;
  driver.cuEventElapsedTime_v2(&ms, begin_, end_);
  ran.ms = request.timing == Timing::end_to_end
               ? std::chrono::duration<double, std::milli>(stop - start).count()
               : static_cast<double>(ms);
  return ran;
}

Result<Checked> Session::check(const SetId& request) {
  auto found = sets_.find(request.set);
  if (found == sets_.end()) return Error{"infrastructure", "no such set of buffers"};
  Checked checked;
  for (const auto& [index, argument] : found->second) {
    PB_ASSIGN_OR_RETURN(std::optional<Damage> damage, argument.buffer.damage());
    if (damage) checked.guards.push_back(*damage);
    if (!argument.read_only || argument.hash.empty()) continue;
    PB_ASSIGN_OR_RETURN(const std::string now, hash_of(argument.buffer));
    if (now != argument.hash) checked.changed_inputs.push_back(index);
  }
  if (program_) PB_RETURN_IF_ERROR(program_->check(checked));
  return checked;
}

Result<SetId> Session::download(const Download& request) {
  auto set = sets_.find(request.set);
  if (set == sets_.end() || set->second.count(request.argument) == 0)
    return Error{"infrastructure", "no such buffer"};
  const GuardedBuffer& buffer = set->second.at(request.argument).buffer;
  PB_ASSIGN_OR_RETURN(uint8_t * to, arena(request.arena_at, buffer.bytes()));
  CUresult code = context_.driver().cuMemcpyDtoHAsync_v2(to, buffer.address(), buffer.bytes(),
                                                         context_.stream());
  if (code == CUDA_SUCCESS) code = context_.synchronize();
  if (code != CUDA_SUCCESS) return driver_error(context_.driver(), "reading a buffer", code);
  return SetId{request.set};
}

Result<SelfTest> Session::self_test() {
  constexpr uint32_t kCount = 1024;
  const Driver& driver = context_.driver();
  std::vector<uint32_t> x(kCount), y(kCount);
  for (uint32_t i = 0; i < kCount; ++i) x[i] = i * 2654435761u;
  SelfTest out;
  CUdeviceptr memory = 0;
  CUresult code = driver.cuMemAlloc_v2(&memory, 2 * kCount * 4);
  CUdeviceptr to = memory + kCount * 4;
  if (code == CUDA_SUCCESS)
    code = driver.cuMemcpyHtoDAsync_v2(memory, x.data(), kCount * 4, context_.stream());
  uint32_t n = kCount;
  void* args[] = {&memory, &to, &n};
  if (code == CUDA_SUCCESS) out.failure = launch(self_test_, kCount / 256, 256, 0, args);
  if (code == CUDA_SUCCESS)
    code = driver.cuMemcpyDtoHAsync_v2(y.data(), to, kCount * 4, context_.stream());
  if (code == CUDA_SUCCESS) code = context_.synchronize();
  if (code != CUDA_SUCCESS) out.failure = failure(driver, "run", code);
  if (out.failure) return out;
  out.right = true;
  for (uint32_t i = 0; i < kCount; ++i) out.right &= y[i] == 3 * x[i] + i;
  driver.cuMemFree_v2(memory);

  std::vector<float> times;
  for (int i = 0; i < 11; ++i) {
    PB_RETURN_IF_ERROR(evict());
    driver.cuEventRecord(begin_, context_.stream());
    out.failure = launch(empty_, 1, 32, 0, nullptr);
    driver.cuEventRecord(end_, context_.stream());
    if (code = context_.synchronize(); code != CUDA_SUCCESS)
      out.failure = failure(driver, "run", code);
    if (out.failure) return out;
    float ms = 0;
    driver.cuEventElapsedTime_v2(&ms, begin_, end_);
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  out.empty_launch_ms = times[times.size() / 2];
  return out;
}

Result<std::vector<uint8_t>> Session::answer(const std::vector<uint8_t>& request) {
  if (request.empty()) return Error{"infrastructure", "an empty request"};
  const uint8_t* body = request.data() + 1;
  const size_t size = request.size() - 1;
  auto serve = [&]<class In>(auto act) -> Result<std::vector<uint8_t>> {
    PB_ASSIGN_OR_RETURN(const In in, unpack<In>(body, size));
    PB_ASSIGN_OR_RETURN(auto out, act(in));
    return pack(out);
  };
  switch (static_cast<Op>(request[0])) {
    case Op::hello:
      return pack(context_.info());
    case Op::load_plan:
      return serve.template operator()<LoadPlan>([&](const LoadPlan& in) { return load(in); });
    case Op::load_library:
      return serve.template operator()<LoadLibrary>(
          [&](const LoadLibrary& in) { return load(in); });
    case Op::buffer:
      return serve.template operator()<BufferSetup>(
          [&](const BufferSetup& in) { return set_up(in); });
    case Op::clone:
      return serve.template operator()<Clone>([&](const Clone& in) { return clone(in); });
    case Op::compare:
      return serve.template operator()<Clone>([&](const Clone& in) { return compare(in); });
    case Op::run:
      return serve.template operator()<Run>([&](const Run& in) { return run(in); });
    case Op::check:
      return serve.template operator()<SetId>([&](const SetId& in) { return check(in); });
    case Op::download:
      return serve.template operator()<Download>([&](const Download& in) { return download(in); });
    case Op::release:
      return serve.template operator()<SetId>([&](const SetId& in) -> Result<SetId> {
        sets_.erase(in.set);
        return in;
      });
    case Op::describe: {
      Loaded loaded;
      if (library_ != nullptr) loaded.description = library_->description();
      return pack(loaded);
    }
    case Op::self_test: {
      PB_ASSIGN_OR_RETURN(const SelfTest out, self_test());
      return pack(out);
    }
  }
  return Error{"infrastructure", "an unknown request"};
}

}  // namespace ptxbench::device::cuda
