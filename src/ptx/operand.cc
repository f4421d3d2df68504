#include "ptx/operand.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace ptxbench::ptx {

static_assert(alignof(Operand) <= sizeof(uint64_t));

// Room for that many.
Operand* OperandList::allocate(size_t size) {
  if (size == 0) return nullptr;
  void* memory = ::operator new(sizeof(uint64_t) + size * sizeof(Operand));
  auto* count = new (memory) uint64_t{size};
  return reinterpret_cast<Operand*>(count + 1);
}

OperandList::OperandList(std::initializer_list<Operand> operands)
    : first_(allocate(operands.size())) {
  std::uninitialized_copy(operands.begin(), operands.end(), first_);
}

OperandList::OperandList(const OperandList& other) : first_(allocate(other.size())) {
  std::uninitialized_copy(other.begin(), other.end(), first_);
}

OperandList::OperandList(OperandList&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)) {}

OperandList& OperandList::operator=(OperandList other) noexcept {
  std::swap(first_, other.first_);
  return *this;
}

OperandList::~OperandList() {
  if (!first_) return;
  std::destroy(begin(), end());
  ::operator delete(reinterpret_cast<uint64_t*>(first_) - 1);
}

OperandList OperandList::taken_from(std::span<Operand> operands) {
  OperandList list;
  list.first_ = allocate(operands.size());
  std::uninitialized_move(operands.begin(), operands.end(), list.first_);
  return list;
}

void OperandList::resize(size_t size) {
  OperandList list;
  list.first_ = allocate(size);
  const size_t kept = std::min(size, this->size());
  std::uninitialized_move_n(begin(), kept, list.first_);
  std::uninitialized_default_construct_n(list.first_ + kept, size - kept);
  *this = std::move(list);
}

bool OperandList::operator==(const OperandList& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

}  // namespace ptxbench::ptx
