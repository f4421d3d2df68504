#pragma once
// What the recording process and its parent say to each other: a request file (written by the
// parent, trusted) and a recording file (written by a process that runs a candidate's code,
// hostile). Little endian, no padding; strings and byte strings carry a 32-bit length. Header only,
// because it is compiled into the runtime libraries as well.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ptxbench::cudart::wire {

constexpr uint32_t kRequestMagic = 0x51584250;    // "PBXQ"
constexpr uint32_t kRecordingMagic = 0x52584250;  // "PBXR"
constexpr uint32_t kVersion = 2;

// Each record of a recording is {u8 kind, u32 payload bytes, payload}.
enum class Kind : uint8_t {
  hello = 1,     // u32 magic, u32 version
  buffer,        // u8 BufferKind, u32 argument, str name, u64 address, u64 bytes
  launch,        // see lib/record_backend.cc and recording.cc
  memset,        // u64 dst, u32 value, u32 element size, u64 bytes
  upload,        // u64 dst, bytes
  copy,          // u64 dst, u64 src, u64 bytes
  tensor_map,    // u32 serial, TensorMapArgs
  unsupported,   // str entry point
  readback,      // str explanation
  refused,       // u32 CUDA error, str explanation
  host_touched,  // u64 address: host code dereferenced a device address (written by the signal
                 // handler)
  host_buffer,   // u64 address, u64 bytes: pinned host memory
  finished,      // u8 Finish, str error kind, str message
  release,       // u64 address of a scratch buffer: freed here
};

enum class BufferKind : uint8_t { argument, scratch, symbol };

enum class Finish : uint8_t {
  returned,      // the host function returned without an error
  error,         // it reported an error (TVM-FFI: an exception was caught at the boundary)
  not_loadable,  // the library could not be loaded
  no_entry,      // the library does not export the entry point
};

// A tensor map as it stands in host memory: 16 bytes of magic, serial, number, then bytes derived
// from both.
constexpr char kTokenMagic[17] = "\x93PTXBENCH-TMAP\x1a\xc5";
constexpr size_t kTokenBytes = 128;

// The token of the serial-th map of a process. `hash` covers the arguments without the address, so
// that the token is the same in both recordings.
inline void make_token(uint32_t serial, uint64_t hash, uint8_t* out) {
  std::memcpy(out, kTokenMagic, 16);
  std::memcpy(out + 16, &serial, 4);
  uint64_t state = hash ^ (uint64_t{serial} << 32) ^ 0x9e3779b97f4a7c15u;
  for (size_t i = 20; i < kTokenBytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out[i] = static_cast<uint8_t>(state >> 56);
  }
}

// Of a tensor_map record's payload; skips the address (8 bytes from byte 9 on). FNV-1a.
inline uint64_t token_hash(const uint8_t* payload, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i)
    if (i < 9 || i >= 17) hash = (hash ^ payload[i]) * 0x100000001b3u;
  return hash;
}

class Writer {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    append(&value, sizeof value);
  }
  void put_bytes(const void* data, size_t size) {
    put(static_cast<uint32_t>(size));
    append(data, size);
  }
  void put_string(std::string_view text) { put_bytes(text.data(), text.size()); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  void append(const void* data, size_t size) {
    const auto* first = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<uint8_t> bytes_;
};

// Reads past the end give zeros and make ok() false.
class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  template <class T>
  T get() {
    T value{};
    if (size_ - at_ < sizeof(T)) {
      fail();
    } else {
      std::memcpy(&value, data_ + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }
  // A view into the data; empty after an error.
  std::string_view get_bytes() {
    const uint32_t size = get<uint32_t>();
    if (!ok_ || size > size_ - at_) {
      fail();
      return {};
    }
    const std::string_view view(reinterpret_cast<const char*>(data_ + at_), size);
    at_ += size;
    return view;
  }
  std::string get_string() { return std::string(get_bytes()); }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == size_; }
  size_t left() const { return size_ - at_; }

 private:
  void fail() {
    ok_ = false;
    at_ = size_;
  }
  const uint8_t* data_;
  size_t size_, at_ = 0;
  bool ok_ = true;
};

// ------------------------------------------------------------------------------------------
// request
struct ParamSlot {
  uint32_t offset = 0, bytes = 0;
};

// What the runtime must know of a kernel; from the PTX (and the cubin for registers).
struct KernelInfo {
  std::string name;
  std::vector<ParamSlot> params;
  uint32_t param_bytes = 0;
  uint32_t static_shared = 0;                // bytes
  uint32_t max_threads = 1024;               // .maxntid / .reqntid product
  uint32_t required_block[3] = {0, 0, 0};    // .reqntid; 0 = none
  uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster; 0 = none
  uint32_t registers = 0;                    // per thread; 0 = unknown
  uint32_t local_bytes = 0;
};

struct ArgumentInfo {
  std::string name;
  uint8_t dtype_code = 0, dtype_bits = 0;  // DLPack
  std::vector<int64_t> shape;
  uint64_t bytes = 0;               // of the tensor
  std::vector<uint8_t> host_bytes;  // may be empty
};

// A number among the arguments.
struct ScalarInfo {
  uint32_t position = 0;   // among all arguments
  int32_t type_index = 0;  // TVMFFITypeIndex
  uint64_t bits = 0;       // int64 or double
};

struct Request {
  std::string library;        // candidate's shared object
  std::string tvm_ffi;        // libtvm_ffi.so to load first; may be empty
  std::string entry;          // symbol
  std::string recording;      // file to write
  std::string profile;        // "h200"
  std::string ptx_target;     // "sm_90a"
  uint64_t base = 0;          // first fake device address
  uint32_t sm_count = 0;      // 0: the profile's
  uint64_t clock_skew_s = 0;  // added to every clock that host code can ask
  std::vector<KernelInfo> kernels;
  std::vector<ArgumentInfo> arguments;  // tensors
  std::vector<ScalarInfo> scalars;      // by ascending position
};

std::vector<uint8_t> write_request(const Request& request);
bool read_request(const std::vector<uint8_t>& bytes, Request* request);

}  // namespace ptxbench::cudart::wire
