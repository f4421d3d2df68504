#pragma once
// What the judging process and its GPU worker say to each other over a socket: one request, one
// answer. Bulk data lies in a shared memory file ("arena") that both map; messages name offsets in
// it. Both sides read and write a message through the same fields() function.

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "plan/archive.h"

namespace ptxbench::device::cuda {

enum class Op : uint8_t {
  hello,
  load_plan,
  load_library,
  buffer,
  run,
  check,
  download,
  release,
  self_test,
  describe,
  clone,
  compare
};

// A call of the driver that failed. Which of them are the candidate's doing says is_fault().
struct Failure {
  int32_t code = 0;   // CUresult; 0: none
  std::string stage;  // "load", "launch", "run"
  std::string what;   // name and text of the error, with the assembler's log where there is one
  int32_t step = -1;  // of the plan
  explicit operator bool() const { return code != 0; }
};

struct DeviceInfo {
  std::string name, bus_id;
  bool emulated = false;
  int32_t driver_version = 0;  // 13000 = 13.0
  int32_t cc_major = 0, cc_minor = 0, sm_count = 0;
  uint64_t l2_bytes = 0, memory_bytes = 0;
  int32_t clock_khz = 0, memory_clock_khz = 0, bus_bits = 0;  // the highest clocks
  bool unmapped_guards = false;                               // buffers lie between unmapped ranges
};

struct StateVariable {  // a module variable that device code can write
  uint32_t module = 0;
  std::string name;
};
struct LoadPlan {
  std::vector<uint8_t> plan;
  bool from_ptx = false;     // assemble the PTX even where the plan has machine code
  bool want_images = false;  // hand back the machine code that is loaded
  std::vector<StateVariable> state;
  // By step, of launches: where each parameter lies in Launch::params, by the PTX. The machine's
  // own parameter block need not be laid out so.
  std::vector<std::vector<uint32_t>> offsets;
};
// A routine of a library instead of a plan; arguments are those of the task.
//   cublaslt-bf16                        sizes M, N, K: A, B -> C
//   cublaslt-fp8-1d2d, cublaslt-fp8-1d1d sizes M, N, K: A, SF_A, B, SF_B -> D (blocks of 128)
//   cudnn-sdpa                           sizes B, H, S, D: Q, K, V -> O, LSE
//   cudnn-sdpa-backward                  likewise: Q, K, V, O, dO, L -> dQ, dK, dV
//   cudnn-sdpa-fp8                       likewise: Q, K, V, descale_q, descale_k, descale_v
//                                        -> O, LSE
struct LoadLibrary {
  std::string routine;
  std::string path;  // of the library
  std::vector<int64_t> sizes;
  bool causal = false;
};
struct KernelInfo {
  std::string name;
  int32_t registers = 0, local_bytes = 0, static_shared = 0, max_threads = 0;
  int32_t resident_ctas = 0;  // of one SM, as launched; 0: not known
};
struct Loaded {
  Failure failure;
  std::string description;
  std::vector<KernelInfo> kernels;
  uint64_t state_bytes = 0;
  std::vector<std::vector<uint8_t>> images;  // cubins by module, where the driver gives them
};

// One argument of one set; the first mention of a set makes it.
struct BufferSetup {
  uint32_t set = 0, argument = 0;
  uint64_t bytes = 0;
  bool read_only = false;
  bool upload = false;  // from the arena at `arena_at`; else filled with `pattern`
  uint64_t arena_at = 0;
  uint16_t pattern = 0;
};
// All arguments of `set` as further buffers: inputs with the contents of `from`, moved, byte i of
// argument a to (i + moves[a]) modulo its size (without `moves` nothing is), outputs full of NaN.
struct Clone {
  uint32_t set = 0, from = 0;
  std::vector<uint64_t> moves;
};
// Bytes by argument that differ between `from`, moved likewise, and `set`; inputs are left out.
struct Compared {
  std::vector<uint64_t> differing;
};

enum class Timing : uint8_t {
  none,
  kernel,     // events around the steps, queued behind work that keeps the GPU busy meanwhile
  end_to_end  // host clock around enqueueing on an idle GPU and its completion
};
struct Run {
  uint32_t set = 0;
  Timing timing = Timing::none;
  bool cold = true;   // evict L2 first
  bool dirty = true;  // fill every SM's shared memory with NaN first
};
struct Ran {
  Failure failure;
  double ms = 0;
};

struct Damage {  // a guard zone that was written
  std::string buffer;
  int64_t offset = 0;  // of the first changed byte, from the buffer's begin
  uint64_t bytes = 0;  // changed ones
};
struct StateChange {
  std::string name;
  uint64_t bytes = 0;
};
struct Checked {
  std::vector<Damage> guards;
  std::vector<uint32_t> changed_inputs;  // arguments
  std::vector<StateChange> state;
  uint32_t differing_maps = 0;  // tensor maps that the driver encodes otherwise than src/plan
  std::string map_difference;   // of the first: "word 2: driver 0x..., ours 0x..."
};
struct Download {
  uint32_t set = 0, argument = 0;
  uint64_t arena_at = 0;
};
struct SetId {
  uint32_t set = 0;
};
struct SelfTest {
  Failure failure;
  bool right = false;          // the kernel's result
  double empty_launch_ms = 0;  // between events around a kernel that does nothing
};

// Fields -----------------------------------------------------------------------------------------
template <class A, std::integral T>
void io(A& a, T& v) {
  a.number(v);
}
template <class A, class T>
requires std::is_enum_v<T>
void io(A& a, T& v) {
  auto raw = static_cast<std::underlying_type_t<T>>(v);
  a.number(raw);
  v = static_cast<T>(raw);
}
template <class A>
void io(A& a, double& v) {
  auto bits = std::bit_cast<uint64_t>(v);
  a.number(bits);
  v = std::bit_cast<double>(bits);
}
// Strings and byte vectors.
template <class A, class T>
void io_bytes(A& a, T& v) {
  if constexpr (A::kReading) {
    v.resize(a.length(1));
    a.raw(v.data(), v.size());
  } else {
    a.length(v.size(), 1);
    a.raw(v.data(), v.size());
  }
}
template <class A>
void io(A& a, std::string& v) {
  io_bytes(a, v);
}
template <class A>
void io(A& a, std::vector<uint8_t>& v) {
  io_bytes(a, v);
}
template <class A, class T>
requires std::is_class_v<T>
void io(A& a, T& v);
template <class A, class T>
void io(A& a, std::vector<T>& v) {
  if constexpr (A::kReading)
    v.resize(a.length(1));
  else
    a.length(v.size(), 1);
  for (T& item : v) io(a, item);
}

#define PTXBENCH_WIRE(Type, ...)                               \
  template <class A>                                           \
  void fields(A& a, Type& m) {                                 \
    auto each = [&a](auto&... field) { (io(a, field), ...); }; \
    each(__VA_ARGS__);                                         \
  }
PTXBENCH_WIRE(Failure, m.code, m.stage, m.what, m.step)
PTXBENCH_WIRE(DeviceInfo, m.name, m.bus_id, m.emulated, m.driver_version, m.cc_major, m.cc_minor,
              m.sm_count, m.l2_bytes, m.memory_bytes, m.clock_khz, m.memory_clock_khz, m.bus_bits,
              m.unmapped_guards)
PTXBENCH_WIRE(StateVariable, m.module, m.name)
PTXBENCH_WIRE(LoadPlan, m.plan, m.from_ptx, m.want_images, m.state, m.offsets)
PTXBENCH_WIRE(LoadLibrary, m.routine, m.path, m.sizes, m.causal)
PTXBENCH_WIRE(KernelInfo, m.name, m.registers, m.local_bytes, m.static_shared, m.max_threads,
              m.resident_ctas)
PTXBENCH_WIRE(Loaded, m.failure, m.description, m.kernels, m.state_bytes, m.images)
PTXBENCH_WIRE(BufferSetup, m.set, m.argument, m.bytes, m.read_only, m.upload, m.arena_at, m.pattern)
PTXBENCH_WIRE(Clone, m.set, m.from, m.moves)
PTXBENCH_WIRE(Compared, m.differing)
PTXBENCH_WIRE(Run, m.set, m.timing, m.cold, m.dirty)
PTXBENCH_WIRE(Ran, m.failure, m.ms)
PTXBENCH_WIRE(Damage, m.buffer, m.offset, m.bytes)
PTXBENCH_WIRE(StateChange, m.name, m.bytes)
PTXBENCH_WIRE(Checked, m.guards, m.changed_inputs, m.state, m.differing_maps, m.map_difference)
PTXBENCH_WIRE(Download, m.set, m.argument, m.arena_at)
PTXBENCH_WIRE(SetId, m.set)
PTXBENCH_WIRE(SelfTest, m.failure, m.right, m.empty_launch_ms)
#undef PTXBENCH_WIRE

template <class A, class T>
requires std::is_class_v<T>
void io(A& a, T& v) { fields(a, v); }

template <class T>
std::vector<uint8_t> pack(T message) {
  plan::Writer writer;
  io(writer, message);
  return writer.take();
}
template <class T>
Result<T> unpack(const uint8_t* data, size_t size) {
  plan::Reader reader(data, size);
  T message;
  io(reader, message);
  if (!reader.ok() || reader.left() > 0)
    return Error{"infrastructure", "the GPU worker and this program do not understand each other"};
  return message;
}

}  // namespace ptxbench::device::cuda
