// libFuzzer target of the PTX front end: any bytes give a module or one error with a place; what
// parses prints to text that parses again to the same printed text; graph, liveness, hazards and
// instrumentation take any module. scripts/fuzz_ptx.sh builds and runs it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ptx/control_flow.h"
#include "ptx/fingerprint.h"
#include "ptx/hazards.h"
#include "ptx/instrument.h"
#include "ptx/liveness.h"
#include "ptx/parser.h"
#include "ptx/source_map.h"
#include "ptx/verifier.h"

namespace ptx = ptxbench::ptx;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "property violated: %s\n", what);
  std::abort();
}

void analyse(const ptx::Module& module) {
  for (const ptx::Function& function : module.functions) {
    const ptx::ControlFlow flow(function, &module);
    require(flow.order().size() <= flow.blocks().size(), "blocks ordered once");
    flow.loop_depth();
    flow.control_dependence();
    const ptx::Liveness liveness(flow);
    liveness.pressure();
    for (const ptx::Instruction* instruction : flow.instructions()) {
      require(!ptx::family(*instruction).empty(), "an instruction has a family");
      ptx::source_chain(module, *instruction);
    }
  }
  for (const ptx::StaticHazard& hazard : ptx::static_hazards(module))
    require(hazard.sites > 0 && !hazard.message.empty(), "a hazard has a site and a message");
  const ptx::Fingerprint print = ptx::fingerprint(module);
  require(print.features.empty() || ptx::similarity(print, print) == 1, "a module is like itself");
}

// What is rewritten to count everything parses, and is valid if it was.
void count_everything(const ptx::Module& module, bool valid) {
  auto counted =
      ptx::instrument(module, {"cp.*", "wgmma.*", "ld.*", "red.*", "fma", "add", "bar.*"});
  if (!counted.ok() || counted->ptx.empty()) return;
  auto again = ptx::parse(counted->ptx, "counted.ptx");
  require(again.ok(), "instrumented text parses");
  if (valid) require(ptx::verify(*again, "counted.ptx").ok(), "instrumented text is valid");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto module = ptx::parse(text, "fuzz.ptx");
  if (!module.ok()) {
    require(!module.error().message.empty(), "an error has a message");
    require(module.error().where.line > 0, "an error has a line");
    return 0;
  }
  const bool valid = ptx::verify(*module, "fuzz.ptx").ok();
  const std::string printed = ptx::print(*module);
  auto again = ptx::parse(printed, "printed.ptx");
  require(again.ok(), "printed text parses");
  require(ptx::print(*again) == printed, "printing is stable");
  require(ptx::verify(*again, "printed.ptx").ok() == valid, "the verifier judges both alike");
  analyse(*module);
  count_everything(*module, valid);
  return 0;
}
