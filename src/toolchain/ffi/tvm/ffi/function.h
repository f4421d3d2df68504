#ifndef PTXBENCH_FFI_FUNCTION_H_
#define PTXBENCH_FFI_FUNCTION_H_
// TVM_FFI_DLL_EXPORT_TYPED_FUNC: the C entry point that checks number and types of the arguments,
// calls the typed function, and turns exceptions into errors of the calling process.

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/optional.h>

#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {
namespace detail {

inline const char* type_name(int32_t index) {
  switch (index) {
    case kTVMFFINone:
      return "None";
    case kTVMFFIInt:
      return "int";
    case kTVMFFIBool:
      return "bool";
    case kTVMFFIFloat:
      return "float";
    case kTVMFFIOpaquePtr:
      return "void*";
    case kTVMFFIDataType:
      return "DataType";
    case kTVMFFIDevice:
      return "Device";
    case kTVMFFIDLTensorPtr:
      return "DLTensor*";
    case kTVMFFITensor:
      return "ffi.Tensor";
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
      return "str";
    default:
      return "object";
  }
}

inline const DLTensor* as_tensor(const TVMFFIAny& value) {
  if (value.type_index == kTVMFFIDLTensorPtr) return static_cast<const DLTensor*>(value.v_ptr);
  if (value.type_index == kTVMFFITensor) return reinterpret_cast<const DLTensor*>(value.v_obj + 1);
  return nullptr;
}

// Argument<T>::accepts tells whether a value can become a T; get makes it one.
template <class T, class = void>
struct Argument;

template <class T>
struct Argument<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static const char* name() { return "int"; }
  static bool accepts(const TVMFFIAny& v) {
    return v.type_index == kTVMFFIInt || v.type_index == kTVMFFIBool;
  }
  static T get(const TVMFFIAny& v) { return static_cast<T>(v.v_int64); }
};

template <>
struct Argument<bool> {
  static const char* name() { return "bool"; }
  static bool accepts(const TVMFFIAny& v) {
    return v.type_index == kTVMFFIInt || v.type_index == kTVMFFIBool;
  }
  static bool get(const TVMFFIAny& v) { return v.v_int64 != 0; }
};

template <class T>
struct Argument<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static const char* name() { return "float"; }
  static bool accepts(const TVMFFIAny& v) {
    return v.type_index == kTVMFFIFloat || v.type_index == kTVMFFIInt ||
           v.type_index == kTVMFFIBool;
  }
  static T get(const TVMFFIAny& v) {
    return v.type_index == kTVMFFIFloat ? static_cast<T>(v.v_float64) : static_cast<T>(v.v_int64);
  }
};

template <>
struct Argument<void*> {
  static const char* name() { return "void*"; }
  static bool accepts(const TVMFFIAny& v) {
    return v.type_index == kTVMFFIOpaquePtr || v.type_index == kTVMFFINone;
  }
  static void* get(const TVMFFIAny& v) { return v.type_index == kTVMFFINone ? nullptr : v.v_ptr; }
};

template <>
struct Argument<DLDataType> {
  static const char* name() { return "DataType"; }
  static bool accepts(const TVMFFIAny& v) { return v.type_index == kTVMFFIDataType; }
  static DLDataType get(const TVMFFIAny& v) { return v.v_dtype; }
};

template <>
struct Argument<DLDevice> {
  static const char* name() { return "Device"; }
  static bool accepts(const TVMFFIAny& v) { return v.type_index == kTVMFFIDevice; }
  static DLDevice get(const TVMFFIAny& v) { return v.v_device; }
};

template <class T>
struct TensorArgument {
  static const char* name() { return "DLTensor*"; }
  static bool accepts(const TVMFFIAny& v) { return as_tensor(v) != nullptr; }
  static T get(const TVMFFIAny& v) { return T(const_cast<DLTensor*>(as_tensor(v))); }
};
template <>
struct Argument<TensorView> : TensorArgument<TensorView> {};
template <>
struct Argument<Tensor> : TensorArgument<Tensor> {};
template <>
struct Argument<DLTensor*> : TensorArgument<DLTensor*> {};

template <class T>
struct Argument<Optional<T>> {
  static const char* name() { return Argument<T>::name(); }
  static bool accepts(const TVMFFIAny& v) {
    return v.type_index == kTVMFFINone || Argument<T>::accepts(v);
  }
  static Optional<T> get(const TVMFFIAny& v) {
    return v.type_index == kTVMFFINone ? Optional<T>() : Optional<T>(Argument<T>::get(v));
  }
};

inline void set_result(TVMFFIAny* result, bool value) {
  result->type_index = kTVMFFIBool;
  result->v_int64 = value;
}
template <class T>
std::enable_if_t<std::is_integral_v<T>> set_result(TVMFFIAny* result, T value) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = static_cast<int64_t>(value);
}
template <class T>
std::enable_if_t<std::is_floating_point_v<T>> set_result(TVMFFIAny* result, T value) {
  result->type_index = kTVMFFIFloat;
  result->v_float64 = static_cast<double>(value);
}

template <class T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

template <class T>
Bare<T> checked(const TVMFFIAny& value, size_t index, const char* name) {
  if (!Argument<Bare<T>>::accepts(value))
    TVM_FFI_THROW(TypeError) << "Mismatched type on argument #" << index << " when calling: `"
                             << name << "`. Expected `" << Argument<Bare<T>>::name()
                             << "` but got `" << type_name(value.type_index) << '`';
  return Argument<Bare<T>>::get(value);
}

template <class F, class R, class... Args, size_t... I>
void call(const F& function, const char* name, const TVMFFIAny* args, int32_t num_args,
          TVMFFIAny* result, std::index_sequence<I...>) {
  if (num_args != static_cast<int32_t>(sizeof...(Args)))
    TVM_FFI_THROW(TypeError) << "Mismatched number of arguments when calling: `" << name
                             << "`. Expected " << sizeof...(Args) << " but got " << num_args
                             << " arguments";
  if constexpr (std::is_void_v<R>) {
    function(checked<Args>(args[I], I, name)...);
  } else {
    set_result(result, function(checked<Args>(args[I], I, name)...));
  }
}

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... Args>
struct Signature<R (*)(Args...)> {
  template <class F>
  static void invoke(const F& function, const char* name, const TVMFFIAny* args, int32_t num_args,
                     TVMFFIAny* result) {
    call<F, R, Args...>(function, name, args, num_args, result, std::index_sequence_for<Args...>());
  }
};
template <class C, class R, class... Args>
struct Signature<R (C::*)(Args...) const> : Signature<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct Signature<R (C::*)(Args...)> : Signature<R (*)(Args...)> {};

template <class F>
int safe_call(const F& function, const char* name, const TVMFFIAny* args, int32_t num_args,
              TVMFFIAny* result) {
  try {
    Signature<std::decay_t<F>>::invoke(function, name, args, num_args, result);
    return 0;
  } catch (const Error& error) {
    TVMFFIErrorSetRaisedFromCStr(error.kind(), error.message());
  } catch (const std::exception& error) {
    TVMFFIErrorSetRaisedFromCStr("InternalError", error.what());
  }
  return -1;
}

}  // namespace detail
}  // namespace ffi
}  // namespace tvm

#define TVM_FFI_DLL_EXPORT_TYPED_FUNC(ExportName, Function)                                       \
  extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_##ExportName(void*, const TVMFFIAny* args,          \
                                                           int32_t num_args, TVMFFIAny* result) { \
    return ::tvm::ffi::detail::safe_call(Function, #ExportName, args, num_args, result);          \
  }
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(ExportName, DocString)

#endif  // PTXBENCH_FFI_FUNCTION_H_
