#pragma once
// Device memory for tests: poisoned, with guard zones before and after that are checked when the
// values are fetched.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ptxbench::te::test {

inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) ADD_FAILURE() << what << ": " << cudaGetErrorString(status);
}

template <class T>
class DeviceArray {
 public:
  // `shift`: elements by which the first one is off a 256-byte boundary.
  explicit DeviceArray(size_t count, int poison = 0xee, size_t shift = 0)
      : count_(count), shift_(shift), poison_(poison) {
    bytes_ = 2 * kGuard + (count + shift) * sizeof(T);
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&base_), bytes_), "cudaMalloc");
    check_cuda(cudaMemset(base_, poison, bytes_), "cudaMemset");
  }
  explicit DeviceArray(const std::vector<T>& values, size_t shift = 0)
      : DeviceArray(values.size(), 0xee, shift) {
    put(values);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(base_); }

  T* get() const { return reinterpret_cast<T*>(base_ + kGuard) + shift_; }
  void put(const std::vector<T>& values) {
    check_cuda(cudaMemcpy(get(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
               "upload");
  }
  // Waits for the device.
  std::vector<T> fetch() const {
    std::vector<uint8_t> all(bytes_);
    check_cuda(cudaMemcpy(all.data(), base_, bytes_, cudaMemcpyDeviceToHost), "download");
    const size_t first = kGuard + shift_ * sizeof(T), end = first + count_ * sizeof(T);
    size_t broken = 0;
    for (size_t i = 0; i < bytes_; ++i)
      if ((i < first || i >= end) && all[i] != static_cast<uint8_t>(poison_)) ++broken;
    EXPECT_EQ(broken, 0u) << "bytes written outside the array";
    std::vector<T> values(count_);
    std::memcpy(values.data(), all.data() + first, count_ * sizeof(T));
    return values;
  }

 private:
  static constexpr size_t kGuard = 256;
  uint8_t* base_ = nullptr;
  size_t count_, shift_, bytes_ = 0;
  int poison_;
};

// How many kernels (and other pieces of work) a call puts on its stream, seen by capturing it.
struct Work {
  int kernels = 0, others = 0;
  bool operator==(const Work&) const = default;
};
inline constexpr Work kOneKernel = {1, 0};

template <class Call>
Work work_of(Call&& call) {
  cudaStream_t stream;
  cudaGraph_t graph;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  call(stream);
  check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
  size_t count = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "nodes");
  std::vector<cudaGraphNode_t> nodes(count);
  check_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "nodes");
  Work work;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check_cuda(cudaGraphNodeGetType(node, &type), "node type");
    ++(type == cudaGraphNodeTypeKernel ? work.kernels : work.others);
  }
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return work;
}

}  // namespace ptxbench::te::test
