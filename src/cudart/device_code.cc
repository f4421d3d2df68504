#include "cudart/device_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace ptxbench::cudart {
namespace {

using Entry = toolchain::FatbinEntry;

// sm_90a before sm_90 before sm_80.
int rank(const std::string& arch) {
  if (arch.size() < 4) return 0;
  const bool specific = !std::isdigit(static_cast<unsigned char>(arch.back()));
  return 2 * std::atoi(arch.c_str() + 3) + (specific ? 1 : 0);
}

}  // namespace

const Entry* choose_ptx(const std::vector<Entry>& entries, const DeviceProfile& device) {
  const Entry* best = nullptr;
  for (const Entry& e : entries)
    if (e.kind == Entry::Kind::ptx && runs_on(e.arch, device) &&
        (!best || rank(e.arch) > rank(best->arch)))
      best = &e;
  return best;
}

const Entry* matching_cubin(const std::vector<Entry>& entries, const Entry& ptx) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
    return e.kind == Entry::Kind::cubin && e.arch == ptx.arch;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::string explain_no_ptx(const std::vector<Entry>& entries, const DeviceProfile& device) {
  std::set<std::string> carried;
  for (const Entry& e : entries)
    carried.insert((e.kind == Entry::Kind::ptx ? "PTX for " : "machine code for ") + e.arch);
  std::string list;
  for (const std::string& one : carried) list += (list.empty() ? "" : ", ") + one;
  const int capability = device.major * 10 + device.minor;
  return fmt::format(
      "no PTX that runs on the emulated {} (compute capability {}.{}): the program carries {}; "
      "rebuild it with PTX, for example nvcc -arch=sm_{}a (and without -rdc=true)",
      device.name, device.major, device.minor, list.empty() ? "no device code" : list, capability);
}

}  // namespace ptxbench::cudart
