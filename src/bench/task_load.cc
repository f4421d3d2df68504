// Reading a task's folder. Every mistake in a user's file becomes one Error that names file and
// place.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/build_config.h"
#include "base/files.h"
#include "base/json.h"
#include "bench/admission.h"
#include "bench/task.h"

namespace ptxbench::bench {
namespace {

constexpr uint64_t kMaxTaskFileBytes = uint64_t{16} << 20;

Error bad_task(const std::string& message) { return Error{"bad-task", message}; }
Error as_bad_task(const Error& error) { return bad_task(error.to_string()); }

Result<std::string> read_task_file(const std::filesystem::path& path) {
  auto text = read_file(path, kMaxTaskFileBytes);
  if (!text.ok()) return as_bad_task(text.error());
  return text;
}

// JSON objects are unordered to our parser, but the order of inputs is the argument order.
std::vector<std::string> keys_in_file_order(const std::string& text, const char* member) {
  std::vector<std::string> keys;
  auto document = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains(member) || !document[member].is_object())
    return keys;
  for (const auto& item : document[member].items()) keys.push_back(item.key());
  return keys;
}

Result<Axis> read_axis(const std::string& name, const JsonRef& json) {
  Axis axis;
  axis.name = name;
  PB_ASSIGN_OR_RETURN(JsonRef type_ref, json.at("type"));
  PB_ASSIGN_OR_RETURN(std::string type, type_ref.string());
  if (type == "const") {
    axis.constant = true;
    PB_ASSIGN_OR_RETURN(JsonRef value_ref, json.at("value"));
    PB_ASSIGN_OR_RETURN(axis.value, value_ref.integer());
  } else if (type != "var") {
    return type_ref.error(fmt::format("expected \"var\" or \"const\", found \"{}\"", type));
  }
  PB_ASSIGN_OR_RETURN(axis.description, json.string_or("description", ""));
  return axis;
}

Result<TensorSpec> read_tensor(const std::string& name, const JsonRef& json) {
  TensorSpec tensor;
  tensor.name = name;
  PB_ASSIGN_OR_RETURN(JsonRef dtype, json.at("dtype"));
  PB_ASSIGN_OR_RETURN(tensor.dtype, dtype.string());
  PB_ASSIGN_OR_RETURN(JsonRef shape, json.at("shape"));
  PB_ASSIGN_OR_RETURN(std::vector<JsonRef> dims, shape.elements());
  for (const JsonRef& dim : dims) {
    if (dim.json().is_string()) {
      tensor.shape.push_back(dim.json().get<std::string>());
      continue;
    }
    PB_ASSIGN_OR_RETURN(int64_t size, dim.integer());
    tensor.shape.push_back(std::to_string(size));
  }
  return tensor;
}

Result<std::vector<TensorSpec>> read_tensors(const std::string& text, const JsonRef& root,
                                             const char* member) {
  std::vector<TensorSpec> tensors;
  PB_ASSIGN_OR_RETURN(JsonRef object, root.at(member));
  for (const std::string& key : keys_in_file_order(text, member)) {
    PB_ASSIGN_OR_RETURN(JsonRef item, object.at(key));
    PB_ASSIGN_OR_RETURN(TensorSpec tensor, read_tensor(key, item));
    tensors.push_back(std::move(tensor));
  }
  if (tensors.empty()) return object.error("expected at least one tensor");
  return tensors;
}

Result<Definition> parse_definition(const std::string& text, const std::string& file) {
  PB_ASSIGN_OR_RETURN(Json document, parse_json(text, file));
  JsonRef root(document, file);
  Definition def;
  PB_ASSIGN_OR_RETURN(JsonRef name, root.at("name"));
  PB_ASSIGN_OR_RETURN(def.name, name.string());
  PB_ASSIGN_OR_RETURN(JsonRef op_type, root.at("op_type"));
  PB_ASSIGN_OR_RETURN(def.op_type, op_type.string());
  PB_ASSIGN_OR_RETURN(def.description, root.string_or("description", ""));
  PB_ASSIGN_OR_RETURN(def.reference, root.string_or("reference", ""));
  if (root.has("tags")) {
    PB_ASSIGN_OR_RETURN(JsonRef tags, root.at("tags"));
    PB_ASSIGN_OR_RETURN(std::vector<JsonRef> items, tags.elements());
    for (const JsonRef& item : items) {
      PB_ASSIGN_OR_RETURN(std::string tag, item.string());
      def.tags.push_back(tag);
    }
  }
  if (root.has("constraints")) {
    PB_ASSIGN_OR_RETURN(JsonRef constraints, root.at("constraints"));
    PB_ASSIGN_OR_RETURN(std::vector<JsonRef> items, constraints.elements());
    for (const JsonRef& item : items) {
      PB_ASSIGN_OR_RETURN(std::string constraint, item.string());
      def.constraints.push_back(constraint);
    }
  }
  PB_ASSIGN_OR_RETURN(JsonRef axes, root.at("axes"));
  for (const std::string& key : keys_in_file_order(text, "axes")) {
    PB_ASSIGN_OR_RETURN(JsonRef item, axes.at(key));
    PB_ASSIGN_OR_RETURN(Axis axis, read_axis(key, item));
    def.axes.push_back(std::move(axis));
  }
  PB_ASSIGN_OR_RETURN(def.inputs, read_tensors(text, root, "inputs"));
  PB_ASSIGN_OR_RETURN(def.outputs, read_tensors(text, root, "outputs"));
  return def;
}

Result<Workload> parse_workload(const std::string& line, const std::string& place) {
  PB_ASSIGN_OR_RETURN(Json document, parse_json(line, place));
  JsonRef root(document, place);
  if (root.has("workload")) {  // a FlashInfer trace without evaluation
    PB_ASSIGN_OR_RETURN(JsonRef inner, root.at("workload"));
    root = inner;
  }
  Workload workload;
  PB_ASSIGN_OR_RETURN(JsonRef uuid, root.at("uuid"));
  PB_ASSIGN_OR_RETURN(workload.uuid, uuid.string());
  PB_ASSIGN_OR_RETURN(JsonRef axes, root.at("axes"));
  PB_ASSIGN_OR_RETURN(auto members, axes.members());
  for (auto& [name, ref] : members) {
    PB_ASSIGN_OR_RETURN(int64_t value, ref.integer());
    workload.axes.emplace_back(name, value);
  }
  PB_ASSIGN_OR_RETURN(workload.published, root.boolean_or("published", true));
  if (root.has("device")) {
    PB_ASSIGN_OR_RETURN(JsonRef device, root.at("device"));
    PB_ASSIGN_OR_RETURN(int64_t sms, device.integer_or("sm_count", 0));
    if (sms < 0 || sms > 1024) return device.error("sm_count is out of range 0..1024");
    workload.sm_count = static_cast<int>(sms);
  }
  return workload;
}

Result<std::vector<Workload>> parse_workloads(const std::string& text, const std::string& file) {
  std::vector<Workload> workloads;
  size_t begin = 0;
  for (int line_number = 1; begin < text.size(); ++line_number) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    PB_ASSIGN_OR_RETURN(Workload workload,
                        parse_workload(line, fmt::format("{}:{}", file, line_number)));
    workloads.push_back(std::move(workload));
  }
  if (workloads.empty()) return bad_task(file + ": no workloads");
  return workloads;
}

Result<Requirements> parse_requirements(const std::string& text, const std::string& file) {
  PB_ASSIGN_OR_RETURN(Json document, parse_json(text, file));
  JsonRef root(document, file);
  Requirements requirements;
  PB_ASSIGN_OR_RETURN(requirements.compute_type, root.string_or("compute_type", ""));
  PB_ASSIGN_OR_RETURN(requirements.min_flop_share, root.number_or("min_flop_share", 0.9));
  PB_ASSIGN_OR_RETURN(JsonRef archs, root.at("architectures"));
  PB_ASSIGN_OR_RETURN(auto members, archs.members());
  for (auto& [name, ref] : members) {
    ArchRequirement arch;
    PB_ASSIGN_OR_RETURN(JsonRef families, ref.at("families"));
    PB_ASSIGN_OR_RETURN(auto items, families.elements());
    for (const JsonRef& item : items) {
      PB_ASSIGN_OR_RETURN(std::string family, item.string());
      arch.families.push_back(family);
    }
    PB_ASSIGN_OR_RETURN(arch.compute, ref.string_or("compute", ""));
    requirements.architectures[name] = std::move(arch);
  }
  return requirements;
}

Result<void> parse_noise_bounds(const JsonRef& root, Calibration& calibration) {
  PB_ASSIGN_OR_RETURN(JsonRef outputs, root.at("outputs"));
  PB_ASSIGN_OR_RETURN(auto members, outputs.members());
  for (auto& [output, ref] : members) {
    NoiseBounds bounds;
    PB_ASSIGN_OR_RETURN(bounds.ratio, ref.number_or("noise_ratio", bounds.ratio));
    PB_ASSIGN_OR_RETURN(bounds.tile_ratio, ref.number_or("tile_noise_ratio", bounds.tile_ratio));
    if (!(bounds.ratio > 0) || !(bounds.tile_ratio > 0))
      return ref.error("expected positive bounds");
    calibration.outputs[output] = bounds;
  }
  if (calibration.outputs.empty()) return outputs.error("expected at least one output");
  return {};
}

Result<Calibration> parse_calibration(const std::string& text, const std::string& file) {
  PB_ASSIGN_OR_RETURN(Json document, parse_json(text, file));
  JsonRef root(document, file);
  Calibration calibration;
  PB_ASSIGN_OR_RETURN(JsonRef kind, root.at("kind"));
  PB_ASSIGN_OR_RETURN(calibration.kind, kind.string());
  if (calibration.kind == "rounding-noise") {
    PB_RETURN_IF_ERROR(parse_noise_bounds(root, calibration));
    return calibration;
  }
  if (calibration.kind != "single-reduction")
    return kind.error(fmt::format(
        "expected \"single-reduction\" or \"rounding-noise\", found \"{}\"", calibration.kind));
  PB_ASSIGN_OR_RETURN(calibration.reduction_axis, root.string_or("reduction_axis", "K"));
  PB_ASSIGN_OR_RETURN(JsonRef bounds, root.at("bounds"));
  PB_ASSIGN_OR_RETURN(calibration.rel_frobenius_factor,
                      bounds.number_or("rel_frobenius_factor", 2));
  PB_ASSIGN_OR_RETURN(calibration.tile_rel_frobenius_factor,
                      bounds.number_or("tile_rel_frobenius_factor", 3));
  PB_ASSIGN_OR_RETURN(calibration.misround_factor, bounds.number_or("misround_factor", 1.5));
  PB_ASSIGN_OR_RETURN(JsonRef misround, bounds.at("misround"));
  PB_ASSIGN_OR_RETURN(calibration.misround, misround.number());
  PB_ASSIGN_OR_RETURN(JsonRef tile, bounds.at("tile_misround"));
  PB_ASSIGN_OR_RETURN(calibration.tile_misround, tile.number());
  PB_ASSIGN_OR_RETURN(JsonRef honest, root.at("honest"));
  PB_ASSIGN_OR_RETURN(std::vector<HonestError> points, parse_honest_points(honest, ""));
  add_honest(points, calibration);
  return calibration;
}

}  // namespace

Result<TaskSuite> TaskSuite::open(const std::filesystem::path& folder) {
  TaskSuite suite;
  suite.folder_ = folder;
  if (suite.folder_.empty()) {
    const char* environment = std::getenv("PTXBENCH_TASKS");
    suite.folder_ =
        environment && *environment ? std::filesystem::path(environment) : source_dir() / "tasks";
  }
  std::error_code error;
  std::filesystem::directory_iterator entries(suite.folder_, error);
  if (error)
    return Error{"io", fmt::format("cannot read the tasks folder {}: {}", suite.folder_.string(),
                                   error.message())};
  for (const auto& entry : entries) {
    if (std::filesystem::exists(entry.path() / "definition.json", error))
      suite.names_.push_back(entry.path().filename().string());
  }
  std::sort(suite.names_.begin(), suite.names_.end());
  return suite;
}

Result<Task> TaskSuite::load(const std::string& name) const {
  if (!std::binary_search(names_.begin(), names_.end(), name)) {
    std::string near;
    for (const std::string& other : nearest_names(name, names_))
      near += (near.empty() ? "; nearest: " : ", ") + other;
    return Error{"usage", fmt::format("no task named '{}' in {}{}", name, folder_.string(), near)};
  }
  Task task;
  task.folder = folder_ / name;
  auto load_file = [&](const char* file, auto parse, auto* out) -> Result<void> {
    const std::filesystem::path path = task.folder / file;
    PB_ASSIGN_OR_RETURN(std::string text, read_task_file(path));
    auto parsed = parse(text, path.string());
    if (!parsed.ok()) return as_bad_task(parsed.error());
    *out = parsed.take();
    return {};
  };
  PB_RETURN_IF_ERROR(load_file("definition.json", parse_definition, &task.definition));
  PB_RETURN_IF_ERROR(load_file("workloads.jsonl", parse_workloads, &task.workloads));
  PB_RETURN_IF_ERROR(load_file("requirements.json", parse_requirements, &task.requirements));
  PB_RETURN_IF_ERROR(load_file("calibration.json", parse_calibration, &task.calibration));
  if (task.definition.name != name)
    return bad_task(fmt::format("{}: name is '{}' but the folder is '{}'",
                                (task.folder / "definition.json").string(), task.definition.name,
                                name));
  task.file_calibration = task.calibration;
  PB_RETURN_IF_ERROR(load_admission(task));
  return task;
}

}  // namespace ptxbench::bench
