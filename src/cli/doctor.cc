#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "bench/task.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "emu/isa.h"
#include "ptx/instruction_table.h"
#include "sandbox/sandbox.h"
#include "toolchain/compiler.h"

namespace ptxbench::cli {
namespace {

struct Capability {
  std::string name;
  bool possible = false;
  std::string why;
};

std::vector<Capability> capabilities(const std::vector<toolchain::ToolInfo>& tools,
                                     const Result<void>& sandbox, bool gpu) {
  bool compiler = false;
  for (const toolchain::ToolInfo& tool : tools) compiler |= tool.name == "nvcc" && tool.found;
  const std::string no_sandbox = sandbox.ok() ? "" : "no working sandbox; --trust runs without one";
  return {
      {"eval FILE on the emulator", compiler && sandbox.ok(),
       compiler ? no_sandbox : "no CUDA compiler"},
      {"eval --plan on the emulator", true, ""},
      {"record", compiler && sandbox.ok(), compiler ? no_sandbox : "no CUDA compiler"},
      {"eval on a GPU", gpu, gpu ? "" : "no NVIDIA GPU"},
  };
}

std::string sandbox_text(const Result<void>& sandbox) {
  if (!sandbox.ok()) return sandbox.error().message;
  return "number of processes limited by " + sandbox::process_limit();
}

int doctor(const std::string& json_path) {
  const std::vector<toolchain::ToolInfo> tools = toolchain::find_tools();
  const Result<void> sandbox = sandbox::available();
  const bool gpu = access("/dev/nvidiactl", F_OK) == 0;
  const Style style;
  auto mark = [&](bool good) { return good ? style.good("yes") : style.warn("no "); };
  std::string text = "tools\n";
  nlohmann::json document = {{"tools", nlohmann::json::array()},
                             {"possible", nlohmann::json::array()}};
  for (const toolchain::ToolInfo& tool : tools) {
    text += fmt::format("  {} {:<14}{} {}\n", mark(tool.found), tool.name, tool.path, tool.version);
    document["tools"].push_back({{"name", tool.name},
                                 {"found", tool.found},
                                 {"path", tool.path},
                                 {"version", tool.version}});
  }
  text += fmt::format("machine\n  {} sandbox       {}\n  {} NVIDIA GPU\n      {} cores\n",
                      mark(sandbox.ok()), sandbox_text(sandbox), mark(gpu),
                      std::thread::hardware_concurrency());
  document["sandbox"] = {{"works", sandbox.ok()},
                         {"why", sandbox.ok() ? "" : sandbox.error().message},
                         {"process_limit", sandbox.ok() ? sandbox::process_limit() : ""}};
  document["gpu"] = gpu;
  auto suite = bench::TaskSuite::open();
  text += suite.ok() ? fmt::format("      {} tasks in {}\n", suite->names().size(),
                                   suite->folder().string())
                     : "      " + suite.error().message + "\n";
  text += "possible\n";
  for (const Capability& capability : capabilities(tools, sandbox, gpu)) {
    text += fmt::format("  {} {}{}\n", mark(capability.possible), capability.name,
                        capability.why.empty() ? "" : " (" + capability.why + ")");
    document["possible"].push_back(
        {{"what", capability.name}, {"possible", capability.possible}, {"why", capability.why}});
  }
  if (json_path != "-") print(text);
  if (auto written = write_json(json_path, document); !written.ok()) return fail(written.error());
  return kOk;
}

// Every opcode of sm_80..sm_90a, words of it that are refused, and what no vector shows. Generated
// from what the tests executed (src/emu/isa_coverage.inc).
int instruction_coverage(const std::string& json_path) {
  const Style style;
  std::string text, refused_text;
  nlohmann::json document = {{"architectures", "sm_80..sm_90a"},
                             {"opcodes", nlohmann::json::array()}};
  int forms = 0, forms_with_gaps = 0, spellings = 0, opcodes = 0, refused_opcodes = 0;
  for (const emu::IsaOpcode& o : emu::isa_opcodes()) {
    nlohmann::json entry = {{"opcode", o.name},
                            {"forms", o.forms},
                            {"executed", o.executed},
                            {"spellings", o.spellings},
                            {"supported", o.executed > 0}};
    std::string refusals;
    for (const emu::IsaRefusal& r : emu::isa_refusals()) {
      if (r.opcode != o.name) continue;
      refusals +=
          fmt::format("{}refused: {} ({})", refusals.empty() ? "  " : "; ", r.words, r.reason);
      entry["refused"].push_back({{"words", r.words}, {"reason", r.reason}});
    }
    int gaps = 0;
    for (const emu::IsaGap& g : emu::isa_gaps()) {
      if (g.opcode != o.name) continue;
      ++gaps;
      entry["without_vector"].push_back({{"form", g.form}, {"words", g.words}});
    }
    forms_with_gaps += gaps;
    if (gaps)
      refusals += fmt::format("{}no vector yet: {} form{} in part or whole",
                              refusals.empty() ? "  " : "; ", gaps, gaps == 1 ? "" : "s");
    ptx::Op op{};
    size_t length = 0;
    if (o.executed == 0 && ptx::find_opcode(o.name, &op, &length)) {
      const char* why = emu::refused(op);
      refusals = fmt::format("  refused: {}", why ? why : "not implemented");
      entry["reason"] = why ? why : "not implemented";
      ++refused_opcodes;
    } else {
      ++opcodes;
    }
    forms += o.executed, spellings += o.spellings;
    text += fmt::format("  {} {:<34}{:>3} of {:<3}{:>5}{}\n",
                        o.executed > 0 ? style.good("yes") : style.warn("no "), o.name, o.executed,
                        o.forms, o.spellings, refusals);
    document["opcodes"].push_back(entry);
  }
  document["forms"] = forms, document["spellings"] = spellings;
  document["forms_with_gaps"] = forms_with_gaps;
  if (json_path != "-")
    print(fmt::format("instructions of sm_80..sm_90a on the emulator: {} opcodes, {} forms in {} "
                      "spellings executed by passing tests; {} forms lack a vector for a "
                      "word or as a whole (--json names them); {} opcodes refused\n"
                      "      opcode                        forms    spellings\n",
                      opcodes, forms, spellings, forms_with_gaps, refused_opcodes) +
          text);
  if (auto written = write_json(json_path, document); !written.ok()) return fail(written.error());
  return kOk;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<std::string>();
  auto isa = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine has and what is therefore possible");
  add_output_file(*command, "--json", *json);
  command->add_flag("--isa", *isa, "Instead: the instructions that the emulator executes");
  command->callback(
      [json, isa, &exit_code] { exit_code = *isa ? instruction_coverage(*json) : doctor(*json); });
}

}  // namespace ptxbench::cli
