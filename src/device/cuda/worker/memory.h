#pragma once
// Device memory of one worker: buffers between guard zones, with unmapped address ranges on both
// sides where the driver maps memory page by page.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/cuda/wire.h"
#include "device/cuda/worker/driver.h"

namespace ptxbench::device::cuda {

// An error of the driver as this program's own failure.
Error driver_error(const Driver& driver, const char* call, CUresult code);

class Context {
 public:
  // Opens device `index`; errors "no-driver", "no-device", "infrastructure".
  static Result<Context> open(const std::string& driver_path, int index);
  const Driver& driver() const { return driver_; }
  const DeviceInfo& info() const { return info_; }
  CUstream stream() const { return stream_; }
  int device() const { return device_; }
  bool maps_pages() const { return granularity_ > 0; }
  uint64_t granularity() const { return granularity_; }
  CUresult synchronize() const { return driver_.cuStreamSynchronize(stream_); }

 private:
  Driver driver_;
  DeviceInfo info_;
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  uint64_t granularity_ = 0;  // 0: plain allocations
};

class GuardedBuffer {
 public:
  static constexpr uint64_t kGuardBytes = uint64_t{1} << 20;  // before and behind, at least

  // Error "out-of-memory" where the card has no room.
  static Result<GuardedBuffer> create(const Context& context, std::string name, uint64_t bytes);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;
  ~GuardedBuffer();

  CUdeviceptr address() const { return at_; }
  uint64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  // From now on writing to the buffer or its guard zones faults, where the driver maps pages and
  // knows read-only ones. Says whether it does.
  bool protect();
  // Reads the guard zones; nothing if they are as they were made.
  Result<std::optional<Damage>> damage() const;

 private:
  GuardedBuffer(const Context& context, std::string name, uint64_t bytes)
      : context_(&context), name_(std::move(name)), bytes_(bytes) {}
  Result<void> allocate();
  Result<void> map(uint64_t total);
  CUresult set_access(CUmemAccess_flags flags) const;
  Result<void> scan(CUdeviceptr from, uint64_t bytes, Damage& damage) const;

  const Context* context_;
  std::string name_;
  uint64_t bytes_ = 0;
  CUdeviceptr at_ = 0;
  CUdeviceptr block_ = 0, reservation_ = 0;
  uint64_t block_bytes_ = 0, reserved_bytes_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  bool mapped_ = false;
  uint8_t pattern_ = 0;
};

}  // namespace ptxbench::device::cuda
