#ifndef PTXBENCH_FFI_OPTIONAL_H_
#define PTXBENCH_FFI_OPTIONAL_H_
#include <tvm/ffi/error.h>

#include <new>

namespace tvm {
namespace ffi {

template <class T>
class Optional {
 public:
  Optional() = default;
  Optional(decltype(nullptr)) {}
  Optional(const T& value) { emplace(value); }
  Optional(const Optional& other) {
    if (other.has_) emplace(*other);
  }
  Optional& operator=(const Optional& other) {
    if (this != &other) {
      reset();
      if (other.has_) emplace(*other);
    }
    return *this;
  }
  ~Optional() { reset(); }

  bool has_value() const { return has_; }
  explicit operator bool() const { return has_; }
  bool operator==(decltype(nullptr)) const { return !has_; }
  bool operator!=(decltype(nullptr)) const { return has_; }
  const T& operator*() const { return *reinterpret_cast<const T*>(storage_); }
  const T* operator->() const { return &**this; }
  const T& value() const {
    if (!has_) TVM_FFI_THROW(RuntimeError) << "Back optional access";
    return **this;
  }
  T value_or(T other) const { return has_ ? **this : other; }
  void emplace(const T& value) {
    reset();
    new (storage_) T(value);
    has_ = true;
  }
  void reset() {
    if (has_) reinterpret_cast<T*>(storage_)->~T();
    has_ = false;
  }

 private:
  alignas(T) unsigned char storage_[sizeof(T)] = {};
  bool has_ = false;
};

}  // namespace ffi
}  // namespace tvm

#endif  // PTXBENCH_FFI_OPTIONAL_H_
