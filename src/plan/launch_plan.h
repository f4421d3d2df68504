#pragma once
// The launch plan: everything a candidate's host function asked a CUDA device to do, written down
// so that a trusted executor can do it again with buffers of its own. Recorded by src/cudart in two
// processes with different fake address bases; replayed by src/device.

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "plan/tensor_map.h"

namespace ptxbench::plan {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

// A place in device memory that does not depend on where buffers are put.
struct BufferRef {
  uint32_t buffer = 0;  // index into LaunchPlan::buffers
  uint64_t offset = 0;  // bytes; may equal the buffer's size (one past the end)
  bool operator==(const BufferRef&) const = default;
};

struct PointerPatch {  // the 8 bytes at `at` are the address of `target`
  uint64_t at = 0;
  BufferRef target;
  bool operator==(const PointerPatch&) const = default;
};

struct TensorMapPatch {  // the 128 bytes at `at` are LaunchPlan::tensor_maps[map]
  uint64_t at = 0;
  uint32_t map = 0;
  bool operator==(const TensorMapPatch&) const = default;
};

// Bytes with holes: data that is equal in both recordings, addresses and tensor maps to be filled
// in.
struct Blob {
  std::vector<uint8_t> bytes;
  std::vector<PointerPatch> pointers;
  std::vector<TensorMapPatch> tensor_maps;
  bool operator==(const Blob&) const = default;
};

enum class BufferRole : uint8_t {
  argument,  // a tensor argument of the host function; `argument` is its position
  scratch,   // allocated by the host function
  symbol,    // a __device__/__constant__ variable of a module; name is its PTX name
};

struct Buffer {
  std::string name;  // argument name, "scratch0", or the symbol's name
  BufferRole role = BufferRole::argument;
  uint32_t argument = 0;  // position among the host function's tensor arguments
  uint32_t module = 0;    // for symbols
  uint64_t size = 0;      // bytes
  bool operator==(const Buffer&) const = default;
};

struct Module {
  std::string hash;            // content hash of ptx (or of cubin where there is no PTX)
  std::string ptx;             // text; what the emulator runs
  std::vector<uint8_t> cubin;  // sm_90a machine code if known; what a GPU runs
  bool operator==(const Module&) const = default;
};

// A tensor map as encoded by the host, its address relative to a buffer.
struct TensorMap {
  TensorMapArgs args;  // args.global_address is ignored here
  BufferRef address;
  bool operator==(const TensorMap&) const = default;
};

struct Launch {
  uint32_t module = 0;
  std::string kernel;         // PTX (mangled) name
  Dim3 grid, block, cluster;  // cluster {1,1,1} and !explicit_cluster: none
  bool explicit_cluster = false;
  bool cooperative = false;
  bool programmatic_stream_serialization = false;
  uint32_t dynamic_shared_bytes = 0;
  uint32_t max_dynamic_shared_bytes = 0;  // from cudaFuncSetAttribute; 0 = never set (limit 48 KiB)
  Blob params;          // the kernel's .param block, laid out by the PTX parameter offsets
  uint32_t stream = 0;  // ordinal of the stream as created; 0 = default
  bool operator==(const Launch&) const = default;
};
struct Memset {
  BufferRef dst;
  uint32_t value = 0;  // of `element_size` bytes
  uint32_t element_size = 1;
  uint64_t bytes = 0;
  bool operator==(const Memset&) const = default;
};
struct CopyHostToDevice {
  BufferRef dst;
  Blob data;
  bool operator==(const CopyHostToDevice&) const = default;
};
struct CopyDeviceToDevice {
  BufferRef dst, src;
  uint64_t bytes = 0;
  bool operator==(const CopyDeviceToDevice&) const = default;
};

// A scratch buffer's life ends: later use of it is a fault.
struct Free {
  uint32_t buffer = 0;
  bool operator==(const Free&) const = default;
};

using Step = std::variant<Launch, Memset, CopyHostToDevice, CopyDeviceToDevice, Free>;

struct LaunchPlan {
  static constexpr uint32_t kVersion = 2;  // 2: im2col tensor maps; files of format 1 are read
  std::string arch;                        // "sm_90a"
  std::string device_profile;  // whose attributes host code was told: "h100", "h200", "b200"
  std::string definition;      // task name the plan was recorded for
  std::vector<std::pair<std::string, int64_t>>
      axes;  // values of the task's axes, in definition order
  std::vector<Buffer> buffers;
  std::vector<Module> modules;
  std::vector<TensorMap> tensor_maps;
  std::vector<Step> steps;
  bool operator==(const LaunchPlan&) const = default;
};

// Bounded binary format ("PTXBPLAN", version, sections). Reading never trusts a length: a truncated
// or hostile file gives an Error of kind "bad-plan", never a crash or an allocation above the
// file's size times a small constant.
std::vector<uint8_t> serialize(const LaunchPlan& plan);
Result<LaunchPlan> deserialize(const std::vector<uint8_t>& bytes);

// Checks what both executors rely on: indices in range, patches inside blobs, sizes sane, launch
// shapes within the architecture's limits. kind "bad-plan".
Result<void> validate(const LaunchPlan& plan);

// The launch's own shape against what CUDA refuses on sm_90 and sm_100 (grid, block, cluster,
// dynamic shared memory). kind "launch-refused": a recorder tells the candidate, validate() calls
// it "bad-plan".
Result<void> check_launch(const Launch& launch);

// The blob's bytes with every hole filled. `addresses[i]` is the device address of buffers[i];
// tensor maps are encoded with real addresses.
Result<std::vector<uint8_t>> materialize(const Blob& blob, const LaunchPlan& plan,
                                         const std::vector<uint64_t>& addresses);

}  // namespace ptxbench::plan
