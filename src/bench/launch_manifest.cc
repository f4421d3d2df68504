#include "bench/launch_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/hash.h"
#include "bench/expression.h"
#include "cudart/lib/profiles.h"

namespace ptxbench::bench {
namespace {

using cudart::wire::KernelInfo;

constexpr size_t kMaxLaunches = 1000, kMaxScratch = 64, kMaxMaps = 64, kMaxConstants = 1000;
constexpr int64_t kMaxScratchBytes = int64_t{64} << 30;
constexpr int64_t kSharedPerBlock = cudart::DeviceProfile::kSharedPerBlockOptin;
constexpr int64_t kRegisters = cudart::DeviceProfile::kRegistersPerSm;

int profile_sms(const std::string& key) {
  const cudart::DeviceProfile* profile = cudart::find_profile(key.c_str());
  return profile != nullptr ? profile->sms : 0;
}

template <class T>
struct Word {
  const char* name;
  T value;
};
constexpr Word<plan::MapSwizzle> kSwizzles[] = {{"none", plan::MapSwizzle::none},
                                                {"32B", plan::MapSwizzle::b32},
                                                {"64B", plan::MapSwizzle::b64},
                                                {"128B", plan::MapSwizzle::b128}};
constexpr Word<plan::MapInterleave> kInterleaves[] = {{"none", plan::MapInterleave::none},
                                                      {"16B", plan::MapInterleave::b16},
                                                      {"32B", plan::MapInterleave::b32}};
constexpr Word<uint8_t> kPromotions[] = {{"none", 0}, {"64B", 1}, {"128B", 2}, {"256B", 3}};
constexpr Word<bool> kFills[] = {{"zeros", false}, {"nan", true}};
constexpr Word<plan::MapType> kTypes[] = {{"uint8", plan::MapType::u8},
                                          {"uint16", plan::MapType::u16},
                                          {"uint32", plan::MapType::u32},
                                          {"int32", plan::MapType::s32},
                                          {"uint64", plan::MapType::u64},
                                          {"int64", plan::MapType::s64},
                                          {"float16", plan::MapType::f16},
                                          {"float32", plan::MapType::f32},
                                          {"float64", plan::MapType::f64},
                                          {"bfloat16", plan::MapType::bf16},
                                          {"float32_ftz", plan::MapType::f32_ftz},
                                          {"tfloat32", plan::MapType::tf32},
                                          {"tfloat32_ftz", plan::MapType::tf32_ftz}};

// The value of a word in `ref`'s member `key`, or `fallback` where the member is missing.
template <class T, size_t N>
Result<T> choose(const JsonRef& ref, const char* key, const Word<T> (&words)[N],
                 const char* fallback) {
  PB_ASSIGN_OR_RETURN(const std::string chosen, ref.string_or(key, fallback));
  std::string known;
  for (const Word<T>& word : words) {
    if (chosen == word.name) return word.value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word.name);
  }
  return ref.error(
      fmt::format("{} is \"{}\", expected one of {}", key, chosen.substr(0, 40), known));
}

Result<void> only_keys(const JsonRef& ref, std::initializer_list<const char*> known) {
  PB_ASSIGN_OR_RETURN(const auto members, ref.members());
  for (const auto& [key, value] : members)
    if (std::none_of(known.begin(), known.end(), [&](const char* k) { return key == k; }))
      return ref.error(fmt::format("unknown field \"{}\"", key.substr(0, 40)));
  return {};
}

class Builder {
 public:
  Builder(const ManifestRequest& request, const cudart::KernelTable& table)
      : request_(request), table_(table) {}

  Result<plan::LaunchPlan> build(const JsonRef& root) {
    PB_RETURN_IF_ERROR(only_keys(root, {"ptx", "constants", "scratch", "tensor_maps", "launches"}));
    for (const auto& [axis, value] : request_.axes) names_[axis] = value;
    names_["sm_count"] =
        request_.sm_count > 0 ? request_.sm_count : profile_sms(request_.device_profile);
    plan_.arch = request_.arch;
    plan_.device_profile = request_.device_profile;
    plan_.definition = request_.definition;
    plan_.axes = request_.axes;
    plan_.modules.push_back(
        {hash_hex(std::string_view(request_.ptx)), request_.ptx, request_.cubin});
    add_tensors();
    if (root.has("constants")) PB_RETURN_IF_ERROR(add_constants(root.at("constants").take()));
    if (root.has("scratch")) PB_RETURN_IF_ERROR(add_scratch(root.at("scratch").take()));
    if (root.has("tensor_maps")) PB_RETURN_IF_ERROR(add_maps(root.at("tensor_maps").take()));
    PB_ASSIGN_OR_RETURN(const JsonRef launches, root.at("launches"));
    PB_ASSIGN_OR_RETURN(const auto steps, launches.elements());
    if (steps.empty()) return launches.error("expected at least one launch");
    if (steps.size() > kMaxLaunches) return launches.error("too many launches");
    for (const JsonRef& step : steps)
      PB_RETURN_IF_ERROR(step.has("memset") ? add_memset(step) : add_launch(step));
    return std::move(plan_);
  }

 private:
  // A number, or an expression as a string.
  Result<int64_t> value(const JsonRef& ref, int64_t least, int64_t most) const {
    int64_t out = 0;
    if (ref.json().is_string()) {
      PB_ASSIGN_OR_RETURN(const std::string text, ref.string());
      const auto evaluated = evaluate_expression(text, names_);
      if (!evaluated.ok()) return ref.error(evaluated.error().message);
      out = *evaluated;
    } else {
      PB_ASSIGN_OR_RETURN(out, ref.integer());
    }
    if (out < least || out > most)
      return ref.error(fmt::format("{} is out of range {}..{}", out, least, most));
    return out;
  }
  Result<int64_t> value_or(const JsonRef& ref, const char* key, int64_t fallback, int64_t least,
                           int64_t most) const {
    if (!ref.has(key)) return fallback;
    PB_ASSIGN_OR_RETURN(const JsonRef member, ref.at(key));
    return value(member, least, most);
  }
  Result<std::vector<int64_t>> values(const JsonRef& ref, size_t fewest, size_t most_elements,
                                      int64_t least, int64_t most) const {
    PB_ASSIGN_OR_RETURN(const auto elements, ref.elements());
    if (elements.size() < fewest || elements.size() > most_elements)
      return ref.error(
          fmt::format("has {} elements, expected {}..{}", elements.size(), fewest, most_elements));
    std::vector<int64_t> out;
    for (const JsonRef& element : elements) {
      PB_ASSIGN_OR_RETURN(const int64_t item, value(element, least, most));
      out.push_back(item);
    }
    return out;
  }

  void add_tensors() {
    for (size_t i = 0; i < request_.arguments.size(); ++i) {
      plan::Buffer buffer;
      buffer.name = request_.arguments[i].name;
      buffer.argument = static_cast<uint32_t>(i);
      buffer.size = cudart::byte_size(request_.arguments[i]);
      plan_.buffers.push_back(std::move(buffer));
    }
  }

  Result<void> add_constants(const JsonRef& ref) {
    PB_ASSIGN_OR_RETURN(const auto members, ref.members());
    if (members.size() > kMaxConstants) return ref.error("too many constants");
    Names added;  // a constant sees axes only, so that order plays no part
    for (const auto& [name, item] : members) {
      if (names_.count(name) != 0) return item.error("is an axis already");
      PB_ASSIGN_OR_RETURN(added[name], value(item, INT64_MIN, INT64_MAX));
    }
    names_.insert(added.begin(), added.end());
    return {};
  }

  std::optional<uint32_t> find_buffer(const std::string& name) const {
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      if (plan_.buffers[i].name == name) return static_cast<uint32_t>(i);
    return std::nullopt;
  }

  Result<void> add_scratch(const JsonRef& ref) {
    PB_ASSIGN_OR_RETURN(const auto members, ref.members());
    if (members.size() > kMaxScratch) return ref.error("too many scratch buffers");
    for (const auto& [name, item] : members) {
      if (find_buffer(name)) return item.error("is a tensor of the task already");
      plan::Buffer buffer;
      buffer.name = name;
      buffer.role = plan::BufferRole::scratch;
      PB_ASSIGN_OR_RETURN(const int64_t bytes, value(item, 1, kMaxScratchBytes));
      buffer.size = static_cast<uint64_t>(bytes);
      plan_.buffers.push_back(std::move(buffer));
    }
    return {};
  }

  // {"buffer": name, "offset": bytes}
  Result<plan::BufferRef> place(const JsonRef& ref, const char* key) const {
    PB_ASSIGN_OR_RETURN(const JsonRef member, ref.at(key));
    PB_ASSIGN_OR_RETURN(const std::string name, member.string());
    const auto buffer = find_buffer(name);
    if (!buffer)
      return member.error(
          fmt::format("\"{}\" is neither a tensor nor a scratch buffer", name.substr(0, 40)));
    PB_ASSIGN_OR_RETURN(
        const int64_t offset,
        value_or(ref, "offset", 0, 0, static_cast<int64_t>(plan_.buffers[*buffer].size)));
    return plan::BufferRef{*buffer, static_cast<uint64_t>(offset)};
  }

  Result<void> add_maps(const JsonRef& ref) {
    PB_ASSIGN_OR_RETURN(const auto members, ref.members());
    if (members.size() > kMaxMaps) return ref.error("too many tensor maps");
    for (const auto& [name, item] : members) {
      PB_ASSIGN_OR_RETURN(plan::TensorMap map, tensor_map(item));
      map_names_.push_back(name);
      plan_.tensor_maps.push_back(std::move(map));
    }
    return {};
  }

  Result<plan::TensorMap> tensor_map(const JsonRef& ref) const {
    PB_RETURN_IF_ERROR(
        only_keys(ref, {"buffer", "offset", "type", "dims", "strides", "box", "element_strides",
                        "swizzle", "interleave", "l2_promotion", "fill"}));
    plan::TensorMap map;
    plan::TensorMapArgs& args = map.args;
    PB_ASSIGN_OR_RETURN(map.address, place(ref, "buffer"));
    PB_ASSIGN_OR_RETURN(args.type, choose(ref, "type", kTypes, "bfloat16"));
    PB_ASSIGN_OR_RETURN(args.swizzle, choose(ref, "swizzle", kSwizzles, "none"));
    PB_ASSIGN_OR_RETURN(args.interleave, choose(ref, "interleave", kInterleaves, "none"));
    PB_ASSIGN_OR_RETURN(args.l2_promotion, choose(ref, "l2_promotion", kPromotions, "none"));
    PB_ASSIGN_OR_RETURN(args.nan_fill, choose(ref, "fill", kFills, "zeros"));
    PB_ASSIGN_OR_RETURN(const JsonRef dims_ref, ref.at("dims"));
    PB_ASSIGN_OR_RETURN(const auto dims, values(dims_ref, 1, 5, 1, int64_t{1} << 32));
    args.rank = static_cast<uint32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), args.dims.begin());
    // Without "strides" the tensor is dense.
    int64_t dense = plan::element_size(args.type);
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
      if (__builtin_mul_overflow(dense, dims[i], &dense))
        return ref.error("the tensor is too large");
      args.strides[i] = static_cast<uint64_t>(dense);
    }
    if (ref.has("strides")) {
      PB_ASSIGN_OR_RETURN(const auto strides, values(ref.at("strides").take(), dims.size() - 1,
                                                     dims.size() - 1, 0, int64_t{1} << 40));
      std::copy(strides.begin(), strides.end(), args.strides.begin());
    }
    PB_ASSIGN_OR_RETURN(const JsonRef box_ref, ref.at("box"));
    PB_ASSIGN_OR_RETURN(const auto box, values(box_ref, dims.size(), dims.size(), 1, 256));
    for (size_t i = 0; i < dims.size(); ++i) {
      args.box[i] = static_cast<uint32_t>(box[i]);
      args.element_strides[i] = 1;
    }
    if (ref.has("element_strides")) {
      PB_ASSIGN_OR_RETURN(const auto steps,
                          values(ref.at("element_strides").take(), dims.size(), dims.size(), 1, 8));
      for (size_t i = 0; i < dims.size(); ++i)
        args.element_strides[i] = static_cast<uint32_t>(steps[i]);
    }
    plan::TensorMapArgs checked = args;
    checked.global_address = map.address.offset;
    if (auto ok = plan::check(checked); !ok.ok()) return ref.error(ok.error().message);
    return map;
  }

  Result<void> add_memset(const JsonRef& ref) {
    PB_RETURN_IF_ERROR(only_keys(ref, {"memset", "offset", "bytes", "value"}));
    plan::Memset memset;
    PB_ASSIGN_OR_RETURN(memset.dst, place(ref, "memset"));
    const auto left =
        static_cast<int64_t>(plan_.buffers[memset.dst.buffer].size - memset.dst.offset);
    PB_ASSIGN_OR_RETURN(const int64_t bytes, value_or(ref, "bytes", left, 0, left));
    PB_ASSIGN_OR_RETURN(const int64_t byte, value_or(ref, "value", 0, 0, 255));
    memset.bytes = static_cast<uint64_t>(bytes);
    memset.value = static_cast<uint32_t>(byte);
    plan_.steps.emplace_back(memset);
    return {};
  }

  Result<plan::Dim3> dim3(const JsonRef& ref, const char* key) const {
    PB_ASSIGN_OR_RETURN(const JsonRef member, ref.at(key));
    PB_ASSIGN_OR_RETURN(auto extents, values(member, 1, 3, 0, UINT32_MAX));
    extents.resize(3, 1);
    return plan::Dim3{static_cast<uint32_t>(extents[0]), static_cast<uint32_t>(extents[1]),
                      static_cast<uint32_t>(extents[2])};
  }

  Result<void> add_launch(const JsonRef& ref) {
    PB_RETURN_IF_ERROR(only_keys(
        ref, {"kernel", "grid", "block", "cluster", "dynamic_shared", "cooperative", "arguments"}));
    PB_ASSIGN_OR_RETURN(const JsonRef kernel_ref, ref.at("kernel"));
    PB_ASSIGN_OR_RETURN(const std::string name, kernel_ref.string());
    const auto kernel = std::find_if(table_.kernels.begin(), table_.kernels.end(),
                                     [&](const KernelInfo& k) { return k.name == name; });
    if (kernel == table_.kernels.end())
      return kernel_ref.error(fmt::format("the PTX has no kernel \"{}\"", name.substr(0, 80)));
    plan::Launch launch;
    launch.kernel = name;
    PB_ASSIGN_OR_RETURN(launch.grid, dim3(ref, "grid"));
    PB_ASSIGN_OR_RETURN(launch.block, dim3(ref, "block"));
    launch.explicit_cluster = ref.has("cluster") || kernel->required_cluster[0] != 0;
    if (ref.has("cluster")) {
      PB_ASSIGN_OR_RETURN(launch.cluster, dim3(ref, "cluster"));
    } else if (kernel->required_cluster[0] != 0) {
      const uint32_t* c = kernel->required_cluster;
      launch.cluster = {c[0], std::max(c[1], 1u), std::max(c[2], 1u)};
    }
    PB_ASSIGN_OR_RETURN(const int64_t shared,
                        value_or(ref, "dynamic_shared", 0, 0, kSharedPerBlock));
    launch.dynamic_shared_bytes = launch.max_dynamic_shared_bytes = static_cast<uint32_t>(shared);
    PB_ASSIGN_OR_RETURN(launch.cooperative, ref.boolean_or("cooperative", false));
    PB_RETURN_IF_ERROR(check_against_kernel(ref, launch, *kernel));
    PB_RETURN_IF_ERROR(add_arguments(ref, *kernel, launch.params));
    plan_.steps.emplace_back(std::move(launch));
    return {};
  }

  // What a driver would refuse.
  static Result<void> check_against_kernel(const JsonRef& ref, const plan::Launch& launch,
                                           const KernelInfo& kernel) {
    const auto refuse = [&](const std::string& why) {
      return Error{"launch-refused",
                   fmt::format("{}: launch of {}: {}", ref.path(), kernel.name, why)};
    };
    if (auto ok = plan::check_launch(launch); !ok.ok())
      return Error{"launch-refused", fmt::format("{}: {}", ref.path(), ok.error().message)};
    const uint32_t block[3] = {launch.block.x, launch.block.y, launch.block.z};
    const uint32_t cluster[3] = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
    if (launch.block.count() > kernel.max_threads)
      return refuse(fmt::format("{} threads a block, at most {} (.maxntid)", launch.block.count(),
                                kernel.max_threads));
    for (int i = 0; i < 3; ++i) {
      if (kernel.required_block[i] != 0 && kernel.required_block[i] != block[i])
        return refuse("the block is not the one that .reqntid demands");
      if (kernel.required_cluster[i] != 0 && kernel.required_cluster[i] != cluster[i])
        return refuse("the cluster is not the one that .reqnctapercluster demands");
    }
    if (int64_t{launch.dynamic_shared_bytes} + kernel.static_shared > kSharedPerBlock)
      return refuse(fmt::format("{} bytes of shared memory, at most {}",
                                launch.dynamic_shared_bytes + kernel.static_shared,
                                kSharedPerBlock));
    if (static_cast<int64_t>(launch.block.count()) * kernel.registers > kRegisters)
      return refuse(fmt::format("{} threads with {} registers each do not fit on an SM",
                                launch.block.count(), kernel.registers));
    return {};
  }

  Result<void> add_arguments(const JsonRef& ref, const KernelInfo& kernel,
                             plan::Blob& params) const {
    PB_ASSIGN_OR_RETURN(const JsonRef list, ref.at("arguments"));
    PB_ASSIGN_OR_RETURN(const auto arguments, list.elements());
    if (arguments.size() != kernel.params.size())
      return list.error(fmt::format("{} arguments, but {} takes {}", arguments.size(), kernel.name,
                                    kernel.params.size()));
    params.bytes.assign(kernel.param_bytes, 0);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const cudart::wire::ParamSlot& slot = kernel.params[i];
      PB_ASSIGN_OR_RETURN(const uint64_t end, add_argument(arguments[i], slot.offset, params,
                                                           slot.offset + slot.bytes));
      if (end != uint64_t{slot.offset} + slot.bytes && !arguments[i].has("struct"))
        return arguments[i].error(fmt::format("has {} bytes, but parameter {} of {} has {}",
                                              end - slot.offset, i, kernel.name, slot.bytes));
    }
    return {};
  }

  // Writes one argument at `at` and returns where it ends; `limit` is the parameter's end.
  Result<uint64_t> add_argument(const JsonRef& ref, uint64_t at, plan::Blob& params,
                                uint64_t limit) const {
    PB_ASSIGN_OR_RETURN(const auto members, ref.members());
    const auto put = [&](const void* data, uint64_t bytes) -> Result<uint64_t> {
      if (at + bytes > limit)
        return ref.error(fmt::format("needs {} bytes where the parameter has {} left", bytes,
                                     limit > at ? limit - at : 0));
      if (data != nullptr) std::memcpy(params.bytes.data() + at, data, bytes);
      return at + bytes;
    };
    if (ref.has("buffer")) {
      PB_RETURN_IF_ERROR(only_keys(ref, {"buffer", "offset"}));
      PB_ASSIGN_OR_RETURN(const plan::BufferRef target, place(ref, "buffer"));
      PB_ASSIGN_OR_RETURN(const uint64_t end, put(nullptr, 8));
      params.pointers.push_back({at, target});
      return end;
    }
    if (members.size() != 1)
      return ref.error("expected one of buffer, tensor_map, struct, i32, u32, i64, u64, f32, f64");
    const auto& [kind, item] = members.front();
    if (kind == "tensor_map") {
      PB_ASSIGN_OR_RETURN(const std::string name, item.string());
      const auto found = std::find(map_names_.begin(), map_names_.end(), name);
      if (found == map_names_.end())
        return item.error(fmt::format("no tensor map \"{}\"", name.substr(0, 40)));
      PB_ASSIGN_OR_RETURN(const uint64_t end, put(nullptr, 128));
      params.tensor_maps.push_back({at, static_cast<uint32_t>(found - map_names_.begin())});
      return end;
    }
    if (kind == "struct") return add_struct(item, at, params, limit);
    if (kind == "f32" || kind == "f64") {
      PB_ASSIGN_OR_RETURN(const double number, item.number());
      const auto single = static_cast<float>(number);
      return kind == "f32" ? put(&single, 4) : put(&number, 8);
    }
    const bool wide = kind == "i64" || kind == "u64", sign = kind == "i32" || kind == "i64";
    if (!wide && kind != "i32" && kind != "u32")
      return ref.error(fmt::format("unknown kind of argument \"{}\"", kind.substr(0, 40)));
    const int64_t most = wide ? INT64_MAX : sign ? INT32_MAX : int64_t{UINT32_MAX};
    PB_ASSIGN_OR_RETURN(const int64_t number,
                        value(item, sign ? (wide ? INT64_MIN : INT32_MIN) : 0, most));
    return put(&number, wide ? 8 : 4);  // little endian
  }

  // Members one after the other, each at a multiple of its size (at most 8; tensor maps 64).
  Result<uint64_t> add_struct(const JsonRef& ref, uint64_t at, plan::Blob& params,
                              uint64_t limit) const {
    PB_ASSIGN_OR_RETURN(const auto elements, ref.elements());
    for (const JsonRef& element : elements) {
      if (element.has("struct")) return element.error("a struct inside a struct");
      const bool small = element.has("i32") || element.has("u32") || element.has("f32");
      const uint64_t alignment = element.has("tensor_map") ? 64 : small ? 4 : 8;
      at = (at + alignment - 1) / alignment * alignment;
      PB_ASSIGN_OR_RETURN(at, add_argument(element, at, params, limit));
    }
    return at;
  }

  const ManifestRequest& request_;
  const cudart::KernelTable& table_;
  Names names_;
  std::vector<std::string> map_names_;
  plan::LaunchPlan plan_;
};

}  // namespace

bool is_launch_manifest(const Json& document) {
  return document.is_object() && document.contains("launches");
}

Result<cudart::RecordOutcome> plan_from_manifest(const ManifestRequest& request) {
  cudart::RecordOutcome outcome;
  const auto fail = [&](const Error& error) {
    outcome.reason = error.kind == "launch-refused" ? "launch-refused" : "bad-launch-manifest";
    outcome.message = error.to_string();
    return outcome;
  };
  auto document = parse_json(request.manifest, "launch manifest");
  if (!document.ok()) return fail(document.error());
  auto table = cudart::build_kernel_table(request.ptx, request.cubin);
  if (!table.ok()) return table.error();  // ptxas took it: our front end falls short
  auto plan = Builder(request, *table).build(JsonRef(*document, "launch manifest"));
  if (!plan.ok()) return fail(plan.error());
  if (auto valid = plan::validate(*plan); !valid.ok()) return fail(valid.error());
  outcome.ok = true;
  outcome.plan = plan.take();
  return outcome;
}

}  // namespace ptxbench::bench
