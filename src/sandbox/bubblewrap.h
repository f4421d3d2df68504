#pragma once
// The command line of bubblewrap for one sandboxed command.

#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/sandbox.h"

namespace ptxbench::sandbox {

// Path of the bwrap program ("no-sandbox" if there is none).
Result<std::string> find_bubblewrap();

// `bubblewrap` is its path; the child finds the filter at fd `seccomp_fd` and the status pipe at
// `status_fd`. `limit_processes`: set RLIMIT_NPROC inside (for ordinary users; it doesn't bind
// root).
std::vector<std::string> bubblewrap_command(const Command& command, const std::string& bubblewrap,
                                            int seccomp_fd, int status_fd, bool limit_processes);

}  // namespace ptxbench::sandbox
