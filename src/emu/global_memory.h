#pragma once
// Global memory of an emulated device: allocations far apart (so that a wild pointer never lands in
// a neighbour), with a record of which bytes were ever written.

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
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
  bool host_shared = false;  // host code sees the bytes at the device address
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
  // A variable of a module keeps its bytes from one replay to the next: which were read before this
  // replay wrote them (one bit each), and what they were.
  std::vector<uint64_t> carried;
  std::vector<uint8_t> initial;
  bool tracks_writes() const { return !written.empty(); }
  // Whether a read of these bytes is fair: they have been written, or have a value from the start.
  bool note_read(uint64_t offset, uint64_t bytes);
  // Bytes that were read before they were written, and are left changed: state for the next replay.
  uint64_t carried_bytes() const;
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
  GlobalMemory() = default;
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory();

  // Own memory of all allocations together; the caller keeps below it (limits of the host, not of a
  // GPU).
  static constexpr uint64_t kMaxOwned = uint64_t{8} << 30;
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  uint64_t limit() const { return limit_; }
  bool fits(uint64_t size) const { return owned_bytes_ <= limit_ && size <= limit_ - owned_bytes_; }
  uint64_t owned_bytes() const { return owned_bytes_; }

  // `external`: use these host bytes instead of own ones (must outlive the memory). `initialized`
  // false: reading a byte before it is written is a finding. Address is 512-byte aligned.
  uint64_t allocate(std::string name, uint64_t size, bool initialized, bool read_only = false,
                    uint8_t* external = nullptr);
  // Zeroed memory that host code reads and writes at the same address as kernels do; 0 if the
  // system gives none.
  uint64_t allocate_shared(std::string name, uint64_t size);
  // Gives the bytes of an allocation back. Its addresses belong to nobody for a long while (a later
  // use is reported as one of freed memory) before another allocation gets them.
  void release(uint64_t base);

  // Bytes of the process that kernels may reach at their own address; false if they overlap others.
  bool register_host(void* bytes, uint64_t size);
  bool unregister_host(void* bytes);

  // From now on reads and writes of this allocation decide its `carried_bytes`.
  void watch_state(uint64_t address);

  // The allocation whose slot range holds the address, or null; the address may still lie beyond
  // its end.
  Allocation* find(uint64_t address) {
    uint64_t slot = (address - kGlobalBase) / kGlobalSlotBytes;
    if (address < kGlobalBase || slot >= slots_.size())
      return registered_.empty() ? nullptr : find_registered(address);
    return slots_[slot];
  }
  // The allocation closest to an address that lies in none (for messages), or null.
  const Allocation* nearest(uint64_t address) const;
  const std::vector<std::unique_ptr<Allocation>>& allocations() const { return allocations_; }

  // "C + 8192" or "8 bytes past the end of C (1024 bytes)".
  std::string describe(uint64_t address) const;

 private:
  static uint64_t slot_count(uint64_t size) { return size / kGlobalSlotBytes + 2; }
  Allocation& place(std::string name, uint64_t size);
  Allocation* find_registered(uint64_t address);
  void drop_bytes(Allocation& a);

  std::vector<std::unique_ptr<Allocation>> allocations_;
  std::vector<Allocation*> slots_;
  std::deque<Allocation*> quarantine_;                          // released, oldest first
  std::map<uint64_t, std::vector<Allocation*>> reusable_;       // by slot count
  std::map<uint64_t, std::unique_ptr<Allocation>> registered_;  // by address
  uint64_t owned_bytes_ = 0, limit_ = kMaxOwned;
};

}  // namespace ptxbench::emu
