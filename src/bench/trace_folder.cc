#include "bench/trace_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"

namespace ptxbench::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFile = uint64_t{64} << 20, kMaxBlob = uint64_t{64} << 30;

Error bad_task(const std::string& message) { return Error{"bad-task", message}; }

// Files below `folder` with the ending, sorted, so that errors do not depend on the file system.
Result<std::vector<fs::path>> files_below(const fs::path& folder, const char* ending) {
  std::vector<fs::path> files;
  std::error_code error;
  if (!fs::exists(folder, error)) return files;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error))
    if (entries->path().extension() == ending) files.push_back(entries->path());
  if (error)
    return Error{"io", fmt::format("cannot read {}: {}", folder.string(), error.message())};
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> name_in(const fs::path& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxFile));
  const auto document = parse_json(text, path.string());
  if (!document.ok()) return bad_task(document.error().to_string());
  const JsonRef root(*document, path.string());
  const auto ref = root.at("name");
  if (!ref.ok()) return bad_task(ref.error().to_string());
  auto name = ref->string();
  if (!name.ok()) return bad_task(name.error().to_string());
  if (name->empty() || name->find('/') != std::string::npos || name->front() == '.')
    return bad_task(fmt::format("{}: \"{}\" is no name for a definition", path.string(), *name));
  return name;
}

// Creates what is missing; leaves what is the same; refuses to replace what differs.
Result<void> put(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  if (fs::exists(path, error)) {
    PB_ASSIGN_OR_RETURN(const std::string old, read_file(path, kMaxBlob));
    if (old == bytes) return {};
    return Error{"usage", fmt::format("{} is there with other contents", path.string())};
  }
  fs::create_directories(path.parent_path(), error);
  return write_file_atomically(path, bytes);
}

// Where a blob lies in the new dataset: as before if it was below the old root, else in a place of
// the task's own.
fs::path new_place(const fs::path& blob, const Task& task) {
  const fs::path relative = blob.lexically_relative(task.files.blob_root.lexically_normal());
  if (!relative.empty() && *relative.begin() == "blob") return relative;
  return fs::path("blob") / "workloads" / task.definition.op_type / task.definition.name /
         blob.filename();
}

// The workload's line with the blobs' new paths; as it was where nothing changes.
Result<std::string> exported_line(const std::string& line, const Task& task, const fs::path& folder,
                                  ExportCounts& counts) {
  auto document = nlohmann::ordered_json::parse(line, nullptr, false);
  if (document.is_discarded()) return bad_task("a workload is no JSON");  // load() has seen it
  auto& workload = document.contains("workload") ? document["workload"] : document;
  bool changed = !document.contains("workload");
  if (workload.contains("inputs") && workload["inputs"].is_object())
    for (auto& [name, source] : workload["inputs"].items()) {
      if (!source.is_object() || source.value("type", "") != "safetensors") continue;
      const std::string path = source.value("path", "");
      const fs::path blob = (task.files.blob_root / path).lexically_normal();
      const fs::path place = new_place(blob, task);
      PB_ASSIGN_OR_RETURN(const std::string bytes, read_file(blob, kMaxBlob));
      PB_RETURN_IF_ERROR(put(folder / place, bytes));
      ++counts.blobs;
      if (fs::path(path).lexically_normal() == place) continue;
      source["path"] = place.generic_string();
      changed = true;
    }
  if (!changed) return line;
  if (document.contains("workload")) return document.dump();
  nlohmann::ordered_json trace;
  trace["definition"] = task.definition.name;
  trace["solution"] = nullptr;
  trace["workload"] = document;
  trace["evaluation"] = nullptr;
  return trace.dump();
}

Result<void> export_workloads(const Task& task, const fs::path& folder, const fs::path& target,
                              ExportCounts& counts) {
  PB_ASSIGN_OR_RETURN(const std::string text, read_file(task.files.workloads, kMaxFile));
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    PB_ASSIGN_OR_RETURN(const std::string written, exported_line(line, task, folder, counts));
    out += written + "\n";
    ++counts.workloads;
  }
  return put(target, out);
}

Result<void> export_task(const Task& task, const fs::path& folder, ExportCounts& counts) {
  const std::string& name = task.definition.name;
  const std::string& op_type = task.definition.op_type;
  if (op_type.empty() || op_type.find('/') != std::string::npos || op_type.front() == '.')
    return bad_task(fmt::format("{}: \"{}\" is no name for an op_type", name, op_type));
  PB_ASSIGN_OR_RETURN(const std::string definition, read_file(task.files.definition, kMaxFile));
  PB_RETURN_IF_ERROR(put(folder / "definitions" / op_type / (name + ".json"), definition));
  if (!task.files.workloads.empty())
    PB_RETURN_IF_ERROR(
        export_workloads(task, folder, folder / "workloads" / op_type / (name + ".jsonl"), counts));
  for (const char* extra :
       {"requirements.json", "calibration.json", "admission.json", "reference.cu"}) {
    std::error_code error;
    if (!fs::exists(task.files.extras / extra, error)) continue;
    PB_ASSIGN_OR_RETURN(const std::string bytes, read_file(task.files.extras / extra, kMaxFile));
    PB_RETURN_IF_ERROR(put(folder / "ptxbench" / name / extra, bytes));
  }
  ++counts.tasks;
  return {};
}

}  // namespace

bool is_trace_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "definitions", error);
}

Result<std::map<std::string, TaskFiles>> trace_folder_tasks(const fs::path& folder) {
  std::map<std::string, TaskFiles> tasks;
  PB_ASSIGN_OR_RETURN(const auto definitions, files_below(folder / "definitions", ".json"));
  for (const fs::path& path : definitions) {
    PB_ASSIGN_OR_RETURN(const std::string name, name_in(path));
    const auto [at, added] = tasks.insert({name, {path, {}, folder / "ptxbench" / name, folder}});
    if (!added)
      return bad_task(fmt::format("{} is defined twice: {} and {}", name,
                                  at->second.definition.string(), path.string()));
  }
  PB_ASSIGN_OR_RETURN(const auto workloads, files_below(folder / "workloads", ".jsonl"));
  for (const fs::path& path : workloads) {
    const auto task = tasks.find(path.stem().string());
    if (task == tasks.end()) continue;  // of a definition that is not in this dataset
    if (!task->second.workloads.empty())
      return bad_task(fmt::format("{} has two files of workloads: {} and {}", task->first,
                                  task->second.workloads.string(), path.string()));
    task->second.workloads = path;
  }
  return tasks;
}

Result<ExportCounts> export_trace_folder(const TaskSuite& suite,
                                         const std::vector<std::string>& names,
                                         const fs::path& folder) {
  ExportCounts counts;
  std::vector<Task> tasks;  // all are read before anything is written
  for (const std::string& name : names) {
    PB_ASSIGN_OR_RETURN(Task task, suite.load(name));
    tasks.push_back(std::move(task));
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Error{"io", fmt::format("cannot create {}: {}", folder.string(), error.message())};
  for (const Task& task : tasks) PB_RETURN_IF_ERROR(export_task(task, folder, counts));
  return counts;
}

}  // namespace ptxbench::bench
