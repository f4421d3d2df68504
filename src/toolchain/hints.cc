// What to write instead, by instruction and target, and what ptxas's advisories mean.

#include <fmt/format.h>

#include "toolchain/diagnostics.h"

namespace ptxbench::toolchain {
namespace {

struct Counterpart {
  std::string_view family;  // as it appears in ptxas's message
  std::string_view hopper, blackwell,
      consumer;  // on sm_90a, sm_100a, sm_120a; "" = it exists there
};

// Longer names first: the first match counts.
constexpr Counterpart kCounterparts[] = {
    {"wgmma", "",
     "use tcgen05.mma with accumulators in tensor memory (tcgen05.alloc, tcgen05.commit, "
     "tcgen05.ld)",
     "use mma.sync (warp-level, operands in registers through ldmatrix)"},
    {"tcgen05.mma",
     "use wgmma.mma_async (a warpgroup of 128 threads, operands in shared memory, accumulators in "
     "registers)",
     "", "use mma.sync (warp-level)"},
    {"tcgen05.alloc",
     "there is no tensor memory: wgmma.mma_async keeps accumulators in registers, nothing is "
     "allocated",
     "", "there is no tensor memory: mma.sync keeps accumulators in registers"},
    {"tcgen05.commit", "use wgmma.commit_group and wgmma.wait_group", "",
     "mma.sync is synchronous: no commit is needed"},
    {"tcgen05",
     "there is no tensor memory: use the wgmma family (wgmma.fence, wgmma.mma_async, "
     "wgmma.commit_group, wgmma.wait_group) with accumulators in registers",
     "", "use mma.sync, ldmatrix and stmatrix"},
    {"clusterlaunchcontrol",
     "take work from a global atomic counter, or let each block step by gridDim.x", "", ""},
    {"cta_group", "there are no CTA pairs: use a cluster with .multicast::cluster copies", "",
     "there are no CTA pairs"},
    {"f32x2", "use two scalar f32 instructions", "", ""},
    {"setmaxnreg", "", "", "leave it out: warps here share registers evenly"},
};

std::string generation(const std::string& arch) {
  if (arch.rfind("sm_90", 0) == 0) return "Hopper";
  if (arch.rfind("sm_10", 0) == 0 || arch.rfind("sm_11", 0) == 0) return "Blackwell";
  if (arch.rfind("sm_12", 0) == 0) return "consumer Blackwell";
  return "this architecture";
}

bool has_suffix(const std::string& arch) {
  return !arch.empty() && (arch.back() == 'a' || arch.back() == 'f');
}

}  // namespace

std::string target_hint(std::string_view text, const std::string& arch) {
  for (const Counterpart& c : kCounterparts) {
    if (text.find(c.family) == std::string_view::npos) continue;
    const std::string name = generation(arch);
    const std::string_view instead = name == "Hopper"               ? c.hopper
                                     : name == "Blackwell"          ? c.blackwell
                                     : name == "consumer Blackwell" ? c.consumer
                                                                    : "";
    if (!instead.empty())
      return fmt::format("{} does not exist on {} ({}): {}", c.family, name, arch, instead);
    if (!has_suffix(arch))
      return fmt::format(
          "{} is architecture-specific: compile for {}a, not {} (the suffix selects the "
          "instruction "
          "set that is not carried forward)",
          c.family, arch, arch);
  }
  return fmt::format("the candidate is compiled for {}", arch);
}

std::string advisory_hint(std::string_view code) {
  struct Entry {
    std::string_view code, hint;
  };
  static constexpr Entry kEntries[] = {
      {"C7508",
       "setmaxnreg is ignored: give the kernel __launch_bounds__ so that its register count "
       "at entry is known"},
      {"C7510",
       "the tensor cores wait for each wgmma: keep accumulators out of branches and function "
       "calls, touch them only after wgmma.wait_group"},
      {"C7511", "the tensor cores wait for each wgmma in this function"},
      {"C7514", "the tensor cores wait for each wgmma in this function"},
      {"C7515",
       "the tensor cores wait for each wgmma: don't write accumulator registers between "
       "wgmma.fence and the wait"},
      {"C7517",
       "accumulators are read before wgmma.wait_group: the compiler put a wait there; wait "
       "explicitly, once, where the results are needed"},
      {"C7519",
       "registers of a wgmma are written without wgmma.fence: the compiler put one there; "
       "issue it yourself before the first wgmma"},
      {"spill",
       "use fewer live registers: smaller tiles a thread, __launch_bounds__, or more "
       "registers through setmaxnreg in consumer warps"},
  };
  for (const Entry& entry : kEntries)
    if (entry.code == code) return std::string(entry.hint);
  return "";
}

}  // namespace ptxbench::toolchain
