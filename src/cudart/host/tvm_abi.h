#pragma once
// The part of the TVM-FFI C ABI (apache-tvm-ffi, c_api.h; DLPack 1.x) that a caller of an exported
// function needs. Declared here so that the project builds without the package.

#include <cstdint>

namespace ptxbench::cudart::tvm_abi {

constexpr int32_t kInt = 1, kBool = 2, kFloat = 3, kDLTensorPtr = 7;  // TVMFFITypeIndex
constexpr int32_t kCuda = 2;                                          // DLDeviceType

struct Any {
  int32_t type_index;
  uint32_t padding;
  union {
    void* pointer;
    uint64_t bits;  // int64, double, or 0 and 1
  };
};
static_assert(sizeof(Any) == 16);

struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  const int64_t* shape;
  const int64_t* strides;
  uint64_t byte_offset;
};
static_assert(sizeof(Tensor) == 48);

using SafeCall = int (*)(void* self, const Any* arguments, int32_t count, Any* result);

struct Object {  // header of a reference-counted object; its cell follows
  uint64_t counts;
  int32_t type_index;
  uint32_t padding;
  void* deleter;
};
static_assert(sizeof(Object) == 24);

struct ByteArray {
  const char* data;
  uint64_t size;
};
struct ErrorCell {
  ByteArray kind, message, backtrace;
};

}  // namespace ptxbench::cudart::tvm_abi
