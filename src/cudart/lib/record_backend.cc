#include "cudart/lib/record_backend.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cudart/lib/occupancy.h"
#include "cudart/names.h"

namespace ptxbench::cudart {

extern uint64_t clock_skew_s;  // clock.cc

namespace {

constexpr uint64_t kAlignment = 512;   // what cudaMalloc and PyTorch guarantee in practice
constexpr uint64_t kGuard = 64 << 10;  // between buffers, so that one past the end is nobody else's
constexpr uint64_t kDeviceWindow = uint64_t{1}
                                   << 42;  // addresses from the base on that count as device
constexpr uint64_t kMaxRecording = uint64_t{768} << 20;

}  // namespace

bool RecordBackend::start(const wire::Request& request, uint64_t* addresses) {
  request_ = &request;
  if (const DeviceProfile* found = find_profile(request.profile.c_str())) profile_ = *found;
  if (request.sm_count > 0) profile_.sms = static_cast<int>(request.sm_count);
  fd_ = open(request.recording.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
  if (fd_ < 0) return false;
  next_ = request.base;
  clock_skew_s = request.clock_skew_s;
  wire::Writer hello;
  hello.put(wire::kRecordingMagic);
  hello.put(wire::kVersion);
  emit(wire::Kind::hello, hello);
  for (const wire::KernelInfo& info : request.kernels) {
    auto kernel = std::make_unique<Kernel>();
    kernel->info = &info;
    kernel->name = info.name.c_str();
    kernels_[info.name] = std::move(kernel);
  }
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const wire::ArgumentInfo& argument = request.arguments[i];
    addresses[i] = place(argument.bytes);
    allocations_[addresses[i]] = {argument.bytes, wire::BufferKind::argument, &argument};
    emit_buffer(wire::BufferKind::argument, static_cast<uint32_t>(i), argument.name, addresses[i],
                argument.bytes);
  }
  return true;
}

void RecordBackend::finish(wire::Finish how, const char* kind, const char* message) {
  wire::Writer w;
  w.put(how);
  w.put_string(std::string_view(kind).substr(0, 200));
  w.put_string(std::string_view(message).substr(0, 8000));
  emit(wire::Kind::finished, w);
}

void RecordBackend::touched(uint64_t address) {
  if (!request_ || !is_device(address)) return;
  uint8_t record[13] = {static_cast<uint8_t>(wire::Kind::host_touched), 8};
  std::memcpy(record + 5, &address, 8);
  [[maybe_unused]] const ssize_t n = write(fd_, record, sizeof record);
}

uint64_t RecordBackend::place(uint64_t bytes) {
  const uint64_t address = next_;
  next_ = (next_ + bytes + kGuard + kAlignment - 1) / kAlignment * kAlignment;
  return address;
}

void RecordBackend::emit(wire::Kind kind, const wire::Writer& payload) {
  const auto& body = payload.bytes();
  // A recording that was cut short has no `finished` record, and the parent says so.
  if (fd_ < 0 || written_ > kMaxRecording || body.size() > kMaxRecording) {
    written_ = kMaxRecording + 1;
    return;
  }
  std::vector<uint8_t> record(5 + body.size());
  const auto size = static_cast<uint32_t>(body.size());
  record[0] = static_cast<uint8_t>(kind);
  std::memcpy(&record[1], &size, 4);
  std::copy(body.begin(), body.end(), record.begin() + 5);
  for (size_t at = 0; at < record.size();) {
    const ssize_t n = write(fd_, record.data() + at, record.size() - at);
    if (n <= 0) {
      written_ = kMaxRecording + 1;
      return;
    }
    at += static_cast<size_t>(n);
  }
  written_ += record.size();
}

void RecordBackend::emit_buffer(wire::BufferKind kind, uint32_t argument, const std::string& name,
                                uint64_t address, uint64_t bytes) {
  wire::Writer w;
  w.put(kind);
  w.put(argument);
  w.put_string(name);
  w.put(address);
  w.put(bytes);
  emit(wire::Kind::buffer, w);
}

void** RecordBackend::register_module(const void* fatbin) {
  return new void*(const_cast<void*>(fatbin));
}

void RecordBackend::register_managed(void**, void**, const char*, uint64_t) {
  unsupported("__cudaRegisterManagedVar (__managed__ variables)");
}

void RecordBackend::register_function(void**, const void* host, const char* device_name) {
  std::lock_guard lock(mutex_);
  if (Kernel* known = kernel_named(device_name)) {
    by_host_[host] = known;
    return;
  }
  auto& slot = kernels_[device_name];
  slot = std::make_unique<Kernel>();
  slot->name = kernels_.find(device_name)->first.c_str();
  by_host_[host] = slot.get();
}

void RecordBackend::register_symbol(void**, const void* host, const char* device_name,
                                    uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto [at, fresh] = symbol_addresses_.try_emplace(device_name, 0);
  if (fresh) {
    at->second = place(bytes);
    allocations_[at->second] = {bytes, wire::BufferKind::symbol};
    emit_buffer(wire::BufferKind::symbol, 0, device_name, at->second, bytes);
  }
  symbols_[host] = {device_name, at->second, bytes};
}

Kernel* RecordBackend::kernel(const void* host_or_handle) {
  std::lock_guard lock(mutex_);
  if (auto found = by_host_.find(host_or_handle); found != by_host_.end()) return found->second;
  for (const auto& [name, kernel] : kernels_)
    if (kernel.get() == host_or_handle) return kernel.get();
  return nullptr;
}

Kernel* RecordBackend::kernel_named(const char* name) {
  std::lock_guard lock(mutex_);
  if (auto found = kernels_.find(name); found != kernels_.end()) return found->second.get();
  Kernel* match = nullptr;
  const std::string wanted = without_hashes(name);
  for (const auto& [known, kernel] : kernels_) {
    if (!kernel->info || without_hashes(known) != wanted) continue;
    if (match) return nullptr;  // ambiguous
    match = kernel.get();
  }
  return match;
}

bool RecordBackend::symbol(const void* host, uint64_t* address, uint64_t* bytes) {
  std::lock_guard lock(mutex_);
  const auto found = symbols_.find(host);
  if (found == symbols_.end()) return false;
  *address = found->second.address;
  *bytes = found->second.bytes;
  return true;
}

int RecordBackend::allocate(uint64_t bytes, uint64_t* address) {
  std::lock_guard lock(mutex_);
  *address = 0;
  if (bytes == 0) return kSuccess;
  if (bytes > profile_.memory_bytes || scratch_bytes_ + bytes > profile_.memory_bytes)
    return refuse(kOutOfMemory, "allocation is larger than the device's free memory");
  *address = place(bytes);
  scratch_bytes_ += bytes;
  allocations_[*address] = {bytes, wire::BufferKind::scratch};
  emit_buffer(wire::BufferKind::scratch, 0, "", *address, bytes);
  return kSuccess;
}

int RecordBackend::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  if (address == 0) return kSuccess;
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.kind != wire::BufferKind::scratch ||
      found->second.freed)
    return refuse(kInvalidValue, "free of an address that is not a live allocation");
  found->second.freed = true;
  scratch_bytes_ -= found->second.bytes;
  wire::Writer w;
  w.put(address);
  emit(wire::Kind::release, w);
  return kSuccess;
}

bool RecordBackend::is_device(uint64_t address) const {
  return request_ && address >= request_->base && address - request_->base < kDeviceWindow;
}

RecordBackend::Allocation* RecordBackend::containing(uint64_t address, uint64_t* base) {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return nullptr;
  --at;
  if (address - at->first >= std::max<uint64_t>(at->second.bytes, 1)) return nullptr;
  if (base) *base = at->first;
  return &at->second;
}

bool RecordBackend::find(uint64_t address, uint64_t* base, uint64_t* bytes) const {
  std::lock_guard lock(mutex_);
  const Allocation* found = const_cast<RecordBackend*>(this)->containing(address, base);
  if (!found) return false;
  *bytes = found->bytes;
  return true;
}

void* RecordBackend::allocate_host(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > profile_.memory_bytes) return nullptr;
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!memory) return nullptr;
  wire::Writer w;
  w.put(reinterpret_cast<uint64_t>(memory));
  w.put(bytes);
  emit(wire::Kind::host_buffer, w);
  return memory;
}

int RecordBackend::release_host(void* memory) { return std::free(memory), kSuccess; }

int RecordBackend::check_range(uint64_t address, uint64_t bytes, const char* what) {
  uint64_t base = 0;
  const Allocation* found = containing(address, &base);
  if (found && !found->freed && bytes <= found->bytes - (address - base)) return kSuccess;
  char text[160];
  std::snprintf(text, sizeof text, "%s of %llu bytes %s", what,
                static_cast<unsigned long long>(bytes),
                !found         ? "at an address that is no device allocation"
                : found->freed ? "on freed memory"
                               : "runs past the end of its allocation");
  return refuse(kInvalidValue, text);
}

int RecordBackend::memset(const MemsetCall& c) {
  for (uint64_t row = 0; row < c.height; ++row)
    if (const int status = memset_row(c.dst + row * c.pitch, c.value, c.element_size, c.width))
      return status;
  return kSuccess;
}

int RecordBackend::copy(const CopyCall& c) {
  if (c.depth == 1 && (c.height == 1 || (c.width == c.dst_pitch && c.width == c.src_pitch)))
    return copy_row(c.dst, c.src, c.width * c.height);
  for (uint64_t z = 0; z < c.depth; ++z)
    for (uint64_t y = 0; y < c.height; ++y)
      if (const int status = copy_row(c.dst + z * c.dst_slice + y * c.dst_pitch,
                                      c.src + z * c.src_slice + y * c.src_pitch, c.width))
        return status;
  return kSuccess;
}

int RecordBackend::memset_row(uint64_t dst, uint32_t value, uint32_t element_size, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0) return kSuccess;
  if (const int status = check_range(dst, bytes, "memset")) return status;
  containing(dst)->written = true;
  wire::Writer w;
  w.put(dst);
  w.put(value);
  w.put(element_size);
  w.put(bytes);
  emit(wire::Kind::memset, w);
  return kSuccess;
}

int RecordBackend::copy_row(uint64_t dst, uint64_t src, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0) return kSuccess;
  const bool to_device = is_device(dst), from_device = is_device(src);
  if (!to_device && !from_device) {
    if (!dst || !src) return refuse(kInvalidValue, "copy from or to a null pointer");
    std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
    return kSuccess;
  }
  if (!to_device) return read_back(dst, src, bytes);
  if (const int status = check_range(dst, bytes, "copy")) return status;
  wire::Writer w;
  w.put(dst);
  if (from_device) {
    if (const int status = check_range(src, bytes, "copy")) return status;
    w.put(src);
    w.put(bytes);
  } else {
    if (!src) return refuse(kInvalidValue, "copy from a null pointer");
    if (bytes > kMaxRecording) return unsupported("host-to-device copy of more than 768 MiB");
    w.put_bytes(reinterpret_cast<const void*>(src), bytes);
  }
  containing(dst)->written = true;
  emit(from_device ? wire::Kind::copy : wire::Kind::upload, w);
  return kSuccess;
}

int RecordBackend::read_back(uint64_t dst, uint64_t src, uint64_t bytes) {
  if (const int status = check_range(src, bytes, "copy")) return status;
  uint64_t base = 0;
  const Allocation& from = *containing(src, &base);
  const bool known =
      from.argument && from.argument->host_bytes.size() == from.bytes && from.bytes > 0;
  if (known && !from.written && !launched_) {
    std::memcpy(reinterpret_cast<void*>(dst), from.argument->host_bytes.data() + (src - base),
                bytes);
    return kSuccess;
  }
  wire::Writer w;
  const std::string name = from.argument ? "argument " + from.argument->name
                           : from.kind == wire::BufferKind::symbol ? "a device symbol"
                                                                   : "a scratch buffer";
  w.put_string("host code copies " + std::to_string(bytes) + " bytes of " + name +
               " back from the device" + (launched_ ? " after a kernel launch" : ""));
  emit(wire::Kind::readback, w);
  return kNotSupported;
}

int RecordBackend::encode_tensor_map(const plan::TensorMapArgs& args, void* out) {
  std::lock_guard lock(mutex_);
  if (!out || reinterpret_cast<uint64_t>(out) % 64 != 0)
    return refuse(kInvalidValue,
                  "cuTensorMapEncodeTiled: the tensor map is not aligned to 64 bytes");
  if (const auto checked = plan::check(args); !checked.ok())
    return refuse(kInvalidValue, ("cuTensorMapEncodeTiled: " + checked.error().message).c_str());
  if (!containing(args.global_address))
    return refuse(kInvalidValue, "cuTensorMapEncodeTiled: globalAddress is no device allocation");
  wire::Writer w;
  w.put(maps_);
  w.put(args.type);
  w.put(args.rank);
  w.put(args.global_address);
  for (uint64_t v : args.dims) w.put(v);
  for (uint64_t v : args.strides) w.put(v);
  for (uint32_t v : args.box) w.put(v);
  for (uint32_t v : args.element_strides) w.put(v);
  w.put(args.interleave);
  w.put(args.swizzle);
  w.put(args.l2_promotion);
  w.put(static_cast<uint8_t>(args.nan_fill));
  w.put(static_cast<uint8_t>(args.im2col));
  w.put(args.pixels);
  for (int32_t v : args.lower) w.put(v);
  for (int32_t v : args.upper) w.put(v);
  emit(wire::Kind::tensor_map, w);
  const uint64_t hash = wire::token_hash(w.bytes().data(), w.bytes().size());
  wire::make_token(maps_++, hash, static_cast<uint8_t*>(out));
  return kSuccess;
}

const void* RecordBackend::create_stream() {
  std::lock_guard lock(mutex_);
  // Handles are opaque; 64 bytes so that a program that looks into one finds memory.
  streams_.push_back(std::calloc(1, 64));
  return streams_.back();
}

uint32_t RecordBackend::stream_number(const void* stream) const {
  const auto found = std::find(streams_.begin(), streams_.end(), stream);
  return found == streams_.end() ? 0 : static_cast<uint32_t>(found - streams_.begin()) + 1;
}

int RecordBackend::unsupported(const char* what) {
  std::lock_guard lock(mutex_);
  wire::Writer w;
  w.put_string(what);
  emit(wire::Kind::unsupported, w);
  return kNotSupported;
}

int RecordBackend::refuse(int status, const char* why) {
  std::lock_guard lock(mutex_);
  wire::Writer w;
  w.put(static_cast<uint32_t>(status));
  w.put_string(why);
  emit(wire::Kind::refused, w);
  return status;
}

// ---------------------------------------------------------------------------------------- the
// process's one
namespace {
RecordBackend& instance() {
  static RecordBackend* backend =
      new RecordBackend;  // never destroyed: libraries may call during exit
  return *backend;
}
}  // namespace

extern "C" Backend* ptxbench_backend() { return &instance(); }

extern "C" bool ptxbench_start_recording(const wire::Request* request, uint64_t* addresses) {
  return instance().start(*request, addresses);
}

extern "C" void ptxbench_finish_recording(wire::Finish how, const char* kind, const char* message) {
  instance().finish(how, kind, message);
}

extern "C" void ptxbench_record_touched(uint64_t address) { instance().touched(address); }

}  // namespace ptxbench::cudart
