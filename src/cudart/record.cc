#include "cudart/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/build_config.h"
#include "base/files.h"
#include "base/temp_dir.h"
#include "cudart/host/tvm_abi.h"
#include "cudart/merge.h"
#include "sandbox/sandbox.h"
#include "toolchain/elf.h"

namespace ptxbench::cudart {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxRecordingBytes = uint64_t{1} << 30;
constexpr uint64_t kClockSkew = 400 * 86400 + 12345;  // of the second run, seconds

struct Dtype {
  const char* name;
  uint8_t code, bits;  // DLPack 1.x type codes
};
constexpr Dtype kDtypes[] = {
    {"float64", 2, 64}, {"float32", 2, 32},       {"float16", 2, 16},     {"bfloat16", 4, 16},
    {"int64", 0, 64},   {"int32", 0, 32},         {"int16", 0, 16},       {"int8", 0, 8},
    {"uint64", 1, 64},  {"uint32", 1, 32},        {"uint16", 1, 16},      {"uint8", 1, 8},
    {"bool", 6, 8},     {"float8_e4m3fn", 10, 8}, {"float8_e5m2", 12, 8}, {"float8_e8m0fnu", 14, 8},
};

Result<wire::ArgumentInfo> describe(const TensorArgument& argument) {
  wire::ArgumentInfo out;
  out.name = argument.name;
  for (const Dtype& dtype : kDtypes)
    if (argument.dtype == dtype.name) {
      out.dtype_code = dtype.code;
      out.dtype_bits = dtype.bits;
    }
  if (out.dtype_bits == 0)
    return Error{"usage", fmt::format("argument {}: unknown data type \"{}\"", argument.name,
                                      argument.dtype)};
  uint64_t elements = 1;
  for (int64_t extent : argument.shape) {
    if (extent < 0 ||
        (extent > 0 && elements > (uint64_t{1} << 40) / static_cast<uint64_t>(extent)))
      return Error{"usage", fmt::format("argument {}: impossible shape", argument.name)};
    elements *= static_cast<uint64_t>(extent);
  }
  out.shape = argument.shape;
  out.bytes = elements * out.dtype_bits / 8;
  if (!argument.host_bytes.empty() && argument.host_bytes.size() != out.bytes)
    return Error{"usage", fmt::format("argument {}: {} bytes of contents for a tensor of {}",
                                      argument.name, argument.host_bytes.size(), out.bytes)};
  out.host_bytes = argument.host_bytes;
  return out;
}

// libtvm_ffi.so, for candidates that were linked against it; empty if there is none.
fs::path find_tvm_ffi() {
  std::vector<fs::path> roots;
  if (const char* home = std::getenv("PTXBENCH_TVM_FFI_HOME")) roots.emplace_back(home);
  std::error_code error;
  for (const auto& python : fs::directory_iterator(venv_dir() / "lib", error))
    roots.push_back(python.path() / "site-packages" / "tvm_ffi");
  for (const fs::path& root : roots)
    for (const char* place : {"lib/libtvm_ffi.so", "libtvm_ffi.so"})
      if (fs::exists(root / place, error)) return fs::canonical(root / place, error);
  return {};
}

struct Run {
  sandbox::Outcome process;
  Recording recording;
};

struct Setup {
  fs::path program, libraries, tvm_ffi;
  bool static_runtime = false;  // device code, but no reference to a shared CUDA runtime
  wire::Request wire;
};

Result<Run> run_once(const RecordRequest& request, const Setup& setup, const fs::path& folder,
                     uint64_t base, uint64_t skew) {
  wire::Request wire = setup.wire;
  const fs::path out = folder / "out";
  std::error_code error;
  fs::create_directories(out, error);
  wire.recording = (out / "recording").string();
  wire.base = base;
  wire.clock_skew_s = skew;
  const fs::path request_file = folder / "request";
  PB_RETURN_IF_ERROR(
      write_file_atomically(request_file, std::span<const uint8_t>(wire::write_request(wire))));

  sandbox::Command command;
  command.argv = {setup.program.string(), request_file.string()};
  command.environment = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/tmp"}, {"LC_ALL", "C"}};
  command.read_only = {setup.program.parent_path(), setup.libraries, setup.wire.library,
                       request_file};
  if (!setup.tvm_ffi.empty()) command.read_only.push_back(setup.tvm_ffi.parent_path());
  command.writable = {out};
  command.wall_s = request.timeout_s;
  command.memory_bytes = request.memory_bytes;
  command.file_bytes = kMaxRecordingBytes;
  command.output_bytes = 64 << 10;
  command.processes = 64;
  command.trust = request.trust;
  Run run;
  PB_ASSIGN_OR_RETURN(run.process, sandbox::run(command));
  const auto bytes = sandbox::read_untrusted_file(wire.recording, kMaxRecordingBytes);
  if (!bytes.ok()) {
    if (run.process.timed_out || run.process.signal != 0) return run;
    return Error{
        "infrastructure",
        fmt::format("the host process left no recording: {}{}", bytes.error().message,
                    run.process.err.empty() ? "" : " (" + run.process.err.substr(0, 300) + ")")};
  }
  PB_ASSIGN_OR_RETURN(run.recording, parse_recording(*bytes));
  return run;
}

std::string touched_text(const Recording& recording, const RecordRequest& request) {
  for (const RecordedBuffer& buffer : recording.buffers)
    if (recording.touched - buffer.address < std::max<uint64_t>(buffer.bytes, 1))
      return buffer.kind == wire::BufferKind::argument && buffer.argument < request.arguments.size()
                 ? fmt::format("argument {}", request.arguments[buffer.argument].name)
                 : "a buffer on the device";
  return "a device address";
}

std::string quoted_stderr(const sandbox::Outcome& process) {
  std::string text = process.err.substr(0, 300);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  text.erase(text.find_last_not_of(' ') + 1);
  return text.empty() ? "" : fmt::format(" (stderr: {})", text);
}

// What went wrong in one run; an empty reason if nothing did.
Complaint judge(const Run& run, const RecordRequest& request) {
  const Recording& r = run.recording;
  const sandbox::Outcome& p = run.process;
  if (p.timed_out)
    return {"host-timeout",
            fmt::format("the host function did not return within {:g} s", request.timeout_s)};
  if (r.touched != 0)
    return {
        "host-crash",
        fmt::format(
            "host code read or wrote {} directly; device memory is not accessible from the host",
            touched_text(r, request))};
  if (p.signal != 0)
    return {"host-crash", fmt::format("host code was ended by signal {} ({}){}", p.signal,
                                      strsignal(p.signal), quoted_stderr(p))};
  if (!r.finished)
    return {"host-crash",
            fmt::format(
                "host code ended the process (exit status {}) before the host function returned{}",
                p.exit_code, quoted_stderr(p))};
  switch (r.finish) {
    case wire::Finish::no_entry:
      return {"entry-point-missing",
              fmt::format(
                  "the library does not export {}; the export macro must name the function \"{}\"",
                  r.error_message, request.entry_point)};
    case wire::Finish::not_loadable:
      return {"host-crash", "the host library cannot be loaded: " + r.error_message};
    case wire::Finish::error: {
      if (r.error_kind == "TypeError" && r.error_message.find("Mismatched") != std::string::npos)
        return {"wrong-arguments", r.error_message};
      if (!r.complaints.empty()) return r.complaints.front();
      return {"host-exception", fmt::format("{}: {}", r.error_kind, r.error_message)};
    }
    case wire::Finish::returned:
      break;
  }
  return r.complaints.empty() ? Complaint{} : r.complaints.front();
}

Result<Setup> prepare(const RecordRequest& request, const KernelTable& table) {
  Setup setup;
  std::error_code error;
  setup.program = fs::canonical(build_dir() / "bin" / "ptxbench-host", error);
  if (error) return Error{"infrastructure", "ptxbench-host is missing beside this program's build"};
  setup.libraries = fs::canonical(build_dir() / "lib", error);
  PB_ASSIGN_OR_RETURN(const std::vector<uint8_t> library, read_bytes(request.host_library));
  if (const auto elf = toolchain::read_elf(library); elf.ok()) {
    const auto needs = [&](std::string_view name) {
      return std::ranges::any_of(elf->needed,
                                 [&](const std::string& lib) { return lib.starts_with(name); });
    };
    setup.static_runtime = elf->section(".nv_fatbin") != nullptr && !needs("libcudart.so");
    if (needs("libtvm_ffi.so")) setup.tvm_ffi = find_tvm_ffi();
    if (needs("libtvm_ffi.so") && setup.tvm_ffi.empty())
      return Error{"infrastructure",
                   "the candidate needs libtvm_ffi.so, which is not installed: run the set-up or "
                   "set PTXBENCH_TVM_FFI_HOME"};
  }
  wire::Request& wire = setup.wire;
  wire.library = fs::absolute(request.host_library).string();
  wire.tvm_ffi = setup.tvm_ffi.string();
  wire.entry = "__tvm_ffi_" + request.entry_point;
  wire.profile = request.device_profile;
  wire.ptx_target = table.target;
  wire.sm_count = request.sm_count > 0 ? static_cast<uint32_t>(request.sm_count) : 0;
  wire.kernels = table.kernels;
  for (const TensorArgument& argument : request.arguments) {
    PB_ASSIGN_OR_RETURN(wire::ArgumentInfo info, describe(argument));
    wire.arguments.push_back(std::move(info));
  }
  for (const ScalarArgument& scalar : request.scalars) {
    using Kind = ScalarArgument::Kind;
    const bool floating = scalar.kind == Kind::floating;
    wire.scalars.push_back({scalar.position,
                            floating                       ? tvm_abi::kFloat
                            : scalar.kind == Kind::boolean ? tvm_abi::kBool
                                                           : tvm_abi::kInt,
                            floating ? std::bit_cast<uint64_t>(scalar.value)
                                     : static_cast<uint64_t>(static_cast<int64_t>(scalar.value))});
  }
  return setup;
}

RecordOutcome decide(const Run& a, const Run& b, const RecordRequest& request,
                     const KernelTable& table) {
  RecordOutcome outcome;
  Complaint x = judge(a, request), y = judge(b, request);
  if (x.reason.empty() && y.reason.empty()) return merge(a.recording, b.recording, request, table);
  if (x.reason != y.reason && x.reason != "host-timeout" && y.reason != "host-timeout") {
    const auto text = [](const Complaint& c) { return c.reason.empty() ? "returned" : c.message; };
    outcome.reason = "host-nondeterministic";
    outcome.message = fmt::format("two runs ended differently: {}; {}", text(x), text(y));
    return outcome;
  }
  Complaint& worse = x.reason.empty() || y.reason == "host-timeout" ? y : x;
  outcome.reason = std::move(worse.reason);
  outcome.message = std::move(worse.message);
  return outcome;
}

}  // namespace

uint64_t byte_size(const TensorArgument& argument) {
  const auto info = describe(argument);
  return info.ok() ? info->bytes : 0;
}

Result<RecordOutcome> record(const RecordRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  PB_ASSIGN_OR_RETURN(const KernelTable table, build_kernel_table(request.ptx, request.cubin));
  PB_ASSIGN_OR_RETURN(const Setup setup, prepare(request, table));
  if (setup.static_runtime) {
    RecordOutcome outcome;
    outcome.reason = "unsupported-runtime-call";
    outcome.message =
        "the host library contains a static CUDA runtime, which cannot be recorded: link it with "
        "-cudart shared";
    return outcome;
  }
  PB_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create("record"));
  std::optional<Result<Run>> second;
  std::thread other(
      [&] { second = run_once(request, setup, folder.path() / "b", kBaseB, kClockSkew); });
  Result<Run> first = run_once(request, setup, folder.path() / "a", kBaseA, 0);
  other.join();
  RecordOutcome outcome;
  for (const Result<Run>* run : {&first, &*second}) {
    if (run->ok()) continue;
    if (run->error().kind != "bad-recording") return run->error();
    outcome.reason = "host-crash";
    outcome.message = run->error().message;
  }
  if (outcome.reason.empty()) outcome = decide(*first, **second, request, table);
  outcome.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace ptxbench::cudart
