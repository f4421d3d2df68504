#include "toolchain/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <future>

#include "base/build_config.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "sandbox/sandbox.h"
#include "toolchain/build_cache.h"
#include "toolchain/passes.h"
#include "toolchain/symbols.h"
#include "toolchain/toolkit.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSource = 4 << 20;
constexpr size_t kMaxHeaders = 1000;
constexpr size_t kMaxExtraBytes = 8 << 20;
constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;

// "sm_90a": known to be a word that may stand in a command line; whether nvcc knows it, nvcc says.
bool is_arch(const std::string& arch) {
  if (arch.rfind("sm_", 0) != 0 || arch.size() < 5 || arch.size() > 8) return false;
  return std::all_of(arch.begin() + 3, arch.end(),
                     [](unsigned char c) { return std::isdigit(c) || c == 'a' || c == 'f'; });
}

// The candidate's own name where it is harmless as a file name.
std::string safe_name(const std::string& name) {
  const std::string base = fs::path(name).filename().string();
  const bool plain = !base.empty() && base.size() < 100 && base[0] != '-' && base[0] != '.' &&
                     std::all_of(base.begin(), base.end(), [](unsigned char c) {
                       return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                     });
  const bool taken =
      base.rfind("candidate.", 0) == 0 && base != "candidate.cu" && base != "candidate.ptx";
  return plain && !taken ? base : "candidate.cu";
}

// A relative path of plain names, none of which a compiler takes for an option.
bool is_plain_path(const std::string& path) {
  if (path.empty() || path.size() > 200) return false;
  const fs::path parsed(path);
  return parsed.is_relative() &&
         std::all_of(parsed.begin(), parsed.end(), [](const fs::path& part) {
           const std::string name = part.string();
           return !name.empty() && name[0] != '.' && name[0] != '-' &&
                  std::all_of(name.begin(), name.end(), [](unsigned char c) {
                    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                  });
         });
}

Result<void> check_extra_files(const CompileRequest& request) {
  if (request.extra_files.size() > kMaxHeaders)
    return Error{"usage", fmt::format("more than {} files", kMaxHeaders)};
  size_t total = 0;
  for (const auto& [name, text] : request.extra_files) {
    total += text.size();
    if (!is_plain_path(name) || name.rfind("candidate.", 0) == 0 || name == "exports.map" ||
        name == safe_name(request.file_name))
      return Error{"usage",
                   fmt::format("\"{}\" cannot be the name of a further file", name.substr(0, 80))};
  }
  if (total > kMaxExtraBytes)
    return Error{"usage", fmt::format("further files hold more than {} bytes", kMaxExtraBytes)};
  return {};
}

Result<void> check(const CompileRequest& request) {
  if (!is_arch(request.arch))
    return Error{"usage", fmt::format("unknown architecture \"{}\"", request.arch)};
  if (request.source.empty()) return Error{"usage", "the candidate is empty"};
  if (request.source.size() > kMaxSource)
    return Error{"usage", fmt::format("the candidate has {} bytes, more than {}",
                                      request.source.size(), kMaxSource)};
  if (is_probably_binary(request.source))
    return Error{"usage", fmt::format("the candidate is binary, not {} text",
                                      request.is_ptx ? "PTX" : "CUDA C++")};
  return check_extra_files(request);
}

// Hash of all headers below a folder, with their names.
Result<std::string> hash_headers(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    files.push_back(it->path());
    if (files.size() > kMaxHeaders) break;
  }
  if (error) return Error{"usage", fmt::format("{}: {}", folder.string(), error.message())};
  if (files.size() > kMaxHeaders)
    return Error{"usage", fmt::format("{}: more than {} files in an include folder",
                                      folder.string(), kMaxHeaders)};
  std::sort(files.begin(), files.end());
  Hasher hasher;
  uint64_t total = 0;
  for (const fs::path& file : files) {
    PB_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxHeaderBytes));
    total += text.size();
    if (total > kMaxHeaderBytes)
      return Error{"usage", fmt::format("{}: include folder is too large", folder.string())};
    hasher.add(file.lexically_relative(folder).string()).add(text);
  }
  return hasher.hex();
}

struct Prepared {
  PassInput input;
  std::string device_key, host_key;
};

Result<Prepared> prepare(const CompileRequest& request) {
  Prepared out;
  PassInput& input = out.input;
  PB_ASSIGN_OR_RETURN(input.toolkit, find_toolkit());
  input.source = request.source;
  input.extra_files = request.extra_files;
  input.file_name = safe_name(request.file_name);
  input.arch = request.arch;
  input.timeout_s = request.timeout_s;
  input.trust = request.trust;
  std::error_code error;
  for (const fs::path& folder : request.include_dirs) {
    const fs::path full = fs::canonical(folder, error);
    if (error) return Error{"usage", fmt::format("{}: {}", folder.string(), error.message())};
    input.include_dirs.push_back(full);
  }
  input.include_dirs.push_back(source_dir() / "include");
  input.small_headers = source_dir() / "src/toolchain/ffi";
  input.published_headers = find_tvm_ffi();
  Hasher hasher;
  hasher.add(pass_version())
      .add(request.is_ptx ? "ptx" : "cuda")
      .add(input.source)
      .add(input.file_name)
      .add(input.arch);
  hasher.add(input.toolkit.home.string()).add(input.toolkit.version);
  hasher.add(input.published_headers.string());
  for (const auto& [name, text] : input.extra_files) hasher.add(name).add(text);
  PB_ASSIGN_OR_RETURN(const std::string small, hash_headers(input.small_headers));
  hasher.add(small);
  for (const fs::path& folder : input.include_dirs) {
    PB_ASSIGN_OR_RETURN(const std::string headers, hash_headers(folder));
    hasher.add(headers);
  }
  out.device_key = hasher.hex() + "-device";
  out.host_key = hasher.hex() + "-host";
  return out;
}

struct CachedPass {
  PassOutput output;
  bool cached = false;
  double ms = 0;
  fs::path folder;  // of the cache entry
};

using Pass = Result<PassOutput> (*)(const PassInput&);

// The pass's result from the cache, or from the compilers and into the cache. A failure that
// depends on the machine (time) is not kept.
Result<CachedPass> run_cached(const BuildCache& cache, const std::string& key,
                              const PassInput& input, Pass pass) {
  const Stopwatch watch;
  CachedPass result;
  result.folder = cache.path_of(key);
  if (auto entry = cache.load(key); entry && from_json(entry->meta, &result.output)) {
    result.output.ptx = std::move(entry->files["candidate.ptx"]);
    result.output.cubin = std::move(entry->files["candidate.cubin"]);
    result.output.library = std::move(entry->files["candidate.so"]);
    result.cached = true;
    result.ms = watch.ms();
    return result;
  }
  PB_ASSIGN_OR_RETURN(result.output, pass(input));
  if (result.output.cacheable) {
    CacheEntry entry{to_json(result.output), {}};
    for (const auto& [name, contents] : {std::pair{"candidate.ptx", &result.output.ptx},
                                         std::pair{"candidate.cubin", &result.output.cubin},
                                         std::pair{"candidate.so", &result.output.library}})
      if (!contents->empty()) entry.files[name] = *contents;
    PB_ASSIGN_OR_RETURN(result.folder, cache.store(key, entry));
  }
  result.ms = watch.ms();
  return result;
}

bool same(const Diagnostic& a, const Diagnostic& b) {
  return a.severity == b.severity && a.file == b.file && a.line == b.line && a.text == b.text;
}

// Both passes read the same source and often say the same; the device pass speaks first.
void add_new(const std::vector<Diagnostic>& from, std::vector<Diagnostic>* to) {
  for (const Diagnostic& d : from) {
    if (std::none_of(to->begin(), to->end(), [&](const Diagnostic& o) { return same(o, d); }))
      to->push_back(d);
  }
}

void errors_first(std::vector<Diagnostic>* diagnostics) {
  const auto rank = [](const Diagnostic& d) {
    switch (d.severity) {
      case Diagnostic::Severity::error:
        return 0;
      case Diagnostic::Severity::advisory:
        return 1;
      case Diagnostic::Severity::warning:
        return 2;
      default:
        return 3;
    }
  };
  std::stable_sort(diagnostics->begin(), diagnostics->end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return rank(a) < rank(b); });
}

Result<CompiledCandidate> merge(CachedPass device, CachedPass host) {
  CompiledCandidate out;
  const bool assembled = device.cached || device.output.assemble_ms > 0;
  out.stages.push_back({"compile.device", device.ms - device.output.assemble_ms, device.cached});
  if (assembled) out.stages.push_back({"assemble", device.output.assemble_ms, device.cached});
  out.stages.push_back({"compile.host", host.ms, host.cached});
  out.failure_reason = !device.output.failure_reason.empty() ? device.output.failure_reason
                                                             : host.output.failure_reason;
  add_new(device.output.diagnostics, &out.diagnostics);
  add_new(host.output.diagnostics, &out.diagnostics);
  out.kernels = std::move(device.output.kernels);
  out.published_headers = host.output.published_headers;
  out.ptx = std::move(device.output.ptx);
  out.cubin.assign(device.output.cubin.begin(), device.output.cubin.end());
  if (host.output.failure_reason.empty()) {
    const std::string& library = host.output.library;
    PB_ASSIGN_OR_RETURN(
        SymbolReport report,
        check_symbols({reinterpret_cast<const uint8_t*>(library.data()), library.size()}, out.ptx));
    if (out.failure_reason.empty()) out.failure_reason = report.failure_reason;
    add_new(report.diagnostics, &out.diagnostics);
    out.host_library = host.folder / "candidate.so";
  }
  out.ok = out.failure_reason.empty();
  if (!out.ok && std::none_of(out.diagnostics.begin(), out.diagnostics.end(), [](const auto& d) {
        return d.severity == Diagnostic::Severity::error;
      }))
    return Error{"infrastructure", "the compilers disagree: one pass failed without a reason"};
  errors_first(&out.diagnostics);
  return out;
}

// PTX needs no host pass: there is no host code.
Result<CompiledCandidate> assemble_only(const BuildCache& cache, const Prepared& prepared) {
  PB_ASSIGN_OR_RETURN(CachedPass pass,
                      run_cached(cache, prepared.device_key, prepared.input, ptx_pass));
  CompiledCandidate out;
  out.stages.push_back({"assemble", pass.ms, pass.cached});
  out.failure_reason = pass.output.failure_reason;
  out.ok = out.failure_reason.empty();
  out.diagnostics = std::move(pass.output.diagnostics);
  errors_first(&out.diagnostics);
  out.kernels = std::move(pass.output.kernels);
  out.ptx = std::move(pass.output.ptx);
  out.cubin.assign(pass.output.cubin.begin(), pass.output.cubin.end());
  return out;
}

}  // namespace

fs::path default_cache_dir() {
  const auto environment = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const std::string own = environment("PTXBENCH_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty())
    return fs::path(xdg) / "ptxbench";
  const std::string home = environment("HOME");
  return fs::path(home.empty() ? "/tmp" : home) / ".cache/ptxbench";
}

Result<CompiledCandidate> compile(const CompileRequest& request) {
  PB_RETURN_IF_ERROR(check(request));
  if (!request.trust) PB_RETURN_IF_ERROR(sandbox::available());
  PB_ASSIGN_OR_RETURN(const Prepared prepared, prepare(request));
  const BuildCache cache((request.cache_dir.empty() ? default_cache_dir() : request.cache_dir) /
                         "compile");
  if (request.is_ptx) return assemble_only(cache, prepared);
  auto host = std::async(std::launch::async, [&] {
    return run_cached(cache, prepared.host_key, prepared.input, host_pass);
  });
  auto device = run_cached(cache, prepared.device_key, prepared.input, device_pass);
  auto host_result = host.get();
  if (!device.ok()) return device.error();
  if (!host_result.ok()) return host_result.error();
  for (const Diagnostic& d : device->output.diagnostics)
    if (d.tool == "nvcc" && d.text.find("Unsupported gpu architecture") != std::string::npos)
      return Error{"usage", d.text};
  return merge(device.take(), host_result.take());
}

}  // namespace ptxbench::toolchain
