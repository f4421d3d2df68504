#pragma once
// The seam between the CUDA entry points (runtime_*.cc, driver_*.cc) and what happens behind them.
// Two implementations: one writes everything down (record_backend.cc), one emulates at once
// (live/backend.cc). Entry points that only one of them has lie in files of their own. Results are
// CUDA runtime error numbers; where the driver's differ, the driver's entry points translate.

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
  kInvalidPtx = 218,
  kInvalidSource = 300,
  kFileNotFound = 301,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kMisalignedAddress = 716,
  kLaunchFailure = 719,
  kCooperativeTooLarge = 720,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kGraphUpdateFailure = 910,
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

// A box of bytes, any mix of host and device. Pitches and slices are the bytes between rows and
// between planes.
struct CopyCall {
  uint64_t dst = 0, src = 0;
  uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, planes
  uint64_t dst_pitch = 0, src_pitch = 0, dst_slice = 0, src_slice = 0;
  const void* stream = nullptr;

  static CopyCall flat(uint64_t dst, uint64_t src, uint64_t bytes, const void* stream = nullptr) {
    CopyCall c;
    c.dst = dst, c.src = src, c.width = bytes, c.stream = stream;
    return c;
  }
};

struct MemsetCall {
  uint64_t dst = 0;
  uint32_t value = 0, element_size = 1;       // bytes
  uint64_t width = 0, height = 1, pitch = 0;  // bytes, rows, bytes
  const void* stream = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceProfile& profile() const = 0;

  // What nvcc's host code registers before main. The handle is what __cudaRegisterFatBinary
  // returns.
  virtual void** register_module(const void* fatbin) = 0;
  virtual void unregister_module(void** module) = 0;
  virtual void register_function(void** module, const void* host, const char* device_name) = 0;
  virtual void register_symbol(void** module, const void* host, const char* device_name,
                               uint64_t bytes) = 0;
  virtual void register_managed(void** module, void** host, const char* device_name,
                                uint64_t bytes) = 0;
  // Host code is about to use the module's managed variables.
  virtual void init_module(void** module) = 0;
  // By host stub, by handle (a Kernel*), or by name; null if unknown.
  virtual Kernel* kernel(const void* host_or_handle) = 0;
  virtual Kernel* kernel_named(const char* name) = 0;
  virtual bool symbol(const void* host, uint64_t* address, uint64_t* bytes) = 0;

  virtual int launch(const LaunchCall& call) = 0;
  virtual int allocate(uint64_t bytes, uint64_t* address) = 0;
  virtual int release(uint64_t address) = 0;
  // Whether device or host code may use an address; both for memory that they share.
  virtual bool is_device(uint64_t address) const = 0;
  virtual bool is_host(uint64_t address) const = 0;
  // The allocation an address lies in.
  virtual bool find(uint64_t address, uint64_t* base, uint64_t* bytes) const = 0;
  virtual uint64_t allocated_bytes() const = 0;
  // Page-locked host memory, which kernels could reach; null if there is none left.
  virtual void* allocate_host(uint64_t bytes) = 0;
  virtual int release_host(void* memory) = 0;
  virtual int register_host(void* memory, uint64_t bytes) = 0;
  virtual int unregister_host(void* memory) = 0;
  virtual int memset(const MemsetCall& call) = 0;
  virtual int copy(const CopyCall& call) = 0;
  // Everything issued has been done; an error that an earlier kernel left behind.
  virtual int synchronize() = 0;
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
