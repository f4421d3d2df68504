#include "bench/inspect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "bench/extract.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "toolchain/compiler.h"

namespace ptxbench::cli {
namespace {

struct InspectOptions {
  std::string file, arch = "sm_90a", json;
  bool trust = false;
};

struct Inspected {
  bench::Inspection inspection;
  std::vector<toolchain::Diagnostic> diagnostics;
  bool compiled = true;
};

Result<Inspected> inspect_candidate(const InspectOptions& options) {
  PB_ASSIGN_OR_RETURN(bench::Extraction extraction, bench::extract_file(options.file));
  if (!extraction.ok) return Error{"usage", options.file + ": " + extraction.message};
  Inspected result;
  if (extraction.candidate.kind == bench::Candidate::Kind::plan) {
    PB_ASSIGN_OR_RETURN(result.inspection, bench::inspect_plan(extraction.candidate.plan));
    return result;
  }
  toolchain::CompileRequest request;
  request.source = extraction.candidate.source;
  request.file_name = extraction.candidate.file_name;
  request.include_dirs = extraction.candidate.include_dirs;
  request.arch = options.arch;
  request.trust = options.trust;
  PB_ASSIGN_OR_RETURN(toolchain::CompiledCandidate compiled, toolchain::compile(request));
  result.diagnostics = compiled.diagnostics;
  result.compiled = compiled.ok;
  if (!compiled.ok) return result;
  PB_ASSIGN_OR_RETURN(result.inspection, bench::inspect_ptx(compiled.ptx, request.file_name));
  if (!compiled.cubin.empty()) {
    PB_ASSIGN_OR_RETURN(bench::Inspection machine, bench::inspect_cubin(compiled.cubin));
    bench::merge_machine_code(result.inspection, machine);
  }
  return result;
}

Result<Inspected> inspect_file(const InspectOptions& options) {
  const std::string extension = std::filesystem::path(options.file).extension().string();
  Inspected result;
  if (extension == ".ptx") {
    PB_ASSIGN_OR_RETURN(std::string text, read_file(options.file));
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
      return Error{"usage", options.file + " is empty"};
    PB_ASSIGN_OR_RETURN(result.inspection, bench::inspect_ptx(text, options.file));
    return result;
  }
  if (extension == ".cubin") {
    PB_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, read_bytes(options.file));
    PB_ASSIGN_OR_RETURN(result.inspection, bench::inspect_cubin(bytes));
    return result;
  }
  return inspect_candidate(options);
}

std::string kernel_text(const bench::KernelInfo& kernel, const Style& style) {
  std::string text =
      fmt::format("{} {}\n ", kernel.entry ? "kernel" : "function", style.strong(kernel.name));
  if (kernel.param_bytes > 0) text += fmt::format(" {} parameter bytes,", kernel.param_bytes);
  text += fmt::format(" {} bytes of static shared memory{}", kernel.static_shared_bytes,
                      kernel.dynamic_shared ? " and dynamic" : "");
  if (kernel.declared_registers > 0)
    text += fmt::format(", {} virtual registers", kernel.declared_registers);
  if (kernel.machine_registers >= 0)
    text += fmt::format(", {} registers a thread", kernel.machine_registers);
  if (kernel.code_bytes > 0) text += fmt::format(", {} bytes of code", kernel.code_bytes);
  if (!kernel.max_threads.empty())
    text += fmt::format(", at most {} threads a block", kernel.max_threads[0]);
  text += "\n";
  for (const auto& [family, count] : kernel.families)
    text += fmt::format("  {:<40}{:>8}\n", family, count);
  return text;
}

nlohmann::json to_json(const Inspected& inspected) {
  const bench::Inspection& inspection = inspected.inspection;
  nlohmann::json kernels = nlohmann::json::array(), diagnostics = nlohmann::json::array();
  for (const bench::KernelInfo& kernel : inspection.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"entry", kernel.entry},
                       {"param_bytes", kernel.param_bytes},
                       {"static_shared_bytes", kernel.static_shared_bytes},
                       {"dynamic_shared", kernel.dynamic_shared},
                       {"virtual_registers", kernel.declared_registers},
                       {"machine_registers", kernel.machine_registers},
                       {"code_bytes", kernel.code_bytes},
                       {"families", kernel.families}});
  for (const toolchain::Diagnostic& d : inspected.diagnostics)
    diagnostics.push_back({{"tool", d.tool},
                           {"file", d.file},
                           {"line", d.line},
                           {"code", d.code},
                           {"message", d.text}});
  return {{"kind", inspection.kind},       {"target", inspection.target},
          {"version", inspection.version}, {"kernels", kernels},
          {"steps", inspection.launches},  {"diagnostics", diagnostics},
          {"compiled", inspected.compiled}};
}

int inspect(const InspectOptions& options) {
  auto inspected = inspect_file(options);
  if (!inspected.ok()) return fail(inspected.error());
  const Style style;
  std::string text;
  for (const toolchain::Diagnostic& d : inspected->diagnostics)
    text += fmt::format("{}{}{}: {}\n", d.tool, d.code.empty() ? "" : " " + d.code,
                        d.line > 0 ? fmt::format(" {}:{}", d.file, d.line) : "", d.text);
  const bench::Inspection& inspection = inspected->inspection;
  if (inspected->compiled)
    text += fmt::format("{} for {}, version {}\n", inspection.kind, inspection.target,
                        inspection.version.empty() ? "unknown" : inspection.version);
  for (const std::string& step : inspection.launches) text += "  " + step + "\n";
  for (const bench::KernelInfo& kernel : inspection.kernels)
    text += "\n" + kernel_text(kernel, style);
  if (options.json != "-") print(text);
  if (auto written = write_json(options.json, to_json(*inspected)); !written.ok())
    return fail(written.error());
  return inspected->compiled ? kOk : kFellShort;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Kernels, resources and instruction families of a file, without running it");
  command->add_option("file", options->file, ".cu, .md, .ptx, .cubin or .plan")->required();
  command->add_option("--arch", options->arch, "Target architecture for a .cu")
      ->capture_default_str();
  command->add_option("--json", options->json, "Write JSON to FILE (-: stdout only)");
  command->add_flag("--trust", options->trust, "Compile without a sandbox where none works");
  command->callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace ptxbench::cli
