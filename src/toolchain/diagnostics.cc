#include "toolchain/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>

namespace ptxbench::toolchain {
namespace {

using Severity = Diagnostic::Severity;

// Keeps a candidate with a million errors from filling memory.
constexpr size_t kMaxDiagnostics = 200;

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

template <class F>
void for_each_line(std::string_view text, F f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    f(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// A decimal number at `*at`, which moves behind it; -1 if there is none.
int number(std::string_view text, size_t* at) {
  int value = -1;
  for (size_t digits = 0; *at < text.size() && digits < 9; ++digits, ++*at) {
    const char c = text[*at];
    if (c < '0' || c > '9') break;
    value = std::max(value, 0) * 10 + (c - '0');
  }
  return value;
}

std::string base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

// "error", "warning", "fatal error", "note", "catastrophic error" at the start of `text`, which
// then begins behind the word.
std::optional<Severity> take_severity(std::string_view* text) {
  static constexpr std::pair<std::string_view, Severity> kWords[] = {
      {"error", Severity::error},     {"fatal error", Severity::error},
      {"warning", Severity::warning}, {"catastrophic error", Severity::error},
      {"note", Severity::note},       {"internal error", Severity::error},
      {"fatal", Severity::error},     {"info", Severity::note},
      {"Error", Severity::error},     {"Fatal error", Severity::error},
  };
  for (const auto& [word, severity] : kWords) {
    if (!starts_with(*text, word)) continue;
    text->remove_prefix(word.size());
    return severity;
  }
  return std::nullopt;
}

// candidate.cu(12): error #20: identifier "foo" is undefined
std::optional<Diagnostic> front_end_line(std::string_view line) {
  const size_t marker = line.find("): ");
  const size_t open = line.substr(0, marker).rfind('(');
  if (marker == std::string_view::npos || open == std::string_view::npos || open == 0) return {};
  size_t at = open + 1;
  const int row = number(line, &at);
  if (row < 0 || at != marker) return {};
  std::string_view rest = line.substr(marker + 3);
  const auto severity = take_severity(&rest);
  if (!severity) return {};
  Diagnostic d{*severity, "cudafe", base_name(line.substr(0, open)), row, 0, "", "", 0, ""};
  rest = trimmed(rest);
  if (starts_with(rest, "#")) {
    const size_t colon = rest.find(':');
    d.code = std::string(rest.substr(0, std::min(colon, rest.size())));
    rest.remove_prefix(std::min(colon, rest.size()));
  }
  if (starts_with(rest, ":")) rest.remove_prefix(1);
  d.text = std::string(trimmed(rest));
  return d;
}

// candidate.cu:12:5: error: text (the column may be missing)
std::optional<Diagnostic> host_compiler_line(std::string_view line) {
  for (size_t colon = line.find(':'); colon != std::string_view::npos;
       colon = line.find(':', colon + 1)) {
    size_t at = colon + 1;
    const int row = number(line, &at);
    if (row < 0 || at >= line.size() || line[at] != ':') continue;
    size_t after = at + 1;
    int column = number(line, &after);
    if (column >= 0 && after < line.size() && line[after] == ':') {
      ++after;
    } else {
      after = at + 1;
      column = 0;
    }
    std::string_view rest = trimmed(line.substr(after));
    const auto severity = take_severity(&rest);
    if (!severity || !starts_with(rest, ":")) continue;
    return Diagnostic{*severity,
                      "host-compiler",
                      base_name(line.substr(0, colon)),
                      row,
                      column,
                      "",
                      std::string(trimmed(rest.substr(1))),
                      0,
                      ""};
  }
  return {};
}

// nvcc fatal   : text; nvcc error   : 'cicc' died due to signal 11
std::optional<Diagnostic> driver_line(std::string_view line) {
  if (!starts_with(line, "nvcc ")) return {};
  std::string_view rest = line.substr(5);
  const auto severity = take_severity(&rest);
  rest = trimmed(rest);
  if (!severity || *severity == Severity::note || !starts_with(rest, ":")) return {};
  return Diagnostic{*severity, "nvcc", "", 0, 0, "", std::string(trimmed(rest.substr(1))), 0, ""};
}

std::optional<Diagnostic> linker_line(std::string_view line) {
  const size_t ld = line.find("ld: ");
  const bool is_ld = ld != std::string_view::npos && (ld == 0 || line[ld - 1] == '/');
  if (!is_ld && !starts_with(line, "collect2: ")) return {};
  std::string_view rest = is_ld ? line.substr(ld + 4) : line.substr(10);
  Diagnostic d{Severity::error, "linker", "", 0, 0, "", "", 0, ""};
  if (starts_with(rest, "warning: ")) {
    d.severity = Severity::warning;
    rest.remove_prefix(9);
  }
  d.text = std::string(trimmed(rest));
  return d;
}

// Registers, shared memory and barriers from "Used 28 registers, used 1 barriers, 16 bytes smem".
void read_usage(std::string_view text, KernelResources* kernel) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (starts_with(part, "Used ") || starts_with(part, "used ")) part.remove_prefix(5);
    size_t at = 0;
    const int value = number(part, &at);
    const std::string_view unit = trimmed(part.substr(std::min(at, part.size())));
    if (value < 0) continue;
    if (starts_with(unit, "registers")) kernel->registers = value;
    if (starts_with(unit, "barriers")) kernel->barriers = value;
    if (starts_with(unit, "bytes smem")) kernel->static_shared = static_cast<uint64_t>(value);
  }
}

void read_stack(std::string_view text, KernelResources* kernel) {
  unsigned long long stack = 0, stores = 0, loads = 0;
  if (sscanf(std::string(text).c_str(),
             "%llu bytes stack frame, %llu bytes spill stores, %llu bytes spill loads", &stack,
             &stores, &loads) != 3)
    return;
  kernel->stack = stack;
  kernel->spill_stores = stores;
  kernel->spill_loads = loads;
}

class AssemblerParser {
 public:
  AssemblerParser(const LineMap& lines, const std::string& arch) : lines_(lines), arch_(arch) {}

  void line(std::string_view text) {
    if (const std::string_view stack = trimmed(text);
        current_ && stack.find("bytes stack frame") != std::string_view::npos)
      return read_stack(stack, current_);
    if (!starts_with(text, "ptxas")) return;
    text = trimmed(text.substr(5));
    int ptx_line = 0;
    // "candidate.ptx, line 52; error   : ..."
    if (const size_t at = text.find(", line "); at != std::string_view::npos) {
      size_t digits = at + 7;
      const int parsed = number(text, &digits);
      if (parsed > 0 && digits < text.size() && text[digits] == ';') {
        ptx_line = parsed;
        text = trimmed(text.substr(digits + 1));
      }
    }
    const auto severity = take_severity(&text);
    text = trimmed(text);
    if (!severity || !starts_with(text, ":")) return;
    message(*severity, trimmed(text.substr(1)), ptx_line);
  }

  AssemblerReport take() {
    for (const KernelResources& kernel : report_.kernels) {
      if (kernel.spill_stores + kernel.spill_loads == 0) continue;
      add({Severity::advisory, "ptxas", "", 0, 0, "spill",
           fmt::format(
               "kernel {} spills registers to local memory: {} bytes stored, {} bytes loaded",
               kernel.name, kernel.spill_stores, kernel.spill_loads),
           0, advisory_hint("spill")});
    }
    return std::move(report_);
  }

 private:
  void message(Severity severity, std::string_view text, int ptx_line) {
    if (severity == Severity::note && resources(text)) return;
    Diagnostic d{severity, "ptxas", "", 0, 0, "", "", ptx_line, ""};
    if (starts_with(text, "(C")) {
      const size_t close = text.find(')');
      d.code = std::string(text.substr(1, std::min(close, text.size()) - 1));
      text = trimmed(text.substr(std::min(close, text.size() - 1) + 1));
      if (severity != Severity::error) d.severity = Severity::advisory;
      d.hint = advisory_hint(d.code);
    }
    d.text = std::string(text);
    if (d.severity == Severity::note) return;  // sizes, times: nothing to tell
    if (d.text == "Ptx assembly aborted due to errors") return;
    locate(&d);
    if (d.severity == Severity::error && is_target_error(text)) {
      report_.wrong_target = true;
      d.hint = target_hint(d.text, arch_);
    }
    add(std::move(d));
  }

  // "Compiling entry function 'k' for 'sm_90a'", "Function properties for k", "Used 28 registers…"
  bool resources(std::string_view text) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (starts_with(text, kEntry)) {
      const std::string_view name = text.substr(kEntry.size());
      report_.kernels.push_back({});
      report_.kernels.back().name = std::string(name.substr(0, name.find('\'')));
      current_ = &report_.kernels.back();
      return true;
    }
    if (starts_with(text, "Function properties for ")) {
      // A device function that was not inlined follows its caller: its figures are not the
      // kernel's.
      const std::string_view name = text.substr(24);
      if (current_ != nullptr && name != current_->name) current_ = nullptr;
      return true;
    }
    if (!starts_with(text, "Used ")) return false;
    if (!report_.kernels.empty()) read_usage(text, &report_.kernels.back());
    return true;
  }

  // Advisories say "in around line 63" in their text.
  void locate(Diagnostic* d) const {
    if (d->ptx_line == 0) {
      const size_t at = d->text.find("line ");
      size_t digits = at + 5;
      if (at != std::string::npos) d->ptx_line = std::max(number(d->text, &digits), 0);
    }
    if (d->ptx_line == 0) return;
    const SourceLocation source = lines_.source_of(d->ptx_line);
    d->file = source.file;
    d->line = source.line;
    d->column = source.column;
  }

  static bool is_target_error(std::string_view text) {
    return text.find("not supported on .target") != std::string_view::npos ||
           text.find("requires .target") != std::string_view::npos ||
           text.find("cannot be compiled for architecture") != std::string_view::npos;
  }

  void add(Diagnostic d) {
    if (report_.diagnostics.size() < kMaxDiagnostics) report_.diagnostics.push_back(std::move(d));
  }

  const LineMap& lines_;
  const std::string& arch_;
  AssemblerReport report_;
  KernelResources* current_ = nullptr;
};

}  // namespace

std::vector<Diagnostic> parse_nvcc(std::string_view text) {
  std::vector<Diagnostic> out;
  for_each_line(text, [&](std::string_view line) {
    if (out.size() >= kMaxDiagnostics) return;
    line = line.substr(0, 4096);
    for (auto* parse : {front_end_line, driver_line, linker_line, host_compiler_line}) {
      if (auto diagnostic = parse(line)) {
        out.push_back(std::move(*diagnostic));
        return;
      }
    }
  });
  return out;
}

AssemblerReport parse_ptxas(std::string_view text, const LineMap& lines, const std::string& arch) {
  AssemblerParser parser(lines, arch);
  for_each_line(text, [&](std::string_view line) { parser.line(line.substr(0, 4096)); });
  return parser.take();
}

}  // namespace ptxbench::toolchain
