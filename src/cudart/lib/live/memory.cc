// Memory: device memory that host code cannot touch, managed and page-locked memory that both
// sides reach at one address, registered memory.
#include <cstring>

#include "cudart/lib/live/backend.h"
#include "cudart/lib/text.h"

namespace ptxbench::cudart::live {

int LiveBackend::allocate(uint64_t bytes, uint64_t* address) {
  std::lock_guard lock(mutex_);
  *address = 0;
  if (sticky_) return sticky_;
  if (bytes == 0) return kSuccess;
  if (!emulator_.memory().fits(bytes))
    return refuse(kOutOfMemory,
                  text("%llu bytes of device memory: the emulator has %llu bytes left",
                       static_cast<unsigned long long>(bytes),
                       static_cast<unsigned long long>(emulator_.memory().limit() -
                                                       emulator_.memory().owned_bytes()))
                      .c_str());
  const std::string name = "allocation " + std::to_string(next_id_++);
  *address = emulator_.memory().allocate(name, bytes, false);
  user_allocations_.insert(*address);
  return kSuccess;
}

int LiveBackend::allocate_managed(uint64_t bytes, uint64_t* address) {
  std::lock_guard lock(mutex_);
  *address = 0;
  if (sticky_) return sticky_;
  if (bytes == 0) return kInvalidValue;
  if (emulator_.memory().fits(bytes))
    *address = emulator_.memory().allocate_shared(
        "managed allocation " + std::to_string(next_id_++), bytes);
  if (*address == 0) return refuse(kOutOfMemory, "no managed memory of that size is left");
  user_allocations_.insert(*address);
  return kSuccess;
}

int LiveBackend::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  if (address == 0) return kSuccess;
  if (sticky_) return sticky_;
  if (user_allocations_.erase(address) == 0)
    return refuse(kInvalidValue, "free of an address that is not a live allocation");
  emulator_.memory().release(address);
  return kSuccess;
}

void* LiveBackend::allocate_host(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0 || sticky_ || !emulator_.memory().fits(bytes)) return nullptr;
  const uint64_t address = emulator_.memory().allocate_shared("page-locked host memory", bytes);
  if (address) host_allocations_.insert(address);
  return reinterpret_cast<void*>(address);
}

int LiveBackend::release_host(void* memory) {
  std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uint64_t>(memory);
  if (address == 0) return kSuccess;
  if (host_allocations_.erase(address) == 0)
    return refuse(kInvalidValue, "cudaFreeHost of an address that is not page-locked memory");
  emulator_.memory().release(address);
  return kSuccess;
}

int LiveBackend::register_host(void* memory, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!memory || bytes == 0) return kInvalidValue;
  return emulator_.memory().register_host(memory, bytes)
             ? kSuccess
             : refuse(kHostMemoryAlreadyRegistered, "cudaHostRegister: overlaps registered memory");
}

int LiveBackend::unregister_host(void* memory) {
  std::lock_guard lock(mutex_);
  return emulator_.memory().unregister_host(memory) ? kSuccess : kHostMemoryNotRegistered;
}

const emu::Allocation* LiveBackend::allocation(uint64_t address) const {
  return const_cast<LiveBackend*>(this)->emulator_.memory().find(address);
}

bool LiveBackend::is_device(uint64_t address) const {
  std::lock_guard lock(mutex_);
  return allocation(address) != nullptr;
}

bool LiveBackend::is_host(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const emu::Allocation* a = allocation(address);
  return !a || reinterpret_cast<uint64_t>(a->data) == a->base;
}

int LiveBackend::memory_type(uint64_t address) {
  enum { kUnregistered, kHost, kDevice, kManaged };
  std::lock_guard lock(mutex_);
  const emu::Allocation* a = allocation(address);
  if (!a || !a->contains(address, 1)) return kUnregistered;
  if (reinterpret_cast<uint64_t>(a->data) != a->base) return kDevice;
  if (user_allocations_.count(a->base)) return kManaged;
  return host_allocations_.count(a->base) || !a->host_shared ? kHost : kManaged;
}

bool LiveBackend::find(uint64_t address, uint64_t* base, uint64_t* bytes) const {
  std::lock_guard lock(mutex_);
  const emu::Allocation* a = allocation(address);
  if (!a || !a->contains(address, 1)) return false;
  if (base) *base = a->base;
  *bytes = a->size;
  return true;
}

uint64_t LiveBackend::allocated_bytes() const {
  std::lock_guard lock(mutex_);
  // What the emulator cannot give counts as taken: programs size themselves by what is free.
  const auto& memory = const_cast<LiveBackend*>(this)->emulator_.memory();
  return profile_.memory_bytes - (memory.limit() - std::min(memory.limit(), memory.owned_bytes()));
}

int LiveBackend::set_heap_size(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!emulator_.memory().fits(bytes)) return kOutOfMemory;
  emulator_.heap().set_size(bytes);
  return kSuccess;
}

uint8_t* LiveBackend::bytes_at(uint64_t address, uint64_t bytes, bool write, bool* device) {
  emu::Allocation* a = emulator_.memory().find(address);
  *device = a != nullptr;
  if (!a) return reinterpret_cast<uint8_t*>(address);
  if (!a->contains(address, bytes)) return nullptr;
  if (write) a->mark_written(address - a->base, bytes);
  return a->data + (address - a->base);
}

int LiveBackend::execute(const CopyCall& c) {
  for (uint64_t z = 0; z < c.depth; ++z)
    for (uint64_t y = 0; y < c.height; ++y) {
      const uint64_t dst = c.dst + z * c.dst_slice + y * c.dst_pitch;
      const uint64_t src = c.src + z * c.src_slice + y * c.src_pitch;
      if (c.width == 0) continue;
      bool to_device = false, from_device = false;
      const uint8_t* from = bytes_at(src, c.width, false, &from_device);
      uint8_t* to = from ? bytes_at(dst, c.width, true, &to_device) : nullptr;
      if (!from || !to)
        return refuse(kInvalidValue, text("a copy of %llu bytes touches %s",
                                          static_cast<unsigned long long>(c.width),
                                          emulator_.memory().describe(from ? dst : src).c_str())
                                         .c_str());
      std::memmove(to, from, c.width);
    }
  return kSuccess;
}

int LiveBackend::execute(const MemsetCall& c) {
  for (uint64_t y = 0; y < c.height; ++y) {
    bool device = false;
    const uint64_t dst = c.dst + y * c.pitch;
    if (c.width == 0) continue;
    uint8_t* to = bytes_at(dst, c.width, true, &device);
    if (!to || !device)
      return refuse(kInvalidValue, text("a memset of %llu bytes touches %s",
                                        static_cast<unsigned long long>(c.width),
                                        emulator_.memory().describe(dst).c_str())
                                       .c_str());
    if (c.element_size == 1) {
      std::memset(to, static_cast<int>(c.value), c.width);
      continue;
    }
    for (uint64_t i = 0; i + c.element_size <= c.width; i += c.element_size)
      std::memcpy(to + i, &c.value, c.element_size);
  }
  return kSuccess;
}

int LiveBackend::copy(const CopyCall& call) { return submit(call.stream, call); }
int LiveBackend::memset(const MemsetCall& call) { return submit(call.stream, call); }

int LiveBackend::encode_tensor_map(const plan::TensorMapArgs& args, void* out) {
  std::lock_guard lock(mutex_);
  if (!out || reinterpret_cast<uint64_t>(out) % 64 != 0)
    return refuse(kInvalidValue, "cuTensorMapEncode: the tensor map is not aligned to 64 bytes");
  if (const auto checked = plan::check(args); !checked.ok())
    return refuse(kInvalidValue, ("cuTensorMapEncode: " + checked.error().message).c_str());
  const auto bytes = plan::encode(args);
  std::memcpy(out, bytes.data(), bytes.size());
  return kSuccess;
}

}  // namespace ptxbench::cudart::live
