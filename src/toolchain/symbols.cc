#include "toolchain/symbols.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "base/demangle.h"
#include "toolchain/elf.h"

namespace ptxbench::toolchain {
namespace {

struct Prefix {
  std::string_view prefix, what;
};

// A prefix counts if what follows starts a new word: an upper-case letter, '_' or the end.
constexpr Prefix kLibraries[] = {
    {"cublasLt", "the library cuBLASLt"}, {"cublasXt", "the library cuBLAS"},
    {"cublas", "the library cuBLAS"},     {"cudnn", "the library cuDNN"},
    {"cufft", "the library cuFFT"},       {"cusparse", "the library cuSPARSE"},
    {"cusolver", "the library cuSOLVER"}, {"curand", "the library cuRAND"},
    {"cutensor", "the library cuTENSOR"}, {"nccl", "the library NCCL"},
    {"nvrtc", "run-time compilation"},    {"nvJitLink", "run-time compilation"},
};

constexpr Prefix kFunctions[] = {
    {"pthread_create", "a host thread"},
    {"thrd_create", "a host thread"},
    {"fork", "a child process"},
    {"vfork", "a child process"},
    {"clone", "a child process"},
    {"execve", "a child process"},
    {"execv", "a child process"},
    {"execvp", "a child process"},
    {"execl", "a child process"},
    {"execlp", "a child process"},
    {"posix_spawn", "a child process"},
    {"posix_spawnp", "a child process"},
    {"system", "a child process"},
    {"popen", "a child process"},
    {"socket", "network access"},
    {"connect", "network access"},
    {"bind", "network access"},
    {"listen", "network access"},
    {"accept", "network access"},
    {"sendto", "network access"},
    {"recvfrom", "network access"},
    {"getaddrinfo", "network access"},
    {"gethostbyname", "network access"},
    {"open", "file access"},
    {"open64", "file access"},
    {"openat", "file access"},
    {"openat64", "file access"},
    {"creat", "file access"},
    {"fopen", "file access"},
    {"fopen64", "file access"},
    {"freopen", "file access"},
    {"freopen64", "file access"},
    {"opendir", "file access"},
    {"unlink", "file access"},
    {"rename", "file access"},
    {"remove", "file access"},
    {"tmpfile", "file access"},
    {"mkstemp", "file access"},
    {"shm_open", "file access"},
    {"syscall", "a raw system call"},
    {"ptrace", "a raw system call"},
    {"process_vm_readv", "a raw system call"},
};

// The C++ standard library's ways to the same things (mangled).
constexpr Prefix kMangled[] = {
    {"_ZNSt6thread15_M_start_thread", "a host thread"},
    {"_ZNSt13basic_filebuf", "file access"},
    {"_ZNSt14basic_ifstream", "file access"},
    {"_ZNSt14basic_ofstream", "file access"},
    {"_ZNSt13basic_fstream", "file access"},
    {"_ZNSt10filesystem", "file access"},
};

// Kernels that only exist because a header-only library's device-wide algorithm was called.
constexpr Prefix kKernels[] = {
    {"_ZN3cub", "a device-wide algorithm of the library CUB"},
    {"_ZN6thrust", "a device-wide algorithm of the library Thrust"},
    {"_ZN7cutlass", "a device-level kernel of the library CUTLASS"},
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Provided by the process that loads the library, without a symbol version.
bool provided(std::string_view name) {
  const bool driver = starts_with(name, "cu") && name.size() > 2 &&
                      std::isupper(static_cast<unsigned char>(name[2]));
  return driver || starts_with(name, "TVMFFI") || starts_with(name, "cuda") ||
         starts_with(name, "__cuda") || starts_with(name, "_ZN3tvm3ffi") ||
         starts_with(name, "_ZNK3tvm3ffi");
}

// Names behind ".entry" (kernels) and ".extern .func" (functions no one defined) in PTX.
std::set<std::string> names_after(std::string_view ptx, std::string_view directive) {
  std::set<std::string> out;
  for (size_t at = ptx.find(directive); at != std::string_view::npos;
       at = ptx.find(directive, at + 1)) {
    size_t begin = at + directive.size();
    while (begin < ptx.size() && std::isspace(static_cast<unsigned char>(ptx[begin]))) ++begin;
    if (begin < ptx.size() && ptx[begin] == '(') {  // the return value's declaration
      begin = std::min(ptx.find(')', begin), ptx.size() - 1) + 1;
      while (begin < ptx.size() && std::isspace(static_cast<unsigned char>(ptx[begin]))) ++begin;
    }
    size_t end = begin;
    while (end < ptx.size() && (std::isalnum(static_cast<unsigned char>(ptx[end])) ||
                                ptx[end] == '_' || ptx[end] == '$' || ptx[end] == '%'))
      ++end;
    if (end > begin) out.emplace(ptx.substr(begin, end - begin));
  }
  return out;
}

Diagnostic error(std::string text) {
  return {Diagnostic::Severity::error, "linker", "", 0, 0, "", std::move(text), 0, ""};
}

void check_kernels(std::string_view ptx, SymbolReport* report) {
  for (const std::string& name : names_after(ptx, ".entry")) {
    for (const Prefix& kernel : kKernels) {
      if (!starts_with(name, kernel.prefix)) continue;
      report->failure_reason = "banned-call";
      report->diagnostics.push_back(
          error(fmt::format("banned: {} ({})", kernel.what, demangle(name))));
    }
  }
  for (const std::string& name : names_after(ptx, ".extern .func")) {
    if (!starts_with(name, "cudaLaunchDevice") && !starts_with(name, "cudaGetParameterBuffer") &&
        !starts_with(name, "__cudaCDP"))
      continue;
    report->failure_reason = "banned-call";
    report->diagnostics.push_back(
        error(fmt::format("banned: a kernel launches kernels itself ({})", name)));
  }
}

}  // namespace

std::string banned_because(std::string_view symbol) {
  for (const Prefix& library : kLibraries) {
    if (!starts_with(symbol, library.prefix)) continue;
    const std::string_view rest = symbol.substr(library.prefix.size());
    if (rest.empty() || rest[0] == '_' || std::isupper(static_cast<unsigned char>(rest[0])))
      return std::string(library.what);
  }
  for (const Prefix& function : kFunctions)
    if (symbol == function.prefix) return std::string(function.what);
  for (const Prefix& mangled : kMangled)
    if (starts_with(symbol, mangled.prefix)) return std::string(mangled.what);
  return "";
}

Result<SymbolReport> check_symbols(std::span<const uint8_t> host_library, std::string_view ptx) {
  PB_ASSIGN_OR_RETURN(const ElfFile elf, read_elf(host_library));
  SymbolReport report;
  for (const ElfSymbol& symbol : elf.dynamic_symbols) {
    if (symbol.defined || symbol.name.empty()) continue;
    if (const std::string why = banned_because(symbol.name); !why.empty()) {
      report.failure_reason = "banned-call";
      report.diagnostics.push_back(
          error(fmt::format("banned: host code calls {} ({})", why, demangle(symbol.name))));
    } else if (!symbol.weak && symbol.version.empty() && !provided(symbol.name)) {
      if (report.failure_reason.empty()) report.failure_reason = "undefined-symbol";
      report.diagnostics.push_back(error(fmt::format(
          "undefined: host code uses {}, which nothing defines", demangle(symbol.name))));
    }
  }
  check_kernels(ptx, &report);
  return report;
}

}  // namespace ptxbench::toolchain
