#include "bench/inspect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "base/files.h"
#include "bench/extract.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "toolchain/compiler.h"
#include "toolchain/passes.h"

namespace ptxbench::cli {
namespace {

struct InspectOptions {
  std::string file, arch = "sm_90a", json;
  bool trust = false;
};

struct Inspected {
  bench::Inspection inspection;
  std::vector<toolchain::Diagnostic> diagnostics;
  std::string not_assembled;  // why PTX was not given to ptxas, "" if it was or is none
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
  bench::merge_resources(result.inspection, compiled.kernels);
  return result;
}

// What ptxas makes of PTX, where there is one and a sandbox for it.
void assemble(const std::string& text, const InspectOptions& options, Inspected& result) {
  toolchain::PassInput input;
  auto toolkit = toolchain::find_toolkit();
  if (!toolkit.ok()) {
    result.not_assembled = toolkit.error().message;
    return;
  }
  input.toolkit = toolkit.take();
  input.source = text;
  input.file_name = "inspected.ptx";
  input.arch = result.inspection.target;
  input.trust = options.trust;
  auto output = toolchain::ptx_pass(input);
  if (!output.ok()) {
    result.not_assembled = output.error().message;
    return;
  }
  result.diagnostics = output->diagnostics;
  result.compiled = output->failure_reason.empty();
  bench::merge_resources(result.inspection, output->kernels);
  const std::vector<uint8_t> cubin(output->cubin.begin(), output->cubin.end());
  if (cubin.empty()) return;
  if (auto machine = bench::inspect_cubin(cubin); machine.ok())
    bench::merge_machine_code(result.inspection, *machine);
}

bool is_device_code(std::string_view head, const std::string& extension) {
  constexpr std::string_view kElf = "\177ELF", kFatbin = "\x50\xed\x55\xba";
  return head.starts_with(kElf) || head.starts_with(kFatbin) || extension == ".ptx" ||
         extension == ".cubin" || extension == ".fatbin";
}

Result<Inspected> inspect_file(const InspectOptions& options) {
  const std::string extension = std::filesystem::path(options.file).extension().string();
  std::string head(4, 0);
  std::ifstream(options.file, std::ios::binary).read(head.data(), 4);
  if (!is_device_code(head, extension)) return inspect_candidate(options);
  PB_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, read_bytes(options.file));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Error{"usage", options.file + " is empty"};
  Inspected result;
  if (extension == ".ptx") {
    PB_ASSIGN_OR_RETURN(result.inspection, bench::inspect_ptx(std::string(text), options.file));
    assemble(std::string(text), options, result);
  } else if (extension == ".cubin") {
    PB_ASSIGN_OR_RETURN(result.inspection, bench::inspect_cubin(bytes));
  } else {
    auto inspected = bench::inspect_device_code(bytes, options.file);
    if (!inspected.ok()) {
      Error error = inspected.error();
      if (error.where.file.empty()) error.where.file = options.file;
      return error;
    }
    result.inspection = inspected.take();
  }
  return result;
}

std::string kernel_text(const bench::KernelInfo& kernel, const Style& style) {
  std::string text =
      fmt::format("{} {}{}\n ", kernel.entry ? "kernel" : "function", style.strong(kernel.name),
                  kernel.needs.empty() ? "" : ", needs " + kernel.needs);
  if (kernel.param_bytes > 0) text += fmt::format(" {} parameter bytes,", kernel.param_bytes);
  text += fmt::format(" {} bytes of static shared memory{}", kernel.static_shared_bytes,
                      kernel.dynamic_shared ? " and dynamic" : "");
  if (kernel.declared_registers > 0)
    text += fmt::format(", {} virtual registers ({} words live at most)", kernel.declared_registers,
                        kernel.register_pressure);
  if (kernel.machine_registers >= 0)
    text += fmt::format(", {} registers a thread", kernel.machine_registers);
  if (kernel.spill_bytes >= 0)
    text += kernel.spill_bytes > 0 ? fmt::format(", {} bytes spilled", kernel.spill_bytes)
                                   : std::string(", no spills");
  if (kernel.barriers > 0) text += fmt::format(", {} barriers", kernel.barriers);
  if (kernel.code_bytes > 0) text += fmt::format(", {} bytes of code", kernel.code_bytes);
  if (!kernel.max_threads.empty())
    text += fmt::format(", at most {} threads a block", kernel.max_threads[0]);
  text += "\n";
  for (const auto& [name, family] : kernel.families)
    text += fmt::format("  {:<40}{:>8}{}\n", name, family.count,
                        family.needs.empty() ? "" : "  " + family.needs);
  return text;
}

std::string hazard_text(const ptx::StaticHazard& hazard) {
  std::string text = fmt::format(
      "{} hazard {}, PTX line {}{}{}: {}\n    {}\n", hazard.certain ? "certain" : "possible",
      hazard.kind, hazard.line, hazard.source.empty() ? "" : ", " + hazard.source,
      hazard.sites > 1 ? fmt::format(" and {} more", hazard.sites - 1) : "", hazard.message,
      hazard.ptx);
  return text;
}

nlohmann::json families_json(const bench::KernelInfo& kernel) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, family] : kernel.families)
    out[name] = {{"count", family.count}, {"needs", family.needs}};
  return out;
}

nlohmann::json hazards_json(const bench::Inspection& inspection) {
  nlohmann::json out = nlohmann::json::array();
  for (const ptx::StaticHazard& hazard : inspection.hazards)
    out.push_back({{"kind", hazard.kind},
                   {"certain", hazard.certain},
                   {"kernel", hazard.function},
                   {"ptx_line", hazard.line},
                   {"source", hazard.source},
                   {"sites", hazard.sites},
                   {"ptx", hazard.ptx},
                   {"message", hazard.message}});
  return out;
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
                       {"register_pressure", kernel.register_pressure},
                       {"machine_registers", kernel.machine_registers},
                       {"spill_bytes", kernel.spill_bytes},
                       {"stack_bytes", kernel.stack_bytes},
                       {"barriers", kernel.barriers},
                       {"target", kernel.target},
                       {"needs", kernel.needs},
                       {"code_bytes", kernel.code_bytes},
                       {"families", families_json(kernel)}});
  for (const toolchain::Diagnostic& d : inspected.diagnostics)
    diagnostics.push_back({{"tool", d.tool},
                           {"file", d.file},
                           {"line", d.line},
                           {"code", d.code},
                           {"message", d.text},
                           {"hint", d.hint}});
  return {{"kind", inspection.kind},
          {"target", inspection.target},
          {"version", inspection.version},
          {"kernels", kernels},
          {"steps", inspection.launches},
          {"diagnostics", diagnostics},
          {"hazards", hazards_json(inspection)},
          {"not_assembled", inspected.not_assembled},
          {"compiled", inspected.compiled}};
}

int inspect(const InspectOptions& options) {
  auto inspected = inspect_file(options);
  if (!inspected.ok()) return fail(inspected.error());
  const Style style;
  std::string text;
  for (const toolchain::Diagnostic& d : inspected->diagnostics)
    text += fmt::format("{}{}{}: {}\n", d.tool, d.code.empty() ? "" : " " + d.code,
                        d.line > 0 ? fmt::format(" {}:{}", d.file, d.line) : "", d.text) +
            (d.hint.empty() ? "" : "    " + d.hint + "\n");
  const bench::Inspection& inspection = inspected->inspection;
  if (!inspected->not_assembled.empty())
    text += "not assembled: " + inspected->not_assembled + "\n";
  if (inspected->compiled)
    text += fmt::format("{} for {}, version {}\n", inspection.kind, inspection.target,
                        inspection.version.empty() ? "unknown" : inspection.version);
  for (const std::string& step : inspection.launches) text += "  " + step + "\n";
  for (const bench::KernelInfo& kernel : inspection.kernels)
    text += "\n" + kernel_text(kernel, style);
  if (!inspection.hazards.empty()) text += "\n";
  for (const ptx::StaticHazard& hazard : inspection.hazards) text += hazard_text(hazard);
  if (options.json != "-") print(text);
  if (auto written = write_json(options.json, to_json(*inspected)); !written.ok())
    return fail(written.error());
  return inspected->compiled ? kOk : kFellShort;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Kernels, resources, instruction families and hazards of a file, without running it");
  command
      ->add_option(
          "file", options->file,
          ".cu, .md, .ptx, .plan, cubin, fat binary, or a program or library that holds one")
      ->required();
  command->add_option("--arch", options->arch, "Target architecture for a .cu")
      ->capture_default_str();
  add_output_file(*command, "--json", options->json);
  command->add_flag("--trust", options->trust, "Compile without a sandbox where none works");
  command->callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace ptxbench::cli
