// Calls of functions that have no body in PTX because the driver provides them: vprintf,
// __assertfail, malloc, free.

#include <fmt/format.h>

#include "emu/decoder.h"
#include "emu/device_runtime.h"
#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu::ops {
namespace {

uint8_t* lane_local(Warp& w, int lane) {
  return w.local.data() + static_cast<size_t>(lane) * w.local_bytes;
}

// The index-th argument of the call, from the caller's frame.
template <class T>
T argument(Warp& w, const CallSite& site, size_t index, int lane) {
  T v{};
  if (index >= site.argument_offsets.size()) return v;
  const uint64_t at = w.frames[w.frame].local_base + uint64_t{site.argument_offsets[index]};
  if (at + sizeof(T) <= w.local_bytes) std::memcpy(&v, lane_local(w, lane) + at, sizeof(T));
  return v;
}

template <class T>
void set_result(Warp& w, const CallSite& site, int lane, T value) {
  if (site.result_offset == ~0u) return;
  const uint64_t at = w.frames[w.frame].local_base + uint64_t{site.result_offset};
  if (at + sizeof(T) <= w.local_bytes) std::memcpy(lane_local(w, lane) + at, &value, sizeof(T));
}

bool read_generic(Warp& w, int lane, uint64_t address, void* out, uint64_t bytes) {
  if (in_window(address, kLocalWindow)) {
    const uint64_t at = static_cast<uint32_t>(address);
    if (at + bytes > w.local_bytes) return false;
    std::memcpy(out, lane_local(w, lane) + at, bytes);
    return true;
  }
  if (in_window(address, kSharedWindow)) {
    uint32_t offset = 0;
    const Cta* c = shared_target(w, address, &offset);
    if (!c || offset + bytes > c->shared_bytes) return false;
    std::memcpy(out, c->shared.data() + offset, bytes);
    return true;
  }
  const Allocation* a = w.exec->launch().memory->find(address);
  if (!a || !a->contains(address, bytes)) return false;
  std::memcpy(out, a->data + (address - a->base), bytes);
  return true;
}

std::string text_at(Warp& w, int lane, uint64_t address, size_t most) {
  std::string text;
  for (char c = 0; text.size() < most; text += c) {
    if (!read_generic(w, lane, address + text.size(), &c, 1)) return text.empty() ? "?" : text;
    if (c == 0) break;
  }
  return text;
}

void print(Warp& w, const CallSite& site, int lane) {
  LaunchState& launch = w.exec->launch();
  const auto format = argument<uint64_t>(w, site, 0, lane);
  if (!launch.options->print || format == 0)
    return set_result<int32_t>(w, site, lane, format == 0 ? -1 : 0);
  int count = 0;
  const std::string text = device_format(
      text_at(w, lane, format, 64 << 10), argument<uint64_t>(w, site, 1, lane),
      [&](uint64_t address, void* out, uint64_t bytes) {
        return read_generic(w, lane, address, out, bytes);
      },
      &count);
  set_result<int32_t>(w, site, lane, count);
  std::lock_guard lock(launch.mutex);
  launch.options->print(text);
}

void fail_assertion(Warp& w, const CallSite& site, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const auto text = [&](size_t i) {
    return text_at(w, lane, argument<uint64_t>(w, site, i, lane), 512);
  };
  w.exec->fault(w, "device-assert", mask,
                fmt::format("assertion `{}` failed at {}:{}", text(0), text(1),
                            argument<uint32_t>(w, site, 2, lane)));
}

void release(Warp& w, const CallSite& site, int lane) {
  const auto address = argument<uint64_t>(w, site, 0, lane);
  if (address == 0 || w.exec->launch().heap->release(address)) return;
  w.exec->fault(w, "bad-free", 1u << lane,
                fmt::format("free of 0x{:x}, which is no live block of the device heap", address),
                "freed twice, or not from malloc in a kernel?", address);
}

}  // namespace

void call_builtin(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const CallSite& site = w.exec->kernel().calls[op.extra];
  if (site.builtin == kAssertFail) return fail_assertion(w, site, mask);
  for_each_lane(mask, [&](int lane) {
    if (site.builtin == kVprintf) print(w, site, lane);
    if (site.builtin == kFree) release(w, site, lane);
    if (site.builtin == kMalloc) {
      const auto bytes = argument<uint64_t>(w, site, 0, lane);
      const uint64_t address = w.exec->launch().heap->allocate(bytes);
      if (RaceChecker* races = w.exec->races(); races && address) races->forget(address, bytes);
      set_result(w, site, lane, address);
    }
  });
}

}  // namespace ptxbench::emu::ops
