#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bench/task.h"
#include "bench/trace_folder.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/tasks_admit.h"

namespace ptxbench::cli {
namespace {

struct TasksOptions {
  std::string folder, name, json, target;
  std::vector<std::string> names;
  bool all = false;
};

std::string tensor_text(const bench::TensorSpec& tensor) {
  if (tensor.scalar) return fmt::format("{} {}, a number", tensor.name, tensor.dtype);
  std::string shape;
  for (const std::string& dim : tensor.shape) shape += (shape.empty() ? "" : ",") + dim;
  return fmt::format("{}[{}] {}", tensor.name, shape, tensor.dtype);
}

nlohmann::json workload_json(const bench::Workload& workload) {
  nlohmann::json axes = nlohmann::json::object();
  for (const auto& [axis, value] : workload.axes) axes[axis] = value;
  return {{"uuid", workload.uuid},
          {"axes", axes},
          {"published", workload.published},
          {"sm_count", workload.sm_count}};
}

nlohmann::json task_json(const bench::Task& task) {
  nlohmann::json json = {{"name", task.definition.name},
                         {"op_type", task.definition.op_type},
                         {"description", task.definition.description},
                         {"tags", task.definition.tags},
                         {"folder", task.folder.string()},
                         {"admission", bench::name(task.admission)},
                         {"workloads", nlohmann::json::array()},
                         {"requires", nlohmann::json::object()}};
  for (const bench::Workload& workload : task.workloads)
    json["workloads"].push_back(workload_json(workload));
  for (const auto& [arch, requirement] : task.requirements.architectures)
    json["requires"][arch] = requirement.families;
  return json;
}

std::string task_text(const bench::Task& task) {
  std::string text = fmt::format("{} ({})\n  {}\n", task.definition.name, task.definition.op_type,
                                 task.definition.description);
  for (const bench::TensorSpec& tensor : task.definition.inputs)
    text += "  in   " + tensor_text(tensor) + "\n";
  for (const bench::TensorSpec& tensor : task.definition.outputs)
    text += "  out  " + tensor_text(tensor) + "\n";
  for (const auto& [arch, requirement] : task.requirements.architectures) {
    std::string families;
    for (const std::string& family : requirement.families)
      families += (families.empty() ? "" : ", ") + family;
    text += fmt::format("  {} requires {}; {} carries at least {:.0f} % of the FLOP in {}\n", arch,
                        families, requirement.compute, 100 * task.requirements.min_flop_share,
                        task.requirements.compute_type);
  }
  text += fmt::format("  admission: {}\n", bench::name(task.admission));
  text += "  workloads\n";
  for (const bench::Workload& workload : task.workloads) {
    std::string axes;
    for (const auto& [axis, value] : workload.axes) axes += fmt::format(" {}={}", axis, value);
    text += fmt::format("    {:<38}{}{}\n", workload.uuid, axes,
                        workload.published ? "" : "  (not published)");
  }
  return text;
}

int list(const TasksOptions& options) {
  auto suite = bench::TaskSuite::open(options.folder);
  if (!suite.ok()) return fail(suite.error());
  nlohmann::json document = nlohmann::json::array();
  std::string text;
  for (const std::string& name : suite->names()) {
    auto task = suite->load(name);
    if (!task.ok()) return fail(task.error());
    size_t published = 0;
    for (const bench::Workload& workload : task->workloads) published += workload.published;
    document.push_back(task_json(*task));
    text += fmt::format("{:<43} {:<11}{} published workloads, {} small{}\n", name,
                        task->definition.op_type, published, task->workloads.size() - published,
                        task->admission == bench::AdmissionState::admitted ? "" : "  NOT ADMITTED");
  }
  if (suite->names().empty()) text = fmt::format("no tasks in {}\n", suite->folder().string());
  if (options.json != "-") print(text);
  if (auto written = write_json(options.json, document); !written.ok())
    return fail(written.error());
  return kOk;
}

int show(const TasksOptions& options) {
  auto suite = bench::TaskSuite::open(options.folder);
  if (!suite.ok()) return fail(suite.error());
  auto task = suite->load(options.name);
  if (!task.ok()) return fail(task.error());
  if (options.json != "-") print(task_text(*task));
  if (auto written = write_json(options.json, task_json(*task)); !written.ok())
    return fail(written.error());
  return kOk;
}

int export_tasks(const TasksOptions& options) {
  if (options.all == !options.names.empty())
    return fail(Error{"usage", "tasks export needs names of tasks or --all"});
  auto suite = bench::TaskSuite::open(options.folder);
  if (!suite.ok()) return fail(suite.error());
  const auto counts = bench::export_trace_folder(
      *suite, options.all ? suite->names() : options.names, options.target);
  if (!counts.ok()) return fail(counts.error());
  print(fmt::format("{}: {} definitions, {} workloads, {} blobs\n", options.target, counts->tasks,
                    counts->workloads, counts->blobs));
  return kOk;
}

}  // namespace

void add_tasks(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App* command = app.add_subcommand("tasks", "The task suite");
  command->require_subcommand(1);
  CLI::App* list_command = command->add_subcommand("list", "All tasks");
  CLI::App* show_command =
      command->add_subcommand("show", "One task: tensors, requirements, workloads");
  show_command->add_option("name", options->name, "Name of the task")->required();
  CLI::App* export_command =
      command->add_subcommand("export", "Write tasks as a FlashInfer-Trace dataset");
  export_command->add_option("folder", options->target, "Folder of the dataset")->required();
  export_command->add_option("names", options->names, "Names of tasks");
  export_command->add_flag("--all", options->all, "All tasks");
  export_command->add_option("--tasks", options->folder,
                             "Folder of task folders, or a FlashInfer-Trace dataset");
  for (CLI::App* sub : {list_command, show_command}) {
    sub->add_option("--tasks", options->folder,
                    "Folder of task folders, or a FlashInfer-Trace dataset");
    add_output_file(*sub, "--json", options->json);
  }
  add_tasks_admit(*command, exit_code);
  list_command->callback([options, &exit_code] { exit_code = list(*options); });
  export_command->callback([options, &exit_code] { exit_code = export_tasks(*options); });
  show_command->callback([options, &exit_code] { exit_code = show(*options); });
}

}  // namespace ptxbench::cli
