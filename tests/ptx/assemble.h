#pragma once
// ptxas on a text, where there is one: whether it takes it, and what it complains about.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ptxbench::ptx {

inline std::string find_assembler() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/local/bin/ptxas", "/usr/bin/ptxas"})
    if (std::filesystem::exists(path)) return path;
  return "";
}

struct Assembled {
  bool ok = false;
  int advisories = 0, spilling = 0;  // C75xx lines; kernels that spill
  std::string log;
};

inline Assembled assemble(const std::string& ptx, const std::string& target) {
  Assembled out;
  const std::string file =
      testing::TempDir() + "assembled_" + std::to_string(std::hash<std::string>{}(ptx)) + ".ptx";
  std::ofstream(file) << ptx;
  const std::string command = find_assembler() + " -v -arch=" + target + " -o /dev/null " + file +
                              " > " + file + ".log 2>&1";
  out.ok = std::system(command.c_str()) == 0;
  std::stringstream log;
  log << std::ifstream(file + ".log").rdbuf();
  out.log = log.str();
  for (std::string line; std::getline(log, line);) {
    out.advisories += line.find("(C75") != std::string::npos;
    out.spilling += line.find("spill stores") != std::string::npos &&
                    line.find(" 0 bytes spill stores, 0 bytes spill loads") == std::string::npos;
  }
  std::filesystem::remove(file);
  std::filesystem::remove(file + ".log");
  return out;
}

}  // namespace ptxbench::ptx
