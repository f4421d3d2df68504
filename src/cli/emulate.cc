#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/build_config.h"
#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cudart/device_code.h"
#include "cudart/emulation_options.h"
#include "cudart/emulation_report.h"

namespace ptxbench::cli {
namespace {

namespace fs = std::filesystem;

struct EmulateOptions {
  std::vector<std::string> command;
  std::string profile = "h200", tensor = "hw", async = "late", schedule = "inorder", races = "off",
              json;
  std::string threads = "0";
  bool check = false, verbose = false;
};

// What can be told from the file before it runs. Scripts and the like pass: what they start may be
// a CUDA program.
Result<void> check_program(const fs::path& program, const cudart::DeviceProfile& device) {
  auto bytes = read_bytes(program);
  if (!bytes.ok()) return bytes.error();
  constexpr uint8_t kElf[] = {0x7f, 'E', 'L', 'F'};
  if (bytes->size() < 4 || !std::equal(kElf, kElf + 4, bytes->begin())) return {};
  PB_ASSIGN_OR_RETURN(const bool is_static, toolchain::has_static_runtime(*bytes));
  if (is_static)
    return Error{"static-runtime",
                 fmt::format("{} contains the CUDA runtime (a static link), whose calls cannot be "
                             "intercepted; link it again with nvcc -cudart shared",
                             program.string())};
  PB_ASSIGN_OR_RETURN(const auto entries, toolchain::read_device_code(*bytes));
  if (!entries.empty() && !cudart::choose_ptx(entries, device))
    return Error{"no-ptx", program.string() + ": " + cudart::explain_no_ptx(entries, device)};
  return {};
}

std::vector<std::string> program_environment(const EmulateOptions& options,
                                             const fs::path& reports) {
  std::vector<std::string> out = {"PTXBENCH_EMULATE_PROFILE=" + options.profile,
                                  "PTXBENCH_EMULATE_TENSOR=" + options.tensor,
                                  "PTXBENCH_EMULATE_ASYNC=" + options.async,
                                  "PTXBENCH_EMULATE_THREADS=" + options.threads,
                                  "PTXBENCH_EMULATE_SCHEDULE=" + options.schedule,
                                  "PTXBENCH_EMULATE_RACES=" + options.races,
                                  "PTXBENCH_EMULATE_REPORT=" + reports.string()};
  std::string libraries = (build_dir() / "lib/emulate").string();
  for (char** v = environ; *v; ++v) {
    const std::string variable = *v;
    if (variable.rfind("LD_LIBRARY_PATH=", 0) == 0)
      libraries += ":" + variable.substr(std::string("LD_LIBRARY_PATH=").size());
    else if (variable.rfind("PTXBENCH_EMULATE_", 0) != 0)
      out.push_back(variable);
  }
  out.push_back("LD_LIBRARY_PATH=" + libraries);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Runs the program with this process's terminal; its wait status.
Result<int> run_program(const fs::path& program, std::vector<std::string> command,
                        std::vector<std::string> environment) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;  // this process waits for signals in a thread and blocks them elsewhere
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), nullptr, &attributes,
                                pointers(command).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (error)
    return Error{"io", fmt::format("cannot start {}: {}", program.string(), std::strerror(error))};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error{"io", "lost the program"};
  return status;
}

// One document a process that used the runtime, oldest first.
std::vector<Json> read_reports(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, Json>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    auto text = read_file(entry.path());
    if (!text.ok()) continue;
    if (auto document = parse_json(*text); document.ok())
      found.emplace_back(entry.last_write_time(), document.take());
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Json> documents;
  for (auto& [time, document] : found) documents.push_back(std::move(document));
  return documents;
}

bool has_hazard(const std::vector<Json>& reports) {
  for (const Json& report : reports) {
    if (report["error"].is_object() || !report["unsupported"].empty()) return true;
    for (const Json& finding : report["findings"])
      if (finding.value("class", "") == "fatal" || finding.value("class", "") == "latent")
        return true;
  }
  return false;
}

Result<int> run(const EmulateOptions& options) {
  cudart::EmulationOptions checked;
  for (const auto& [name, value] :
       {std::pair{"profile", options.profile}, std::pair{"tensor", options.tensor},
        std::pair{"async", options.async}, std::pair{"threads", options.threads},
        std::pair{"schedule", options.schedule}, std::pair{"races", options.races}})
    PB_RETURN_IF_ERROR(cudart::set_emulation_option(&checked, name, value));
  PB_ASSIGN_OR_RETURN(const fs::path program, find_program(options.command[0]));
  PB_RETURN_IF_ERROR(check_program(program, *cudart::find_profile(options.profile.c_str())));
  PB_ASSIGN_OR_RETURN(const TempDir reports, TempDir::create("emulate"));
  PB_ASSIGN_OR_RETURN(const int status, run_program(program, options.command,
                                                    program_environment(options, reports.path())));
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  const std::vector<Json> documents = read_reports(reports.path());
  for (const Json& document : documents)
    std::fputs(cudart::report_text(document, options.verbose || code != 0).c_str(), stderr);
  if (documents.empty())
    std::fprintf(stderr, "ptxbench: the program did not use the emulated CUDA runtime\n");
  PB_RETURN_IF_ERROR(write_json(
      options.json, {{"command", options.command}, {"exit_code", code}, {"processes", documents}}));
  return code == 0 && options.check && (documents.empty() || has_hazard(documents)) ? kFellShort
                                                                                    : code;
}

}  // namespace

void add_emulate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EmulateOptions>();
  CLI::App* command = app.add_subcommand(
      "emulate",
      "Run a CUDA program that was linked with a shared runtime (nvcc -cudart shared) "
      "and carries PTX, on the CPU");
  command->add_option("command", options->command, "-- PROGRAM ARGUMENTS")->required();
  command->add_option("--device-profile", options->profile, "h100, h200 or b200 (h200)");
  command->add_option("--tensor", options->tensor, "Tensor core arithmetic: hw, f32 or fast (hw)");
  command->add_option(
      "--async", options->async,
      "Asynchronous work is done as late as allowed or at once: late, eager (late)");
  command->add_option("--threads", options->threads, "Host threads for kernels; 0: all cores (0)");
  command->add_option("--schedule", options->schedule, "inorder or random:SEED (inorder)");
  command->add_option("--races", options->races,
                      "Look for accesses that nothing orders: on, off (off)");
  add_output_file(*command, "--json", options->json, "Write findings and counts to this file");
  command->add_flag("--check", options->check,
                    "Exit with 1 if the program succeeds with a fatal or latent finding");
  command->add_flag("--verbose", options->verbose, "Say also why calls were refused");
  command->footer("Ends with the program's own exit code (128 + signal if a signal ended it).");
  command->callback([options, &exit_code] {
    auto code = run(*options);
    exit_code = code.ok() ? *code : fail(code.error());
  });
}

}  // namespace ptxbench::cli
