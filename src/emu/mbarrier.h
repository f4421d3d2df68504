#pragma once
// The mbarrier object (PTX ISA "Parallel Synchronization and Communication Instructions:
// mbarrier"): counting rules and the 64-bit word, as measured on an H200 (tests/data/hw, group
// "sync").

#include <cstdint>

namespace ptxbench::emu {

class Mbarrier {
 public:
  static constexpr uint32_t kMaxCount = (1u << 20) - 1;
  static constexpr int32_t kMaxTx = (1 << 20) - 1;

  enum class Fault : uint8_t { none, bad_count, arrival_overflow, tx_overflow };

  Fault init(uint32_t count);  // count 1..kMaxCount
  // Returns the fault; *token gets the phase token from before the arrival.
  Fault arrive(uint32_t count, uint64_t* token);
  Fault arrive_drop(uint32_t count, uint64_t* token);
  Fault expect_tx(uint32_t bytes);
  Fault complete_tx(uint32_t bytes);
  // arrive.expect_tx: one atomic step (the phase cannot complete in between).
  Fault arrive_expect_tx(uint32_t bytes, uint32_t count, bool drop, uint64_t* token);

  bool test_parity(uint32_t parity) const;  // true iff the phase of that parity has completed
  bool test_token(uint64_t token) const;
  static uint32_t pending_count(uint64_t token);

  uint64_t word() const;  // what inval writes back to memory
  uint32_t expected() const { return expected_; }
  uint32_t pending() const { return pending_; }
  int32_t tx() const { return tx_; }              // completed minus expected bytes; 0 when balanced
  uint32_t parity() const { return phase_ & 1; }  // parity of the current, incomplete phase
  uint64_t phase() const { return phase_; }       // phases completed since init

 private:
  void settle();
  uint32_t expected_ = 0, pending_ = 0;
  int32_t tx_ = 0;
  uint64_t phase_ = 0;
};

}  // namespace ptxbench::emu
