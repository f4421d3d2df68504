#include "device/instrument_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "ptx/parser.h"

namespace ptxbench::device {

Result<InstrumentedPlan> instrument(const plan::LaunchPlan& plan,
                                    const std::vector<std::string>& families) {
  InstrumentedPlan out;
  out.plan = plan;
  for (uint32_t m = 0; m < plan.modules.size(); ++m) {
    plan::Module& module = out.plan.modules[m];
    if (module.ptx.empty())
      return Error{"unsupported",
                   fmt::format("module {} is machine code alone: only PTX can be instrumented", m)};
    PB_ASSIGN_OR_RETURN(ptx::Module parsed, ptx::parse(module.ptx, fmt::format("module {}", m)));
    PB_ASSIGN_OR_RETURN(ptx::Instrumentation counted, ptx::instrument(parsed, families));
    if (counted.counters == 0) continue;
    module = {hash_hex(counted.ptx), counted.ptx, {}};
    const uint64_t bytes = counted.buffer_bytes();
    out.modules.push_back({m, out.counter_bytes, std::move(counted)});
    out.counter_bytes += bytes;
  }
  if (out.counter_bytes == 0) return out;

  plan::Buffer counters;
  counters.name = "instruction counters";
  counters.size = out.counter_bytes;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.role == plan::BufferRole::argument)
      counters.argument = std::max(counters.argument, buffer.argument + 1);
  const auto counters_at = static_cast<uint32_t>(out.plan.buffers.size());
  out.plan.buffers.push_back(counters);
  std::vector<plan::Step> steps;
  for (const InstrumentedPlan::Counters& module : out.modules) {
    plan::Buffer symbol;
    symbol.name = module.instrumentation.symbol;
    symbol.role = plan::BufferRole::symbol;
    symbol.module = module.module;
    symbol.size = 8;
    const auto symbol_at = static_cast<uint32_t>(out.plan.buffers.size());
    out.plan.buffers.push_back(symbol);
    plan::CopyHostToDevice copy;
    copy.dst = {symbol_at, 0};
    copy.data.bytes.assign(8, 0);
    copy.data.pointers.push_back({0, {counters_at, module.offset}});
    steps.push_back(std::move(copy));
  }
  out.plan.steps.insert(out.plan.steps.begin(), steps.begin(), steps.end());
  return out;
}

Result<std::vector<plan::FamilyCount>> decode_counters(const InstrumentedPlan& plan,
                                                       std::span<const uint8_t> bytes) {
  if (bytes.size() != plan.counter_bytes)
    return Error{"usage", fmt::format("{} bytes of counters where the plan has {}", bytes.size(),
                                      plan.counter_bytes)};
  std::map<std::string, plan::FamilyCount> families;
  for (const InstrumentedPlan::Counters& module : plan.modules) {
    std::vector<uint64_t> words(size_t{2} * module.instrumentation.counters);
    std::memcpy(words.data(), bytes.data() + module.offset, words.size() * 8);
    PB_ASSIGN_OR_RETURN(auto counts, ptx::decode_counters(module.instrumentation, words));
    for (const auto& [family, count] : counts) {
      plan::FamilyCount& total = families[family];
      total.family = family;
      total.static_count += count.sites;
      total.warps += count.warps;
      total.threads += count.threads;
    }
  }
  std::vector<plan::FamilyCount> out;
  for (const auto& [family, count] : families) out.push_back(count);
  return out;
}

}  // namespace ptxbench::device
