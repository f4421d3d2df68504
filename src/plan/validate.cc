#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plan/launch_plan.h"

namespace ptxbench::plan {

namespace {

// CUDA C++ Programming Guide 13.0, "Compute Capabilities": the same for sm_90 and sm_100.
constexpr uint32_t kMaxThreads = 1024, kMaxBlockXY = 1024, kMaxBlockZ = 64;
constexpr uint32_t kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535;
constexpr uint32_t kMaxClusterCtas = 16;       // above 8 needs the non-portable attribute
constexpr uint32_t kDefaultShared = 48 << 10;  // without cudaFuncSetAttribute
constexpr uint32_t kMaxShared = 227 << 10;
constexpr uint32_t kMaxParamBytes = 32764;
// Ours.
constexpr uint64_t kMaxBuffer = uint64_t{1} << 40;
constexpr size_t kMaxName = 4096;

Error bad(std::string message) { return Error{"bad-plan", std::move(message)}; }
Error refused(std::string message) { return Error{"launch-refused", std::move(message)}; }

std::string text(const Dim3& d) { return fmt::format("({}, {}, {})", d.x, d.y, d.z); }

Result<void> check_ref(const BufferRef& ref, uint64_t bytes, const LaunchPlan& plan,
                       std::string_view what) {
  if (ref.buffer >= plan.buffers.size())
    return bad(fmt::format("{}: buffer {} does not exist", what, ref.buffer));
  const Buffer& buffer = plan.buffers[ref.buffer];
  if (ref.offset > buffer.size || bytes > buffer.size - ref.offset)
    return bad(fmt::format("{}: {} bytes at offset {} of {} go past its {} bytes", what, bytes,
                           ref.offset, buffer.name, buffer.size));
  return {};
}

Result<void> check_blob(const Blob& blob, const LaunchPlan& plan, std::string_view what) {
  std::vector<std::pair<uint64_t, uint64_t>> holes;  // start, end
  auto add = [&](uint64_t at, uint64_t size) {
    bool fits = at <= blob.bytes.size() && size <= blob.bytes.size() - at;
    if (fits) holes.emplace_back(at, at + size);
    return fits;
  };
  for (const PointerPatch& patch : blob.pointers) {
    if (!add(patch.at, 8)) return bad(fmt::format("{}: a pointer lies outside its bytes", what));
    PB_RETURN_IF_ERROR(check_ref(patch.target, 0, plan, what));
  }
  for (const TensorMapPatch& patch : blob.tensor_maps) {
    if (!add(patch.at, 128))
      return bad(fmt::format("{}: a tensor map lies outside its bytes", what));
    if (patch.map >= plan.tensor_maps.size())
      return bad(fmt::format("{}: tensor map {} does not exist", what, patch.map));
  }
  std::sort(holes.begin(), holes.end());
  for (size_t i = 1; i < holes.size(); ++i)
    if (holes[i].first < holes[i - 1].second)
      return bad(fmt::format("{}: two patches overlap at byte {}", what, holes[i].first));
  return {};
}

Result<void> check_buffer(const Buffer& buffer, const LaunchPlan& plan) {
  if (buffer.name.size() > kMaxName) return bad("a buffer's name is too long");
  if (buffer.size > kMaxBuffer)
    return bad(fmt::format("buffer {} has {} bytes", buffer.name, buffer.size));
  if (buffer.role == BufferRole::symbol && buffer.module >= plan.modules.size())
    return bad(fmt::format("symbol {}: module {} does not exist", buffer.name, buffer.module));
  return {};
}

Result<void> check_map(const TensorMap& map, const LaunchPlan& plan) {
  PB_RETURN_IF_ERROR(check_ref(map.address, 0, plan, "tensor map"));
  TensorMapArgs args = map.args;
  args.global_address = map.address.offset;  // buffers start at multiples of 256
  if (Result<void> ok = check(args); !ok.ok()) return bad(ok.error().message);
  return {};
}

Result<void> check_step(const Launch& launch, const LaunchPlan& plan) {
  if (launch.module >= plan.modules.size())
    return bad(fmt::format("launch of {}: module {} does not exist", launch.kernel, launch.module));
  if (launch.kernel.empty() || launch.kernel.size() > kMaxName)
    return bad("a launch names no kernel, or a name that is too long");
  if (launch.params.bytes.size() > kMaxParamBytes)
    return bad(fmt::format("launch of {}: {} bytes of parameters, at most {}", launch.kernel,
                           launch.params.bytes.size(), kMaxParamBytes));
  if (Result<void> ok = check_launch(launch); !ok.ok()) return bad(ok.error().message);
  return check_blob(launch.params, plan, "parameters of " + launch.kernel);
}

Result<void> check_step(const Memset& memset, const LaunchPlan& plan) {
  uint32_t size = memset.element_size;
  if (size != 1 && size != 2 && size != 4)
    return bad(fmt::format("memset with elements of {} bytes", size));
  if (memset.bytes % size)
    return bad(fmt::format("memset of {} bytes in elements of {}", memset.bytes, size));
  return check_ref(memset.dst, memset.bytes, plan, "memset");
}

Result<void> check_step(const CopyHostToDevice& copy, const LaunchPlan& plan) {
  PB_RETURN_IF_ERROR(check_ref(copy.dst, copy.data.bytes.size(), plan, "upload"));
  return check_blob(copy.data, plan, "upload");
}

Result<void> check_step(const CopyDeviceToDevice& copy, const LaunchPlan& plan) {
  PB_RETURN_IF_ERROR(check_ref(copy.dst, copy.bytes, plan, "device copy"));
  return check_ref(copy.src, copy.bytes, plan, "device copy");
}

Result<void> check_step(const Free& free, const LaunchPlan& plan) {
  if (free.buffer >= plan.buffers.size() || plan.buffers[free.buffer].role != BufferRole::scratch)
    return bad("a free of something that is no scratch buffer");
  return {};
}

bool is_word(const std::string& s) {
  return !s.empty() && s.size() <= 64 && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

Result<void> check_launch(const Launch& l) {
  auto refuse = [&](const std::string& why) {
    return refused(fmt::format("launch of {}: {}", l.kernel, why));
  };
  if (l.grid.x == 0 || l.grid.y == 0 || l.grid.z == 0) return refuse("empty grid " + text(l.grid));
  if (l.grid.x > kMaxGridX || l.grid.y > kMaxGridYZ || l.grid.z > kMaxGridYZ)
    return refuse(fmt::format("grid {} is larger than ({}, {}, {})", text(l.grid), kMaxGridX,
                              kMaxGridYZ, kMaxGridYZ));
  if (l.block.x == 0 || l.block.y == 0 || l.block.z == 0)
    return refuse("empty block " + text(l.block));
  if (l.block.x > kMaxBlockXY || l.block.y > kMaxBlockXY || l.block.z > kMaxBlockZ ||
      l.block.count() > kMaxThreads)
    return refuse(fmt::format("block {} has more than {} threads or exceeds ({}, {}, {})",
                              text(l.block), kMaxThreads, kMaxBlockXY, kMaxBlockXY, kMaxBlockZ));
  const Dim3& c = l.cluster;
  bool small = c.x <= kMaxClusterCtas && c.y <= kMaxClusterCtas && c.z <= kMaxClusterCtas;
  if (!small || c.count() == 0 || c.count() > kMaxClusterCtas)
    return refuse(fmt::format("cluster {} is not of 1 to {} CTAs", text(c), kMaxClusterCtas));
  if (l.grid.x % c.x || l.grid.y % c.y || l.grid.z % c.z)
    return refuse(fmt::format("grid {} is no multiple of cluster {}", text(l.grid), text(c)));
  if (l.max_dynamic_shared_bytes > kMaxShared)
    return refuse(fmt::format("maximum dynamic shared memory set to {} bytes, at most {}",
                              l.max_dynamic_shared_bytes, kMaxShared));
  uint32_t limit = std::max(kDefaultShared, l.max_dynamic_shared_bytes);
  if (l.dynamic_shared_bytes > limit)
    return refuse(fmt::format("{} bytes of dynamic shared memory, {} allowed{}",
                              l.dynamic_shared_bytes, limit,
                              l.max_dynamic_shared_bytes ? "" : " without cudaFuncSetAttribute"));
  return {};
}

Result<void> validate(const LaunchPlan& plan) {
  if (!is_word(plan.arch)) return bad("no architecture named");
  for (const Buffer& buffer : plan.buffers) PB_RETURN_IF_ERROR(check_buffer(buffer, plan));
  for (const Module& module : plan.modules)
    if (module.ptx.empty() && module.cubin.empty()) return bad("a module without any code");
  for (const TensorMap& map : plan.tensor_maps) PB_RETURN_IF_ERROR(check_map(map, plan));
  for (const Step& step : plan.steps)
    PB_RETURN_IF_ERROR(std::visit([&](const auto& s) { return check_step(s, plan); }, step));
  return {};
}

Result<std::vector<uint8_t>> materialize(const Blob& blob, const LaunchPlan& plan,
                                         const std::vector<uint64_t>& addresses) {
  if (addresses.size() != plan.buffers.size())
    return bad(fmt::format("{} addresses for {} buffers", addresses.size(), plan.buffers.size()));
  PB_RETURN_IF_ERROR(check_blob(blob, plan, "blob"));
  std::vector<uint8_t> bytes = blob.bytes;
  for (const PointerPatch& patch : blob.pointers) {
    uint64_t address = addresses[patch.target.buffer] + patch.target.offset;
    std::memcpy(bytes.data() + patch.at, &address, 8);
  }
  for (const TensorMapPatch& patch : blob.tensor_maps) {
    const TensorMap& map = plan.tensor_maps[patch.map];
    PB_RETURN_IF_ERROR(check_ref(map.address, 0, plan, "tensor map"));
    TensorMapArgs args = map.args;
    args.global_address = addresses[map.address.buffer] + map.address.offset;
    if (Result<void> ok = check(args); !ok.ok()) return bad(ok.error().message);
    auto descriptor = encode(args);
    std::memcpy(bytes.data() + patch.at, descriptor.data(), descriptor.size());
  }
  return bytes;
}

}  // namespace ptxbench::plan
