#pragma once
// Runs a PTX text on the emulator: buffers in, buffers and the run's report out. For tests of the
// core.

#include <string>
#include <vector>

#include "emu/emulator.h"
#include "emu/isa_recorder.h"

namespace ptxbench::emu::test {

struct TestBuffer {
  std::string name;
  std::vector<uint8_t> bytes;
  bool initialized = true, read_only = false;
};

template <class T>
TestBuffer buffer_of(std::string name, const std::vector<T>& values, bool read_only = false) {
  TestBuffer b{std::move(name), std::vector<uint8_t>(values.size() * sizeof(T)), true, read_only};
  std::memcpy(b.bytes.data(), values.data(), b.bytes.size());
  return b;
}
inline TestBuffer output_of(std::string name, size_t bytes) {
  return {std::move(name), std::vector<uint8_t>(bytes, 0xee), false, false};
}
template <class T>
std::vector<T> values_of(const TestBuffer& b) {
  std::vector<T> v(b.bytes.size() / sizeof(T));
  std::memcpy(v.data(), b.bytes.data(), v.size() * sizeof(T));
  return v;
}

// A kernel whose parameters are the buffers' addresses, then 32-bit scalars, then tensor maps.
struct PtxRun {
  std::string ptx;  // without the header lines
  std::vector<TestBuffer> buffers;
  std::vector<uint32_t> scalars;
  std::vector<plan::TensorMapArgs> maps;  // global_address: index of the buffer
  plan::Dim3 grid, block, cluster;
  bool explicit_cluster = false;
  uint32_t dynamic_shared = 0;
  plan::RunOptions options;
  std::string target = "sm_90a";

  plan::RunResult result;
  std::string error;  // of loading or launching: infrastructure

  PtxRun& go() {
    Emulator emulator;
    std::string text = ".version 9.0\n.target " + target + "\n.address_size 64\n" + ptx;
    Result<uint32_t> module = emulator.load_module(text, "");
    if (!module.ok()) return error = module.error().to_string(), *this;
    LaunchRequest request;
    request.kernel = "k";
    request.grid = grid, request.block = block, request.cluster = cluster;
    request.explicit_cluster = explicit_cluster;
    request.dynamic_shared = dynamic_shared;
    std::vector<uint64_t> addresses;
    for (TestBuffer& b : buffers)
      addresses.push_back(emulator.memory().allocate(b.name, b.bytes.size(), b.initialized,
                                                     b.read_only, b.bytes.data()));
    auto append = [&](const void* p, size_t n, size_t align) {
      request.params.resize((request.params.size() + align - 1) / align * align);
      const uint8_t* bytes = static_cast<const uint8_t*>(p);
      request.params.insert(request.params.end(), bytes, bytes + n);
    };
    for (uint64_t a : addresses) append(&a, 8, 8);
    for (uint32_t s : scalars) append(&s, 4, 4);
    for (plan::TensorMapArgs map : maps) {
      map.global_address = addresses[map.global_address];
      auto descriptor = plan::encode(map);
      append(descriptor.data(), 128, 64);
    }
    Result<void> done = emulator.launch(*module, request, options, &result);
    if (!done.ok()) error = done.error().to_string();
    if (done.ok() && result.status == plan::RunStatus::completed)
      for (const ptx::Instruction* i : emulator.executed()) isa::executed(*i);
    return *this;
  }

  const plan::Finding* finding(const std::string& kind) const {
    for (const plan::Finding& f : result.findings)
      if (f.kind == kind) return &f;
    return nullptr;
  }
  std::string kinds() const {
    std::string s;
    for (const plan::Finding& f : result.findings) s += f.kind + " ";
    return s;
  }
  uint64_t warps(const std::string& family) const {
    for (const plan::FamilyCount& f : result.families)
      if (f.family == family) return f.warps;
    return 0;
  }
};

}  // namespace ptxbench::emu::test
