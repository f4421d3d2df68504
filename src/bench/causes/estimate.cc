#include "bench/causes/estimate.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace ptxbench::bench {
namespace {

using plan::LaunchCosts;
using plan::Pipe;

double count(const LaunchCosts& costs, Pipe pipe) {
  return static_cast<double>(costs.pipes[static_cast<size_t>(pipe)]);
}

double real(uint64_t n) { return static_cast<double>(n); }

// Multiplies of the 16-bit rate.
double rate_of(const std::string& types) {
  if (types.starts_with("e4m3") || types.starts_with("e5m2") || types.starts_with("s8") ||
      types.starts_with("u8"))
    return 2;
  if (types.starts_with("tf32")) return 0.5;
  if (types.starts_with("f64")) return 1.0 / 16;
  return 1;
}

// Warps and warpgroups of an SM at one time.
struct Residents {
  double ctas = 1, warps = 1;
  double groups = 1;  // of four warps that multiply, or that compute where none multiplies
};

// Clocks of one SM, on average.
class Clocks {
 public:
  Clocks(const LaunchCosts& costs, const AssembledKernel& resources, const Machine& machine,
         const WhatIf& what_if, const Residents& residents)
      : c_(costs), resources_(resources), machine_(machine), if_(what_if), in_(residents) {
    const double all = c_.ctas_run == 0 ? 0 : real(c_.ctas) / real(c_.ctas_run);
    scale_ = all / machine.sms;
  }

  double whole(double counted) const { return counted * scale_ * machine_.sms; }

  double products() const {
    double clocks = 0;
    for (const plan::MatrixCost& m : c_.matrix) {
      const double share = m.warpgroup || if_.warpgroup_products ? 1 : model::kMmaSync;
      clocks += m.flop / (machine_.matrix_flop * rate_of(m.types) * model::kSustained * share);
    }
    return clocks * scale_;
  }

  double arithmetic() const {
    double issued = spill_instructions();
    for (size_t p = 1; p < plan::kPipes; ++p) issued += real(c_.pipes[p]);
    const double busiest =
        std::max({issued / 4, count(c_, Pipe::fma) / 4, (count(c_, Pipe::alu)) / 2,
                  count(c_, Pipe::convert) / 2, count(c_, Pipe::special) * 2,
                  count(c_, Pipe::fp64) / 2, count(c_, Pipe::exchange)});
    return busiest * scale_ * (if_.converged ? active_share() : 1);
  }

  // Shared memory, first-level cache and copies of TMA use one path of 128 bytes a clock.
  double shared() const {
    const auto units = [&](const plan::AccessCost& a) {
      return real(if_.no_conflicts ? a.least : a.units);
    };
    double clocks = units(c_.shared_load) + units(c_.shared_store) +
                    (if_.no_atomics ? 0 : units(c_.shared_atomics));
    for (const plan::MatrixCost& m : c_.matrix) clocks += real(m.shared_bytes) / 128;
    clocks += real(c_.bulk_arrived_bytes + c_.bulk_store_bytes + c_.bulk_reduce_bytes) / 128;
    const double sectors = real(c_.global_load.units + c_.global_store.units);
    const double least = real(c_.global_load.least + c_.global_store.least);
    const double lines = real(c_.global_lines);
    clocks += if_.coalesced && sectors > 0 ? std::min(lines, lines * least / sectors) : lines;
    // A spilled register is a line of 128 bytes for the warp.
    return (clocks + spill_instructions()) * scale_;
  }

  double l2_bytes() const {
    double loads = 32 * real(c_.l2_load_sectors);
    double stores = 32 * real(c_.global_store.units);
    if (if_.coalesced) {
      loads *= c_.global_load.units ? real(c_.global_load.least) / real(c_.global_load.units) : 1;
      stores = 32 * real(c_.global_store.least);
    }
    double bytes = whole(loads + real(c_.bulk_load_bytes));
    if (if_.read_once) bytes = std::min(bytes, c_.unique_read_bytes);
    bytes += whole(stores + real(c_.bulk_store_bytes) + 2 * real(c_.bulk_reduce_bytes));
    if (!if_.no_atomics) bytes += whole(64 * real(c_.atomics.units));
    return bytes;
  }

  double port() const { return l2_bytes() / machine_.sms / model::kL2Port; }

  // What one warp of those that multiply (or of all) waits for on its way through the kernel.
  double waits() const {
    const double cta_warps = std::max(1.0, in_.warps / in_.ctas);
    const double working = std::max(1u, c_.matrix_warps);
    const double per_cta = c_.ctas_run == 0 ? 0 : 1 / real(c_.ctas_run);
    double clocks = 0;
    const double loads = real(c_.global_load.requests - c_.copied_by_warps);
    const double misses =
        c_.global_load.units ? real(c_.l2_load_sectors) / real(c_.global_load.units) : 0;
    clocks += loads * per_cta / cta_warps *
              (model::kL1Clocks + misses * (model::kL2Clocks - model::kL1Clocks)) /
              model::kLoadsInFlight;
    if (!if_.no_barriers) clocks += real(c_.barriers) * per_cta / cta_warps * model::kBarrierClocks;
    if (!if_.products_queued) clocks += drains() * per_cta / working * model::kDrainClocks;
    if (!if_.copies_beside)
      clocks += c_.exposed_waits * per_cta * (1 - beside()) * model::kDramClocks;
    return clocks * turns();
  }

  // The way of one warpgroup through the launch while nobody helps: products that it waits for,
  // arithmetic behind them, waits.
  double chain() const {
    double alone = arithmetic() / in_.groups / model::kAloneIssue;
    if (c_.matrix_instructions > 0) {
      const double share = if_.products_queued ? 0 : waited_share();
      alone = share * (alone + products() / in_.groups);
    }
    return alone + waits();
  }

  // Share of the matrix instructions that work while copies are under way.
  double beside() const {
    if (if_.copies_beside || c_.matrix_instructions == 0) return 1;
    if (c_.copies == 0) return 0;
    return std::min(1.0, 2 * real(c_.matrix_beside_copy) / real(c_.matrix_instructions));
  }

  double spill_instructions() const {
    if (if_.no_spills || c_.static_instructions == 0) return 0;
    // ptxas counts bytes of a thread in the code; each is moved as often as the code on average.
    return real(resources_.spill_bytes) / 4 * real(c_.warp_instructions) /
           real(c_.static_instructions);
  }

  // Rounds of CTAs that an SM goes through.
  double turns() const { return std::max(1.0, real(c_.ctas) / machine_.sms / in_.ctas); }

 private:
  double active_share() const {
    return c_.warp_instructions ? real(c_.thread_instructions) / (32 * real(c_.warp_instructions))
                                : 1;
  }
  bool has_wgmma() const {
    return std::any_of(c_.matrix.begin(), c_.matrix.end(),
                       [](const auto& m) { return m.warpgroup; });
  }
  double drains() const {
    if (!has_wgmma()) return 0;
    return resources_.products_waited_for ? real(c_.matrix_instructions) : real(c_.wgmma_drains);
  }
  // Share of the waits for products after which nothing is in flight; mma.sync always waits.
  double waited_share() const {
    if (!has_wgmma() || resources_.products_waited_for) return 1;
    return c_.wgmma_waits ? real(c_.wgmma_drains) / real(c_.wgmma_waits) : 1;
  }

  const LaunchCosts& c_;
  const AssembledKernel& resources_;
  const Machine& machine_;
  const WhatIf& if_;
  const Residents& in_;
  double scale_ = 0;
};

double longest_and_interference(const std::vector<double>& times, double leak) {
  double sum = 0, longest = 0;
  for (const double t : times) sum += t, longest = std::max(longest, t);
  return longest + leak * (sum - longest);
}

}  // namespace

int resident_ctas(const LaunchCosts& costs, const AssembledKernel& resources,
                  const Machine& machine, std::string* limited_by) {
  const uint32_t threads = costs.block[0] * costs.block[1] * costs.block[2];
  const uint32_t warps = std::max(1u, (threads + 31) / 32);
  // A KiB of shared memory is the system's; registers are given to warps in units of 256.
  const uint32_t shared = (costs.shared_bytes + 1024 + 127) / 128 * 128;
  const uint32_t registers =
      warps * ((static_cast<uint32_t>(std::max(resources.registers, 0)) * 32 + 255) / 256 * 256);
  const std::pair<uint32_t, const char*> limits[] = {
      {machine.ctas_per_sm, "CTAs"},
      {machine.warps_per_sm / warps, "threads"},
      {machine.shared_per_sm / shared, "shared memory"},
      {registers ? machine.registers_per_sm / registers : machine.ctas_per_sm, "registers"}};
  const auto least =
      std::min_element(std::begin(limits), std::end(limits),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  if (limited_by) *limited_by = least->second;
  return static_cast<int>(std::max(1u, least->first));
}

double imbalance(const LaunchCosts& costs, int sms) {
  if (costs.cta_instructions.empty() || costs.ctas == 0) return 1;
  constexpr uint64_t kSimulated = 200'000;  // CTAs; more are even enough
  const uint64_t ctas = std::min<uint64_t>(costs.ctas, kSimulated);
  std::priority_queue<double, std::vector<double>, std::greater<>> load;
  for (int i = 0; i < sms; ++i) load.push(0);
  double total = 0;
  for (uint64_t i = 0; i < ctas; ++i) {
    const double work = real(costs.cta_instructions[i % costs.cta_instructions.size()]);
    const double before = load.top();
    load.pop();
    load.push(before + work);
    total += work;
  }
  double busiest = 0;
  for (; !load.empty(); load.pop()) busiest = std::max(busiest, load.top());
  return total > 0 ? busiest / (total / sms) : 1;
}

LaunchEstimate estimate(const LaunchCosts& costs, const AssembledKernel& resources,
                        const Machine& machine, const WhatIf& what_if) {
  LaunchEstimate out;
  out.kernel = costs.kernel;
  out.ctas_per_sm = resident_ctas(costs, resources, machine, &out.limited_by);
  const double threads = real(uint64_t{costs.block[0]} * costs.block[1] * costs.block[2]);
  Residents in;
  out.waves = real(costs.ctas) / machine.sms / out.ctas_per_sm;
  // A grid that does not fill the machine leaves SMs with fewer CTAs.
  in.ctas = std::clamp(std::ceil(real(costs.ctas) / machine.sms), 1.0, 1.0 * out.ctas_per_sm);
  const double cta_warps = std::ceil(threads / 32);
  const double working = costs.matrix_warps ? costs.matrix_warps : cta_warps;
  if (what_if.full_occupancy)
    in.ctas = std::max(in.ctas, std::floor(machine.warps_per_sm / std::max(1.0, cta_warps)));
  in.warps = in.ctas * cta_warps;
  in.groups = std::max(0.25, in.ctas * working / 4);
  out.imbalance = what_if.even_work ? 1 : imbalance(costs, machine.sms);

  const Clocks clocks(costs, resources, machine, what_if, in);
  const double ns = 1 / machine.ghz, uneven = out.imbalance;
  // Copies and products in turns, unless another CTA of the SM has the other turn.
  const double copy_leak =
      std::max(model::kInterference,
               (1 - clocks.beside()) / in.ctas * (costs.matrix_instructions > 0 ? 1 : 0));
  std::vector<LaunchEstimate::Term> sm = {
      {"products", clocks.products() * ns * uneven},
      {"arithmetic", clocks.arithmetic() * ns * uneven},
      {"shared memory", clocks.shared() * ns * uneven},
      {"waits", clocks.chain() * ns * (clocks.turns() > 1 ? uneven : 1)}};
  std::vector<LaunchEstimate::Term> all = {
      {"L2 to SM", clocks.port() * ns * uneven},
      {"L2", clocks.l2_bytes() / machine.l2_bytes_per_ns},
      {"memory",
       (costs.unique_read_bytes + costs.unique_written_bytes) / machine.dram_bytes_per_ns}};
  if (!what_if.no_atomics) {
    const double sectors =
        clocks.whole(real(costs.atomics.units)) + clocks.whole(real(costs.bulk_reduce_bytes) / 32);
    const double hottest = clocks.whole(real(costs.hottest_atomic));
    all.push_back(
        {"atomics", std::max(sectors / model::kAtomicSectors, hottest / model::kAtomicLanes)});
  }
  // "waits" is a way through the others, not a part of the machine: it binds or it does not.
  const double products = sm[0].ms, arithmetic = sm[1].ms, chain = sm[3].ms;
  const double computed =
      std::max(products, arithmetic) + model::kDependence * std::min(products, arithmetic);
  const double inside =
      std::max(longest_and_interference({computed, sm[2].ms}, model::kInterference), chain);
  // Memory, L2 and its ports move the same bytes: the slowest of them counts.
  double moved = 0;
  for (size_t i = 0; i < 3; ++i) moved = std::max(moved, all[i].ms);
  std::vector<double> sides = {inside, moved};
  double total_ns = longest_and_interference(sides, copy_leak);
  if (all.size() > 3)
    total_ns = longest_and_interference({total_ns, all[3].ms}, model::kInterference);
  out.launch_ms = (model::kLaunchUs + model::kFillUs) / 1e3;
  out.ms = total_ns / 1e6 + out.launch_ms;
  for (auto* terms : {&sm, &all})
    for (LaunchEstimate::Term& term : *terms) {
      term.ms /= 1e6;
      out.terms.push_back(std::move(term));
    }
  std::stable_sort(out.terms.begin(), out.terms.end(),
                   [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return out;
}

}  // namespace ptxbench::bench
