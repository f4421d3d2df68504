#include "emu/findings.h"

#include "ptx/parser.h"
#include "ptx/source_map.h"

namespace ptxbench::emu {

void locate(plan::Finding& f, const Kernel& kernel, uint32_t pc) {
  f.kernel = kernel.name;
  if (pc >= kernel.info.size()) return;
  const OpInfo& info = kernel.info[pc];
  if (!info.instruction) return;
  const ptx::Module& m = *kernel.module;
  f.ptx_line = static_cast<int>(info.instruction->line);
  f.ptx = ptx::print(*info.instruction, m.functions[info.function], m);
  // A wgmma names up to 128 registers; the line number leads to the rest.
  if (f.ptx.size() > 160)
    if (size_t open = f.ptx.find('{'), close = f.ptx.find('}');
        close != std::string::npos && close > open + 40)
      f.ptx.replace(open + 1, close - open - 1,
                    f.ptx.substr(open + 1, f.ptx.find(',', open + 20) - open - 1) + ", ...");
  const std::vector<ptx::SourceFrame> chain = ptx::source_chain(m, *info.instruction);
  if (chain.empty()) return;
  f.file = chain[0].file;
  f.line = chain[0].line;
  for (size_t i = 1; i < chain.size(); i++) f.inlined_at.emplace_back(chain[i].file, chain[i].line);
}

void locate_other(plan::Finding& f, const Kernel& kernel, uint32_t pc) {
  plan::Finding other;
  locate(other, kernel, pc);
  f.other_file = std::move(other.file);
  f.other_line = other.line;
  f.other_ptx_line = other.ptx_line;
}

void FindingSink::add(const char* kind, plan::HazardClass hazard, const FindingSite& site,
                      std::string message, std::string hint, uint64_t address, std::string symbol) {
  plan::Finding f;
  f.kind = kind;
  f.hazard = hazard;
  f.message = std::move(message);
  f.hint = std::move(hint);
  f.address = address;
  f.symbol = std::move(symbol);
  add(std::move(f), site);
}

void FindingSink::add_count(const char* kind, uint32_t pc, uint64_t times) {
  std::lock_guard lock(mutex_);
  if (auto it = entries_.find(Key{kind, pc}); it != entries_.end())
    it->second.finding.count += times;
}

void FindingSink::add(plan::Finding f, const FindingSite& site) {
  f.cta = site.cta;
  f.warp = site.warp;
  f.lanes = site.lanes;
  locate(f, kernel_, site.pc);
  std::lock_guard lock(mutex_);
  Entry& e = entries_[Key{f.kind, site.pc}];
  if (e.finding.kind.empty()) {
    e = {std::move(f), site.cta_linear};
    return;
  }
  f.count = e.finding.count + 1;
  if (site.cta_linear < e.cta_linear) {
    e = {std::move(f), site.cta_linear};
  } else {
    e.finding.count++;
  }
}

namespace {

// An unrolled loop reads the same unwritten buffer at many instructions: one finding, counted.
std::string reader_of_unwritten(const plan::Finding& f) {
  if (f.kind != "uninitialized-read") return "";
  return f.symbol.substr(0, f.symbol.find('+')) + "|" + f.file + ":" + std::to_string(f.line);
}

void add_or_count(std::vector<plan::Finding>* out, plan::Finding f) {
  const std::string key = reader_of_unwritten(f);
  for (plan::Finding& known : *out) {
    if (key.empty() || reader_of_unwritten(known) != key) continue;
    known.count += f.count;
    return;
  }
  out->push_back(std::move(f));
}

}  // namespace

std::vector<plan::Finding> FindingSink::take() {
  std::vector<plan::Finding> out;
  for (auto& [key, e] : entries_) add_or_count(&out, std::move(e.finding));
  entries_.clear();
  // Consequences come after causes of the same class.
  auto rank = [](const plan::Finding& f) {
    return 2 * static_cast<int>(f.hazard) + (f.kind == "deadlock-waiter");
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    return std::make_tuple(rank(a), a.ptx_line) < std::make_tuple(rank(b), b.ptx_line);
  });
  return out;
}

}  // namespace ptxbench::emu
