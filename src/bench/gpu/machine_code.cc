#include "bench/gpu/machine_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "toolchain/toolkit.h"

namespace ptxbench::bench {
namespace {

struct Line {
  std::string_view opcode;
  std::vector<std::string_view> targets;
  bool stops = false;     // control never goes on to the next line
  bool computed = false;  // goes where a register says
};

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// "/*0060*/  @P0 BRA `(.L_x_1) ;" without the address and the semicolon; false for other lines.
bool instruction_text(std::string_view line, std::string_view& text) {
  if (line.substr(0, 2) != "/*") return false;
  const size_t end = line.find("*/");
  if (end == std::string_view::npos) return false;
  text = trim(line.substr(end + 2));
  if (text.empty() || text.back() != ';') return false;
  text = trim(text.substr(0, text.size() - 1));
  if (text.substr(0, 1) == "{") text = trim(text.substr(1));
  return !text.empty();
}

Line parse(std::string_view text) {
  Line line;
  bool guarded = false;
  if (text[0] == '@') {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return line;
    guarded = true;
    text = trim(text.substr(space));
  }
  const size_t space = text.find(' ');
  line.opcode = text.substr(0, space);
  const std::string_view operands =
      space == std::string_view::npos ? std::string_view() : trim(text.substr(space));
  for (size_t at = operands.find("`("); at != std::string_view::npos;
       at = operands.find("`(", at + 2)) {
    const size_t close = operands.find(')', at);
    if (close == std::string_view::npos) break;
    line.targets.push_back(operands.substr(at + 2, close - at - 2));
  }
  const std::string_view stem = line.opcode.substr(0, line.opcode.find('.'));
  const bool jump = stem == "BRA" || stem == "JMP";
  line.computed = stem == "BRX" || stem == "JMX" || stem == "BRXU" || stem == "JMXU" ||
                  (stem == "CALL" && line.targets.empty());
  // A jump with a further operand is a conditional one.
  const bool always = jump && operands.find(',') == std::string_view::npos &&
                      line.opcode.find(".DIV") == std::string_view::npos &&
                      line.opcode.find(".ANY") == std::string_view::npos &&
                      line.opcode.find(".CONV") == std::string_view::npos;
  line.stops = !guarded && (always || stem == "EXIT" || stem == "RET" || stem == "BRX" ||
                            stem == "JMX" || stem == "BRXU" || stem == "JMXU");
  return line;
}

struct Section {
  std::string kernel;
  std::vector<Line> lines;
  std::map<std::string, size_t, std::less<>> labels;
};

void count(const Section& section, MachineSites& sites) {
  std::vector<bool> seen(section.lines.size());
  std::vector<size_t> work = {0};
  const auto visit = [&](std::string_view label) {
    if (auto found = section.labels.find(label); found != section.labels.end())
      work.push_back(found->second);
  };
  while (!work.empty()) {
    const size_t at = work.back();
    work.pop_back();
    if (at >= section.lines.size() || seen[at]) continue;
    seen[at] = true;
    const Line& line = section.lines[at];
    for (const std::string_view target : line.targets) visit(target);
    if (line.computed)
      for (const auto& [label, place] : section.labels) work.push_back(place);
    if (!line.stops) work.push_back(at + 1);
  }
  for (size_t i = 0; i < section.lines.size(); ++i)
    if (const std::string family = family_of_opcode(section.lines[i].opcode); !family.empty())
      ++(seen[i] ? sites.reachable : sites.unreachable)[family];
}

}  // namespace

std::string family_of_opcode(std::string_view opcode) {
  struct Row {
    std::string_view stem, family;
  };
  // Seen in ptxas 13.0's output for the PTX instructions on the right, sm_80 to sm_90a.
  constexpr Row kRows[] = {{"HGMMA", "wgmma.mma_async"},
                           {"QGMMA", "wgmma.mma_async"},
                           {"IGMMA", "wgmma.mma_async"},
                           {"BGMMA", "wgmma.mma_async"},
                           {"UTMALDG", "cp.async.bulk.tensor.load"},
                           {"UTMASTG", "cp.async.bulk.tensor.store"},
                           {"UTMAREDG", "cp.reduce.async.bulk.tensor"},
                           {"UTMAPF", "cp.async.bulk.prefetch.tensor"},
                           {"HMMA", "mma"},
                           {"IMMA", "mma"},
                           {"DMMA", "mma"},
                           {"QMMA", "mma"},
                           {"BMMA", "mma"},
                           {"LDSM", "ldmatrix"},
                           {"STSM", "stmatrix"}};
  const std::string_view stem = opcode.substr(0, opcode.find('.'));
  for (const Row& row : kRows)
    if (row.stem == stem) return std::string(row.family);
  return "";
}

MachineSites sites_in_listing(std::string_view listing, const std::set<std::string>& kernels) {
  MachineSites sites;
  std::vector<Section> sections;
  bool inside = false;
  while (!listing.empty()) {
    const size_t end = listing.find('\n');
    const std::string_view line = trim(listing.substr(0, end));
    listing = end == std::string_view::npos ? std::string_view() : listing.substr(end + 1);
    constexpr std::string_view kSection = ".section", kText = ".text.";
    std::string_view text;
    if (line.substr(0, kSection.size()) == kSection) {
      const std::string_view name = trim(line.substr(kSection.size()));
      const std::string_view stem = name.substr(0, name.find(','));
      inside = stem.substr(0, kText.size()) == kText &&
               kernels.count(std::string(stem.substr(kText.size()))) != 0;
      if (inside) sections.push_back({std::string(stem.substr(kText.size())), {}, {}});
    } else if (inside && !line.empty() && line.back() == ':') {
      sections.back().labels[std::string(line.substr(0, line.size() - 1))] =
          sections.back().lines.size();
    } else if (inside && instruction_text(line, text)) {
      sections.back().lines.push_back(parse(text));
    }
  }
  for (const Section& section : sections) {
    if (section.lines.empty()) continue;
    sites.kernels.insert(section.kernel);
    count(section, sites);
  }
  return sites;
}

Result<MachineSites> machine_sites(std::span<const std::vector<uint8_t>> cubins,
                                   const std::set<std::string>& kernels) {
  std::filesystem::path tool;
  std::error_code error;
  if (auto toolkit = toolchain::find_toolkit(); toolkit.ok())
    tool = toolkit->home / "bin" / "nvdisasm";
  if (!std::filesystem::exists(tool, error)) {
    PB_ASSIGN_OR_RETURN(tool, find_program("nvdisasm"));
  }
  PB_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create("machine-code"));
  MachineSites all;
  for (const std::vector<uint8_t>& cubin : cubins) {
    const auto file = folder.path() / "module.cubin";
    PB_RETURN_IF_ERROR(write_file_atomically(file, std::span<const uint8_t>(cubin)));
    ProcessSpec spec;
    spec.argv = {tool.string(), "-c", file.string()};
    spec.wall_s = 120;
    spec.output_bytes = uint64_t{256} << 20;
    PB_ASSIGN_OR_RETURN(const ProcessResult run, run_process(spec));
    if (run.timed_out) return Error{"unsupported", "nvdisasm takes longer than two minutes"};
    if (!run.succeeded() || run.output_truncated)
      return Error{"unsupported", "nvdisasm does not read the machine code"};
    const MachineSites sites = sites_in_listing(run.out, kernels);
    for (const auto& [family, n] : sites.reachable) all.reachable[family] += n;
    for (const auto& [family, n] : sites.unreachable) all.unreachable[family] += n;
    all.kernels.insert(sites.kernels.begin(), sites.kernels.end());
  }
  for (const std::string& kernel : kernels)
    if (all.kernels.count(kernel) == 0)
      return Error{"unsupported", fmt::format("the machine code has no {}", kernel)};
  return all;
}

void judge_machine_code(const MachineSites& sites, Verdict& verdict) {
  for (FamilyEvidence& family : verdict.evidence.families) {
    // Dense and sparse forms have one opcode; bulk copies without a tensor map have several.
    if (family.family.find(".sp") != std::string::npos ||
        family.family.starts_with("cp.async.bulk.load") ||
        family.family.starts_with("cp.async.bulk.store") ||
        family.family == "cp.async.bulk.prefetch" || family.family == "cp.reduce.async.bulk")
      continue;
    const auto found = sites.reachable.find(family.family);
    family.machine_sites = found == sites.reachable.end() ? 0 : found->second;
    if (*family.machine_sites > 0 || family.threads == 0) continue;
    const auto dead = sites.unreachable.find(family.family);
    const std::string what = fmt::format(
        "the machine code that ran has no {} that can be reached{}", family.family,
        dead == sites.unreachable.end() ? std::string()
                                        : fmt::format(" ({} that cannot)", dead->second));
    verdict.notes.push_back(what);
    if (!family.required || verdict.level < Level::strategy) continue;
    verdict.level = Level::instructions;
    verdict.reason = "instructions-absent";
    verdict.message = what;
  }
}

}  // namespace ptxbench::bench
