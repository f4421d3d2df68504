// Modules: fat binaries that host code registered (loaded when first used) and images loaded by a
// call.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "cudart/device_code.h"
#include "cudart/kernel_table.h"
#include "cudart/lib/live/backend.h"

namespace ptxbench::cudart::live {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1, kContainerMagic = 0xba55ed50;
constexpr uint64_t kMaxImage = uint64_t{1} << 30;

struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* names;
};

uint32_t magic_of(const void* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, 4);
  return magic;
}

// The extent of an image in memory, as far as its own header tells; empty: unknown.
std::span<const uint8_t> extent(const void* image) {
  const auto* bytes = static_cast<const uint8_t*>(image);
  if (magic_of(image) == kContainerMagic) {
    uint16_t header = 0;
    uint64_t body = 0;
    std::memcpy(&header, bytes + 6, 2);
    std::memcpy(&body, bytes + 8, 8);
    return body > kMaxImage ? std::span<const uint8_t>{} : std::span(bytes, header + body);
  }
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return std::span(bytes, 64);  // machine code: its header is enough to refuse it
  return std::span(bytes, strnlen(static_cast<const char*>(image), kMaxImage));
}

int status_of(const Error& error) {
  if (error.kind == "unsupported") return kNotSupported;
  return error.kind.rfind("ptx-", 0) == 0 || error.kind == "syntax" ? kInvalidPtx : kInvalidSource;
}

}  // namespace

int LiveBackend::load_into(Module& module, std::span<const uint8_t> bytes, std::string* why) {
  const bool machine_code = bytes.size() >= 4 && std::memcmp(bytes.data(),
                                                             "\x7f"
                                                             "ELF",
                                                             4) == 0;
  if (machine_code) {
    *why = "the image is machine code only; the emulator runs PTX";
    return kNoKernelImage;
  }
  auto entries = toolchain::read_device_code(bytes);
  if (!entries.ok()) {
    *why = entries.error().message;
    return status_of(entries.error());
  }
  const toolchain::FatbinEntry* ptx = choose_ptx(*entries, profile_);
  if (!ptx) {
    *why = explain_no_ptx(*entries, profile_);
    return kNoKernelImage;
  }
  const std::string text(ptx->bytes.begin(), ptx->bytes.end());
  const toolchain::FatbinEntry* cubin = matching_cubin(*entries, *ptx);
  auto table = build_kernel_table(text, cubin ? cubin->bytes : std::vector<uint8_t>{});
  if (!table.ok()) {
    *why = table.error().to_string();
    return status_of(table.error());
  }
  auto handle = emulator_.load_module(text, "");
  if (!handle.ok()) {
    *why = handle.error().to_string();
    return status_of(handle.error());
  }
  module.handle = *handle;
  module.target = table->target;
  for (const wire::KernelInfo& info : table->kernels) {
    auto kernel = std::make_unique<LiveKernel>();
    kernel->own_info = info;
    kernel->own_name = info.name;
    kernel->info = &kernel->own_info;
    kernel->name = kernel->own_name.c_str();
    kernel->module = &module;
    kernel_handles_.insert(kernel.get());
    module.kernels[info.name] = std::move(kernel);
  }
  for (const auto& [name, size] : table->variables)
    if (auto address = emulator_.symbol(module.handle, name); address.ok())
      module.variables[name] = {*address, size};
  return kSuccess;
}

bool LiveBackend::ensure_loaded(Module& module) {
  if (module.loaded) return module.status == kSuccess;
  module.loaded = true;
  const void* image = module.fatbin;
  if (image && magic_of(image) == kWrapperMagic) image = static_cast<const Wrapper*>(image)->data;
  std::string why = "the fat binary is damaged";
  const auto bytes = image ? extent(image) : std::span<const uint8_t>{};
  module.status = bytes.empty() ? static_cast<int>(kInvalidSource) : load_into(module, bytes, &why);
  if (module.status != kSuccess) {
    std::fprintf(stderr, "ptxbench: %s\n", why.c_str());
    report_.refused(module.status, why);
    return false;
  }
  for (const auto& [host, name] : module.managed)
    if (const Variable* v = variable_in(module, name)) *host = reinterpret_cast<void*>(v->address);
  return true;
}

LiveKernel* LiveBackend::kernel_in(Module& module, const std::string& name) {
  if (!ensure_loaded(module)) return nullptr;
  const auto found = module.kernels.find(name);
  return found == module.kernels.end() ? nullptr : found->second.get();
}

Variable* LiveBackend::variable_in(Module& module, const std::string& name) {
  if (!ensure_loaded(module)) return nullptr;
  const auto found = module.variables.find(name);
  return found == module.variables.end() ? nullptr : &found->second;
}

int LiveBackend::load_module(const void* image, Module** out, std::string* why) {
  if (!image) return kInvalidValue;
  if (magic_of(image) == kWrapperMagic) image = static_cast<const Wrapper*>(image)->data;
  const auto bytes = extent(image);
  *why = "the image is damaged";
  return bytes.empty() ? static_cast<int>(kInvalidSource) : load_module_bytes(bytes, out, why);
}

int LiveBackend::load_module_bytes(std::span<const uint8_t> bytes, Module** out, std::string* why) {
  std::lock_guard lock(mutex_);
  auto module = std::make_unique<Module>();
  module->loaded = true;
  if (const int status = load_into(*module, bytes, why)) return refuse(status, why->c_str());
  *out = module.get();
  owned_modules_[module.get()] = std::move(module);
  return kSuccess;
}

int LiveBackend::unload_module(Module* module) {
  std::lock_guard lock(mutex_);
  const auto found = owned_modules_.find(module);
  if (found == owned_modules_.end()) return kInvalidHandle;
  for (const auto& [name, kernel] : module->kernels) kernel_handles_.erase(kernel.get());
  emulator_.unload_module(module->handle);
  owned_modules_.erase(found);
  return kSuccess;
}

void** LiveBackend::register_module(const void* fatbin) {
  std::lock_guard lock(mutex_);
  registered_.push_back(std::make_unique<Module>());
  registered_.back()->fatbin = fatbin;
  return reinterpret_cast<void**>(registered_.back().get());
}

// The process ends, or a library was closed: its kernels are not launched again.
void LiveBackend::unregister_module(void**) {}

void LiveBackend::register_function(void** module, const void* host, const char* name) {
  std::lock_guard lock(mutex_);
  host_functions_[host] = {reinterpret_cast<Module*>(module), name};
  kernel_of_host_.erase(host);
}

void LiveBackend::register_symbol(void** module, const void* host, const char* name, uint64_t) {
  std::lock_guard lock(mutex_);
  host_symbols_[host] = {reinterpret_cast<Module*>(module), name};
}

void LiveBackend::register_managed(void** module, void** host, const char* name, uint64_t) {
  std::lock_guard lock(mutex_);
  auto* m = reinterpret_cast<Module*>(module);
  m->managed[host] = name;
  host_symbols_[host] = {m, name};
}

void LiveBackend::init_module(void** module) {
  std::lock_guard lock(mutex_);
  ensure_loaded(*reinterpret_cast<Module*>(module));
}

Kernel* LiveBackend::kernel(const void* host_or_handle) {
  std::lock_guard lock(mutex_);
  if (const auto known = kernel_of_host_.find(host_or_handle); known != kernel_of_host_.end())
    return known->second;
  const auto named = host_functions_.find(host_or_handle);
  if (named == host_functions_.end()) {
    const bool handle = kernel_handles_.count(host_or_handle) > 0;
    return handle ? static_cast<LiveKernel*>(const_cast<void*>(host_or_handle)) : nullptr;
  }
  LiveKernel* found = kernel_in(*named->second.module, named->second.name);
  if (found) kernel_of_host_[host_or_handle] = found;
  return found;
}

Kernel* LiveBackend::kernel_named(const char* name) {
  std::lock_guard lock(mutex_);
  for (const auto& module : registered_)
    if (LiveKernel* found = kernel_in(*module, name)) return found;
  return nullptr;
}

bool LiveBackend::symbol(const void* host, uint64_t* address, uint64_t* bytes) {
  std::lock_guard lock(mutex_);
  const auto named = host_symbols_.find(host);
  if (named == host_symbols_.end()) return false;
  const Variable* v = variable_in(*named->second.module, named->second.name);
  if (!v) return false;
  *address = v->address;
  *bytes = v->bytes;
  return true;
}

}  // namespace ptxbench::cudart::live
