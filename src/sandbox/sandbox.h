#pragma once
// Runs one command line isolated: bubblewrap (no network, read-only root, private /tmp, no devices,
// own pid namespace, no /proc), a seccomp filter, rlimits, and budgets for wall time, processes and
// output. Started by root, a command runs under a user id of its own that no one else has, and its
// writable folders are handed to that user.
//
// What a command sees: /usr (with /bin, /lib*, /sbin), the loader cache, `read_only` and `writable`
// paths at their own places, an empty /tmp of `tmp_bytes`, null devices, and the environment given;
// nothing else.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptxbench::sandbox {

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of `environment`
  std::vector<std::pair<std::string, std::string>>
      environment;                               // the whole of it; nothing inherited
  std::vector<std::filesystem::path> read_only;  // extra paths visible at the same place
  std::vector<std::filesystem::path> writable;   // the only places where writes outlive the process
  std::filesystem::path working_directory = "/tmp";
  std::string stdin_text;
  double wall_s = 60;
  uint64_t memory_bytes = uint64_t{4} << 30;  // address space of each process
  // Of all processes and /tmp together; holds where control groups can be made (root).
  uint64_t total_memory_bytes = uint64_t{8} << 30;
  uint64_t file_bytes = uint64_t{1} << 30;    // largest file
  uint64_t tmp_bytes = uint64_t{1} << 30;     // size of the private /tmp
  uint64_t output_bytes = uint64_t{4} << 20;  // stdout and stderr each; the rest is cut and noted
  uint32_t processes = 256;
  bool trust = false;  // run without isolation (budgets still hold) if none is available
};

struct Outcome {
  int exit_code = 0;  // valid if !signal and !timed_out
  // The terminating signal, 0 if none. A command that itself exits with 128 + n (n a signal number)
  // is indistinguishable from one killed by n and reported as killed.
  int signal = 0;
  bool timed_out = false;
  bool output_truncated = false;
  bool isolated = true;  // false: ran with `trust` on a machine without isolation
  std::string out, err;
  double wall_ms = 0;
};

// Returns once no process of the command is left. An Error ("no-sandbox", "io", "usage") means the
// command was not run: "usage" for a program that does not exist or a path that is not there.
Result<Outcome> run(const Command& command);

// How the number of processes is limited here, for people: "own user id", "control group", ...;
// "wall time only" if it is not. Tried once per process.
std::string process_limit();

// Whether isolation works on this machine, and why not ("no-sandbox"). Tried once per process.
Result<void> available();

// Reads a file that a sandboxed command may have written: refuses links, devices, fifos,
// directories and anything longer than max_bytes ("io").
Result<std::string> read_untrusted_file(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace ptxbench::sandbox
