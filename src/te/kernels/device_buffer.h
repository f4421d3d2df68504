#pragma once
// Device memory with an owner. Made before the hot loop, never in it.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "base/result.h"
#include "te/kernels/launch.h"

namespace ptxbench::te {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  // `bytes` zero bytes. Error "cuda".
  static Result<DeviceBuffer> zeroed(size_t bytes) {
    DeviceBuffer b;
    PB_RETURN_IF_ERROR(launched("allocation", cudaMalloc(&b.data_, bytes > 0 ? bytes : 1)));
    b.bytes_ = bytes;
    PB_RETURN_IF_ERROR(launched("clearing", cudaMemset(b.data_, 0, bytes)));
    return b;
  }
  Result<void> upload(const void* from, size_t bytes) {
    return launched("upload", cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice));
  }
  Result<void> download(void* to, size_t bytes) const {
    return launched("download", cudaMemcpy(to, data_, bytes, cudaMemcpyDeviceToHost));
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace ptxbench::te
