#include "emu/global_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ptxbench::emu {

void Allocation::mark_written(uint64_t offset, uint64_t bytes) {
  if (written.empty()) return;
  uint64_t end = offset + bytes;
  // CTAs on other host threads may set neighbouring bits of the same word.
  while (offset < end) {
    uint64_t bit = offset & 63, n = std::min<uint64_t>(64 - bit, end - offset);
    uint64_t bits = (n == 64 ? ~uint64_t{0} : ((uint64_t{1} << n) - 1)) << bit;
    uint64_t& word = written[offset >> 6];
    if ((__atomic_load_n(&word, __ATOMIC_RELAXED) & bits) != bits)
      __atomic_fetch_or(&word, bits, __ATOMIC_RELAXED);
    offset += n;
  }
}

bool Allocation::all_written(uint64_t offset, uint64_t bytes) const {
  if (written.empty()) return true;
  uint64_t end = offset + bytes;
  while (offset < end) {
    uint64_t bit = offset & 63, n = std::min<uint64_t>(64 - bit, end - offset);
    uint64_t bits = (n == 64 ? ~uint64_t{0} : ((uint64_t{1} << n) - 1)) << bit;
    if ((__atomic_load_n(&written[offset >> 6], __ATOMIC_RELAXED) & bits) != bits) return false;
    offset += n;
  }
  return true;
}

void add_touch(std::vector<Touched>& all, const Allocation* a, uint64_t read, uint64_t written) {
  for (Touched& t : all)
    if (t.allocation == a) {
      t.read += read, t.written += written;
      return;
    }
  all.push_back({a, read, written});
}

uint64_t GlobalMemory::allocate(std::string name, uint64_t size, bool initialized, bool read_only,
                                uint8_t* external) {
  auto a = std::make_unique<Allocation>();
  a->name = std::move(name);
  a->base = kGlobalBase + slots_.size() * kGlobalSlotBytes;
  a->size = size;
  a->read_only = read_only;
  if (external) {
    a->data = external;
  } else {
    // Zeros come lazily from the system. Fresh device memory holds whatever was there; a NaN
    // pattern makes its use visible.
    a->owned.reset(static_cast<uint8_t*>(std::calloc(std::max<uint64_t>(size, 1), 1)));
    if (!initialized) std::memset(a->owned.get(), 0xff, size);
    a->data = a->owned.get();
    owned_bytes_ += size;
  }
  if (!initialized) a->written.assign((size + 63) / 64 + 1, 0);
  // One unused slot behind each allocation: addresses just past the end belong to nobody.
  uint64_t count = size / kGlobalSlotBytes + 2;
  for (uint64_t i = 0; i + 1 < count; i++) slots_.push_back(a.get());
  slots_.push_back(nullptr);
  allocations_.push_back(std::move(a));
  return allocations_.back()->base;
}

const Allocation* GlobalMemory::nearest(uint64_t address) const {
  const Allocation* best = nullptr;
  uint64_t distance = ~uint64_t{0};
  for (const auto& a : allocations_) {
    uint64_t end = a->base + a->size + a->freed_size;
    uint64_t d = address < a->base ? a->base - address : address >= end ? address - end : 0;
    if (d < distance) distance = d, best = a.get();
  }
  return best;
}

std::string GlobalMemory::describe(uint64_t address) const {
  const Allocation* a = nearest(address);
  if (!a) return fmt::format("0x{:x}, no memory was allocated", address);
  if (address >= a->base && address < a->base + a->size)
    return fmt::format("{} + {} of {} bytes", a->name, address - a->base, a->size);
  if (a->freed_size && address >= a->base && address < a->base + a->freed_size)
    return fmt::format("{} + {}, which has been freed", a->name, address - a->base);
  constexpr uint64_t kFar = uint64_t{1} << 31;
  if (address >= a->base && address - a->base - a->size < kFar)
    return fmt::format("{} bytes past the end of {} ({} bytes)", address - a->base - a->size,
                       a->name, a->size);
  if (address < a->base && a->base - address < kFar)
    return fmt::format("{} bytes before {} ({} bytes)", a->base - address, a->name, a->size);
  return fmt::format("0x{:x}, not an address of any buffer", address);
}

}  // namespace ptxbench::emu
