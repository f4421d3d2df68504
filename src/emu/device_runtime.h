#pragma once
// What kernels call of CUDA's device runtime: the text of printf, the heap of malloc and free.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace ptxbench::emu {

class GlobalMemory;

// Reads `bytes` of the calling thread's memory at a generic address; false if it may not.
using GenericRead = std::function<bool(uint64_t address, void* out, uint64_t bytes)>;

// The text of one device printf: the C conversions without `*`, over arguments packed as the
// compiler packs them (each aligned to its size, float as double). `count` is the number of
// arguments consumed; an argument that cannot be read prints as (null). Text is cut at 64 KiB.
std::string device_format(const std::string& format, uint64_t arguments, const GenericRead& read,
                          int* count);

// First fit in one allocation of global memory, made at the first use. Blocks are 16-byte aligned,
// filled with a NaN pattern and carry no header: a kernel cannot damage the bookkeeping. Calls of
// different host threads are serialised.
class DeviceHeap {
 public:
  explicit DeviceHeap(GlobalMemory& memory) : memory_(memory) {}

  // cudaLimitMallocHeapSize; no effect once the heap exists.
  void set_size(uint64_t bytes) {
    if (!base_) size_ = bytes;
  }
  uint64_t size() const { return size_; }
  // Makes the heap (before host threads share the memory).
  void prepare();
  uint64_t allocate(uint64_t bytes);  // 0: no block of that size is left
  bool release(uint64_t address);     // false: no live block starts there

 private:
  GlobalMemory& memory_;
  std::mutex mutex_;
  uint64_t size_ = 8 << 20, base_ = 0;
  std::map<uint64_t, uint64_t> free_, used_;  // offset -> bytes
};

}  // namespace ptxbench::emu
