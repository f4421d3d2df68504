#pragma once
// Global memory of an emulated device: allocations far apart (so that a wild pointer never lands in
// a neighbour), with a record of which bytes were ever written.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emu/address.h"

namespace ptxbench::emu {

struct Allocation {
  std::string name;
  uint64_t base = 0, size = 0;  // device address, bytes
  uint8_t* data = nullptr;
  bool read_only = false;
  // One bit per byte, set when written; empty: every byte counts as written.
  std::vector<uint64_t> written;
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  std::unique_ptr<uint8_t, Free> owned;

  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && address - base <= size && bytes <= size - (address - base);
  }
  // Contains nothing from now on; its address range stays known for reports.
  void free() { freed_size = std::exchange(size, 0); }
  uint64_t freed_size = 0;
  bool tracks_writes() const { return !written.empty(); }
  void mark_written(uint64_t offset, uint64_t bytes);
  bool all_written(uint64_t offset, uint64_t bytes) const;
};

// Bytes that one launch read from and wrote to an allocation (repeated accesses count again).
struct Touched {
  const Allocation* allocation = nullptr;
  uint64_t read = 0, written = 0;
};
void add_touch(std::vector<Touched>& all, const Allocation* a, uint64_t read, uint64_t written);

class GlobalMemory {
 public:
  // Own memory of all allocations together; the caller keeps below it (limits of the host, not of a
  // GPU).
  static constexpr uint64_t kMaxOwned = uint64_t{8} << 30;
  bool fits(uint64_t size) const { return size <= kMaxOwned - owned_bytes_; }

  // `external`: use these host bytes instead of own ones (must outlive the memory). `initialized`
  // false: reading a byte before it is written is a finding. Address is 512-byte aligned.
  uint64_t allocate(std::string name, uint64_t size, bool initialized, bool read_only = false,
                    uint8_t* external = nullptr);

  // The allocation whose slot range holds the address, or null; the address may still lie beyond
  // its end.
  Allocation* find(uint64_t address) {
    uint64_t slot = (address - kGlobalBase) / kGlobalSlotBytes;
    if (address < kGlobalBase || slot >= slots_.size()) return nullptr;
    return slots_[slot];
  }
  // The allocation closest to an address that lies in none (for messages), or null.
  const Allocation* nearest(uint64_t address) const;
  const std::vector<std::unique_ptr<Allocation>>& allocations() const { return allocations_; }

  // "C + 8192" or "8 bytes past the end of C (1024 bytes)".
  std::string describe(uint64_t address) const;

 private:
  std::vector<std::unique_ptr<Allocation>> allocations_;
  std::vector<Allocation*> slots_;
  uint64_t owned_bytes_ = 0;
};

}  // namespace ptxbench::emu
