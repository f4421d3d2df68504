// The emulator as a Device: binds a plan's buffers to emulated memory and runs its steps in order.

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "base/demangle.h"
#include "device/dataflow.h"
#include "device/device.h"
#include "emu/emulator.h"

namespace ptxbench::device {
namespace {

using plan::LaunchPlan;

class Replay {
 public:
  Replay(const LaunchPlan& plan, const RunOptions& options, emu::DeviceProfile profile)
      : plan_(plan), options_(options), emulator_(std::move(profile)) {}

  Result<RunResult> run(std::span<const Binding> arguments) {
    PB_RETURN_IF_ERROR(load_modules());
    if (result_.status != RunStatus::completed) return std::move(result_);
    for (const auto& a : emulator_.memory().allocations())  // so far only variables
      emulator_.memory().watch_state(a->base);
    PB_RETURN_IF_ERROR(bind(arguments));
    if (result_.status != RunStatus::completed) return std::move(result_);
    for (const plan::Step& step : plan_.steps) {
      Result<void> done = std::visit([&](const auto& s) { return execute(s); }, step);
      if (!done.ok()) {
        // What the emulator cannot do is the harness's shortcoming, not the candidate's.
        if (done.error().kind != "unsupported" && done.error().kind != "unknown-kernel")
          return done.error();
        result_.status = RunStatus::unsupported;
        result_.message = done.error().to_string();
      }
      if (result_.status != RunStatus::completed) break;
    }
    if (result_.status == RunStatus::completed) report_carried_state();
    summarise();
    return std::move(result_);
  }

 private:
  Result<void> load_modules() {
    for (const plan::Module& m : plan_.modules) {
      Result<uint32_t> handle = emulator_.load_module(m.ptx, m.hash);
      if (!handle.ok()) {
        result_.status = RunStatus::unsupported;
        result_.message = handle.error().to_string();
        return {};
      }
      modules_.push_back(*handle);
    }
    return {};
  }

  Result<void> bind(std::span<const Binding> arguments) {
    for (const plan::Buffer& b : plan_.buffers) {
      switch (b.role) {
        case plan::BufferRole::argument: {
          if (b.argument >= arguments.size() || arguments[b.argument].bytes.size() != b.size)
            return Error{
                "infrastructure",
                fmt::format("buffer {} of the plan is not bound to {} bytes", b.name, b.size)};
          const Binding& a = arguments[b.argument];
          addresses_.push_back(emulator_.memory().allocate(b.name, b.size, a.initialized,
                                                           a.read_only, a.bytes.data()));
          break;
        }
        case plan::BufferRole::scratch:
          if (!emulator_.memory().fits(b.size)) {
            result_.status = RunStatus::unsupported;
            result_.message =
                fmt::format("{} of {} bytes exceeds the emulator's memory", b.name, b.size);
            return {};
          }
          addresses_.push_back(emulator_.memory().allocate(b.name, b.size, false));
          break;
        case plan::BufferRole::symbol: {
          PB_ASSIGN_OR_RETURN(uint64_t address, emulator_.symbol(modules_[b.module], b.name));
          addresses_.push_back(address);
          break;
        }
      }
    }
    return {};
  }

  // Host bytes of a range; null and a finding where the range leaves its buffer.
  uint8_t* range(const plan::BufferRef& at, uint64_t bytes, bool write, const char* what) {
    uint64_t address = addresses_[at.buffer] + at.offset;
    emu::Allocation* a = emulator_.memory().find(addresses_[at.buffer]);
    bool inside = a && a->contains(address, bytes);
    if (inside &&
        !(write && a->read_only && plan_.buffers[at.buffer].role == plan::BufferRole::argument)) {
      if (write) a->mark_written(address - a->base, bytes);
      return a->data + (address - a->base);
    }
    Finding f;
    f.kind = inside ? "write-to-input" : "out-of-bounds";
    f.message = inside ? fmt::format("{} writes to {}, an input", what, a->name)
                       : fmt::format("{} of {} bytes touches {}", what, bytes,
                                     emulator_.memory().describe(address + bytes));
    result_.message = f.message;
    result_.status = RunStatus::fault;
    result_.findings.push_back(std::move(f));
    return nullptr;
  }

  Result<void> execute(const plan::Launch& l) {
    emu::LaunchRequest r;
    r.kernel = l.kernel;
    r.grid = l.grid, r.block = l.block, r.cluster = l.cluster;
    r.explicit_cluster = l.explicit_cluster;
    r.cooperative = l.cooperative;
    r.dynamic_shared = l.dynamic_shared_bytes;
    PB_ASSIGN_OR_RETURN(r.params, plan::materialize(l.params, plan_, addresses_));
    RunResult one;
    one.wall_ms = result_.wall_ms;
    PB_RETURN_IF_ERROR(emulator_.launch(modules_[l.module], r, options_, &one));
    result_.wall_ms = one.wall_ms;
    result_.status = one.status;
    result_.message = one.message;
    for (plan::LaunchCosts& costs : one.costs) result_.costs.push_back(std::move(costs));
    for (Finding& f : one.findings) result_.findings.push_back(std::move(f));
    StepEffect effect;
    effect.kernel = l.kernel;
    for (const emu::Touched& t : emulator_.touched())
      effect.touched.push_back({t.allocation->base, t.allocation->size, t.read, t.written});
    effect.families = std::move(one.families);
    effect.kernels = std::move(one.kernels);
    effects_.push_back(std::move(effect));
    return {};
  }

  Result<void> execute(const plan::Memset& m) {
    uint8_t* dst = range(m.dst, m.bytes, true, "a memset");
    for (uint64_t i = 0; dst && i + m.element_size <= m.bytes; i += m.element_size)
      std::memcpy(dst + i, &m.value, m.element_size);
    note_copy(m.dst, nullptr, m.bytes);
    return {};
  }

  Result<void> execute(const plan::CopyHostToDevice& c) {
    PB_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, plan::materialize(c.data, plan_, addresses_));
    if (uint8_t* dst = range(c.dst, bytes.size(), true, "a host-to-device copy"))
      std::memcpy(dst, bytes.data(), bytes.size());
    note_copy(c.dst, nullptr, bytes.size());
    return {};
  }

  Result<void> execute(const plan::CopyDeviceToDevice& c) {
    uint8_t* src = range(c.src, c.bytes, false, "a device-to-device copy");
    uint8_t* dst = src ? range(c.dst, c.bytes, true, "a device-to-device copy") : nullptr;
    if (dst) std::memmove(dst, src, c.bytes);
    note_copy(c.dst, &c.src, c.bytes);
    return {};
  }

  Result<void> execute(const plan::Free& f) {
    if (emu::Allocation* a = emulator_.memory().find(addresses_[f.buffer])) a->free();
    return {};
  }

  // A candidate that behaves otherwise when it is called again cannot be judged by one replay.
  void report_carried_state() {
    for (const auto& a : emulator_.memory().allocations()) {
      const uint64_t bytes = a->carried_bytes();
      if (bytes == 0) continue;
      Finding f;
      f.kind = "carried-state";
      f.symbol = demangled_variable(a->name);
      f.message = fmt::format(
          "the variable {} carries state from call to call: {} of its bytes are read before this "
          "call writes them, and are left changed",
          f.symbol, bytes);
      f.hint =
          "compute every result from the inputs alone; a counter may stay if each call leaves "
          "it as it found it";
      result_.findings.push_back(std::move(f));
    }
  }

  // Counts what ran; launches whose results reach no output are no evidence.
  void summarise() {
    std::vector<uint64_t> outputs;
    for (size_t i = 0; i < addresses_.size(); i++)
      if (emu::Allocation* a = emulator_.memory().find(addresses_[i]);
          a && !a->read_only && plan_.buffers[i].role == plan::BufferRole::argument)
        outputs.push_back(a->base);
    std::vector<bool> useful = contributes(effects_, outputs);
    bool completed = result_.status == RunStatus::completed;
    for (size_t i = 0; i < effects_.size(); i++) {
      StepEffect& e = effects_[i];
      if (e.kernel.empty()) continue;
      if (useful[i] || !completed) {
        merge_counts(e, &result_);
        continue;
      }
      Finding f;
      f.kind = "result-unused";
      f.hazard = HazardClass::advice;
      f.kernel = e.kernel;
      f.message = fmt::format(
          "nothing that launch {} of the plan wrote reaches an output: its instructions are not "
          "counted",
          i + 1);
      f.hint = "a later kernel overwrites it, or nobody reads it";
      result_.findings.push_back(std::move(f));
    }
  }

  void note_copy(const plan::BufferRef& dst, const plan::BufferRef* src, uint64_t bytes) {
    StepEffect e;
    auto add = [&](uint32_t buffer, bool write) {
      emu::Allocation* a = emulator_.memory().find(addresses_[buffer]);
      if (a) e.touched.push_back({a->base, a->size, write ? 0 : bytes, write ? bytes : 0});
    };
    add(dst.buffer, true);
    if (src) add(src->buffer, false);
    effects_.push_back(std::move(e));
  }

  const LaunchPlan& plan_;
  const RunOptions& options_;
  emu::Emulator emulator_;
  std::vector<uint32_t> modules_;
  std::vector<uint64_t> addresses_;  // by plan buffer
  std::vector<StepEffect> effects_;  // in order of execution
  RunResult result_;
};

class EmuDevice : public Device {
 public:
  explicit EmuDevice(emu::DeviceProfile profile) : profile_(std::move(profile)) {}
  std::string name() const override { return "emu:" + profile_.name; }

  Result<RunResult> replay(const LaunchPlan& plan, std::span<const Binding> arguments,
                           const RunOptions& options) override {
    PB_RETURN_IF_ERROR(plan::validate(plan));
    auto start = std::chrono::steady_clock::now();
    Replay replay(plan, options, profile_);
    Result<RunResult> result = replay.run(arguments);
    if (result.ok())
      result->wall_ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count();
    return result;
  }

 private:
  emu::DeviceProfile profile_;
};

}  // namespace

std::unique_ptr<Device> make_emu_device(const std::string& profile) {
  Result<emu::DeviceProfile> found = emu::find_profile(profile);
  return found.ok() ? std::make_unique<EmuDevice>(found.take()) : nullptr;
}

}  // namespace ptxbench::device
