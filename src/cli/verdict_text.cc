#include "cli/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/demangle.h"
#include "bench/feedback.h"

namespace ptxbench::cli {
namespace {

using bench::Verdict;

constexpr size_t kMaxFindings = 10, kMaxDiagnostics = 10;

std::string axes_text(const Verdict& v) {
  std::string text;
  for (const auto& [axis, value] : v.axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, value);
  return text;
}

// "with 4 SMs ", where host code was told a number that is not the device's own.
std::string sm_count_text(int sm_count) {
  if (sm_count <= 0) return "";
  return fmt::format("with {} SM{} ", sm_count, sm_count == 1 ? "" : "s");
}

std::string headline(const Verdict& v, const Style& style) {
  const std::string level =
      fmt::format("level {}  {}: {}", static_cast<int>(v.level), name(v.level), v.reason);
  const bool good = v.level >= bench::Level::strategy;
  return style.strong(good ? style.good(level) : style.bad(level)) + "\n  " + v.message + "\n";
}

std::string identity(const Verdict& v, int first_line) {
  std::string where = v.candidate;
  if (first_line > 1)
    where += fmt::format(" (code from line {}; lines below count from there)", first_line);
  std::string workload = v.workload.empty() ? "sizes given by hand" : "workload " + v.workload;
  if (!v.published_workload) workload += " (not a published workload)";
  std::string text = "\n";
  text += fmt::format("candidate  {}\n", where);
  text += fmt::format("task       {}, {}\n", v.definition, workload);
  text += fmt::format("axes       {}\n", axes_text(v));
  if (!v.seed.empty()) text += fmt::format("seed       {}\n", v.seed);
  if (!v.device.empty())
    text += fmt::format("device     {} {}{}, tensor {}, async {}, schedule {}\n", v.device,
                        sm_count_text(v.sm_count), v.arch, v.tensor_mode, v.async_mode, v.schedule);
  text += fmt::format("label      {} ({}), tag {}\n", v.label, v.status, v.tag);
  return text;
}

std::string quote(const Verdict& v, const std::string& source, const std::string& file, int line) {
  std::string text = fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
  if (!bench::is_source_file(file, v)) return text;
  const std::string quoted = bench::source_line(source, line);
  return quoted.empty() ? text : text + " | " + quoted;
}

std::string diagnostics(const Verdict& v, const std::string& source, const Style& style) {
  using Severity = toolchain::Diagnostic::Severity;
  std::string text;
  size_t shown = 0, hidden = 0;
  for (const toolchain::Diagnostic& d : v.diagnostics) {
    if (d.severity == Severity::note) continue;
    if (++shown > kMaxDiagnostics) {
      ++hidden;
      continue;
    }
    const char* word = d.severity == Severity::error     ? "error"
                       : d.severity == Severity::warning ? "warning"
                                                         : "advisory";
    const std::string painted = d.severity == Severity::error ? style.bad(word) : style.warn(word);
    text +=
        fmt::format("  {} {}{}: {}\n", painted, d.tool, d.code.empty() ? "" : " " + d.code, d.text);
    if (d.line > 0) text += "    " + quote(v, source, d.file, d.line) + "\n";
  }
  if (hidden > 0) text += fmt::format("  and {} more\n", hidden);
  return text.empty() ? "" : "\ncompiler\n" + text;
}

std::string correctness(const bench::Correctness& c, const Style& style) {
  auto row = [&](const char* what, const std::string& value, const std::string& allowed,
                 bool good) {
    return fmt::format("  {:<26}{:>12}{:>12}  {}\n", what, value, allowed,
                       good ? style.good("ok") : style.bad("exceeded"));
  };
  auto number = [](double x) { return fmt::format("{:.3g}", x); };
  auto percent = [](double x) { return fmt::format("{:.3f} %", 100 * x); };
  std::string text = fmt::format("\ncorrectness of {}: {} of {} elements compared with fp64\n",
                                 c.output, grouped(c.verified), grouped(c.total));
  text += fmt::format("  {:<26}{:>12}{:>12}\n", "", "measured", "allowed");
  if (c.bound_noise > 0) {
    text += row("error / honest rounding", number(c.noise_ratio), number(c.bound_noise),
                c.noise_ratio <= c.bound_noise);
    text += row("  worst tile", number(c.tile_noise_ratio), number(c.bound_tile_noise),
                c.tile_noise_ratio <= c.bound_tile_noise);
    text += fmt::format("  relative Frobenius error {:.3g}\n", c.rel_frobenius);
  } else if (c.bound_tolerated > 0) {
    text += row("within the tolerance", percent(c.tolerated_ratio), percent(c.bound_tolerated),
                c.tolerated_ratio >= c.bound_tolerated);
    text += fmt::format("  relative Frobenius error {:.3g}\n", c.rel_frobenius);
  } else {
    text += row("relative Frobenius", number(c.rel_frobenius), number(c.bound_rel_frobenius),
                c.rel_frobenius <= c.bound_rel_frobenius);
    text +=
        row("  worst 16x16 tile", number(c.tile_rel_frobenius), number(c.bound_tile_rel_frobenius),
            c.tile_rel_frobenius <= c.bound_tile_rel_frobenius);
    text += row("not correctly rounded", percent(c.misround_rate), percent(c.bound_misround),
                c.misround_rate <= c.bound_misround);
    text += row("  worst 16x16 tile", percent(c.tile_misround_rate), percent(c.bound_tile_misround),
                c.tile_misround_rate <= c.bound_tile_misround);
  }
  text += fmt::format(
      "  largest error {:.3g} absolute, {:.3g} relative; published 1e-2 rule: {} elements fail\n",
      c.max_abs, c.max_rel, grouped(c.rule_a_failures));
  if (c.poisoned > 0)
    text += fmt::format("  {} elements were never written\n", grouped(c.poisoned));
  if (c.class_mismatches > c.poisoned)
    text +=
        fmt::format("  {} elements are NaN or infinite where they should not be, or the reverse\n",
                    grouped(c.class_mismatches - c.poisoned));
  if (c.passed) return text;
  for (size_t i = 0; i < std::min<size_t>(c.worst.size(), 4); ++i)
    text += fmt::format("  {}[{}] = {:.6g}, should be {:.6g}\n", c.output,
                        bench::index_text(c, c.worst[i].row, c.worst[i].column), c.worst[i].actual,
                        c.worst[i].expected);
  if (c.bad_tiles > 0) {
    text += fmt::format(
        "  {} of {} tiles are wrong, rows {}..{}, columns {}..{} (x wrong, ? unwritten):\n",
        c.bad_tiles, c.tiles, c.first_bad_row, c.last_bad_row, c.first_bad_column,
        c.last_bad_column);
    for (const std::string& line : c.map.text()) text += "    " + line + "\n";
  }
  return text;
}

std::string finding(const Verdict& v, const plan::Finding& f, const std::string& source,
                    const Style& style) {
  const char* words[] = {"fatal", "latent", "repaired", "advice"};
  const std::string word = words[static_cast<size_t>(f.hazard)];
  std::string text = fmt::format(
      "  {} {}: {}", f.hazard == plan::HazardClass::fatal ? style.bad(word) : style.warn(word),
      f.kind, f.message);
  if (f.count > 1) text += fmt::format(" [{} times]", grouped(f.count));
  text += "\n";
  if (!f.file.empty()) text += "    " + quote(v, source, f.file, f.line) + "\n";
  for (const auto& [file, line] : f.inlined_at)
    text += "      inlined at " + quote(v, source, file, line) + "\n";
  std::string place =
      f.kernel.empty() ? "" : fmt::format("kernel {}, ", demangled_function(f.kernel));
  if (f.warp >= 0)
    place += fmt::format("CTA ({},{},{}) warp {}, ", f.cta[0], f.cta[1], f.cta[2], f.warp);
  if (!f.symbol.empty()) place += fmt::format("address {}, ", f.symbol);
  if (f.ptx_line > 0) place += fmt::format("PTX line {}: {}, ", f.ptx_line, f.ptx);
  if (place.size() > 2) text += "    " + style.dim(place.substr(0, place.size() - 2)) + "\n";
  if (!f.hint.empty()) text += "    hint: " + f.hint + "\n";
  return text;
}

std::string findings(const Verdict& v, const std::string& source, const Style& style) {
  if (v.findings.empty()) return "";
  std::string text = fmt::format("\nfindings ({})\n", v.findings.size());
  for (size_t i = 0; i < std::min(v.findings.size(), kMaxFindings); ++i)
    text += finding(v, v.findings[i], source, style);
  if (v.findings.size() > kMaxFindings)
    text += fmt::format("  and {} more\n", v.findings.size() - kMaxFindings);
  return text;
}

// Families that tell something about the architecture; the rest is summed up.
bool is_notable(const std::string& family) {
  for (const char* prefix : {"wgmma", "cp.", "mbarrier", "tcgen05", "mma", "fence", "ldmatrix",
                             "stmatrix", "setmaxnreg", "elect", "barrier.cluster", "mapa",
                             "red.async", "st.async", "griddepcontrol", "atom", "red"})
    if (family.rfind(prefix, 0) == 0) return true;
  return false;
}

std::string ledger(const Verdict& v) {
  if (v.evidence.families.empty()) return "";
  std::string text = fmt::format("\n{:<36}{:>10}{:>16}{:>18}\n", "instructions (* required)",
                                 "static", "warps", "threads");
  bench::FamilyEvidence rest;
  size_t others = 0;
  for (const bench::FamilyEvidence& f : v.evidence.families) {
    if (f.required || is_notable(f.family)) {
      text += fmt::format(" {}{:<34}{:>10}{:>16}{:>18}\n", f.required ? '*' : ' ', f.family,
                          grouped(f.static_count), grouped(f.warps), grouped(f.threads));
      continue;
    }
    ++others;
    rest.static_count += f.static_count;
    rest.warps += f.warps;
    rest.threads += f.threads;
  }
  if (others > 0)
    text += fmt::format("  {:<34}{:>10}{:>16}{:>18}\n", fmt::format("{} other families", others),
                        grouped(rest.static_count), grouped(rest.warps), grouped(rest.threads));
  if (v.evidence.tensor_flop > 0)
    text += fmt::format("  tensor FLOP {:.4g} in {}, {:.1f} % of the task's {:.4g}\n",
                        v.evidence.tensor_flop, v.evidence.compute_type,
                        100 * v.evidence.tensor_flop / v.evidence.task_flop, v.evidence.task_flop);
  return text;
}

std::string performance(const Verdict& v) {
  if (!v.performance) return "";
  const bench::Performance& p = *v.performance;
  std::string text = fmt::format("\n{:<24}{:>12}{:>16}\n", "time (medians)", "candidate",
                                 p.baseline_ms > 0 ? "library" : "");
  auto row = [&](const char* what, double a, double b) {
    text += p.baseline_ms > 0 ? fmt::format("  {:<22}{:>9.4g} ms{:>13.4g} ms\n", what, a, b)
                              : fmt::format("  {:<22}{:>9.4g} ms\n", what, a);
  };
  row("kernels", p.candidate_ms, p.baseline_ms);
  row("end to end", p.candidate_end_to_end_ms, p.baseline_end_to_end_ms);
  if (p.baseline_ms > 0)
    text += fmt::format("  speed-up {:.3f}, 95 % within [{:.3f}, {:.3f}], over {}\n", p.speedup,
                        p.speedup_low, p.speedup_high, p.baseline);
  text += fmt::format(
      "  roofline {:.4g} ms: {:.0f} % of the speed of light; an empty launch takes {:.4g} ms\n",
      p.floor_ms, 100 * p.speed_of_light, p.empty_launch_ms);
  text += fmt::format(
      "  {} launches, {} outputs verified; SM clock {} to {} MHz, memory {} MHz, "
      "up to {:.0f} W{}\n",
      p.launches, p.verified, p.sm_mhz_low, p.sm_mhz_high, p.memory_mhz, p.watts_high,
      p.throttle_reasons != 0 ? fmt::format(", throttle reasons {:#x}", p.throttle_reasons) : "");
  for (const std::string& cause : p.causes) text += "  cause: " + cause + "\n";
  return text;
}

std::string stages(const Verdict& v) {
  std::string text = "\nstages    ";
  for (const bench::Stage& s : v.stages)
    text += fmt::format("{} {:.{}f} ms{}  ", s.name, s.ms, s.ms < 10 ? 1 : 0,
                        s.cached ? " (cached)" : "");
  return text + fmt::format("\ntotal     {:.2f} s\n", v.total_ms / 1e3);
}

}  // namespace

std::string speed_text(const bench::SpeedReport& r) {
  std::string text =
      fmt::format("\nestimated time on {}: {:.4g} ms, not measured{}\n", r.machine, r.ms,
                  r.calibrated ? "" : "; the model was never compared with times of this card");
  text += "  at";
  for (const auto& [axis, value] : r.axes) text += fmt::format(" {}={}", axis, value);
  text += fmt::format(", from {} of {} CTAs; bound by {}\n", r.ctas_run, r.ctas, r.bound);
  for (const bench::LaunchEstimate& launch : r.launches) {
    text += fmt::format("  {:<40.40}{:>9.4g} ms, {} CTAs an SM ({}), busiest SM {:.2f}x\n",
                        demangled_function(launch.kernel), launch.ms, launch.ctas_per_sm,
                        launch.limited_by, launch.imbalance);
    std::string parts;
    for (const auto& term : launch.terms)
      if (term.ms > 0.02 * launch.ms)
        parts += fmt::format("{}{} {:.3g} ms", parts.empty() ? "" : ", ", term.name, term.ms);
    text += "    " + parts + "\n";
  }
  for (const bench::SpeedCause& c : r.causes) {
    text += fmt::format("  {:>3.0f} %  {} in {}", 100 * c.cost, c.kind, c.kernel);
    if (!c.file.empty()) text += fmt::format(", {}:{}", c.file, c.line);
    if (c.ptx_line > 0) text += fmt::format(", PTX line {}", c.ptx_line);
    text += "\n         " + c.evidence + "\n         " + c.advice + "\n";
  }
  return text;
}

std::string verdict_text(const Verdict& v, const std::string& source, int first_line,
                         const Style& style) {
  std::string text = headline(v, style) + identity(v, first_line);
  text += diagnostics(v, source, style);
  for (const bench::Correctness& c : v.outputs) text += correctness(c, style);
  text += performance(v);
  if (v.estimate) text += speed_text(*v.estimate);
  text += findings(v, source, style);
  for (size_t i = 0; i < v.notes.size(); ++i)
    text += (i == 0 ? "\nnotes\n  " : "  ") + v.notes[i] + "\n";
  return text + ledger(v) + stages(v);
}

}  // namespace ptxbench::cli
