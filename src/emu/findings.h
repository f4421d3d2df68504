#pragma once
// Collects findings of one launch from all host threads: the same kind at the same instruction is
// counted, not repeated, and the representative does not depend on the number of threads.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emu/kernel.h"
#include "plan/run_result.h"

namespace ptxbench::emu {

struct FindingSite {
  uint32_t pc = 0;
  uint64_t cta_linear = 0;
  std::array<uint32_t, 3> cta{};
  int warp = -1;
  uint32_t lanes = 0;
};

class FindingSink {
 public:
  explicit FindingSink(const Kernel& kernel) : kernel_(kernel) {}

  void add(plan::Finding finding, const FindingSite& site);
  // The same finding happened again so many times.
  void add_count(const char* kind, uint32_t pc, uint64_t times);
  void add(const char* kind, plan::HazardClass hazard, const FindingSite& site, std::string message,
           std::string hint = "", uint64_t address = 0, std::string symbol = "");
  std::vector<plan::Finding> take();

 private:
  struct Key {
    std::string kind;
    uint32_t pc;
    bool operator<(const Key& o) const { return std::tie(kind, pc) < std::tie(o.kind, o.pc); }
  };
  struct Entry {
    plan::Finding finding;
    uint64_t cta_linear = 0;
  };
  const Kernel& kernel_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

// Fills kernel, source lines, inlined chain, PTX line and text of a finding from the instruction at
// `pc`.
void locate(plan::Finding& finding, const Kernel& kernel, uint32_t pc);
// Likewise the place of the other access of a race.
void locate_other(plan::Finding& finding, const Kernel& kernel, uint32_t pc);

}  // namespace ptxbench::emu
