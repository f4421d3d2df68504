#pragma once
// A FlashInfer-Trace dataset as a folder of tasks, in and out:
//
//   definitions/OP_TYPE/NAME.json
//   workloads/OP_TYPE/NAME.jsonl       traces without solution and evaluation
//   blob/workloads/...                 safetensors that workloads name, relative to the root
//   ptxbench/NAME/                     what the format has no place for: requirements.json,
//                                      calibration.json, admission.json, reference.cu
//   solutions/..., traces/...          not read here: solutions are candidates of `eval`
//
// Other tools ignore ptxbench/ and may put their files into any subfolder of the others.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/task.h"

namespace ptxbench::bench {

bool is_trace_folder(const std::filesystem::path& folder);  // has a folder definitions

// By name of the definition. Errors: "io"; "bad-task" for a file that is no definition and for two
// definitions or two workload files of one name.
Result<std::map<std::string, TaskFiles>> trace_folder_tasks(const std::filesystem::path& folder);

struct ExportCounts {
  size_t tasks = 0, workloads = 0, blobs = 0;
};

// Writes tasks of a suite as such a dataset into `folder`, which may hold other tasks already.
// Files are copied byte by byte, so nothing is lost or respelled; only paths of blobs are made
// relative to the new root. Errors: "usage" for a file that is there with other contents, "io",
// those of TaskSuite::load.
Result<ExportCounts> export_trace_folder(const TaskSuite& suite,
                                         const std::vector<std::string>& names,
                                         const std::filesystem::path& folder);

}  // namespace ptxbench::bench
