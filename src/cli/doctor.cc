#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "bench/task.h"
#include "cli/commands.h"
#include "cli/output.h"
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

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine has and what is therefore possible");
  command->add_option("--json", *json, "Write JSON to FILE (-: stdout only)");
  command->callback([json, &exit_code] { exit_code = doctor(*json); });
}

}  // namespace ptxbench::cli
