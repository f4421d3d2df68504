#include "emu/global_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxbench::emu {

// CTAs on other host threads may set neighbouring bits of the same word.
static void set_bits(std::vector<uint64_t>& words, uint64_t offset, uint64_t bytes) {
  uint64_t end = offset + bytes;
  while (offset < end) {
    uint64_t bit = offset & 63, n = std::min<uint64_t>(64 - bit, end - offset);
    uint64_t bits = (n == 64 ? ~uint64_t{0} : ((uint64_t{1} << n) - 1)) << bit;
    uint64_t& word = words[offset >> 6];
    if ((__atomic_load_n(&word, __ATOMIC_RELAXED) & bits) != bits)
      __atomic_fetch_or(&word, bits, __ATOMIC_RELAXED);
    offset += n;
  }
}

void Allocation::mark_written(uint64_t offset, uint64_t bytes) {
  if (!written.empty()) set_bits(written, offset, bytes);
}

bool Allocation::note_read(uint64_t offset, uint64_t bytes) {
  if (all_written(offset, bytes)) return true;
  if (carried.empty()) return false;
  for (uint64_t i = offset; i < offset + bytes; i++)
    if (!all_written(i, 1)) set_bits(carried, i, 1);
  return true;
}

uint64_t Allocation::carried_bytes() const {
  uint64_t count = 0;
  for (uint64_t word = 0; word < carried.size(); word++)
    for (uint64_t bits = carried[word]; bits != 0; bits &= bits - 1) {
      const uint64_t i = word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
      count += data[i] != (initial.empty() ? 0 : initial[i]);
    }
  return count;
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

GlobalMemory::~GlobalMemory() {
  for (const auto& a : allocations_) drop_bytes(*a);
}

// An allocation with addresses and without bytes.
Allocation& GlobalMemory::place(std::string name, uint64_t size) {
  // One unused slot behind each allocation: addresses just past the end belong to nobody.
  const uint64_t count = slot_count(size);
  auto reusable = reusable_.find(count);
  Allocation* a = nullptr;
  if (reusable != reusable_.end() && !reusable->second.empty()) {
    a = reusable->second.back();
    reusable->second.pop_back();
    const uint64_t base = a->base;
    *a = Allocation{};
    a->base = base;
  } else {
    allocations_.push_back(std::make_unique<Allocation>());
    a = allocations_.back().get();
    a->base = kGlobalBase + slots_.size() * kGlobalSlotBytes;
    slots_.insert(slots_.end(), count - 1, a);
    slots_.push_back(nullptr);
  }
  a->name = std::move(name);
  a->size = size;
  return *a;
}

uint64_t GlobalMemory::allocate(std::string name, uint64_t size, bool initialized, bool read_only,
                                uint8_t* external) {
  Allocation& a = place(std::move(name), size);
  a.read_only = read_only;
  if (external) {
    a.data = external;
  } else {
    // Zeros come lazily from the system. Fresh device memory holds whatever was there; a NaN
    // pattern makes its use visible.
    a.owned.reset(static_cast<uint8_t*>(std::calloc(std::max<uint64_t>(size, 1), 1)));
    if (!initialized) std::memset(a.owned.get(), 0xff, size);
    a.data = a.owned.get();
    owned_bytes_ += size;
  }
  if (!initialized) a.written.assign((size + 63) / 64 + 1, 0);
  return a.base;
}

uint64_t GlobalMemory::allocate_shared(std::string name, uint64_t size) {
  Allocation& a = place(std::move(name), size);
  void* mapped =
      mmap(reinterpret_cast<void*>(a.base), std::max<uint64_t>(size, 1), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) {
    a.size = 0;
    return 0;
  }
  a.data = static_cast<uint8_t*>(mapped);
  a.host_shared = true;
  owned_bytes_ += size;
  return a.base;
}

void GlobalMemory::drop_bytes(Allocation& a) {
  const uint64_t size = std::max(a.size, a.freed_size);
  if (a.host_shared) munmap(a.data, std::max<uint64_t>(size, 1));
  if (a.host_shared || a.owned) owned_bytes_ -= size;
  a.host_shared = false;
  a.owned.reset();
  a.written = {};
  a.data = nullptr;
}

void GlobalMemory::release(uint64_t base) {
  Allocation* a = find(base);
  if (!a || a->base != base) return;
  drop_bytes(*a);
  a->free();
  constexpr size_t kQuarantine = 4096;
  quarantine_.push_back(a);
  if (quarantine_.size() <= kQuarantine) return;
  Allocation* oldest = quarantine_.front();
  quarantine_.pop_front();
  reusable_[slot_count(oldest->freed_size)].push_back(oldest);
}

bool GlobalMemory::register_host(void* bytes, uint64_t size) {
  const auto at = reinterpret_cast<uint64_t>(bytes);
  if (at == 0 || size == 0 || at + size < at) return false;
  if (find(at) || find(at + size - 1)) return false;
  if (const auto next = registered_.lower_bound(at);
      next != registered_.end() && next->first < at + size)
    return false;
  auto a = std::make_unique<Allocation>();
  a->name = "registered host memory";
  a->base = at;
  a->size = size;
  a->data = static_cast<uint8_t*>(bytes);
  registered_[at] = std::move(a);
  return true;
}

bool GlobalMemory::unregister_host(void* bytes) {
  return registered_.erase(reinterpret_cast<uint64_t>(bytes)) > 0;
}

Allocation* GlobalMemory::find_registered(uint64_t address) {
  auto next = registered_.upper_bound(address);
  if (next == registered_.begin()) return nullptr;
  Allocation* a = std::prev(next)->second.get();
  return a->contains(address, 1) ? a : nullptr;
}

void GlobalMemory::watch_state(uint64_t address) {
  Allocation* a = find(address);
  if (a == nullptr || a->read_only) return;
  // A variable without an initialiser is all zeros, perhaps gigabytes of which the system has given
  // none yet: it needs no copy.
  if (std::any_of(a->data, a->data + a->size, [](uint8_t byte) { return byte != 0; }))
    a->initial.assign(a->data, a->data + a->size);
  a->written.assign((a->size + 63) / 64 + 1, 0);
  a->carried = a->written;
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
