#pragma once
// The running machine: warps, CTAs, clusters and what they wait for. One host thread owns a cluster
// at a time; nothing here is shared between threads except LaunchState.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/address.h"
#include "emu/findings.h"
#include "emu/global_memory.h"
#include "emu/kernel.h"
#include "emu/mbarrier.h"
#include "emu/tma.h"
#include "plan/launch_plan.h"
#include "plan/run_result.h"

namespace ptxbench::emu {

struct Warp;
struct Cta;
struct Cluster;
class Executor;
class RaceChecker;

// What a warp knows of its CTA, see arrival.cc: for each mbarrier (by id) the number of phases that
// have completed, and for each warp the number of its wgmmas that have; interleaved, 0 = nothing.
using Observed = std::vector<uint32_t>;
inline size_t phases_of(uint32_t barrier_id) { return size_t{barrier_id} * 2; }
inline size_t wgmmas_of(uint32_t warp) { return size_t{warp} * 2 + 1; }
inline uint32_t known(const Observed& o, size_t what) { return what < o.size() ? o[what] : 0; }
void learn(Observed& o, size_t what, uint32_t count);
void join(Observed& into, const Observed& from);

// What a fragment of a warp waits for.
struct Wait {
  enum class Kind : uint8_t {
    none,
    mbarrier,  // until phase `value` of the barrier at `address` in CTA `cta_rank` has completed
    named_barrier,    // until generation `value` of barrier `address` ends
    cluster_barrier,  // until the cluster barrier's phase differs from `value`
    converge,         // until the lanes in `value` stand at the same pc
    registers,        // until the CTA's pool has `value` registers free (setmaxnreg.inc)
    wgmma_partners,   // until the other warps of the warpgroup have issued wgmma number `value`
  } kind = Kind::none;
  uint32_t cta_rank = 0;
  uint32_t address = 0;
  uint64_t value = 0;
  bool parity_wait = false;  // mbarrier: value is a parity, else a phase number
};

// Lanes that stand at the same pc in the same call frame.
struct Fragment {
  uint32_t pc = 0, mask = 0, frame = 0;
  Wait wait;
};

// A call frame; fragments that came from one call share it.
struct Frame {
  uint32_t parent = 0, return_pc = 0, call_pc = 0, function = 0;
  uint32_t target = 0;                                             // which of the call site's
  uint32_t register_base = 0, predicate_base = 0, local_base = 0;  // bytes, masks, bytes per thread
  uint32_t allocated = 0;  // by alloca, behind the function's own local bytes
};

// Which mbarrier initialisations of a cluster (by LiveBarrier::init_index) a warp knows to have
// happened: handed on by barriers, arrivals and waits. A remote use without the knowledge is a race
// with the initialisation, whatever the schedule. Not kept where the cluster is one CTA.
struct KnownInits {
  std::vector<uint64_t> bits;
  void set(uint32_t index);
  bool has(uint32_t index) const;
  void join(const KnownInits& from);
};

// Asynchronous copies of one thread that have no mbarrier: bulk stores and reductions.
struct BulkStore {
  uint32_t lane = 0;
  uint64_t group = 0;  // number of commit_group that closed it; ~0 while open
  uint32_t pc = 0;
  uint32_t shared_lo = 0, shared_hi = 0;  // source bytes, offsets in the CTA's shared memory
  bool tensor = false, reduce = false;
  plan::TensorMapArgs map;
  Coordinates at{};
  uint32_t shared_address = 0;
  uint64_t global = 0;
  uint32_t bytes = 0;
  ReduceOp op{};
  plan::MapType type{};
};

// cp.async of one warp.
struct CpAsync {
  uint32_t pc = 0, mask = 0;
  uint64_t group = 0;  // commit number; ~0 while open
  uint32_t bytes = 0;
  std::array<uint64_t, 32> src{};
  std::array<uint32_t, 32> dst{}, src_bytes{};
};

// Whether other copies were in flight when one arrived (where costs are counted).
enum class Beside : uint8_t { unknown, none, others };

struct Warp : RegisterView {
  uint32_t pc = 0;           // of the next instruction of the current fragment
  uint32_t active = 0;       // its lanes
  uint32_t switch_pc = ~0u;  // lowest pc of another runnable fragment
  bool yield = false;        // set by a handler to leave the inner loop
  bool blocked = false;      // with yield: the instruction did not happen, wait is set
  Wait wait;                 // of the current fragment
  uint32_t frame = 0;
  uint32_t live = 0;   // lanes that exist and have not exited
  uint32_t index = 0;  // warp number in the CTA
  uint32_t spins = 0;  // backward branches since the fragment was last rotated
  Cta* cta = nullptr;
  Executor* exec = nullptr;
  std::vector<Fragment> others;
  std::vector<Frame> frames;
  std::vector<uint8_t> local;  // [lane][local_bytes]
  uint32_t local_bytes = 0;    // per lane
  uint8_t* register_file = nullptr;
  uint64_t register_capacity = 0;
  std::vector<uint32_t> predicate_file;
  // cluster barrier: phase at this warp's arrival, lanes that arrived and did not wait yet
  uint64_t cluster_phase = 0;
  // bulk stores
  std::vector<BulkStore> stores;
  std::array<uint64_t, 32> store_groups{};  // committed groups per lane
  std::deque<CpAsync> cp_async;
  uint64_t cp_groups = 0;
  // proxy fence bookkeeping, in Cta::sequence time
  uint64_t fence_seq = 0, sync_seq = 0, sync_seq_at_fence = 0;
  // wgmma
  bool matrix_dirty = true;  // a matrix register was written since the last wgmma.fence
  uint64_t wgmma_issued = 0;
  std::vector<uint64_t> wgmma_groups;  // number of wgmmas issued at each commit
  uint64_t instructions = 0;
  uint64_t clock = 0;               // %clock, %globaltimer
  bool rotate = false;              // with yield: the fragment spins, another one should run
  bool pause = false;               // with yield: the time slice ends
  bool converge_done = false;       // the current fragment was released from a convergence wait
  uint64_t barrier_ticket = 0;      // bar.red: generation at arrival + 1; 0 = has not arrived
  uint32_t max_registers = 0;       // a thread; changed by setmaxnreg
  bool multiplies = false;          // has issued a matrix instruction (where costs are counted)
  Beside copies = Beside::unknown;  // of the last wait for a copy: were others in flight?
  Observed observed;
  KnownInits known_inits;                      // see there
  std::map<uint64_t, uint64_t> maps_acquired;  // address -> version, see MapEdit
  ~Warp();
};

// One asynchronous warpgroup multiplication.
struct WgmmaOp {
  uint32_t pc = 0;
  const WgmmaSite* site = nullptr;
  uint64_t a_descriptor = 0, b_descriptor = 0;
  bool scale_d = true;
  uint32_t issued = 0, done = 0;  // warps of the group
  uint32_t waited = 0;            // warps that know it to be done
  uint32_t poisoned = 0;          // warps that issued it before they knew its operands had arrived
  uint8_t* regs[4] = {};          // each warp's register window at issue
  std::vector<std::array<uint32_t, 32>> metadata;  // sparse forms: each warp's at issue
  struct Range {
    uint32_t lo = ~0u, hi = 0;
  } a, b;  // shared bytes of the operands (bounding ranges)
};

struct Warpgroup {
  std::deque<WgmmaOp> ops;  // ops.front() is number `first`
  uint64_t first = 0;
  // Per 128 bytes of shared memory, one more than the number of the last wgmma that reads them.
  std::vector<uint32_t> last_reader;
};

// Notes that wgmma `number` of the warpgroup reads an operand of `operand_bytes` in `range`
// (arrival.cc).
constexpr uint32_t kReadGranule = 128;
void mark_wgmma_read(Warpgroup& g, const Cta& c, const WgmmaOp::Range& range,
                     uint32_t operand_bytes, uint64_t number);

struct NamedBarrier {
  Observed released, last_released;  // what the threads that arrived had observed
  KnownInits inits, last_inits;
  uint32_t expected = 0;  // threads; 0 = nobody came yet
  uint32_t arrived = 0;
  uint64_t generation = 0;
  uint64_t warps = 0;         // who arrived (for reports)
  bool counts_all = false;    // expected = all live warps
  uint32_t reduce_count = 0;  // bar.red: lanes with the predicate set
  bool reduce_all = true, reduce_any = false;
  uint32_t last_count = 0;
  bool last_all = false, last_any = false;
  void complete();  // releases everyone who waits, starts the next generation
};

struct LiveBarrier : Mbarrier {
  Beside beside = Beside::unknown;  // of the last bulk load that arrived here
  uint32_t id = 0;                  // fresh at every init; from 1
  uint32_t init_warp = 0;           // who initialised it when, and whether the async proxy may know
  uint64_t init_seq = 0;
  bool fenced = false;
  Observed released;  // what the threads that arrived had observed
  KnownInits inits;   // likewise
  uint32_t init_index = 0;
  uint32_t race_index = 0;  // of the race checker
};

// Bulk loads in flight, and stores and reductions into the cluster's shared memory: bytes that will
// arrive in one CTA's shared memory.
struct BulkLoad {
  uint32_t pc = 0;
  uint64_t issuer_cta = 0;
  int issuer_warp = 0;
  uint32_t cta_rank = 0;  // whose shared memory is written
  uint32_t mbarrier = 0;  // offset in that CTA's shared memory
  uint32_t mbarrier_rank = 0;
  bool tensor = false;
  plan::TensorMapArgs map;
  Coordinates at{};
  uint32_t shared_address = 0;             // offset
  uint64_t global = 0;                     // plain bulk: source address
  const uint8_t* shared_source = nullptr;  // shared::cta -> shared::cluster
  std::vector<uint8_t> data;               // of st.async and red.async
  uint8_t reduce = 0xff;                   // ReduceOp, if the bytes are combined with those there
  plan::MapType type{};                    // of a reduction's elements
  uint32_t bytes = 0;                      // transaction bytes
  uint32_t span = 0;                       // shared bytes touched
};

// Shadow state of a shared-memory byte.
constexpr uint32_t kMixedArrivals = ~0u;
enum Shadow : uint8_t { kWritten = 1, kInFlight = 2, kBarrierWord = 4 };

struct Cta {
  Cluster* cluster = nullptr;
  std::array<uint32_t, 3> id{};
  uint64_t linear = 0;
  uint32_t rank = 0;          // in the cluster
  uint32_t shared_bytes = 0;  // offsets below this are valid; includes the reserved KiB
  std::vector<uint8_t> shared, shadow;
  // Generic-proxy writes that the async proxy may not have seen: per 16 bytes, (sequence << 8 |
  // warp).
  std::vector<uint64_t> generic_writes;
  std::vector<uint64_t> generic_kib;  // newest of them per KiB; 0 = none
  std::vector<uint16_t> unclean;      // per KiB: bytes whose shadow is not exactly kWritten
  uint64_t sequence = 1;
  std::vector<std::unique_ptr<Warp>> warps;
  // Which mbarrier phase announced the bytes that a bulk load wrote: per 16 bytes, 0 = none; see
  // arrival.cc.
  std::vector<uint32_t> arrivals;
  std::vector<uint32_t> arrival_kib;  // 0: none, kMixedArrivals, else the KiB's only stamp
  std::vector<bool> barrier_live;     // by LiveBarrier::id
  uint32_t free_registers = 0;        // of the CTA's share, given back by setmaxnreg.dec
  uint32_t live_warps = 0, live_threads = 0;
  std::array<NamedBarrier, 16> barriers;
  std::unordered_map<uint32_t, LiveBarrier> mbarriers;  // by offset
  std::vector<Warpgroup> warpgroups;
  uint32_t store_lo = ~0u, store_hi = 0;  // bounding range of bulk-store sources in flight
  uint32_t wgmma_lo = ~0u, wgmma_hi = 0;  // and of wgmma operands in flight
  Observed cluster_released;              // what its warps knew at their cluster arrivals
  bool exited = false;
};

struct Cluster {
  uint64_t index = 0;  // linear cluster number
  std::vector<std::unique_ptr<Cta>> ctas;
  std::deque<BulkLoad> loads;
  uint64_t barrier_phase = 0;
  uint32_t barrier_arrived = 0;
  uint32_t live_threads = 0;
  uint32_t inits = 0;                            // mbarriers initialised so far
  KnownInits barrier_inits, barrier_last_inits;  // what those at the cluster barrier knew
  void complete_barrier();
  std::mt19937_64 random;       // of --schedule=random
  uint64_t progress = 0;        // bumped by everything that can end somebody's wait
  std::shared_ptr<void> races;  // what the race checker keeps of it
};

class DeviceHeap;  // device_runtime.h
class CostLedger;  // costs.h

// A tensor map in global memory that a kernel changed; see ops_tensormap.cc.
struct MapEdit {
  uint64_t version = 0;
  bool released = false;
};

struct LaunchState {
  const Kernel* kernel = nullptr;
  GlobalMemory* memory = nullptr;
  DeviceHeap* heap = nullptr;
  FindingSink* sink = nullptr;
  RaceChecker* races = nullptr;  // null: not asked for
  const plan::RunOptions* options = nullptr;
  plan::Dim3 grid, block, cluster;
  bool explicit_cluster = false;
  uint32_t dynamic_shared = 0;
  std::vector<uint8_t> params;
  int sm_count = 132;
  std::map<uint64_t, MapEdit> map_edits;  // kernels that change maps run on one host thread
  uint64_t grid_workspace = 0;            // %envreg1:%envreg2 of a cooperative launch
  uint64_t sequence_id = 0;               // launch ordinal, %gridid
  // shared between host threads
  uint64_t resident_clusters = 1;  // per host thread: SMs x occupancy of the modelled GPU, divided
  uint64_t step_limit = 0;         // warp instructions of this launch; 0 = none
  uint64_t cluster_limit = 0;      // of clusters that run, of those of the grid; 0 = all
  std::atomic<bool> stop{false};
  std::atomic<int> status{0};  // RunStatus of the first stop
  std::atomic<uint64_t> next_cluster{0}, done_clusters{0}, instructions{0};
  std::mutex mutex;
  std::string message;
  uint64_t message_cluster = ~uint64_t{0};
  // Deterministic choice among threads: the stop of the lowest cluster wins.
  void halt(plan::RunStatus why, uint64_t cluster, std::string text);
};

}  // namespace ptxbench::emu
