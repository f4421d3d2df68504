#include "device/cuda/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/build_config.h"
#include "device/cuda/frames.h"
#include "ptx/parser.h"

namespace ptxbench::device::cuda {
namespace {

constexpr int kSocketFd = 3, kArenaFd = 4;

Error infrastructure(std::string message) { return Error{"infrastructure", std::move(message)}; }

// What the worker must know of the plan's PTX: variables that device code can change and the next
// replay would see, and where the parameters of each launch lie. Errors: "ptx-syntax",
// "unsupported" (a module that is machine code alone).
Result<LoadPlan> load_request(const plan::LaunchPlan& plan, bool from_ptx) {
  LoadPlan request;
  request.from_ptx = from_ptx;
  std::vector<ptx::Module> modules;
  for (uint32_t m = 0; m < plan.modules.size(); ++m) {
    if (plan.modules[m].ptx.empty())
      return Error{"unsupported", fmt::format("module {} of the plan has no PTX", m)};
    PB_ASSIGN_OR_RETURN(ptx::Module module,
                        ptx::parse(plan.modules[m].ptx, fmt::format("module {}", m)));
    for (const ptx::Variable& v : module.variables)
      if (v.space == ptx::Space::global && v.linkage != ptx::Linkage::extern_)
        request.state.push_back({m, v.name});
    modules.push_back(std::move(module));
  }
  for (const plan::Step& step : plan.steps) {
    request.offsets.emplace_back();
    const auto* launch = std::get_if<plan::Launch>(&step);
    if (launch == nullptr) continue;
    const ptx::Function* kernel = modules[launch->module].find_function(launch->kernel);
    if (kernel != nullptr) request.offsets.back() = kernel->param_offsets;
  }
  request.plan = plan::serialize(plan);
  return request;
}

}  // namespace

bool is_fault(int32_t code) {
  switch (code) {
    case 1:    // INVALID_VALUE: a launch that the driver refuses
    case 200:  // INVALID_IMAGE
    case 209:  // NO_BINARY_FOR_GPU
    case 218:  // INVALID_PTX
    case 222:  // UNSUPPORTED_PTX_VERSION
    case 500:  // NOT_FOUND
    case 700:  // ILLEGAL_ADDRESS
    case 701:  // LAUNCH_OUT_OF_RESOURCES
    case 702:  // LAUNCH_TIMEOUT
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 720:  // COOPERATIVE_LAUNCH_TOO_LARGE
    case 721:  // TENSOR_MEMORY_LEAK
    case 912:  // INVALID_CLUSTER_SIZE
      return true;
    default:
      return false;
  }
}

Result<std::unique_ptr<Worker>> Worker::start(const WorkerOptions& options) {
  std::unique_ptr<Worker> worker(new Worker());
  PB_RETURN_IF_ERROR(worker->spawn(options));
  auto greeting = worker->receive(options.start_s);
  if (!greeting.ok()) {
    if (greeting.error().kind != "gpu-lost" && greeting.error().kind != "timeout")
      return greeting.error();
    return infrastructure("the GPU worker did not start: " + greeting.error().message);
  }
  PB_ASSIGN_OR_RETURN(worker->info_, worker->ask<DeviceInfo>(Op::hello, SetId{}));
  return worker;
}

Result<void> Worker::spawn(const WorkerOptions& options) {
  const std::string program =
      (options.program.empty() ? build_dir() / "bin" / "ptxbench-gpu" : options.program).string();
  if (access(program.c_str(), X_OK) != 0)
    return Error{"not-found", fmt::format("the GPU worker {} is missing", program)};
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return infrastructure("no socket for the GPU worker");
  socket_ = sockets[0];
  arena_ = memfd_create("ptxbench-gpu", MFD_CLOEXEC);
  if (arena_ < 0) {
    close(sockets[1]);
    return infrastructure("no shared memory for the GPU worker");
  }
  const std::string device = std::to_string(options.device);
  std::vector<const char*> argv = {program.c_str(), "3", "4", device.c_str()};
  if (!options.driver.empty()) argv.push_back(options.driver.c_str());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    // Out of the way first: the descriptors may have the wanted numbers already.
    const int socket = fcntl(sockets[1], F_DUPFD_CLOEXEC, 10);
    const int arena = fcntl(arena_, F_DUPFD_CLOEXEC, 10);
    for (int fd = 0; fd < 3; ++fd) dup2(nothing, fd);
    dup2(socket, kSocketFd);
    dup2(arena, kArenaFd);
    syscall(SYS_close_range, 5, ~0u, 0);
    execv(argv[0], const_cast<char**>(argv.data()));
    _exit(127);
  }
  close(sockets[1]);
  if (child_ < 0) return infrastructure("the GPU worker cannot be started");
  return {};
}

void Worker::kill() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

Worker::~Worker() {
  kill();
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  if (socket_ >= 0) close(socket_);
  if (arena_ >= 0) close(arena_);
}

Result<uint8_t*> Worker::arena(uint64_t bytes) {
  if (bytes > mapped_bytes_) {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
    mapped_ = nullptr;
    mapped_bytes_ = 0;
    if (ftruncate(arena_, static_cast<off_t>(bytes)) != 0)
      return Error{"out-of-memory", fmt::format("no shared memory of {} bytes", bytes)};
    void* where = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena_, 0);
    if (where == MAP_FAILED)
      return Error{"out-of-memory", fmt::format("no shared memory of {} bytes", bytes)};
    mapped_ = static_cast<uint8_t*>(where);
    mapped_bytes_ = bytes;
  }
  return mapped_;
}

Result<std::vector<uint8_t>> Worker::receive(double seconds) {
  std::vector<uint8_t> frame;
  const FrameStatus status = read_frame(socket_, frame, seconds);
  if (status == FrameStatus::timeout) {
    kill();
    return Error{"timeout", fmt::format("no answer within {:.3g} s", seconds)};
  }
  if (status == FrameStatus::closed || frame.empty()) {
    kill();
    return Error{"gpu-lost", "the GPU worker died"};
  }
  if (frame[0] == 0) return std::vector<uint8_t>(frame.begin() + 1, frame.end());
  plan::Reader reader(frame.data() + 1, frame.size() - 1);
  Error error;
  io(reader, error.kind);
  io(reader, error.message);
  return error;
}

template <class Out, class In>
Result<Out> Worker::ask(Op op, const In& in, double seconds) {
  if (child_ <= 0) return Error{"gpu-lost", "the GPU worker is gone"};
  std::vector<uint8_t> request = {static_cast<uint8_t>(op)};
  const std::vector<uint8_t> body = pack(in);
  request.insert(request.end(), body.begin(), body.end());
  if (!write_frame(socket_, request)) {
    kill();
    return Error{"gpu-lost", "the GPU worker died"};
  }
  PB_ASSIGN_OR_RETURN(const std::vector<uint8_t> answer, receive(seconds));
  return unpack<Out>(answer.data(), answer.size());
}

Result<Loaded> Worker::load(const plan::LaunchPlan& plan, bool from_ptx, bool want_images) {
  PB_ASSIGN_OR_RETURN(LoadPlan request, load_request(plan, from_ptx));
  request.want_images = want_images;
  return ask<Loaded>(Op::load_plan, request);
}

Result<Loaded> Worker::load(const LoadLibrary& library) {
  return ask<Loaded>(Op::load_library, library);
}

Result<Loaded> Worker::describe() { return ask<Loaded>(Op::describe, SetId{}); }

Result<void> Worker::upload(uint32_t set, uint32_t argument, std::span<const uint8_t> bytes,
                            bool read_only) {
  PB_ASSIGN_OR_RETURN(uint8_t * to, arena(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), to);
  BufferSetup setup{set, argument, bytes.size(), read_only, true, 0, 0};
  PB_ASSIGN_OR_RETURN(const SetId done, ask<SetId>(Op::buffer, setup));
  static_cast<void>(done);
  return {};
}

Result<void> Worker::fill(uint32_t set, uint32_t argument, uint64_t bytes, uint16_t pattern) {
  BufferSetup setup{set, argument, bytes, false, false, 0, pattern};
  PB_ASSIGN_OR_RETURN(const SetId done, ask<SetId>(Op::buffer, setup));
  static_cast<void>(done);
  return {};
}

Result<void> Worker::clone(const Clone& clone) {
  PB_ASSIGN_OR_RETURN(const SetId done, ask<SetId>(Op::clone, clone));
  static_cast<void>(done);
  return {};
}

Result<std::vector<uint64_t>> Worker::compare(const Clone& clone) {
  PB_ASSIGN_OR_RETURN(Compared compared, ask<Compared>(Op::compare, clone));
  return std::move(compared.differing);
}

Result<Ran> Worker::run(const Run& run, double seconds) { return ask<Ran>(Op::run, run, seconds); }

Result<Checked> Worker::check(uint32_t set) { return ask<Checked>(Op::check, SetId{set}); }

Result<void> Worker::download(uint32_t set, uint32_t argument, std::span<uint8_t> bytes) {
  PB_ASSIGN_OR_RETURN(uint8_t * from, arena(bytes.size()));
  PB_ASSIGN_OR_RETURN(const SetId done, ask<SetId>(Op::download, Download{set, argument, 0}));
  static_cast<void>(done);
  std::copy(from, from + bytes.size(), bytes.begin());
  return {};
}

Result<void> Worker::release(uint32_t set) {
  PB_ASSIGN_OR_RETURN(const SetId done, ask<SetId>(Op::release, SetId{set}));
  static_cast<void>(done);
  return {};
}

Result<SelfTest> Worker::self_test() { return ask<SelfTest>(Op::self_test, SetId{}, 60); }

}  // namespace ptxbench::device::cuda
