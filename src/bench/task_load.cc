// Reading a task's folder. Every mistake in a user's file becomes one Error that names file and
// place.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "bench/admission.h"
#include "bench/task.h"
#include "bench/task_load.h"

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
  if (tensor.dtype == "float8_e4m3") tensor.dtype = "float8_e4m3fn";  // older datasets
  tensor.scalar = json.has("shape") && json.json()["shape"].is_null();
  if (tensor.scalar) return tensor;
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

// FlashInfer-Trace allows null where a list may be missing.
Result<std::vector<std::string>> strings_or_none(const JsonRef& object, const char* member) {
  std::vector<std::string> result;
  if (!object.has(member) || object.json()[member].is_null()) return result;
  PB_ASSIGN_OR_RETURN(JsonRef list, object.at(member));
  PB_ASSIGN_OR_RETURN(std::vector<JsonRef> items, list.elements());
  for (const JsonRef& item : items) {
    PB_ASSIGN_OR_RETURN(std::string text, item.string());
    result.push_back(std::move(text));
  }
  return result;
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
  PB_ASSIGN_OR_RETURN(def.tags, strings_or_none(root, "tags"));
  PB_ASSIGN_OR_RETURN(def.constraints, strings_or_none(root, "constraints"));
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

Result<InputSource> parse_input(const JsonRef& ref, const std::filesystem::path& blob_root) {
  InputSource source;
  PB_ASSIGN_OR_RETURN(JsonRef type_ref, ref.at("type"));
  PB_ASSIGN_OR_RETURN(std::string type, type_ref.string());
  if (type == "random") {
    if (!ref.has("range")) return source;
    PB_ASSIGN_OR_RETURN(JsonRef range, ref.at("range"));
    PB_ASSIGN_OR_RETURN(std::vector<JsonRef> ends, range.elements());
    if (ends.size() != 2) return range.error("expected [low, high), two integers");
    PB_ASSIGN_OR_RETURN(source.low, ends[0].integer());
    PB_ASSIGN_OR_RETURN(source.high, ends[1].integer());
    if (source.low >= source.high) return range.error("expected low < high");
    return source;
  }
  if (type == "scalar") {
    source.kind = InputSource::Kind::scalar;
    PB_ASSIGN_OR_RETURN(JsonRef value, ref.at("value"));
    if (value.json().is_boolean()) {
      source.value = value.json().get<bool>() ? 1 : 0;
      return source;
    }
    PB_ASSIGN_OR_RETURN(source.value, value.number());
    return source;
  }
  if (type != "safetensors")
    return type_ref.error(fmt::format(
        "expected \"random\", \"scalar\" or \"safetensors\", found \"{}\"", type.substr(0, 40)));
  source.kind = InputSource::Kind::safetensors;
  PB_ASSIGN_OR_RETURN(JsonRef path, ref.at("path"));
  PB_ASSIGN_OR_RETURN(std::string file, path.string());
  PB_ASSIGN_OR_RETURN(JsonRef key, ref.at("tensor_key"));
  PB_ASSIGN_OR_RETURN(source.tensor_key, key.string());
  source.path = (blob_root / file).lexically_normal();
  source.written_path = file;
  return source;
}

Result<Workload> parse_workload(const std::string& line, const std::string& place,
                                const std::filesystem::path& blob_root) {
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
  if (root.has("inputs") && !root.json()["inputs"].is_null()) {
    PB_ASSIGN_OR_RETURN(JsonRef inputs, root.at("inputs"));
    PB_ASSIGN_OR_RETURN(auto sources, inputs.members());
    for (auto& [name, ref] : sources) {
      PB_ASSIGN_OR_RETURN(workload.inputs[name], parse_input(ref, blob_root));
    }
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

Result<std::vector<Workload>> parse_workloads(const std::string& text, const std::string& file,
                                              const std::filesystem::path& blob_root) {
  std::vector<Workload> workloads;
  size_t begin = 0;
  for (int line_number = 1; begin < text.size(); ++line_number) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    PB_ASSIGN_OR_RETURN(Workload workload,
                        parse_workload(line, fmt::format("{}:{}", file, line_number), blob_root));
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
  PB_ASSIGN_OR_RETURN(requirements.flop, root.string_or("flop", ""));
  if (!root.has("architectures")) return requirements;
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

Result<void> parse_tolerances(const JsonRef& root, Calibration& calibration) {
  if (!root.has("outputs")) return {};
  PB_ASSIGN_OR_RETURN(JsonRef outputs, root.at("outputs"));
  PB_ASSIGN_OR_RETURN(auto members, outputs.members());
  for (auto& [output, ref] : members) {
    Tolerance t;
    PB_ASSIGN_OR_RETURN(t.abs, ref.number_or("abs", t.abs));
    PB_ASSIGN_OR_RETURN(t.rel, ref.number_or("rel", t.rel));
    PB_ASSIGN_OR_RETURN(t.matched_ratio, ref.number_or("matched_ratio", t.matched_ratio));
    if (!(t.abs >= 0) || !(t.rel >= 0) || !(t.matched_ratio > 0) || !(t.matched_ratio <= 1))
      return ref.error("expected abs >= 0, rel >= 0 and 0 < matched_ratio <= 1");
    calibration.tolerances[output] = t;
  }
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
  if (calibration.kind == "tolerance") {
    PB_RETURN_IF_ERROR(parse_tolerances(root, calibration));
    return calibration;
  }
  if (calibration.kind != "single-reduction")
    return kind.error(fmt::format(
        "expected \"single-reduction\", \"rounding-noise\" or \"tolerance\", found \"{}\"",
        calibration.kind));
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

Result<Task> load_task(const std::string& name, const TaskFiles& files) {
  Task task;
  task.folder = files.extras;
  task.files = files;
  auto load_file = [&](const std::filesystem::path& path, auto parse, auto* out) -> Result<void> {
    PB_ASSIGN_OR_RETURN(std::string text, read_task_file(path));
    auto parsed = parse(text, path.string());
    if (!parsed.ok()) return as_bad_task(parsed.error());
    *out = parsed.take();
    return {};
  };
  auto load_optional = [&](const char* file, auto parse, auto* out) -> Result<void> {
    std::error_code error;
    const std::filesystem::path path = files.extras / file;
    if (!std::filesystem::exists(path, error)) return {};
    return load_file(path, parse, out);
  };
  PB_RETURN_IF_ERROR(load_file(files.definition, parse_definition, &task.definition));
  if (task.definition.name != name)
    return bad_task(fmt::format("{}: name is '{}' but the folder is '{}'",
                                files.definition.string(), task.definition.name, name));
  if (!files.workloads.empty()) {
    auto parse = [&](const std::string& text, const std::string& file) {
      return parse_workloads(text, file, files.blob_root);
    };
    PB_RETURN_IF_ERROR(load_file(files.workloads, parse, &task.workloads));
  }
  PB_RETURN_IF_ERROR(load_optional("requirements.json", parse_requirements, &task.requirements));
  PB_RETURN_IF_ERROR(load_optional("calibration.json", parse_calibration, &task.calibration));
  std::error_code error;
  if (std::filesystem::exists(files.extras / "reference.cu", error))
    task.reference_cu = files.extras / "reference.cu";
  task.file_calibration = task.calibration;
  PB_RETURN_IF_ERROR(load_admission(task));
  return task;
}

}  // namespace ptxbench::bench
