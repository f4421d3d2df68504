// ptxbench-host REQUEST: runs in the sandbox, loads a candidate's host library against the
// recording runtime and calls its entry point once. Everything it reports goes into the recording
// file.
//
// The two recordings of a candidate are compared byte by byte, so the process makes what
// uninitialised memory contains reproducible: no address randomisation, a fixed stack-protector
// canary, a cleared stack, freed heap blocks overwritten.
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cudart/host/tvm_abi.h"
#include "cudart/lib/backend.h"
#include "cudart/wire.h"

namespace {

using namespace ptxbench::cudart;

constexpr int kUsage = 2, kBroken = 3;

bool read_all(const char* path, std::vector<uint8_t>* out) {
  FILE* file = std::fopen(path, "rb");
  if (!file) return false;
  uint8_t buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    out->insert(out->end(), buffer, buffer + n);
  const bool good = !std::ferror(file);
  std::fclose(file);
  return good;
}

// Turns address randomisation off for this process; needs a fresh start. Where that is forbidden,
// recording works, only padding bytes may differ between the two processes.
void fix_addresses(char** argv) {
  const int now = personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) || std::getenv("PTXBENCH_HOST_FIXED")) return;
  if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  setenv("PTXBENCH_HOST_FIXED", "1", 1);
  execv(argv[0], argv);  // an absolute path; /proc need not be there
}

void fix_canary() {
#if defined(__x86_64__)
  const uint64_t canary = 0x5a5a5a5a5a5a5a00u;
  asm volatile("movq %0, %%fs:0x28" : : "r"(canary));
#endif
}

void on_fault(int signal_number, siginfo_t* info, void*) {
  ptxbench_record_touched(reinterpret_cast<uint64_t>(info->si_addr));
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void catch_faults() {
  static uint8_t stack[65536];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

std::string raised_kind, raised_message;  // through TVMFFIErrorSetRaisedFromCStr below

// The error that a TVM-FFI function left behind. `library` may define the accessor itself.
void report_error(void* library) {
  if (!raised_kind.empty() || !raised_message.empty()) {
    ptxbench_finish_recording(wire::Finish::error, raised_kind.c_str(), raised_message.c_str());
    return;
  }
  using MoveFromRaised = void (*)(tvm_abi::Object**);
  auto take = reinterpret_cast<MoveFromRaised>(dlsym(library, "TVMFFIErrorMoveFromRaised"));
  if (!take)
    take = reinterpret_cast<MoveFromRaised>(dlsym(RTLD_DEFAULT, "TVMFFIErrorMoveFromRaised"));
  tvm_abi::Object* object = nullptr;
  if (take) take(&object);
  if (!object) {
    ptxbench_finish_recording(wire::Finish::error, "Error",
                              "the host function reported an error without a text");
    return;
  }
  const auto* cell = reinterpret_cast<const tvm_abi::ErrorCell*>(object + 1);
  const std::string kind(cell->kind.data, cell->kind.size),
      message(cell->message.data, cell->message.size);
  ptxbench_finish_recording(wire::Finish::error, kind.c_str(), message.c_str());
}

[[gnu::noinline]] void clear_stack() {
  uint8_t area[512 << 10];
  explicit_bzero(area, sizeof area);
}

int call_entry(void* library, const wire::Request& request,
               const std::vector<uint64_t>& addresses) {
  const auto entry = reinterpret_cast<tvm_abi::SafeCall>(dlsym(library, request.entry.c_str()));
  if (!entry) {
    ptxbench_finish_recording(wire::Finish::no_entry, "", request.entry.c_str());
    return 0;
  }
  std::vector<tvm_abi::Tensor> tensors(request.arguments.size());
  std::vector<std::vector<int64_t>> strides(tensors.size());
  std::vector<tvm_abi::Any> arguments;
  auto scalar = request.scalars.begin();
  const auto add_scalars = [&] {
    for (; scalar != request.scalars.end() && scalar->position == arguments.size(); ++scalar)
      arguments.push_back({.type_index = scalar->type_index, .padding = 0, .bits = scalar->bits});
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const wire::ArgumentInfo& a = request.arguments[i];
    strides[i].resize(a.shape.size());
    int64_t step = 1;
    for (size_t d = a.shape.size(); d-- > 0; step *= a.shape[d]) strides[i][d] = step;
    tensors[i] = {.data = reinterpret_cast<void*>(addresses[i]),
                  .device = {.type = tvm_abi::kCuda, .id = 0},
                  .ndim = static_cast<int32_t>(a.shape.size()),
                  .dtype = {.code = a.dtype_code, .bits = a.dtype_bits, .lanes = 1},
                  .shape = a.shape.data(),
                  .strides = strides[i].data(),
                  .byte_offset = 0};
    add_scalars();
    arguments.push_back(
        {.type_index = tvm_abi::kDLTensorPtr, .padding = 0, .pointer = &tensors[i]});
  }
  add_scalars();
  tvm_abi::Any result{};
  clear_stack();
  const int status =
      entry(nullptr, arguments.data(), static_cast<int32_t>(arguments.size()), &result);
  if (status == 0)
    ptxbench_finish_recording(wire::Finish::returned, "", "");
  else
    report_error(library);
  return 0;
}

}  // namespace

// What a host library needs of the TVM-FFI runtime when it was built with this project's small
// headers.
extern "C" __attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStr(
    const char* kind, const char* message) {
  raised_kind = kind ? kind : "Error";
  raised_message = message ? message : "";
}
extern "C" __attribute__((visibility("default"))) void* TVMFFIEnvGetStream(int32_t, int32_t) {
  return nullptr;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: ptxbench-host REQUEST\n", stderr);
    return kUsage;
  }
  fix_addresses(argv);
  std::vector<uint8_t> bytes;
  static wire::Request request;
  if (!read_all(argv[1], &bytes) || !wire::read_request(bytes, &request)) {
    std::fputs("ptxbench-host: unreadable request\n", stderr);
    return kUsage;
  }
  fix_canary();
  mallopt(M_PERTURB, 0x55);
  std::vector<uint64_t> addresses(request.arguments.size());
  if (!ptxbench_start_recording(&request, addresses.data())) {
    std::perror(request.recording.c_str());
    return kBroken;
  }
  if (!request.tvm_ffi.empty() && !dlopen(request.tvm_ffi.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    std::fprintf(stderr, "ptxbench-host: %s\n", dlerror());
    return kBroken;
  }
  catch_faults();
  // On a thread of its own: its stack starts out as zeros and inherits the fixed canary.
  std::thread([&] {
    if (void* library = dlopen(request.library.c_str(), RTLD_NOW | RTLD_LOCAL))
      call_entry(library, request, addresses);
    else
      ptxbench_finish_recording(wire::Finish::not_loadable, "", dlerror());
    _exit(0);  // no destructors or exit handlers of the candidate
  }).join();
}
