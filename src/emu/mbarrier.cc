#include "emu/mbarrier.h"

namespace ptxbench::emu {
namespace {

constexpr uint64_t kCountMask = (1u << 20) - 1;
constexpr uint64_t kTxMask = (1u << 21) - 1;

uint64_t phase_and_pending(uint32_t parity, uint32_t pending) {
  return uint64_t{parity} << 63 | (-uint64_t{pending} & kCountMask) << 43;
}

}  // namespace

Mbarrier::Fault Mbarrier::init(uint32_t count) {
  if (count == 0 || count > kMaxCount) return Fault::bad_count;
  expected_ = pending_ = count;
  tx_ = 0;
  phase_ = 0;
  return Fault::none;
}

void Mbarrier::settle() {
  if (pending_ != 0 || tx_ != 0) return;
  pending_ = expected_;
  ++phase_;
}

Mbarrier::Fault Mbarrier::arrive(uint32_t count, uint64_t* token) {
  return arrive_expect_tx(0, count, false, token);
}

Mbarrier::Fault Mbarrier::arrive_drop(uint32_t count, uint64_t* token) {
  return arrive_expect_tx(0, count, true, token);
}

Mbarrier::Fault Mbarrier::arrive_expect_tx(uint32_t bytes, uint32_t count, bool drop,
                                           uint64_t* token) {
  if (count == 0 || count > kMaxCount) return Fault::bad_count;
  if (count > pending_) return Fault::arrival_overflow;
  if (bytes > kMaxTx || tx_ - static_cast<int32_t>(bytes) < -kMaxTx - 1) return Fault::tx_overflow;
  if (token) *token = phase_and_pending(parity(), pending_);
  tx_ -= static_cast<int32_t>(bytes);
  pending_ -= count;
  if (drop) expected_ -= count;
  settle();
  return Fault::none;
}

Mbarrier::Fault Mbarrier::expect_tx(uint32_t bytes) {
  if (bytes > kMaxTx || tx_ - static_cast<int32_t>(bytes) < -kMaxTx - 1) return Fault::tx_overflow;
  tx_ -= static_cast<int32_t>(bytes);
  settle();
  return Fault::none;
}

Mbarrier::Fault Mbarrier::complete_tx(uint32_t bytes) {
  if (bytes > kMaxTx || tx_ + static_cast<int32_t>(bytes) > kMaxTx) return Fault::tx_overflow;
  tx_ += static_cast<int32_t>(bytes);
  settle();
  return Fault::none;
}

bool Mbarrier::test_parity(uint32_t p) const { return parity() != (p & 1); }

bool Mbarrier::test_token(uint64_t token) const { return parity() != token >> 63; }

uint32_t Mbarrier::pending_count(uint64_t token) { return -(token >> 43) & kCountMask; }

uint64_t Mbarrier::word() const {
  return phase_and_pending(parity(), pending_) |
         (static_cast<uint64_t>(int64_t{tx_}) & kTxMask) << 21 |
         (-uint64_t{expected_} & kCountMask) << 1;
}

}  // namespace ptxbench::emu
