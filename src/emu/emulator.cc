#include "emu/emulator.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "emu/costs.h"
#include "emu/decode.h"
#include "emu/executor.h"
#include "emu/ops.h"
#include "emu/race_checker.h"
#include "ptx/parser.h"
#include "ptx/verifier.h"

namespace ptxbench::emu {
namespace {

using Clock = std::chrono::steady_clock;

// Of the memory that an SM has for both, what is left to the first-level cache at least.
constexpr uint32_t kFirstLevelMinimum = 28u << 10;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// Parsed modules are kept by content: a directory of workloads replays the same kernels.
Result<std::shared_ptr<const ptx::Module>> parse_cached(const std::string& text,
                                                        const std::string& hash) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const ptx::Module>> cache;
  {
    std::lock_guard lock(mutex);
    if (auto it = cache.find(hash); !hash.empty() && it != cache.end()) return it->second;
  }
  Result<ptx::Module> parsed = ptx::parse(text);
  if (!parsed.ok()) return parsed.error();
  auto module = std::make_shared<const ptx::Module>(parsed.take());
  PB_RETURN_IF_ERROR(ptx::verify(*module));
  std::lock_guard lock(mutex);
  if (!hash.empty()) {
    if (cache.size() > 64) cache.clear();
    cache[hash] = module;
  }
  return std::shared_ptr<const ptx::Module>(module);
}

// Matrix multiplications: FLOP of one warp's execution, and the types. Zero for everything else.
double tensor_flop(const Kernel& kernel, size_t pc, std::string* types) {
  const MicroOp& op = kernel.code[pc];
  auto name = [&](const auto& f) {
    *types = fmt::format("{}.{}.{}", ptx::name(f.a), ptx::name(f.b), ptx::name(f.d));
  };
  if (op.handler == ops::mma) {
    const MmaSite& site = kernel.mmas[op.extra];
    site.is_wmma ? name(site.wmma) : name(site.form);
    return site.is_wmma ? flop_of(site.wmma) : flop_of(site.form);
  }
  if (op.handler != ops::wgmma_issue) return 0;
  name(kernel.wgmmas[op.extra].form);
  return flop_of_warp(kernel.wgmmas[op.extra].form);
}

bool in_global(const ptx::Variable& v) {
  return v.space == ptx::Space::global || v.space == ptx::Space::const_;
}

void count_families(const Kernel& kernel, const std::vector<std::unique_ptr<Executor>>& executors,
                    plan::RunResult* result) {
  std::map<std::string, plan::FamilyCount> families;
  for (plan::FamilyCount& f : result->families) families[f.family] = f;
  for (size_t pc = 0; pc < kernel.code.size(); pc++) {
    if (!kernel.info[pc].family || !kernel.info[pc].instruction) continue;
    // Helper micro-ops come before the instruction's own, which is the last with that instruction.
    if (pc + 1 < kernel.info.size() &&
        kernel.info[pc + 1].instruction == kernel.info[pc].instruction)
      continue;
    plan::FamilyCount& f = families[kernel.families[kernel.info[pc].family]];
    f.family = kernel.families[kernel.info[pc].family];
    f.static_count++;
    std::string types;
    const double flop = tensor_flop(kernel, pc, &types);
    for (const auto& e : executors) {
      f.warps += e->counts()[pc].warps, f.threads += e->counts()[pc].threads;
      f.tensor_flop += flop * static_cast<double>(e->counts()[pc].warps);
    }
  }
  result->families.clear();
  for (auto& [name, f] : families) result->families.push_back(f);
}

std::vector<const ptx::Instruction*> executed_instructions(
    const Kernel& kernel, const std::vector<std::unique_ptr<Executor>>& executors) {
  std::vector<const ptx::Instruction*> out;
  for (size_t pc = 0; pc < kernel.code.size(); pc++) {
    const ptx::Instruction* i = kernel.info[pc].instruction;
    const bool ran = std::any_of(executors.begin(), executors.end(),
                                 [&](const auto& e) { return e->counts()[pc].warps != 0; });
    if (i && ran && (out.empty() || out.back() != i)) out.push_back(i);
  }
  return out;
}

void count_kernel(const Kernel& kernel, const LaunchState& launch,
                  const std::vector<std::unique_ptr<Executor>>& executors,
                  plan::RunResult* result) {
  auto it = std::find_if(result->kernels.begin(), result->kernels.end(),
                         [&](const plan::KernelStats& k) { return k.kernel == kernel.name; });
  if (it == result->kernels.end())
    it = result->kernels.insert(it, plan::KernelStats{.kernel = kernel.name});
  plan::KernelStats& k = *it;
  k.launches++;
  k.ctas += launch.grid.count();
  k.registers = kernel.functions[0].live_slots;
  std::map<std::string, double> by_type(k.tensor_flop_by_type.begin(), k.tensor_flop_by_type.end());
  for (const auto& e : executors) {
    for (size_t pc = 0; pc < kernel.code.size(); pc++) {
      const SiteCount& count = e->counts()[pc];
      k.warp_instructions += count.warps, k.thread_instructions += count.threads;
      std::string types;
      const double flop = tensor_flop(kernel, pc, &types) * static_cast<double>(count.warps);
      if (flop == 0) continue;
      by_type[types] += flop;
      k.tensor_flop += flop;
    }
    const TrafficCount& t = e->traffic();
    k.global_load_bytes += t.global_load, k.global_store_bytes += t.global_store;
    k.shared_load_bytes += t.shared_load, k.shared_store_bytes += t.shared_store;
    k.bulk_load_bytes += t.bulk_load, k.bulk_store_bytes += t.bulk_store;
  }
  k.tensor_flop_by_type.assign(by_type.begin(), by_type.end());
}

// A launch of which a part has run reads and writes the more memory the more of it runs, until all
// of a buffer has been touched.
void add_costs(const LaunchState& launch, uint32_t shared_bytes, CostLedger& ledger,
               const Executor& executor, const std::vector<Touched>& touched,
               plan::RunResult* result) {
  plan::LaunchCosts costs = ledger.take(executor.counts());
  costs.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  costs.block = {launch.block.x, launch.block.y, launch.block.z};
  costs.cluster = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  costs.shared_bytes = shared_bytes;
  costs.ctas = launch.grid.count();
  const double scale = costs.ctas_run == 0
                           ? 0
                           : static_cast<double>(costs.ctas) / static_cast<double>(costs.ctas_run);
  for (const Touched& t : touched) {
    const double size = static_cast<double>(t.allocation->size);
    costs.unique_read_bytes += std::min(size, scale * static_cast<double>(t.read));
    costs.unique_written_bytes += std::min(size, scale * static_cast<double>(t.written));
  }
  result->costs.push_back(std::move(costs));
}

// One host thread per executor; this one watches the time and reports progress.
void run_watched(LaunchState& state, std::vector<std::unique_ptr<Executor>>& executors,
                 uint64_t clusters, double seconds_before) {
  const plan::RunOptions& options = *state.options;
  std::mutex mutex;
  std::condition_variable ended;
  size_t running = executors.size();
  const auto start = Clock::now();
  std::vector<std::thread> pool;
  for (auto& e : executors)
    pool.emplace_back([&, executor = e.get()] {
      executor->run();
      std::lock_guard lock(mutex);
      running--;
      ended.notify_one();
    });
  auto last_report = start;
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, std::chrono::milliseconds(20), [&] { return running == 0; })) {
    if (options.wall_budget_s > 0 &&
        seconds_before + seconds_since(start) > options.wall_budget_s && !state.stop)
      state.halt(plan::RunStatus::wall_budget, ~uint64_t{0} - 1,
                 fmt::format("the time budget of {:g} s is used up", options.wall_budget_s));
    if (options.progress && seconds_since(last_report) > 0.5) {
      last_report = Clock::now();
      options.progress("emulate", static_cast<double>(state.done_clusters.load()) /
                                      static_cast<double>(std::max<uint64_t>(clusters, 1)));
    }
  }
  lock.unlock();
  for (std::thread& t : pool) t.join();
}

}  // namespace

Result<DeviceProfile> find_profile(const std::string& name) {
  if (name == "h200" || name == "h100") return DeviceProfile{.name = name};
  return Error{"usage", "no device profile named " + name + "; known: h100, h200"};
}

Result<uint32_t> Emulator::load_module(const std::string& ptx, const std::string& hash) {
  Loaded loaded;
  PB_ASSIGN_OR_RETURN(loaded.module, parse_cached(ptx, hash));
  PB_RETURN_IF_ERROR(initialise(loaded));
  modules_.push_back(std::move(loaded));
  return static_cast<uint32_t>(modules_.size() - 1);
}

void Emulator::unload_module(uint32_t module) {
  Loaded& loaded = modules_[module];
  for (uint64_t address : loaded.addresses)
    if (address) memory_.release(address);
  loaded = {};
}

Result<void> Emulator::initialise(Loaded& loaded) {
  const ptx::Module& m = *loaded.module;
  for (const ptx::Variable& v : m.variables) {
    uint64_t address = 0;
    if (in_global(v)) {
      if (!memory_.fits(v.size))
        return Error{
            "unsupported",
            fmt::format("variable {} of {} bytes exceeds the emulator's memory", v.name, v.size)};
      // Variables start as zeros (CUDA C++) or as their initialiser says.
      address = v.is_managed
                    ? memory_.allocate_shared(v.name, v.size)
                    : memory_.allocate(v.name, v.size, true, v.space == ptx::Space::const_);
      if (address == 0) return Error{"unsupported", "no managed memory for variable " + v.name};
    }
    loaded.addresses.push_back(address);
  }
  for (size_t i = 0; i < m.variables.size(); i++) {
    const ptx::Variable& v = m.variables[i];
    if (!in_global(v) || v.init.empty()) continue;
    Allocation* a = memory_.find(loaded.addresses[i]);
    uint64_t bytes = static_cast<uint64_t>(std::max(ptx::bits(v.type), 8)) / 8, at = 0;
    for (const ptx::InitElement& e : v.init) {
      if (at + bytes > a->size) break;
      uint64_t value = e.value;
      if (e.is_symbol) {
        value = (e.symbol_is_function ? kFunctionWindow + e.symbol : loaded.addresses[e.symbol]) +
                static_cast<uint64_t>(e.addend);
        if (e.mask_bytes) value = value >> e.mask_shift & ((uint64_t{1} << (8 * e.mask_bytes)) - 1);
      }
      std::memcpy(a->data + at, &value, std::min<uint64_t>(bytes, 8));
      at += bytes;
    }
  }
  return {};
}

Result<uint64_t> Emulator::symbol(uint32_t module, const std::string& name) const {
  const Loaded& l = modules_[module];
  for (size_t i = 0; i < l.module->variables.size(); i++)
    if (l.module->variables[i].name == name && in_global(l.module->variables[i]))
      return l.addresses[i];
  return Error{"unknown-symbol", "the module has no variable named " + name};
}

// What a driver refuses before a kernel starts.
static Result<void> check_shape(const LaunchRequest& r) {
  const auto refuse = [](const char* what, const plan::Dim3& d) -> Result<void> {
    return Error{"launch",
                 fmt::format("a {} of {} x {} x {} cannot be launched", what, d.x, d.y, d.z)};
  };
  const auto within = [](const plan::Dim3& d, uint32_t x, uint32_t y, uint32_t z) {
    return d.x >= 1 && d.x <= x && d.y >= 1 && d.y <= y && d.z >= 1 && d.z <= z;
  };
  if (!within(r.block, 1024, 1024, 64) || r.block.count() > 1024) return refuse("block", r.block);
  if (!within(r.grid, 0x7fffffff, 65535, 65535)) return refuse("grid", r.grid);
  if (!within(r.cluster, 16, 16, 16) || r.cluster.count() > 16) return refuse("cluster", r.cluster);
  if (r.grid.x % r.cluster.x || r.grid.y % r.cluster.y || r.grid.z % r.cluster.z)
    return refuse("grid that is no multiple of its clusters", r.grid);
  return {};
}

Result<void> Emulator::launch(uint32_t module, const LaunchRequest& request,
                              const plan::RunOptions& options, plan::RunResult* result) {
  PB_RETURN_IF_ERROR(check_shape(request));
  Loaded& loaded = modules_[module];
  std::shared_ptr<Kernel>& kernel = loaded.kernels[request.kernel];
  if (!kernel) {
    PB_ASSIGN_OR_RETURN(kernel, decode(loaded.module, request.kernel, loaded.addresses));
  }

  const FunctionCode& entry_code = kernel->functions[0];
  uint64_t shared_bytes = uint64_t{kernel->dynamic_shared_offset} + request.dynamic_shared;
  if (shared_bytes > profile_.max_shared_per_cta || entry_code.local_bytes > (512u << 10) ||
      entry_code.register_bytes > (1u << 20))
    return Error{
        "unsupported",
        fmt::format("{} needs {} bytes of shared memory, {} of local memory a thread and {} "
                    "registers: more than the device has",
                    kernel->name, shared_bytes, entry_code.local_bytes, entry_code.live_slots)};

  FindingSink sink(*kernel);
  LaunchState state;
  state.kernel = kernel.get();
  state.memory = &memory_;
  state.heap = &heap_;
  state.sink = &sink;
  state.options = &options;
  state.grid = request.grid, state.block = request.block, state.cluster = request.cluster;
  const ptx::Function& f = kernel->module->functions[kernel->entry];
  const auto& required = f.directives.reqnctapercluster;
  state.explicit_cluster = request.explicit_cluster || !required.empty();
  if (!required.empty() && !request.explicit_cluster)
    state.cluster = {required[0], required.size() > 1 ? required[1] : 1,
                     required.size() > 2 ? required[2] : 1};
  state.dynamic_shared = request.dynamic_shared;
  state.params = request.params;
  state.params.resize(std::max<size_t>(state.params.size(), f.param_bytes));
  state.sm_count = profile_.sm_count;
  if (request.cooperative) {
    // {size, barrier word}: what the toolkit's grid barrier expects behind %envreg1:%envreg2.
    if (!grid_workspace_) grid_workspace_ = memory_.allocate("grid workspace", 8, true);
    const uint32_t fresh[2] = {8, 0};
    std::memcpy(memory_.find(grid_workspace_)->data, fresh, 8);
    state.grid_workspace = grid_workspace_;
  }
  state.sequence_id = ++launches_;
  if (options.step_budget) {
    if (instructions_ >= options.step_budget) {
      result->status = plan::RunStatus::step_budget;
      result->message =
          fmt::format("more than {} warp instructions were executed", options.step_budget);
      return {};
    }
    state.step_limit = options.step_budget - instructions_;
  }

  uint32_t threads = static_cast<uint32_t>(request.block.count());
  uint32_t shared = kernel->dynamic_shared_offset + request.dynamic_shared + kReservedShared;
  uint64_t per_sm = std::max<uint64_t>(
      1,
      std::min<uint64_t>({profile_.shared_per_sm / std::max(shared, 1u),
                          profile_.threads_per_sm / std::max(threads, 1u), profile_.ctas_per_sm}));
  int workers =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  uint64_t clusters = request.grid.count() / std::max<uint64_t>(state.cluster.count(), 1);
  if (kernel->allocates) heap_.prepare();
  RaceChecker races(state);
  if (options.races) state.races = &races;
  // One thread where the order of CTAs could show.
  if (options.races || options.costs.collect || kernel->communicates || kernel->allocates ||
      (kernel->prints && options.print))
    workers = 1;
  workers = static_cast<int>(
      std::max<uint64_t>(1, std::min<uint64_t>(static_cast<uint64_t>(workers), clusters)));
  state.resident_clusters = std::max<uint64_t>(
      1, static_cast<uint64_t>(profile_.sm_count) * per_sm /
             std::max<uint64_t>(state.cluster.count(), 1) / static_cast<uint64_t>(workers));

  std::vector<std::unique_ptr<Executor>> executors;
  for (int i = 0; i < workers; i++) executors.push_back(std::make_unique<Executor>(state));
  std::unique_ptr<CostLedger> costs;
  if (options.costs.collect) {
    // A cooperative launch waits for all of its CTAs.
    if (!request.cooperative) state.cluster_limit = options.costs.clusters;
    costs = std::make_unique<CostLedger>(
        *kernel,
        (profile_.shared_per_sm + kFirstLevelMinimum -
         std::min<uint32_t>(static_cast<uint32_t>(per_sm) * shared, profile_.shared_per_sm)) /
            static_cast<uint32_t>(per_sm));
    executors[0]->count_costs(costs.get());
  }
  const auto start = Clock::now();
  if (workers == 1 && options.wall_budget_s <= 0 && !options.progress)
    executors[0]->run();
  else
    run_watched(state, executors, clusters, result->wall_ms / 1e3);
  result->wall_ms += seconds_since(start) * 1e3;
  instructions_ += state.instructions;

  touched_.clear();
  for (const auto& e : executors)
    for (const Touched& t : e->touched()) add_touch(touched_, t.allocation, t.read, t.written);
  executed_ = executed_instructions(*kernel, executors);
  count_families(*kernel, executors, result);
  count_kernel(*kernel, state, executors, result);
  if (options.races) races.report_counts();
  if (costs) add_costs(state, shared - kReservedShared, *costs, *executors[0], touched_, result);
  for (plan::Finding& finding : sink.take()) result->findings.push_back(std::move(finding));
  if (state.stop) {
    result->status = static_cast<plan::RunStatus>(state.status.load());
    result->message = state.message;
  }
  return {};
}

}  // namespace ptxbench::emu
