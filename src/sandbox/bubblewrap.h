#pragma once
// The command line of bubblewrap for one sandboxed command.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/sandbox.h"

namespace ptxbench::sandbox {

// Path of the bwrap program ("no-sandbox" if there is none).
Result<std::string> find_bubblewrap();

// Who the command is. With `uid` (only root can give one) it gets that user id for real and no user
// namespace; without, it is the caller behind a user namespace.
struct Identity {
  std::optional<uint32_t> uid;
  bool limit_processes = false;  // set RLIMIT_NPROC inside; it doesn't bind root
};

// `bubblewrap` is its path; the child finds the filter at fd `seccomp_fd` and the status pipe at
// `status_fd`.
std::vector<std::string> bubblewrap_command(const Command& command, const std::string& bubblewrap,
                                            int seccomp_fd, int status_fd,
                                            const Identity& identity);

}  // namespace ptxbench::sandbox
