#include "toolchain/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/temp_dir.h"
#include "sandbox/sandbox.h"
#include "toolchain/diagnostics.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;
using Severity = Diagnostic::Severity;

constexpr uint64_t kMaxProduct = uint64_t{64} << 20;
constexpr uint64_t kCompilerMemory = uint64_t{6} << 30;

// A working folder with the candidate in it, and commands run there.
class Workplace {
 public:
  static Result<Workplace> create(const PassInput& input) {
    PB_ASSIGN_OR_RETURN(TempDir directory, TempDir::create("compile"));
    for (const auto& [name, text] : input.extra_files) {
      const fs::path file = directory.path() / name;
      std::error_code error;
      fs::create_directories(file.parent_path(), error);
      PB_RETURN_IF_ERROR(write_file_atomically(file, text));
    }
    PB_RETURN_IF_ERROR(write_file_atomically(directory.path() / input.file_name, input.source));
    return Workplace(input, std::move(directory));
  }

  Result<sandbox::Outcome> run(std::vector<std::string> argv) const {
    sandbox::Command command;
    command.argv = std::move(argv);
    command.environment = {{"PATH", (input_.toolkit.home / "bin").string() + ":/usr/bin:/bin"},
                           {"HOME", "/tmp"},
                           {"TMPDIR", "/tmp"},
                           {"LC_ALL", "C"}};
    command.read_only = toolkit_folders(input_.toolkit);
    command.read_only.insert(command.read_only.end(), input_.include_dirs.begin(),
                             input_.include_dirs.end());
    if (!input_.small_headers.empty()) command.read_only.push_back(input_.small_headers);
    if (!input_.published_headers.empty()) command.read_only.push_back(input_.published_headers);
    for (const fs::path& library : libraries_)
      if (library.string().rfind("/usr/", 0) != 0) command.read_only.push_back(library);
    command.writable = {path()};
    command.working_directory = path();
    command.wall_s = input_.timeout_s;
    command.memory_bytes = kCompilerMemory;
    command.trust = input_.trust;
    return sandbox::run(command);
  }

  void add_library(const fs::path& path) { libraries_.push_back(path); }
  const std::vector<fs::path>& libraries() const { return libraries_; }
  const fs::path& path() const { return directory_.path(); }
  Result<std::string> product(const std::string& name) const {
    return sandbox::read_untrusted_file(path() / name, kMaxProduct);
  }

 private:
  Workplace(const PassInput& input, TempDir directory)
      : input_(input), directory_(std::move(directory)) {}

  const PassInput& input_;
  TempDir directory_;
  std::vector<fs::path> libraries_;
};

std::vector<std::string> nvcc_command(const PassInput& input, bool published) {
  std::vector<std::string> out = {input.toolkit.nvcc.string(), "-x", "cu", "-std=c++20",
                                  "--display-error-number"};
  out.push_back("-I" +
                (published ? input.published_headers / "include" : input.small_headers).string());
  for (const fs::path& folder : input.include_dirs) out.push_back("-I" + folder.string());
  return out;
}

// First lines of what a tool said, for when nothing of it could be parsed.
std::string excerpt(const std::string& text) {
  std::string out = text.substr(0, 1000);
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

bool has_error(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

// What a compiler's end means. False: the pass is over.
bool accept(const sandbox::Outcome& outcome, const char* tool, double timeout_s,
            PassOutput* output) {
  const auto fail = [&](const char* reason, std::string text) {
    output->failure_reason = reason;
    output->diagnostics.push_back({Severity::error, tool, "", 0, 0, "", std::move(text), 0, ""});
  };
  if (outcome.timed_out) {
    output->cacheable = false;
    fail("compiler-timeout", fmt::format("{} took more than {} s", tool, timeout_s));
    return false;
  }
  if (outcome.signal != 0) {
    output->cacheable = false;
    fail("compiler-crash", fmt::format("{} was ended by signal {}", tool, outcome.signal));
    return false;
  }
  if (outcome.exit_code == 0) return true;
  for (const Diagnostic& d : output->diagnostics) {
    if (d.tool != "nvcc" || d.text.find("died due to signal") == std::string::npos) continue;
    output->cacheable = false;
    output->failure_reason = "compiler-crash";
    return false;
  }
  if (!has_error(output->diagnostics)) {
    const std::string said = excerpt(outcome.err.empty() ? outcome.out : outcome.err);
    fail("does-not-compile",
         said.empty()
             ? fmt::format("{} failed without a message (exit code {})", tool, outcome.exit_code)
             : said);
  }
  if (output->failure_reason.empty()) output->failure_reason = "does-not-compile";
  return false;
}

// A product too large to be kept is the candidate's doing. True: the pass is over.
bool too_large(const Workplace& place, const char* name, const char* tool, PassOutput* output) {
  std::error_code error;
  const uint64_t size = fs::file_size(place.path() / name, error);
  if (error || size <= kMaxProduct) return false;
  output->failure_reason = "does-not-compile";
  output->diagnostics.push_back(
      {Severity::error, tool, "", 0, 0, "",
       fmt::format("{} would have {} bytes, more than {}", name, size, kMaxProduct), 0, ""});
  return true;
}

// The folder's random name must not reach what is cached and hashed.
std::string without_folder(std::string text, const fs::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
    text.erase(at, prefix.size());
  return text;
}

Result<void> assemble(const PassInput& input, const Workplace& place, PassOutput* output) {
  PB_RETURN_IF_ERROR(write_file_atomically(place.path() / "candidate.ptx", output->ptx));
  PB_ASSIGN_OR_RETURN(const sandbox::Outcome outcome,
                      place.run({input.toolkit.ptxas.string(), "-v", "-lineinfo",
                                 "-arch=" + input.arch, "-o", "candidate.cubin", "candidate.ptx"}));
  output->assemble_ms = outcome.wall_ms;
  const LineMap lines(output->ptx);
  AssemblerReport report = parse_ptxas(outcome.err + outcome.out, lines, input.arch);
  output->kernels = std::move(report.kernels);
  output->diagnostics.insert(output->diagnostics.end(), report.diagnostics.begin(),
                             report.diagnostics.end());
  if (!accept(outcome, "ptxas", input.timeout_s, output)) {
    if (report.wrong_target && output->failure_reason == "does-not-compile")
      output->failure_reason = "wrong-target";
    return {};
  }
  if (too_large(place, "candidate.cubin", "ptxas", output)) return {};
  PB_ASSIGN_OR_RETURN(output->cubin, place.product("candidate.cubin"));
  return {};
}

// nvcc has ptxas check the PTX that it writes. What ptxas dislikes is told by our own run of it,
// with lines mapped to the source.
bool only_assembler_failed(const sandbox::Outcome& outcome, const std::vector<Diagnostic>& said) {
  if (outcome.timed_out || outcome.signal != 0 || outcome.exit_code == 0) return false;
  return outcome.err.find("ptxas") != std::string::npos &&
         std::none_of(said.begin(), said.end(), [](const Diagnostic& d) {
           return d.severity == Severity::error && d.tool != "nvcc";
         });
}

Result<PassOutput> device_attempt(const PassInput& input, bool published) {
  PB_ASSIGN_OR_RETURN(const Workplace place, Workplace::create(input));
  std::vector<std::string> command = nvcc_command(input, published);
  for (const char* word : {"-ptx", "-lineinfo"}) command.emplace_back(word);
  command.push_back("-arch=" + input.arch);
  command.insert(command.end(), {"-o", "candidate.ptx", input.file_name});
  PB_ASSIGN_OR_RETURN(const sandbox::Outcome outcome, place.run(command));
  PassOutput output;
  output.published_headers = published;
  output.compile_ms = outcome.wall_ms;
  output.diagnostics = parse_nvcc(outcome.err + outcome.out);
  if (too_large(place, "candidate.ptx", "nvcc", &output)) return output;
  auto ptx = place.product("candidate.ptx");
  if (only_assembler_failed(outcome, output.diagnostics) && ptx.ok()) {
    output.diagnostics.clear();
  } else if (!accept(outcome, "nvcc", input.timeout_s, &output)) {
    return output;
  }
  if (!ptx.ok()) return ptx.error();
  output.ptx = without_folder(ptx.take(), place.path());
  PB_RETURN_IF_ERROR(assemble(input, place, &output));
  return output;
}

// Nothing but the entry points leaves the library: no name of a candidate can stand in for one of
// the process that loads it.
constexpr char kExports[] = "{ global: __tvm_ffi_*; local: *; };\n";

std::vector<std::string> link_command(const Workplace& place) {
  std::vector<std::string> out = {"g++",
                                  "-shared",
                                  "-o",
                                  "candidate.so",
                                  "candidate.o",
                                  "-Wl,--version-script=exports.map",
                                  "-Wl,--as-needed"};
  for (const fs::path& library : place.libraries()) out.push_back(library.string());
  return out;
}

Result<PassOutput> host_attempt(const PassInput& input, bool published) {
  PB_ASSIGN_OR_RETURN(Workplace place, Workplace::create(input));
  std::vector<std::string> command = nvcc_command(input, published);
  const std::string virtual_arch = "compute_" + input.arch.substr(3);
  command.insert(command.end(), {"-c", "-Xcompiler", "-fPIC,-O1", "-gencode",
                                 fmt::format("arch={},code={}", virtual_arch, virtual_arch), "-o",
                                 "candidate.o", input.file_name});
  PB_ASSIGN_OR_RETURN(const sandbox::Outcome compiled, place.run(command));
  PassOutput output;
  output.published_headers = published;
  output.compile_ms = compiled.wall_ms;
  output.diagnostics = parse_nvcc(compiled.err + compiled.out);
  if (only_assembler_failed(compiled, output.diagnostics)) {
    output.diagnostics.clear();
    output.failure_reason = "does-not-compile";
    return output;
  }
  if (!accept(compiled, "nvcc", input.timeout_s, &output)) return output;
  for (const char* stem : {"cudart", "cuda"}) {
    if (const fs::path path = find_cuda_library(input.toolkit, stem); !path.empty())
      place.add_library(path);
  }
  PB_RETURN_IF_ERROR(write_file_atomically(place.path() / "exports.map", std::string(kExports)));
  PB_ASSIGN_OR_RETURN(const sandbox::Outcome linked, place.run(link_command(place)));
  output.compile_ms += linked.wall_ms;
  const std::vector<Diagnostic> said = parse_nvcc(linked.err + linked.out);
  output.diagnostics.insert(output.diagnostics.end(), said.begin(), said.end());
  if (!accept(linked, "linker", input.timeout_s, &output)) return output;
  if (too_large(place, "candidate.so", "linker", &output)) return output;
  PB_ASSIGN_OR_RETURN(output.library, place.product("candidate.so"));
  return output;
}

// Whether an error could come from something the small headers lack: an unknown name, member or
// file.
bool may_need_published_headers(const PassInput& input, const PassOutput& output) {
  if (input.published_headers.empty() || output.failure_reason != "does-not-compile" ||
      input.source.find("tvm/ffi/") == std::string::npos)
    return false;
  static constexpr const char* kWords[] = {"undefined",
                                           "no member",
                                           "not a member",
                                           "not declared",
                                           "No such file",
                                           "cannot open source",
                                           "no instance",
                                           "no operator",
                                           "not been declared",
                                           "not a template",
                                           "incomplete type",
                                           "no suitable",
                                           "must be a namespace",
                                           "tvm",
                                           "std::",
                                           "is not a type",
                                           "does not name"};
  return std::any_of(output.diagnostics.begin(), output.diagnostics.end(), [](const Diagnostic& d) {
    return d.severity == Severity::error && d.tool != "ptxas" &&
           std::any_of(std::begin(kWords), std::end(kWords),
                       [&](const char* word) { return d.text.find(word) != std::string::npos; });
  });
}

Result<PassOutput> with_fallback(const PassInput& input,
                                 Result<PassOutput> (*attempt)(const PassInput&, bool)) {
  PB_ASSIGN_OR_RETURN(PassOutput first, attempt(input, false));
  if (!may_need_published_headers(input, first)) return first;
  PB_ASSIGN_OR_RETURN(PassOutput second, attempt(input, true));
  second.compile_ms += first.compile_ms;
  return second;
}

}  // namespace

Result<PassOutput> device_pass(const PassInput& input) {
  return with_fallback(input, device_attempt);
}

Result<PassOutput> ptx_pass(const PassInput& input) {
  PB_ASSIGN_OR_RETURN(const Workplace place, Workplace::create(input));
  PassOutput output;
  output.ptx = input.source;
  PB_RETURN_IF_ERROR(assemble(input, place, &output));
  // The candidate's source is the PTX itself, whatever .loc lines say it was made from.
  for (Diagnostic& d : output.diagnostics) {
    if (d.ptx_line <= 0) continue;
    d.file = input.file_name;
    d.line = d.ptx_line;
    d.column = 0;
  }
  return output;
}

Result<PassOutput> host_pass(const PassInput& input) { return with_fallback(input, host_attempt); }

std::string pass_version() { return "2"; }

}  // namespace ptxbench::toolchain
