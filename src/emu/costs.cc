#include "emu/costs.h"

#include <algorithm>
#include <bit>

#include "emu/executor.h"
#include "emu/lane_access.h"
#include "emu/ops.h"

namespace ptxbench::emu {
namespace {

constexpr uint32_t kBanks = 32, kWord = 4, kSector = 32, kLine = 128;
constexpr size_t kSitesOfAKind = 4;
constexpr size_t kAtomicAddresses = 65536;

// Words of lanes that go together: cycles until all of them have been served.
struct Part {
  uint32_t words[kBanks][32];
  uint32_t count[kBanks] = {};
  uint32_t distinct = 0;
  void add(uint32_t word) {
    const uint32_t bank = word % kBanks;
    for (uint32_t i = 0; i < count[bank]; i++)
      if (words[bank][i] == word) return;
    words[bank][count[bank]++] = word;
    distinct++;
  }
  void finish(plan::AccessCost* cost) const {
    if (distinct == 0) return;
    cost->units += *std::max_element(count, count + kBanks);
    cost->least += (distinct + kBanks - 1) / kBanks;
  }
};

}  // namespace

plan::AccessCost shared_access(const uint32_t* offset, uint32_t mask, uint32_t bytes) {
  plan::AccessCost cost;
  cost.requests = 1;
  cost.bytes = uint64_t{bytes} * static_cast<uint32_t>(std::popcount(mask));
  const int together = bytes <= kWord ? 32 : static_cast<int>(kLine / bytes);
  for (int first = 0; first < 32; first += together) {
    Part part;
    for (int l = first; l < first + together; l++)
      if (mask >> l & 1)
        for (uint32_t b = 0; b < bytes; b += kWord) part.add((offset[l] + b) / kWord);
    part.finish(&cost);
  }
  return cost;
}

plan::AccessCost matrix_access(const uint32_t* row_offset, int rows) {
  plan::AccessCost cost;
  cost.requests = 1;
  cost.bytes = uint64_t{16} * static_cast<uint32_t>(rows);
  for (int first = 0; first < rows; first += 8) {
    Part part;
    for (int r = first; r < std::min(first + 8, rows); r++)
      for (uint32_t b = 0; b < 16; b += kWord) part.add((row_offset[r] + b) / kWord);
    part.finish(&cost);
  }
  return cost;
}

plan::AccessCost global_access(const uint64_t* address, uint32_t mask, uint32_t bytes,
                               std::vector<uint64_t>* sectors, uint32_t* lines) {
  plan::AccessCost cost;
  cost.requests = 1;
  cost.bytes = uint64_t{bytes} * static_cast<uint32_t>(std::popcount(mask));
  sectors->clear();
  std::array<uint64_t, 32> sorted;
  size_t n = 0;
  for_each_lane(mask, [&](int l) { sorted[n++] = address[l]; });
  std::sort(sorted.begin(), sorted.begin() + static_cast<long>(n));
  uint64_t covered = 0, end = 0, line = ~uint64_t{0};
  *lines = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t from = std::max(sorted[i], end), to = sorted[i] + bytes;
    if (to > from) covered += to - from, end = to;
    for (uint64_t s = sorted[i] / kSector; s <= (to - 1) / kSector; s++)
      if (sectors->empty() || s > sectors->back()) {
        sectors->push_back(s);
        if (s * kSector / kLine != line) line = s * kSector / kLine, ++*lines;
      }
  }
  cost.units = sectors->size();
  cost.least = (covered + kSector - 1) / kSector;
  return cost;
}

CostLedger::CostLedger(const Kernel& kernel, uint32_t cache_bytes) : kernel_(kernel) {
  costs_.kernel = kernel.name;
  sites_.resize(kernel.code.size());
  blocked_.resize(kernel.code.size());
  cache_.assign(std::max<size_t>(cache_bytes / kSector, 1), ~uint64_t{0});
}

void CostLedger::note(uint32_t pc, const char* kind, const plan::AccessCost& cost) {
  sites_[pc].kind = kind;
  sites_[pc].cost.add(cost);
}

// Of the sectors of the last access, those that its CTA has not read lately.
uint64_t CostLedger::missing_sectors(const Cta& cta) {
  uint64_t missing = 0;
  for (const uint64_t sector : sectors_) {
    const uint64_t tag = sector ^ cta.linear << 44;
    uint64_t& slot = cache_[(sector * 0x9E3779B97F4A7C15u >> 20) % cache_.size()];
    missing += slot != tag;
    slot = tag;
  }
  return missing;
}

void CostLedger::global(uint32_t pc, const Cta& cta, const uint64_t* address, uint32_t mask,
                        uint32_t bytes, bool store) {
  uint32_t lines = 0;
  const plan::AccessCost cost = global_access(address, mask, bytes, &sectors_, &lines);
  note(pc, store ? "global-store" : "global-load", cost);
  (store ? costs_.global_store : costs_.global_load).add(cost);
  costs_.global_lines += lines;
  if (!store) costs_.l2_load_sectors += missing_sectors(cta);
}

void CostLedger::shared(uint32_t pc, const uint32_t* offset, uint32_t mask, uint32_t bytes,
                        bool store) {
  const plan::AccessCost cost = shared_access(offset, mask, bytes);
  note(pc, store ? "shared-store" : "shared-load", cost);
  (store ? costs_.shared_store : costs_.shared_load).add(cost);
}

void CostLedger::rows(uint32_t pc, const uint32_t* offset, int count, bool store) {
  const plan::AccessCost cost = matrix_access(offset, count);
  note(pc, store ? "shared-store" : "shared-load", cost);
  (store ? costs_.shared_store : costs_.shared_load).add(cost);
}

void CostLedger::atomic(uint32_t pc, const uint64_t* address, uint32_t mask, uint32_t bytes,
                        bool on_shared) {
  if (on_shared) {
    // Lanes with the same address come one after the other.
    plan::AccessCost cost;
    cost.requests = cost.least = 1;
    cost.bytes = uint64_t{bytes} * static_cast<uint32_t>(std::popcount(mask));
    for_each_lane(mask, [&](int l) {
      uint64_t same = 0;
      for_each_lane(mask, [&](int m) { same += address[m] == address[l]; });
      cost.units = std::max(cost.units, same);
    });
    note(pc, "atomic", cost);
    return costs_.shared_atomics.add(cost);
  }
  uint32_t lines = 0;
  const plan::AccessCost cost = global_access(address, mask, bytes, &sectors_, &lines);
  note(pc, "atomic", cost);
  costs_.atomics.add(cost);
  for_each_lane(mask, [&](int l) {
    if (atomic_lanes_.size() < kAtomicAddresses || atomic_lanes_.contains(address[l]))
      costs_.hottest_atomic = std::max(costs_.hottest_atomic, ++atomic_lanes_[address[l]]);
  });
}

void CostLedger::matrix(Warp& w) {
  costs_.matrix_instructions++;
  // What the warp saw when it waited for its operands; warps that come later than others would see
  // fewer copies in flight now.
  costs_.matrix_beside_copy +=
      !w.cp_async.empty() ||
      (w.copies == Beside::unknown ? !w.cta->cluster->loads.empty() : w.copies == Beside::others);
  w.multiplies = true;
}

void CostLedger::end(const Cluster& cluster) {
  for (const auto& cta : cluster.ctas) {
    uint64_t instructions = 0;
    uint32_t warps = 0;
    for (const auto& w : cta->warps) instructions += w->instructions, warps += w->multiplies;
    costs_.matrix_warps = std::max(costs_.matrix_warps, warps);
    costs_.cta_instructions.push_back(instructions);
    costs_.ctas_run++;
  }
}

namespace {

// Matrix instruction at `pc`, as one warp executes it; false: something else.
bool matrix_cost(const Kernel& kernel, size_t pc, plan::MatrixCost* out) {
  const MicroOp& op = kernel.code[pc];
  const auto name = [&](const auto& f) {
    out->types = std::string(ptx::name(f.a)) + "." + std::string(ptx::name(f.b)) + "." +
                 std::string(ptx::name(f.d));
  };
  if (op.handler == ops::mma) {
    const MmaSite& site = kernel.mmas[op.extra];
    site.is_wmma ? name(site.wmma) : name(site.form);
    out->flop = site.is_wmma ? flop_of(site.wmma) : flop_of(site.form);
    return true;
  }
  if (op.handler != ops::wgmma_issue) return false;
  const WgmmaForm& f = kernel.wgmmas[op.extra].form;
  name(f);
  out->warpgroup = true;
  out->flop = flop_of_warp(f);
  const auto bytes = [](ptx::Type t) {
    return t == ptx::Type::tf32 ? 4 : std::max(1, ptx::bits(t) / 8);
  };
  const int a = f.a_in_registers ? 0 : 64 * addressed(f, f.a_k()) * bytes(f.a);
  // B is read once for the four warps.
  out->shared_bytes = static_cast<uint64_t>(a + f.n * addressed(f, f.k) * bytes(f.b)) / 4;
  return true;
}

uint64_t weight(const plan::CostSite& site) {
  return site.cost.units ? site.cost.units - std::min(site.cost.units, site.cost.least) + 1
                         : site.cost.requests;
}

}  // namespace

void CostLedger::add_sites() {
  std::vector<plan::CostSite> all;
  const auto add = [&](uint32_t pc, const char* kind, const plan::AccessCost& cost) {
    plan::Finding place;
    locate(place, kernel_, pc);
    all.push_back({kind, place.file, place.line, place.ptx_line, place.ptx, cost});
  };
  for (uint32_t pc = 0; pc < sites_.size(); pc++) {
    if (sites_[pc].kind) add(pc, sites_[pc].kind, sites_[pc].cost);
    if (blocked_[pc] == 0 || !kernel_.info[pc].instruction) continue;
    const bool mbarrier = ptx::name(kernel_.info[pc].instruction->op).starts_with("mbarrier");
    add(pc, mbarrier ? "mbarrier-wait" : "barrier-wait", {.requests = blocked_[pc]});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.kind != b.kind ? a.kind < b.kind : weight(a) > weight(b);
  });
  size_t of_kind = 0;
  for (plan::CostSite& site : all) {
    of_kind = !costs_.sites.empty() && costs_.sites.back().kind == site.kind ? of_kind + 1 : 0;
    if (of_kind < kSitesOfAKind) costs_.sites.push_back(std::move(site));
  }
}

plan::LaunchCosts CostLedger::take(const std::vector<SiteCount>& counts) {
  for (size_t pc = 0; pc < kernel_.code.size(); pc++) {
    const OpInfo& info = kernel_.info[pc];
    costs_.warp_instructions += counts[pc].warps;
    costs_.thread_instructions += counts[pc].threads;
    if (!info.instruction || counts[pc].warps == 0) continue;
    plan::MatrixCost matrix;
    if (matrix_cost(kernel_, pc, &matrix)) {
      auto same = std::find_if(costs_.matrix.begin(), costs_.matrix.end(), [&](const auto& m) {
        return m.types == matrix.types && m.warpgroup == matrix.warpgroup;
      });
      if (same == costs_.matrix.end())
        same = costs_.matrix.insert(same, {matrix.types, matrix.warpgroup, 0, 0});
      same->flop += matrix.flop * static_cast<double>(counts[pc].warps);
      same->shared_bytes += matrix.shared_bytes * counts[pc].warps;
    }
    // Helper micro-ops come before the instruction's own.
    if (pc + 1 < kernel_.info.size() && kernel_.info[pc + 1].instruction == info.instruction)
      continue;
    const ptx::Op opcode = info.instruction->op;
    if (opcode == ptx::Op::bar || opcode == ptx::Op::barrier) costs_.barriers += counts[pc].warps;
    costs_.static_instructions++;
    const PipeUse use = pipe_of(*info.instruction);
    costs_.pipes[static_cast<size_t>(use.pipe)] += use.count * counts[pc].warps;
  }
  add_sites();
  return std::move(costs_);
}

}  // namespace ptxbench::emu
