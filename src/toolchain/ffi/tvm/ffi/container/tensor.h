#ifndef PTXBENCH_FFI_CONTAINER_TENSOR_H_
#define PTXBENCH_FFI_CONTAINER_TENSOR_H_
// Tensors as a host function sees them: a description of memory that it may not touch itself.

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>

namespace tvm {
namespace ffi {

inline bool IsContiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] == 0) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 1) continue;  // the stride of a single element means nothing
    if (tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

inline size_t GetDataSize(size_t numel, DLDataType dtype) {
  return (numel * dtype.bits * dtype.lanes + 7) / 8;
}

namespace detail {

// What Tensor and TensorView have in common.
class TensorAccess {
 public:
  void* data_ptr() const { return tensor_.data; }
  DLDevice device() const { return tensor_.device; }
  int32_t ndim() const { return tensor_.ndim; }
  int32_t dim() const { return tensor_.ndim; }
  DLDataType dtype() const { return tensor_.dtype; }
  ShapeView shape() const { return ShapeView(tensor_.shape, static_cast<size_t>(tensor_.ndim)); }
  ShapeView sizes() const { return shape(); }
  ShapeView strides() const {
    TVM_FFI_ICHECK(tensor_.strides != nullptr || tensor_.ndim == 0);
    return ShapeView(tensor_.strides, static_cast<size_t>(tensor_.ndim));
  }
  int64_t size(int64_t i) const { return tensor_.shape[axis(i)]; }
  int64_t stride(int64_t i) const { return tensor_.strides[axis(i)]; }
  int64_t numel() const { return shape().Product(); }
  uint64_t byte_offset() const { return tensor_.byte_offset; }
  bool IsContiguous() const { return ::tvm::ffi::IsContiguous(tensor_); }
  bool is_contiguous() const { return IsContiguous(); }
  const DLTensor* GetDLTensorPtr() const { return &tensor_; }

 protected:
  int64_t axis(int64_t i) const {
    const int64_t from_start = i >= 0 ? i : tensor_.ndim + i;
    if (from_start < 0 || from_start >= tensor_.ndim)
      TVM_FFI_THROW(IndexError) << "axis " << i << " of a tensor with " << tensor_.ndim << " axes";
    return from_start;
  }

  DLTensor tensor_ = {};
};

}  // namespace detail

class Tensor : public detail::TensorAccess {
 public:
  Tensor() = default;
  explicit Tensor(const DLTensor* tensor) {
    TVM_FFI_ICHECK(tensor != nullptr);
    tensor_ = *tensor;
  }
};

class TensorView : public detail::TensorAccess {
 public:
  TensorView(const Tensor& tensor) { tensor_ = *tensor.GetDLTensorPtr(); }
  TensorView(const DLTensor* tensor) {
    TVM_FFI_ICHECK(tensor != nullptr);
    tensor_ = *tensor;
  }
};

inline size_t GetDataSize(const TensorView& tensor) {
  return GetDataSize(static_cast<size_t>(tensor.numel()), tensor.dtype());
}

}  // namespace ffi
}  // namespace tvm

#endif  // PTXBENCH_FFI_CONTAINER_TENSOR_H_
