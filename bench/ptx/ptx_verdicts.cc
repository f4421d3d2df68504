// What our verifier says to each case of scripts/ptxas_cases.py: standard input has lines of
// target, PTX version and statement, separated by tabs; standard output gets "ok" or the error for
// each.
//
//   ptx_verdicts tests/ptx/ptxas/frame.ptx < cases
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "ptx/parser.h"
#include "ptx/verifier.h"

namespace {

std::string fill(std::string frame, const std::string& key, const std::string& value) {
  size_t at = frame.find(key);
  return at == std::string::npos ? frame : frame.replace(at, key.size(), value);
}

std::string verdict(const std::string& text) {
  auto module = ptxbench::ptx::parse(text);
  if (!module.ok()) return module.error().message;
  auto verified = ptxbench::ptx::verify(*module);
  return verified.ok() ? "ok" : verified.error().message;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: ptx_verdicts FRAME < CASES\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  std::stringstream frame;
  frame << file.rdbuf();
  if (frame.str().empty()) {
    fmt::print(stderr, "cannot read {}\n", argv[1]);
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos) {
      fmt::print(stderr, "not a case: {}\n", line);
      return 2;
    }
    std::string text = fill(frame.str(), "{target}", line.substr(0, first));
    if (line.find("%rq") == std::string::npos) text = fill(text, ".reg .b128 %rq<6>;", "");
    text = fill(text, "{version}", line.substr(first + 1, second - first - 1));
    fmt::print("{}\n", verdict(fill(text, "{statement}", line.substr(second + 1))));
  }
  return 0;
}
