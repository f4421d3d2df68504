// Where the tasks of a folder are.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/build_config.h"
#include "bench/task.h"
#include "bench/task_load.h"
#include "bench/trace_folder.h"

namespace ptxbench::bench {
namespace {

namespace fs = std::filesystem;

Result<std::map<std::string, TaskFiles>> task_folders(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error)
    return Error{
        "io", fmt::format("cannot read the tasks folder {}: {}", folder.string(), error.message())};
  std::map<std::string, TaskFiles> files;
  for (const auto& entry : entries) {
    const fs::path& path = entry.path();
    if (!fs::exists(path / "definition.json", error)) continue;
    TaskFiles& task = files[path.filename().string()];
    task = {path / "definition.json", path / "workloads.jsonl", path, path};
    if (!fs::exists(task.workloads, error)) task.workloads.clear();
  }
  return files;
}

}  // namespace

Result<TaskSuite> TaskSuite::open(const fs::path& folder) {
  TaskSuite suite;
  suite.folder_ = folder;
  if (suite.folder_.empty()) {
    const char* environment = std::getenv("PTXBENCH_TASKS");
    suite.folder_ = environment && *environment ? fs::path(environment) : source_dir() / "tasks";
  }
  PB_ASSIGN_OR_RETURN(suite.files_, is_trace_folder(suite.folder_)
                                        ? trace_folder_tasks(suite.folder_)
                                        : task_folders(suite.folder_));
  for (const auto& [name, files] : suite.files_) suite.names_.push_back(name);
  return suite;
}

const TaskFiles* TaskSuite::files(const std::string& name) const {
  const auto found = files_.find(name);
  return found == files_.end() ? nullptr : &found->second;
}

Result<Task> TaskSuite::load(const std::string& name) const {
  if (const TaskFiles* found = files(name)) return load_task(name, *found);
  std::string near;
  for (const std::string& other : nearest_names(name, names_))
    near += (near.empty() ? "; nearest: " : ", ") + other;
  return Error{"usage", fmt::format("no task named '{}' in {}{}", name, folder_.string(), near)};
}

}  // namespace ptxbench::bench
