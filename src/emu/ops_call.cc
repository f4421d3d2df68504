// Calls, direct and through pointers, and the stack of a thread.
//
// A thread's stack is its local memory; the frames of a warp's threads lie at the same offsets. A
// new frame lies above every frame in use, so diverged callers never share a window, and so does
// what alloca gives.

#include <fmt/format.h>

#include <algorithm>

#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/regalloc.h"

namespace ptxbench::emu::ops {
namespace {

// Per-thread stack limit (the CUDA default is far below).
constexpr uint32_t kMaxLocal = 512u << 10;

void grow_local(Warp& w, uint32_t bytes) {
  if (bytes <= w.local_bytes) return;
  bytes = std::min(std::max(bytes, 2 * w.local_bytes), std::max(bytes, kMaxLocal));
  std::vector<uint8_t> grown(size_t{32} * bytes, 0xff);
  for (size_t l = 0; l < 32; l++)
    std::copy_n(w.local.data() + l * w.local_bytes, w.local_bytes, grown.data() + l * bytes);
  w.local = std::move(grown);
  w.local_bytes = bytes;
}

// Above all frames that a fragment of the warp still returns through.
struct Top {
  uint32_t registers = 0, predicates = 0, local = 0;
  std::vector<bool> used;  // frames

  explicit Top(const Warp& w) : used(w.frames.size()) {
    const Kernel& k = w.exec->kernel();
    auto visit = [&](uint32_t from) {
      for (uint32_t n = from; !used[n]; n = w.frames[n].parent) {
        used[n] = true;
        const Frame& f = w.frames[n];
        const FunctionCode& code = k.functions[f.function];
        registers = std::max(registers, f.register_base + code.register_bytes);
        predicates = std::max(predicates, f.predicate_base + code.predicates);
        local = std::max(local, f.local_base + code.local_bytes + f.allocated);
      }
    };
    visit(0);
    visit(w.frame);
    for (const Fragment& f : w.others) visit(f.frame);
  }
};

bool stack_fits(Warp& w, uint64_t bytes, uint32_t mask, const char* what) {
  if (bytes <= kMaxLocal && w.frames.size() <= 8192) return true;
  w.exec->fault(w, "stack-overflow", mask,
                fmt::format("{} needs more than {} KiB of stack per thread", what, kMaxLocal >> 10),
                "recursion without end?");
  return false;
}

void copy_locals(Warp& w, const std::vector<CallTarget::Copy>& copies, uint32_t mask,
                 uint32_t caller_base, uint32_t callee_base, bool into_callee) {
  for (const CallTarget::Copy& c : copies)
    for_each_lane(mask, [&](int l) {
      uint8_t* lane = w.local.data() + static_cast<size_t>(l) * w.local_bytes;
      uint8_t *caller = lane + caller_base + c.caller, *callee = lane + callee_base + c.callee;
      std::memmove(into_callee ? callee : caller, into_callee ? caller : callee, c.bytes);
    });
}

// The lanes in `mask` of the current fragment call; the others go on behind the call.
void enter(Warp& w, const CallSite& site, uint32_t target_index, uint32_t mask) {
  const CallTarget& target = site.targets[target_index];
  const FunctionCode& callee = w.exec->kernel().functions[target.callee];
  if (uint32_t rest = w.active & ~mask) {
    w.others.push_back({w.pc, rest, w.frame, {}});
    w.active = mask;
  }
  const Top top(w);
  if (!stack_fits(w, uint64_t{top.local} + callee.local_bytes, mask, "the call")) return;
  uint32_t slot =
      static_cast<uint32_t>(std::find(top.used.begin(), top.used.end(), false) - top.used.begin());
  if (slot == w.frames.size()) w.frames.emplace_back();
  w.frames[slot] = {w.frame,        w.pc,      w.pc - 1, target.callee, target_index, top.registers,
                    top.predicates, top.local, 0};
  if (top.registers + callee.register_bytes > w.register_capacity) {
    uint64_t capacity =
        std::max<uint64_t>(2 * w.register_capacity, top.registers + callee.register_bytes);
    uint8_t* grown = static_cast<uint8_t*>(std::aligned_alloc(64, (capacity + 63) / 64 * 64));
    // wgmmas in flight hold addresses of registers.
    if (w.wgmma_issued) w.exec->perform_wgmmas(w, w.wgmma_issued, true);
    std::memcpy(grown, w.register_file, w.register_capacity);
    std::free(w.register_file);
    w.register_file = grown;
    w.register_capacity = capacity;
  }
  if (top.predicates + callee.predicates > w.predicate_file.size())
    w.predicate_file.resize(top.predicates + callee.predicates);
  std::fill_n(w.predicate_file.begin() + top.predicates, kFixedPredicates, 0);
  w.predicate_file[top.predicates] = ~0u;
  grow_local(w, top.local + callee.local_bytes);
  copy_locals(w, target.arguments, mask, w.frames[w.frame].local_base, top.local, true);
  w.exec->set_frame(w, slot);
  w.pc = callee.entry_pc;
  w.yield = true;  // recompute which fragment runs
}

uint64_t word_of(const RegisterView& v, Slot slot, uint64_t bytes, int lane) {
  return bytes == 8 ? source<uint64_t>(v, slot)[lane] : source<uint32_t>(v, slot)[lane];
}
void set_word(RegisterView& v, Slot slot, uint64_t bytes, uint32_t mask, uint64_t value) {
  for_each_lane(mask, [&](int l) {
    if (bytes == 8)
      destination<uint64_t>(v, slot)[l] = value;
    else
      destination<uint32_t>(v, slot)[l] = static_cast<uint32_t>(value);
  });
}

uint32_t fixed_end(const Warp& w, const Frame& f) {
  return f.local_base + w.exec->kernel().functions[f.function].local_bytes;
}

}  // namespace

void call(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  enter(w, w.exec->kernel().calls[op.extra], 0, mask);
}

void call_indirect(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const Kernel& k = w.exec->kernel();
  const CallSite& site = k.calls[op.extra];
  const uint64_t* pointer = source<uint64_t>(v, site.pointer);
  const uint64_t first = pointer[std::countr_zero(mask)];
  uint32_t same = 0;
  for_each_lane(mask, [&](int l) { same |= uint32_t{pointer[l] == first} << l; });
  const auto found = std::find_if(site.targets.begin(), site.targets.end(), [&](const auto& t) {
    return kFunctionWindow + k.functions[t.callee].function == first;
  });
  if (found == site.targets.end()) {
    const uint64_t index = first - kFunctionWindow;
    const bool function = first >= kFunctionWindow && index < k.module->functions.size();
    return w.exec->fault(w, "illegal-call", same,
                         function
                             ? fmt::format("the call reaches {}, a function of another signature",
                                           k.module->functions[index].name)
                             : fmt::format("the call goes to 0x{:x}, which is no function", first),
                         "a pointer that was never set, or made on the host?", first);
  }
  // Lanes with other targets stay at this instruction as a fragment of their own.
  if (uint32_t rest = mask & ~same) {
    w.others.push_back({w.pc - 1, rest, w.frame, {}});
    w.active &= ~rest;
  }
  enter(w, site, static_cast<uint32_t>(found - site.targets.begin()), same);
}

void ret(RegisterView& v, const MicroOp&, uint32_t mask) {
  Warp& w = warp_of(v);
  const Kernel& k = w.exec->kernel();
  const Frame frame = w.frames[w.frame];
  const CallSite& site = k.calls[k.code[frame.call_pc].extra];
  copy_locals(w, site.targets[frame.target].results, mask, w.frames[frame.parent].local_base,
              frame.local_base, false);
  if (uint32_t rest = w.active & ~mask) w.others.push_back({w.pc, rest, w.frame, {}});
  w.active = mask;
  w.exec->set_frame(w, frame.parent);
  w.pc = frame.return_pc;
  w.yield = true;
}

// Every lane gets the same address, and as much as the lane that asks for most.
void stack_allocate(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const uint64_t bytes = op.imm & 0xff, align = op.imm >> 8;
  uint64_t most = 0;
  for_each_lane(mask, [&](int l) { most = std::max(most, word_of(v, op.operand[1], bytes, l)); });
  const uint64_t at = (Top(w).local + align - 1) / align * align;
  if (!stack_fits(w, most > kMaxLocal ? most : at + most, mask, "alloca")) return;
  Frame& f = w.frames[w.frame];
  const uint32_t end = static_cast<uint32_t>((at + most + 15) / 16 * 16);
  f.allocated = end - fixed_end(w, f);
  grow_local(w, end);
  set_word(v, op.operand[0], bytes, mask, at);
}

void stack_save(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const Frame& f = w.frames[w.frame];
  set_word(v, op.operand[0], op.imm & 0xff, mask, fixed_end(w, f) + f.allocated);
}

void stack_restore(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  Frame& f = w.frames[w.frame];
  const uint32_t end = fixed_end(w, f);
  uint64_t top = 0;
  for_each_lane(mask, [&](int l) { top = std::max(top, word_of(v, op.operand[0], op.imm, l)); });
  if (top < end || top > end + f.allocated)
    return w.exec->fault(w, "stack-restore", mask,
                         fmt::format("stackrestore to 0x{:x}, which stacksave of this call never "
                                     "returned",
                                     top));
  // Other lanes of the call may still use what lies above.
  for (const Fragment& other : w.others)
    if (other.frame == w.frame) return;
  f.allocated = static_cast<uint32_t>(top) - end;
}

}  // namespace ptxbench::emu::ops
