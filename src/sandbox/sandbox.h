#pragma once
// Runs one command line isolated: bubblewrap (no network, read-only root, private /tmp, no devices, own pid
// namespace), a seccomp filter, rlimits, and budgets for wall time and output.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::sandbox {

struct Command {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;   // the whole environment; nothing inherited
  std::vector<std::filesystem::path> read_only;    // extra paths visible at the same place
  std::vector<std::filesystem::path> writable;     // the only places where writes outlive the process
  std::filesystem::path working_directory = "/tmp";
  std::string stdin_text;
  double wall_s = 60;
  uint64_t memory_bytes = uint64_t{4} << 30;       // address space
  uint64_t file_bytes = uint64_t{1} << 30;         // largest file
  uint64_t output_bytes = uint64_t{4} << 20;       // stdout and stderr each; the rest is cut and noted
  uint32_t processes = 256;
  bool trust = false;                              // run without isolation if none is available
};

struct Outcome {
  int exit_code = 0;             // valid if !signaled and !timed_out
  int signal = 0;                // the terminating signal, 0 if none
  bool timed_out = false;
  bool output_truncated = false;
  std::string out, err;
  double wall_ms = 0;
};

// An Error ("no-sandbox", "io") means the command was not run.
Result<Outcome> run(const Command& command);
// Whether isolation works on this machine, and why not.
Result<void> available();

}  // namespace ptxbench::sandbox
