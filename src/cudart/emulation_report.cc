#include "cudart/emulation_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ptxbench::cudart {
namespace {

using nlohmann::json;

const char* name_of(plan::HazardClass hazard) {
  switch (hazard) {
    case plan::HazardClass::fatal:
      return "fatal";
    case plan::HazardClass::latent:
      return "latent";
    case plan::HazardClass::repaired:
      return "repaired";
    case plan::HazardClass::advice:
      return "advice";
  }
  return "";
}

json to_json(const plan::Finding& f) {
  json inlined = json::array();
  for (const auto& [file, line] : f.inlined_at) inlined.push_back({{"file", file}, {"line", line}});
  return {{"kind", f.kind},
          {"class", name_of(f.hazard)},
          {"kernel", f.kernel},
          {"message", f.message},
          {"hint", f.hint},
          {"file", f.file},
          {"line", f.line},
          {"inlined_at", inlined},
          {"ptx_line", f.ptx_line},
          {"ptx", f.ptx},
          {"cta", f.cta},
          {"warp", f.warp},
          {"lanes", f.lanes},
          {"address", f.address},
          {"symbol", f.symbol},
          {"count", f.count},
          {"other_file", f.other_file},
          {"other_line", f.other_line},
          {"other_ptx_line", f.other_ptx_line}};
}

bool same_site(const plan::Finding& a, const plan::Finding& b) {
  return a.kind == b.kind && a.kernel == b.kernel && a.ptx_line == b.ptx_line;
}

// A program's names and messages on a terminal: control characters made harmless.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  return text;
}

std::string finding_line(const json& f) {
  std::string line = fmt::format("  {} {} in {}", f.value("class", ""), f.value("kind", ""),
                                 f.value("kernel", ""));
  if (f.value("line", 0) > 0)
    line += fmt::format(" at {}:{}", f.value("file", ""), f.value("line", 0));
  else if (f.value("ptx_line", 0) > 0)
    line += fmt::format(" at PTX line {}", f.value("ptx_line", 0));
  if (f.value("count", 1) > 1) line += fmt::format(" ({} times)", f.value("count", 1));
  line += ": " + f.value("message", "");
  if (!f.value("hint", "").empty()) line += " (" + f.value("hint", "") + ")";
  return printable(line) + "\n";
}

}  // namespace

void EmulationReport::add(const plan::RunResult& result) {
  constexpr size_t kMaxFindings = 1000;
  launches_++;
  for (const plan::KernelStats& k : result.kernels) {
    plan::KernelStats& sum = kernels_[k.kernel];
    sum.kernel = k.kernel;
    sum.launches += k.launches;
    sum.ctas += k.ctas;
    sum.warp_instructions += k.warp_instructions;
    sum.thread_instructions += k.thread_instructions;
    sum.tensor_flop += k.tensor_flop;
  }
  emulator_ms_ += result.wall_ms;
  for (const plan::Finding& f : result.findings) {
    const auto known = std::find_if(findings_.begin(), findings_.end(),
                                    [&](const plan::Finding& g) { return same_site(f, g); });
    if (known != findings_.end())
      known->count += f.count;
    else if (findings_.size() < kMaxFindings)
      findings_.push_back(f);
  }
}

void EmulationReport::unsupported(const std::string& what) {
  if (std::find(unsupported_.begin(), unsupported_.end(), what) != unsupported_.end()) return;
  unsupported_.push_back(what);
  std::fprintf(stderr, "ptxbench: not emulated: %s\n", printable(what).c_str());
}

void EmulationReport::refused(int status, const std::string& why) {
  constexpr size_t kMaxRefused = 100;
  const std::string text = fmt::format("error {}: {}", status, why);
  if (refused_.size() < kMaxRefused &&
      std::find(refused_.begin(), refused_.end(), text) == refused_.end())
    refused_.push_back(text);
}

void EmulationReport::stopped(int status, const std::string& kind, const std::string& message) {
  error_ = {{"status", status}, {"kind", kind}, {"message", message}};
}

json EmulationReport::document() const {
  json out = {{"device", device},          {"emulated", true},
              {"launches", launches_},     {"emulator_ms", emulator_ms_},
              {"findings", json::array()}, {"unsupported", unsupported_},
              {"refused", refused_},       {"error", error_},
              {"kernels", json::array()}};
  for (const plan::Finding& f : findings_) out["findings"].push_back(to_json(f));
  for (const auto& [name, k] : kernels_)
    out["kernels"].push_back({{"kernel", name},
                              {"launches", k.launches},
                              {"ctas", k.ctas},
                              {"warp_instructions", k.warp_instructions},
                              {"thread_instructions", k.thread_instructions},
                              {"tensor_flop", k.tensor_flop}});
  return out;
}

void EmulationReport::save() const {
  const char* folder = std::getenv("PTXBENCH_EMULATE_REPORT");
  if (!folder) return;
  const std::string path = fmt::format("{}/{}.json", folder, getpid()), fresh = path + ".new";
  const std::string text = document().dump(1, ' ', false, json::error_handler_t::replace);
  FILE* file = std::fopen(fresh.c_str(), "w");
  if (!file) return;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written) std::rename(fresh.c_str(), path.c_str());
}

std::string report_text(const json& document, bool verbose) {
  const json& findings = document["findings"];
  std::string text;
  if (const json& error = document["error"]; error.is_object())
    text += printable(fmt::format("ptxbench: the emulated device stopped: {}: {}",
                                  error.value("kind", ""), error.value("message", ""))) +
            "\n";
  if (!findings.empty())
    text += fmt::format("ptxbench: {} finding{} on the emulated {}\n", findings.size(),
                        findings.size() == 1 ? "" : "s", document.value("device", ""));
  for (const json& f : findings) text += finding_line(f);
  if (verbose)
    for (const json& line : document["refused"])
      text += "ptxbench: refused: " + printable(line.get<std::string>()) + "\n";
  return text;
}

}  // namespace ptxbench::cudart
