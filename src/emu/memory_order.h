#pragma once
// How strong a memory operation is (PTX ISA "Memory Consistency Model").

#include <cstdint>

#include "ptx/ast.h"

namespace ptxbench::emu {

// weak: an ordinary access. Volatile ones are relaxed.
enum class Order : uint8_t { weak, relaxed, acquire, release, acq_rel };
enum class SyncScope : uint8_t { weak, cta, cluster, gpu };  // .sys is .gpu here: one device

struct MemoryOrder {
  Order order = Order::weak;
  SyncScope scope = SyncScope::weak;
  bool acquires() const { return order == Order::acquire || order == Order::acq_rel; }
  bool releases() const { return order == Order::release || order == Order::acq_rel; }
};

// As the modifiers say; what they leave open is `otherwise`.
MemoryOrder memory_order(const ptx::Modifiers& modifiers, MemoryOrder otherwise);

}  // namespace ptxbench::emu
