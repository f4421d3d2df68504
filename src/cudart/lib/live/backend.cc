// Start, options, end.
#include "cudart/lib/live/backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cudart/emulation_options.h"

namespace ptxbench::cudart::live {

namespace {

emu::DeviceProfile emulated(const DeviceProfile& profile) {
  emu::DeviceProfile out;
  out.name = profile.key;
  out.sm_count = profile.sms;
  out.max_shared_per_cta = DeviceProfile::kSharedPerBlockOptin;
  out.shared_per_sm = DeviceProfile::kSharedPerSm;
  out.threads_per_sm = DeviceProfile::kMaxThreadsPerSm;
  out.ctas_per_sm = DeviceProfile::kMaxBlocksPerSm;
  return out;
}

EmulationOptions options_or_exit() {
  auto read = read_emulation_environment();
  if (read.ok()) return read.take();
  std::fprintf(stderr, "ptxbench: %s\n", read.error().message.c_str());
  _exit(2);
}

const EmulationOptions& options() {
  static const EmulationOptions* once = new EmulationOptions(options_or_exit());
  return *once;
}

// Three quarters of the machine's memory, and never more than the device has.
uint64_t memory_limit(const DeviceProfile& profile) {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min(profile.memory_bytes, pages * page / 4 * 3);
}

}  // namespace

void print_at_exit() {
  LiveBackend& backend = emulation();
  Lock lock;
  backend.report_.save();
  if (std::getenv("PTXBENCH_EMULATE_REPORT")) return;  // whoever reads the report prints it
  const std::string text = report_text(backend.report_.document(), false);
  std::fputs(text.c_str(), stderr);
}

LiveBackend::LiveBackend()
    : profile_(*find_profile(options().profile.c_str())), emulator_(emulated(profile_)) {
  options_.tensor = options().tensor;
  options_.async = options().async;
  options_.threads = options().threads;
  options_.schedule = options().schedule;
  options_.races = options().races;
  options_.print = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  };
  report_.device = profile_.name;
  emulator_.memory().set_limit(memory_limit(profile_));
  report_.save();  // says that the process used the runtime, however it ends
  std::atexit(print_at_exit);
}

int LiveBackend::unsupported(const char* what) {
  std::lock_guard lock(mutex_);
  report_.unsupported(what);
  return kNotSupported;
}

int LiveBackend::refuse(int status, const char* why) {
  std::lock_guard lock(mutex_);
  report_.refused(status, why);
  return status;
}

int LiveBackend::synchronize() {
  std::lock_guard lock(mutex_);
  if (const int status = unsafe_in_capture()) return status;
  return sticky_;
}

LiveBackend& emulation() {
  static LiveBackend* backend = new LiveBackend;  // never destroyed: libraries may call during exit
  return *backend;
}

}  // namespace ptxbench::cudart::live

namespace ptxbench::cudart {

extern "C" Backend* ptxbench_backend() { return &live::emulation(); }

}  // namespace ptxbench::cudart
