#pragma once
// The seam between the CUDA entry points (runtime_*.cc, driver_*.cc) and what happens behind them.
// Today there is one implementation, which writes everything down (record_backend.cc); one that
// emulates at once can take its place. Results are CUDA runtime error numbers; where the driver's
// differ, the driver's entry points translate.

#include <cstddef>
#include <cstdint>

#include "cudart/lib/profiles.h"
#include "cudart/wire.h"
#include "plan/tensor_map.h"

#define PBX_PRIVATE __attribute__((visibility("default")))

namespace ptxbench::cudart {

enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidDeviceFunction = 98,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNoKernelImage = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchOutOfResources = 701,
  kCooperativeTooLarge = 720,
  kNotSupported = 801,
  kInvalidClusterSize = 912,
};

struct Kernel {
  const wire::KernelInfo* info = nullptr;  // null: registered, but not in the candidate's PTX
  const char* name = "";
  uint32_t max_dynamic_shared = 0;  // as set; 0 = never
  bool non_portable_cluster = false;
  int carveout = -1;

  uint32_t static_shared() const { return info ? info->static_shared : 0; }
  // Dynamic shared memory a launch may ask for.
  uint32_t dynamic_limit() const {
    const uint32_t fixed = static_shared();
    const uint32_t standard =
        fixed < DeviceProfile::kSharedPerBlock ? DeviceProfile::kSharedPerBlock - fixed : 0;
    return max_dynamic_shared > standard ? max_dynamic_shared : standard;
  }
};

struct LaunchCall {
  Kernel* kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1},
           cluster[3] = {0, 0, 0};  // cluster 0: not given
  bool cooperative = false, programmatic_serialization = false;
  uint64_t dynamic_shared = 0;
  const void* stream = nullptr;
  void** arguments = nullptr;    // one pointer a parameter, or
  const void* packed = nullptr;  // the parameter block itself
  size_t packed_bytes = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceProfile& profile() const = 0;

  virtual void register_function(const void* host, const char* device_name) = 0;
  virtual void register_symbol(const void* host, const char* device_name, uint64_t bytes) = 0;
  // By host stub, by handle (a Kernel*), or by name; null if unknown.
  virtual Kernel* kernel(const void* host_or_handle) = 0;
  virtual Kernel* kernel_named(const char* name) = 0;
  virtual bool symbol(const void* host, uint64_t* address, uint64_t* bytes) = 0;

  virtual int launch(const LaunchCall& call) = 0;
  virtual int allocate(uint64_t bytes, uint64_t* address) = 0;
  virtual int release(uint64_t address) = 0;
  virtual bool is_device(uint64_t address) const = 0;
  // The allocation an address lies in.
  virtual bool find(uint64_t address, uint64_t* base, uint64_t* bytes) const = 0;
  virtual uint64_t allocated_bytes() const = 0;
  // Page-locked host memory, which kernels could reach; null if there is none left.
  virtual void* allocate_host(uint64_t bytes) = 0;
  virtual int memset(uint64_t dst, uint32_t value, uint32_t element_size, uint64_t bytes) = 0;
  virtual int copy(uint64_t dst, uint64_t src, uint64_t bytes) = 0;  // any mix of host and device
  virtual int encode_tensor_map(const plan::TensorMapArgs& args, void* out) = 0;

  virtual const void* create_stream() = 0;
  // An entry point that does not exist here; returns kNotSupported.
  virtual int unsupported(const char* what) = 0;
  // Notes why a call was refused and returns `status`.
  virtual int refuse(int status, const char* why) = 0;
};

// The process's backend. Without a request (a program that was started by hand) there is none and
// every call answers "no device"; this returns a backend of that kind then.
extern "C" PBX_PRIVATE Backend* ptxbench_backend();
// The address behind a driver entry point's name, as cuGetProcAddress resolves it; null if unknown.
extern "C" PBX_PRIVATE void* ptxbench_driver_symbol(const char* name);

// For the host program: starts recording; takes over the request. Argument i got address
// addresses[i].
extern "C" PBX_PRIVATE bool ptxbench_start_recording(const wire::Request* request,
                                                     uint64_t* addresses);
extern "C" PBX_PRIVATE void ptxbench_finish_recording(wire::Finish how, const char* kind,
                                                      const char* message);
// Async-signal-safe.
extern "C" PBX_PRIVATE void ptxbench_record_touched(uint64_t address);

}  // namespace ptxbench::cudart
