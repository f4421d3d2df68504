#include "bench/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bench/causes/speed_json.h"

namespace ptxbench::bench {
namespace {

constexpr size_t kMaxItems = 5;

void add_quote(std::string& text, const Verdict& verdict, const std::string& source,
               const std::string& file, int line) {
  if (!is_source_file(file, verdict)) return;
  const std::string quoted = source_line(source, line);
  if (!quoted.empty()) text += fmt::format("    {} | {}\n", line, quoted);
}

void add_diagnostics(std::string& text, const Verdict& verdict, const std::string& source) {
  size_t shown = 0;
  for (const toolchain::Diagnostic& d : verdict.diagnostics) {
    if (d.severity != toolchain::Diagnostic::Severity::error) continue;
    if (++shown > kMaxItems) break;
    text +=
        fmt::format("- {}{}: {}\n", d.file, d.line > 0 ? fmt::format(":{}", d.line) : "", d.text);
    add_quote(text, verdict, source, d.file, d.line);
    if (!d.hint.empty()) text += fmt::format("    hint: {}\n", d.hint);
  }
}

const char* hazard_word(plan::HazardClass hazard) {
  switch (hazard) {
    case plan::HazardClass::fatal:
      return "error";
    case plan::HazardClass::latent:
      return "may break on another chip or compiler";
    case plan::HazardClass::repaired:
      return "repaired by the assembler";
    case plan::HazardClass::advice:
      return "advice";
  }
  return "";
}

void add_findings(std::string& text, const Verdict& verdict, const std::string& source) {
  size_t shown = 0;
  for (const plan::Finding& f : verdict.findings) {
    if (++shown > kMaxItems) break;
    text +=
        fmt::format("- {} ({}) at {}: {}", f.kind, hazard_word(f.hazard), place_of(f), f.message);
    if (f.count > 1) text += fmt::format(" [{} times]", f.count);
    text += "\n";
    add_quote(text, verdict, source, f.file, f.line);
    if (!f.hint.empty()) text += fmt::format("    hint: {}\n", f.hint);
  }
  if (verdict.findings.size() > kMaxItems)
    text += fmt::format("- and {} more findings\n", verdict.findings.size() - kMaxItems);
}

void add_numbers(std::string& text, const Correctness& c) {
  if (c.passed) return;
  text += fmt::format("- {}: {} of {} elements miss the 1e-2 rule; ", c.output, c.rule_a_failures,
                      c.total);
  if (c.bound_tolerated > 0)
    text += c.why + "\n";
  else
    text += c.bound_noise > 0
                ? fmt::format(
                      "the error is {:.3g} times that of honest rounding (allowed {:.3g}), "
                      "{:.3g} in the worst tile (allowed {:.3g})\n",
                      c.noise_ratio, c.bound_noise, c.tile_noise_ratio, c.bound_tile_noise)
                : fmt::format(
                      "relative Frobenius error {:.3g} (allowed {:.3g}), not correctly "
                      "rounded {:.2f} % (allowed {:.2f} %)\n",
                      c.rel_frobenius, c.bound_rel_frobenius, 100 * c.misround_rate,
                      100 * c.bound_misround);
  if (c.bad_tiles > 0)
    text += fmt::format("- wrong 16x16 tiles: {} of {}, within rows {}..{} and columns {}..{}\n",
                        c.bad_tiles, c.tiles, c.first_bad_row, c.last_bad_row, c.first_bad_column,
                        c.last_bad_column);
  if (c.bad_tiles > 0 && c.bad_tiles < c.tiles) {
    text += "- map of the output (x wrong, ? unwritten, . right):\n";
    for (const std::string& line : c.map.text()) text += "    " + line + "\n";
  }
  if (!c.explanation.kind.empty()) text += fmt::format("- it looks like: {}\n", c.explanation.text);
  size_t shown = 0;
  for (const BadElement& e : c.worst) {
    if (++shown > 3) break;
    text += fmt::format("- {}[{}] is {:.6g}, should be {:.6g}\n", c.output,
                        index_text(c, e.row, e.column), e.actual, e.expected);
  }
}

// Outputs beside the one that decides: one line each, where anything is wrong.
void add_other_outputs(std::string& text, const Verdict& verdict) {
  if (!verdict.correctness || verdict.correctness->passed) return;
  for (const Correctness& c : verdict.outputs) {
    if (c.output == verdict.correctness->output) continue;
    if (c.passed) {
      text += fmt::format("- {} is right\n", c.output);
      continue;
    }
    text += fmt::format("- {} is wrong, too: {}", c.output, c.why);
    if (!c.explanation.kind.empty()) text += "; it looks like: " + c.explanation.text;
    text += "\n";
  }
}

}  // namespace

std::string source_line(const std::string& source, int number) {
  if (number < 1) return "";
  size_t begin = 0;
  for (int line = 1; line < number; ++line) {
    begin = source.find('\n', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  const std::string text = source.substr(begin, source.find('\n', begin) - begin);
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, std::min<size_t>(text.find_last_not_of(" \t\r") - first + 1, 160));
}

bool is_source_file(const std::string& file, const Verdict& verdict) {
  return !verdict.source_file.empty() &&
         std::filesystem::path(file).filename().string() == verdict.source_file;
}

std::string place_of(const plan::Finding& finding) {
  if (finding.file.empty())
    return finding.ptx_line > 0 ? fmt::format("PTX line {}", finding.ptx_line) : finding.kernel;
  auto base_name = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  std::string place = fmt::format("{}:{}", base_name(finding.file), finding.line);
  for (const auto& [file, line] : finding.inlined_at)
    place += fmt::format(" <- {}:{}", base_name(file), line);
  return place;
}

std::string make_feedback(const Verdict& verdict, const std::string& source) {
  std::string text = fmt::format("Level {} ({}): {}. {}.\n", static_cast<int>(verdict.level),
                                 name(verdict.level), verdict.reason, verdict.message);
  add_diagnostics(text, verdict, source);
  if (verdict.correctness) add_numbers(text, *verdict.correctness);
  add_other_outputs(text, verdict);
  add_findings(text, verdict, source);
  if (verdict.estimate && verdict.level == Level::strategy)
    text += speed_feedback(*verdict.estimate, kMaxItems);
  for (const std::string& note : verdict.notes) text += "- note: " + note + "\n";
  return text;
}

}  // namespace ptxbench::bench
