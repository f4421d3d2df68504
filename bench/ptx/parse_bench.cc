// Speed and memory of the PTX front end on one core, beside ptxas on the same file:
//
//   parse_bench FILE.ptx...       (default: the files of tests/ptx/corpus)
//
// MB/s of text parsed and verified (CPU time, so that other work on the machine does not count, the
// best pass of a second), heap bytes of the module per byte of text, and where a ptxas is found the
// wall time of `ptxas -O0` and `ptxas` on it.
#include <fmt/format.h>
#include <malloc.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ptx/parser.h"
#include "ptx/verifier.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

double heap_per_byte(const std::string& text) {
  size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  auto module = ptxbench::ptx::parse(text);
  size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  return module.ok() ? static_cast<double>(after - before) / static_cast<double>(text.size()) : 0;
}

// CPU seconds of one pass over the text, the best of about a second of passes.
double parse_and_verify(const std::string& text, bool verifying) {
  double best = 1e9;
  for (Clock::time_point begin = Clock::now(); seconds_since(begin) < 1;) {
    const double pass = cpu_seconds();
    auto module = ptxbench::ptx::parse(text);
    if (verifying && !ptxbench::ptx::verify(*module).ok()) std::abort();
    best = std::min(best, cpu_seconds() - pass);
  }
  return best;
}

double assemble(const std::string& path, const std::string& target, const std::string& options) {
  const std::string assembler = "/usr/local/cuda/bin/ptxas";
  if (!std::filesystem::exists(assembler)) return 0;
  std::string command =
      fmt::format("{} -arch={} {} -o /dev/null '{}' 2>/dev/null", assembler, target, options, path);
  Clock::time_point begin = Clock::now();
  return std::system(command.c_str()) == 0 ? seconds_since(begin) : 0;
}

int run(const std::string& path) {
  std::string text = read(path);
  auto module = ptxbench::ptx::parse(text, path);
  if (!module.ok()) {
    fmt::print(stderr, "{}\n", module.error().to_string());
    return 2;
  }
  if (auto verified = ptxbench::ptx::verify(*module, path); !verified.ok()) {
    fmt::print(stderr, "{}\n", verified.error().to_string());
    return 2;
  }
  double megabytes = static_cast<double>(text.size()) / 1e6;
  double parsing = parse_and_verify(text, false), both = parse_and_verify(text, true);
  fmt::print(
      "{:<28} {:>8.0f} kB  parse {:>6.1f} MB/s  parse+verify {:>6.1f} MB/s  heap {:>5.1f} x text",
      std::filesystem::path(path).filename().string(), megabytes * 1e3, megabytes / parsing,
      megabytes / both, heap_per_byte(text));
  if (double fast = assemble(path, module->target, "-O0"); fast > 0)
    fmt::print("  ptxas -O0 {:.3f} s, -O3 {:.3f} s, ours {:.4f} s", fast,
               assemble(path, module->target, ""), both);
  fmt::print("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files(argv + 1, argv + argc);
  if (files.empty())
    for (const auto& entry : std::filesystem::directory_iterator(PTX_CORPUS))
      if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  int worst = 0;
  for (const std::string& file : files) worst = std::max(worst, run(file));
  return worst;
}
