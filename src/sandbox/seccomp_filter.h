#pragma once
// The system calls a sandboxed command may not make, as a BPF program.

#include <string>

#include "base/result.h"

namespace ptxbench::sandbox {

// The filter's bytes as `bwrap --seccomp FD` reads them. Built once. Error: "no-sandbox".
Result<std::string> seccomp_program();

}  // namespace ptxbench::sandbox
