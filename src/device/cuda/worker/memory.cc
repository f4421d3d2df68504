#include "device/cuda/worker/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace ptxbench::device::cuda {
namespace {

constexpr uint64_t kUnmapped = uint64_t{64} << 20;  // on each side of a mapped buffer

int attribute(const Driver& driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

DeviceInfo describe(const Driver& driver, CUdevice device) {
  DeviceInfo info;
  char text[256] = "";
  driver.cuDeviceGetName(text, sizeof text, device);
  info.name = text;
  char bus[64] = "";
  if (driver.cuDeviceGetPCIBusId != nullptr &&
      driver.cuDeviceGetPCIBusId(bus, sizeof bus, device) == CUDA_SUCCESS)
    info.bus_id = bus;
  info.emulated = driver.emulated;
  driver.cuDriverGetVersion(&info.driver_version);
  auto get = [&](CUdevice_attribute which) { return attribute(driver, device, which); };
  info.cc_major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.cc_minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.sm_count = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.l2_bytes = static_cast<uint64_t>(get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  info.clock_khz = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  info.memory_clock_khz = get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  info.bus_bits = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  size_t memory = 0;
  driver.cuDeviceTotalMem_v2(&memory, device);
  info.memory_bytes = memory;
  return info;
}

CUmemAllocationProp page_properties(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

uint64_t page_granularity(const Driver& driver, CUdevice device) {
  if (driver.emulated || driver.cuMemMap == nullptr || driver.cuMemAddressReserve == nullptr ||
      driver.cuMemCreate == nullptr || driver.cuMemSetAccess == nullptr ||
      driver.cuMemUnmap == nullptr || driver.cuMemRelease == nullptr ||
      driver.cuMemAddressFree == nullptr || driver.cuMemGetAllocationGranularity == nullptr ||
      attribute(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
    return 0;
  const CUmemAllocationProp properties = page_properties(device);
  size_t granularity = 0;
  const CUresult code = driver.cuMemGetAllocationGranularity(&granularity, &properties,
                                                             CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return code == CUDA_SUCCESS ? granularity : 0;
}

}  // namespace

Error driver_error(const Driver& driver, const char* call, CUresult code) {
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    return Error{"out-of-memory", fmt::format("the GPU has too little free memory ({})", call)};
  return Error{"gpu-fault", fmt::format("{}: {}", call, driver.describe(code))};
}

Result<Context> Context::open(const std::string& driver_path, int index) {
  Context context;
  PB_ASSIGN_OR_RETURN(context.driver_, Driver::open(driver_path));
  const Driver& driver = context.driver_;
  if (const CUresult code = driver.cuInit(0); code != CUDA_SUCCESS)
    return Error{"no-device", fmt::format("no usable GPU: cuInit: {}", driver.describe(code))};
  int count = 0;
  driver.cuDeviceGetCount(&count);
  if (index >= count)
    return Error{"no-device", fmt::format("no GPU {}: this machine has {}", index, count)};
  CUcontext current = nullptr;
  CUresult code = driver.cuDeviceGet(&context.device_, index);
  if (code == CUDA_SUCCESS) code = driver.cuDevicePrimaryCtxRetain(&current, context.device_);
  if (code == CUDA_SUCCESS) code = driver.cuCtxSetCurrent(current);
  if (code == CUDA_SUCCESS) code = driver.cuStreamCreate(&context.stream_, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS)
    return Error{"no-device",
                 fmt::format("GPU {} does not open: {}", index, driver.describe(code))};
  driver.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
  context.granularity_ = page_granularity(driver, context.device_);
  context.info_ = describe(driver, context.device_);
  context.info_.unmapped_guards = context.maps_pages();
  return context;
}

Result<GuardedBuffer> GuardedBuffer::create(const Context& context, std::string name,
                                            uint64_t bytes) {
  GuardedBuffer buffer(context, std::move(name), bytes);
  PB_RETURN_IF_ERROR(buffer.allocate());
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : context_(other.context_),
      name_(std::move(other.name_)),
      bytes_(other.bytes_),
      at_(other.at_),
      block_(std::exchange(other.block_, 0)),
      reservation_(std::exchange(other.reservation_, 0)),
      block_bytes_(other.block_bytes_),
      reserved_bytes_(other.reserved_bytes_),
      handle_(std::exchange(other.handle_, 0)),
      mapped_(std::exchange(other.mapped_, false)),
      pattern_(other.pattern_) {}

GuardedBuffer::~GuardedBuffer() {
  const Driver& driver = context_->driver();
  if (reservation_ == 0) {
    if (block_ != 0) driver.cuMemFree_v2(block_);
    return;
  }
  if (mapped_) driver.cuMemUnmap(block_, block_bytes_);
  if (handle_ != 0) driver.cuMemRelease(handle_);
  driver.cuMemAddressFree(reservation_, reserved_bytes_);
}

Result<void> GuardedBuffer::map(uint64_t total) {
  const Driver& driver = context_->driver();
  const uint64_t page = context_->granularity();
  block_bytes_ = (total + page - 1) / page * page;
  reserved_bytes_ = block_bytes_ + 2 * kUnmapped;
  CUresult code = driver.cuMemAddressReserve(&reservation_, reserved_bytes_, 0, 0, 0);
  if (code != CUDA_SUCCESS) return driver_error(driver, "cuMemAddressReserve", code);
  block_ = reservation_ + kUnmapped;
  const CUmemAllocationProp properties = page_properties(context_->device());
  code = driver.cuMemCreate(&handle_, block_bytes_, &properties, 0);
  if (code != CUDA_SUCCESS) return driver_error(driver, "cuMemCreate", code);
  code = driver.cuMemMap(block_, block_bytes_, 0, handle_, 0);
  if (code != CUDA_SUCCESS) return driver_error(driver, "cuMemMap", code);
  mapped_ = true;
  code = set_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (code != CUDA_SUCCESS) return driver_error(driver, "cuMemSetAccess", code);
  return {};
}

CUresult GuardedBuffer::set_access(CUmemAccess_flags flags) const {
  CUmemAccessDesc access = {};
  access.location = page_properties(context_->device()).location;
  access.flags = flags;
  return context_->driver().cuMemSetAccess(block_, block_bytes_, &access, 1);
}

bool GuardedBuffer::protect() {
  return mapped_ && set_access(CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS;
}

Result<void> GuardedBuffer::allocate() {
  const Driver& driver = context_->driver();
  const uint64_t total = bytes_ + 2 * kGuardBytes;
  if (context_->maps_pages()) {
    PB_RETURN_IF_ERROR(map(total));
  } else {
    block_bytes_ = total;
    const CUresult code = driver.cuMemAlloc_v2(&block_, total);
    if (code != CUDA_SUCCESS) return driver_error(driver, "cuMemAlloc", code);
  }
  at_ = block_ + kGuardBytes;
  static std::mt19937 random{std::random_device{}()};
  pattern_ = static_cast<uint8_t>(1 + random() % 254);
  CUresult code = driver.cuMemsetD8Async(block_, pattern_, kGuardBytes, context_->stream());
  const uint64_t behind = block_bytes_ - kGuardBytes - bytes_;
  if (code == CUDA_SUCCESS)
    code = driver.cuMemsetD8Async(at_ + bytes_, pattern_, behind, context_->stream());
  if (code == CUDA_SUCCESS) code = context_->synchronize();
  if (code != CUDA_SUCCESS) return driver_error(driver, "cuMemsetD8", code);
  return {};
}

Result<void> GuardedBuffer::scan(CUdeviceptr from, uint64_t bytes, Damage& damage) const {
  const Driver& driver = context_->driver();
  std::vector<uint8_t> zone(bytes);
  CUresult code = driver.cuMemcpyDtoHAsync_v2(zone.data(), from, bytes, context_->stream());
  if (code == CUDA_SUCCESS) code = context_->synchronize();
  if (code != CUDA_SUCCESS) return driver_error(driver, "reading a guard zone", code);
  for (uint64_t i = 0; i < bytes; ++i) {
    if (zone[i] == pattern_) continue;
    if (damage.bytes++ == 0)
      damage.offset = static_cast<int64_t>(from + i) - static_cast<int64_t>(at_);
  }
  return {};
}

Result<std::optional<Damage>> GuardedBuffer::damage() const {
  Damage damage{name_, 0, 0};
  PB_RETURN_IF_ERROR(scan(block_, kGuardBytes, damage));
  PB_RETURN_IF_ERROR(scan(at_ + bytes_, block_bytes_ - kGuardBytes - bytes_, damage));
  if (damage.bytes == 0) return std::optional<Damage>();
  return std::optional<Damage>(damage);
}

}  // namespace ptxbench::device::cuda
