#pragma once
// Reading one task's files.

#include "base/result.h"
#include "bench/task.h"

namespace ptxbench::bench {

// Error "bad-task" with file and place.
Result<Task> load_task(const std::string& name, const TaskFiles& files);

}  // namespace ptxbench::bench
