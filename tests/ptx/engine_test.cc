// The transformer engine's kernels as nvcc 13.0 compiled them (scripts/ptx_kernels.py, which takes
// minutes): all make the round trip, and ptxas takes what is printed of the smaller ones; with
// PTXBENCH_ASSEMBLE_ALL=1 of all (a minute).
#include <cstdlib>
#include <map>

#include "ptx/assemble.h"
#include "ptx/packed_file.h"
#include "ptx/round_trip.h"

namespace ptxbench::ptx {
namespace {

constexpr std::string_view kSeparator = "//// ";

// Name and text of each module.
std::map<std::string, std::string> modules() {
  const std::string all = read_packed("corpus/engine.ptx.zst");
  std::map<std::string, std::string> out;
  for (size_t at = 0; at < all.size();) {
    const size_t line = all.find('\n', at);
    const size_t end = std::min(all.find("\n" + std::string(kSeparator), at), all.size() - 1) + 1;
    const std::string_view head = std::string_view(all).substr(at, line - at);
    EXPECT_TRUE(head.starts_with(kSeparator)) << head;
    out.emplace(head.substr(kSeparator.size()), all.substr(at, end - at));
    at = end;
  }
  return out;
}

TEST(Engine, KernelsRoundTrip) {
  const bool everything = std::getenv("PTXBENCH_ASSEMBLE_ALL") != nullptr;
  constexpr size_t kSmall = 100 << 10;
  std::map<std::string, int> targets;
  int assembled = 0;
  for (const auto& [name, text] : modules()) {
    const std::string printed = expect_round_trip(text, name);
    if (printed.empty()) continue;
    const std::string target = text.find(".target sm_90a") != text.npos ? "sm_90a" : "sm_100a";
    ++targets[target];
    if (find_assembler().empty() || (text.size() > kSmall && !everything)) continue;
    const Assembled result = assemble(printed, target);
    EXPECT_TRUE(result.ok) << name << result.log.substr(0, 2000);
    ++assembled;
  }
  EXPECT_EQ(targets["sm_90a"], 12);
  EXPECT_EQ(targets["sm_100a"], 12);
  if (!find_assembler().empty()) {
    EXPECT_GE(assembled, 8);
  }
}

}  // namespace
}  // namespace ptxbench::ptx
