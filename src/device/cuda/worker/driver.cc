#include "device/cuda/worker/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace ptxbench::device::cuda {

Result<Driver> Driver::open(const std::string& path) {
  const std::string name = path.empty() ? "libcuda.so.1" : path;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{"no-driver",
                 fmt::format("no CUDA driver: {}",
                             path.empty() ? "libcuda.so.1 was not found" : std::string(dlerror()))};
  Driver driver;
  driver.emulated = dlsym(library, "ptxbench_backend") != nullptr;
  if (driver.emulated && path.empty())
    return Error{"no-driver",
                 "no CUDA driver: the libcuda.so.1 found is this project's emulated one"};
  std::string missing;
#define X(entry)                                                               \
  driver.entry = reinterpret_cast<decltype(&::entry)>(dlsym(library, #entry)); \
  if (driver.entry == nullptr) missing = #entry;
  PTXBENCH_DRIVER_ENTRIES(X)
#undef X
  if (!missing.empty())
    return Error{"no-driver", fmt::format("the CUDA driver is too old: it has no {}", missing)};
#define X(entry) driver.entry = reinterpret_cast<decltype(&::entry)>(dlsym(library, #entry));
  PTXBENCH_OPTIONAL_DRIVER_ENTRIES(X)
#undef X
  return driver;
}

std::string Driver::describe(CUresult code) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(code, &name);
  cuGetErrorString(code, &text);
  if (name == nullptr) return fmt::format("CUDA error {}", static_cast<int>(code));
  return text == nullptr ? std::string(name) : fmt::format("{} ({})", name, text);
}

}  // namespace ptxbench::device::cuda
