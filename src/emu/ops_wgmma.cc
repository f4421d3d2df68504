// wgmma: asynchronous warpgroup multiplications.
//
// Each warp of a warpgroup issues the same sequence; the n-th wgmma of the four warps is one
// operation on 64 rows. It is performed as a whole (so that B is unpacked once) when a wait demands
// it and all four warps have issued it. Touching a register of one in flight is what ptxas repairs
// by inserting a wait (C7514 to C7518): the value is made right here too, and a finding says so.

#include <fmt/format.h>

#include <algorithm>

#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu {
namespace {

// Bounding range of an operand in shared memory.
void cover(uint64_t descriptor, bool mn_major, int bytes, int mn, int k, uint32_t* lo,
           uint32_t* hi) {
  MatrixDescriptor d = decode_descriptor(descriptor);
  // Swizzling permutes inside aligned 128..1024-byte atoms: corners give the range up to one atom.
  for (int a : {0, mn - 1})
    for (int b : {0, k - 1}) {
      uint32_t at = element_address(d, mn_major, bytes, a, b);
      uint32_t from = d.swizzle ? at & ~(d.swizzle - 1) : at & ~15u;
      uint32_t to = d.swizzle ? from + d.swizzle : from + 16;
      *lo = std::min(*lo, from), *hi = std::max(*hi, to);
    }
}

void check_operand(Warp& w, uint64_t descriptor, bool mn_major, int bytes, int mn, int k,
                   const char* reader, bool first, bool* poisoned) {
  Cta& c = *w.cta;
  Executor& e = *w.exec;
  uint32_t lo = ~0u, hi = 0;
  cover(descriptor, mn_major, bytes, mn, k, &lo, &hi);
  if (lo < kReservedShared || hi > c.shared_bytes) {
    // The range is generous; look at every chunk before accusing.
    uint32_t bad = ~0u;
    for_each_chunk(decode_descriptor(descriptor), mn_major, bytes, mn, k,
                   [&](uint32_t at, uint32_t n) {
                     if ((at < kReservedShared || at + n > c.shared_bytes) && bad == ~0u) bad = at;
                   });
    if (bad != ~0u) {
      std::string message = fmt::format("{} reaches shared offset {} of {} bytes", reader,
                                        static_cast<int64_t>(bad) - kReservedShared,
                                        c.shared_bytes - kReservedShared);
      return e.fault(w, "out-of-bounds", ~0u, std::move(message),
                     "check the descriptor's start, leading and stride byte offsets", bad);
    }
    hi = std::min(hi, c.shared_bytes), lo = std::max(lo, kReservedShared);
  }
  // Each of the four warps needs to know that the operand has arrived; the rest is checked once.
  if (Executor::may_be_unobserved(w, c, lo, hi - lo))
    for_each_chunk(decode_descriptor(descriptor), mn_major, bytes, mn, k,
                   [&](uint32_t at, uint32_t n) {
                     if (!*poisoned) *poisoned = !e.check_arrival(w, c, at, n, ~0u, reader);
                   });
  if (!first) return;
  bool clean = true, reported = false;
  for (uint32_t kib = lo >> 10; kib <= (hi - 1) >> 10; kib++) clean &= c.unclean[kib] == 0;
  if (!clean)
    for_each_chunk(decode_descriptor(descriptor), mn_major, bytes, mn, k,
                   [&](uint32_t at, uint32_t n) {
                     if (reported || Executor::is_clean(c, at, n)) return;
                     reported = true;  // one finding a wgmma is enough
                     *poisoned |= (c.shadow[at] & kInFlight) != 0;
                     e.diagnose_read(w, c, at, n, ~0u, reader);
                   });
  bool generic = false;
  for (uint32_t kib = lo >> 10; kib <= (hi - 1) >> 10; kib++) generic |= c.generic_kib[kib] != 0;
  if (generic)
    for_each_chunk(decode_descriptor(descriptor), mn_major, bytes, mn, k,
                   [&](uint32_t at, uint32_t n) { e.check_proxy(w, c, at, n, "wgmma"); });
}

// Ghost replay: the accumulators stay as they were, or become zero.
void forget_product(const WgmmaOp& op, const WgmmaOperands& o) {
  if (op.scale_d) return;
  for (int x = 0; x < 4; x++)
    if (o.warps >> x & 1)
      for (size_t r = 0; r < op.site->d.size(); r++) std::fill_n(o.d[x][r], 32, 0u);
}

void perform(Cta& c, Executor& e, WgmmaOp& op, uint32_t warps) {
  warps &= ~op.done;
  if (!warps) return;
  WgmmaOperands o;
  o.shared = c.shared.data();
  o.shared_bytes = c.shared_bytes;
  o.a_descriptor = op.a_descriptor;
  o.b_descriptor = op.b_descriptor;
  o.scale_d = op.scale_d;
  o.warps = warps;
  for (int x = 0; x < 4; x++) {
    if (!(warps >> x & 1)) continue;
    for (size_t r = 0; r < op.site->d.size(); r++)
      o.d[x][r] = reinterpret_cast<uint32_t*>(op.regs[x] + op.site->d[r]);
    for (size_t r = 0; r < op.site->a.size(); r++)
      o.a[x][r] = reinterpret_cast<const uint32_t*>(op.regs[x] + op.site->a[r]);
    if (!op.metadata.empty()) o.metadata[x] = op.metadata[x].data();
  }
  o.warps = warps & ~op.poisoned;
  if (e.launch().options->ghost == plan::Ghost::matrix)
    forget_product(op, o);
  else if (o.warps)
    wgmma(op.site->form, o, e.launch().options->tensor);
  // Operands read before they were known to have arrived: the result is poison, not luck.
  for (int x = 0; x < 4; x++)
    if ((warps & op.poisoned) >> x & 1)
      for (size_t r = 0; r < op.site->d.size(); r++) std::fill_n(o.d[x][r], 32, 0x7fffffffu);
  op.done |= warps;
  c.cluster->progress++;
}

// The CTA's bounding range of operands in flight.
void include(Cta& c, const WgmmaOp& op) {
  c.wgmma_lo = std::min({c.wgmma_lo, op.a.lo, op.b.lo});
  c.wgmma_hi = std::max({c.wgmma_hi, op.a.hi, op.b.hi});
}

void retire(Cta& c, Warpgroup& g) {
  while (!g.ops.empty() && (g.ops.front().done & g.ops.front().waited) == 0xf) {
    g.ops.pop_front();
    g.first++;
  }
  c.wgmma_lo = ~0u, c.wgmma_hi = 0;
  for (const Warpgroup& x : c.warpgroups)
    for (const WgmmaOp& op : x.ops)
      if (op.done != 0xf) include(c, op);
}

int element_bytes(ptx::Type t) { return t == ptx::Type::tf32 ? 4 : std::max(1, ptx::bits(t) / 8); }

}  // namespace

void Executor::perform_wgmmas(Warp& w, uint64_t target, bool alone) {
  Cta& c = *w.cta;
  Warpgroup& g = c.warpgroups[w.index / 4];
  uint32_t self = 1u << (w.index % 4);
  for (uint64_t n = g.first; n < target && n - g.first < g.ops.size(); n++) {
    WgmmaOp& op = g.ops[n - g.first];
    perform(c, *this, op, op.issued == 0xf ? 0xf : alone ? self & op.issued : op.issued);
  }
  retire(c, g);
}

void Executor::know_wgmmas(Warp& w, uint64_t target) {
  Cta& c = *w.cta;
  Warpgroup& g = c.warpgroups[w.index / 4];
  for (uint64_t n = g.first; n < target && n - g.first < g.ops.size(); n++)
    g.ops[n - g.first].waited |= 1u << (w.index % 4);
  learn(w.observed, wgmmas_of(w.index), static_cast<uint32_t>(target));
  if (races()) races()->wgmma_complete(w, target);
  retire(c, g);
}

// A micro-op that touches registers which wgmmas use.
void Executor::matrix_access(Warp& w, const MicroOp& op, uint32_t pc) {
  if (op.flags & kWritesMatrix) w.matrix_dirty = true;
  Warpgroup& g = w.cta->warpgroups[w.index / 4];
  if (g.ops.empty()) return;
  uint32_t self = 1u << (w.index % 4);
  bool pending = false;
  uint64_t last = 0;
  auto uses = [&](const WgmmaOp& x, Slot slot) {
    const auto& d = x.site->d;
    const auto& a = x.site->a;
    return std::find(d.begin(), d.end(), slot) != d.end() ||
           std::find(a.begin(), a.end(), slot) != a.end();
  };
  for (size_t i = 0; i < g.ops.size(); i++) {
    const WgmmaOp& x = g.ops[i];
    if (!(x.issued & self) || (x.waited & self)) continue;
    bool hit = false;
    if (op.flags & kMemorySite)
      for (Slot s : launch_.kernel->memories[op.extra].values) hit |= uses(x, s);
    for (Slot s : op.operand) hit |= uses(x, s);
    if (hit) pending = true, last = g.first + i + 1;
  }
  if (!pending) return;
  if (!(op.flags & kIsMove)) {
    uint32_t saved = w.pc;
    w.pc = pc + 1;
    report(
        w, "wgmma-register-access", plan::HazardClass::repaired, w.active,
        "a register of a wgmma in flight is used before wgmma.wait_group",
        "the assembler inserts a wait (advisories C7514 to C7518), which serialises the pipeline: "
        "wait before using "
        "accumulators");
    w.pc = saved;
  }
  perform_wgmmas(w, last, true);
  know_wgmmas(w, last);
}

bool Executor::force_wgmma(Cluster& c) {
  for (auto& cta : c.ctas)
    for (auto& wp : cta->warps)
      for (Fragment& f : wp->others) {
        if (f.wait.kind != Wait::Kind::wgmma_partners) continue;
        report_at(*cta, static_cast<int>(wp->index), f.pc, "warpgroup-incomplete",
                  plan::HazardClass::fatal, f.mask,
                  "a wgmma was not issued by all four warps of the warpgroup",
                  "wgmma is collective over four consecutive warps starting at a multiple of 4");
        // Those who came get their rows; the others are given up, so that the wait ends.
        Warpgroup& g = cta->warpgroups[wp->index / 4];
        for (uint64_t n = g.first; n <= f.wait.value && n - g.first < g.ops.size(); n++) {
          WgmmaOp& op = g.ops[n - g.first];
          perform(*cta, *this, op, op.issued);
          op.issued = op.done = op.waited = 0xf;
        }
        retire(*cta, g);
        f.wait = {};
        return true;
      }
  return false;
}

namespace ops {

void wgmma_issue(RegisterView& v, const MicroOp& op, uint32_t) {
  Warp& w = warp_of(v);
  Executor& e = *w.exec;
  Cta& c = *w.cta;
  const WgmmaSite& site = e.kernel().wgmmas[op.extra];
  Warpgroup& g = c.warpgroups[w.index / 4];
  uint32_t self = 1u << (w.index % 4);
  if (w.matrix_dirty) {
    e.report(w, "wgmma-fence-missing", plan::HazardClass::repaired, w.active,
             "registers of the wgmma were written without a wgmma.fence before it",
             "the assembler inserts wgmma.fence (advisory C7519): execute it once after "
             "initialising accumulators");
    w.matrix_dirty = false;
  }
  uint64_t a_desc = site.form.a_in_registers ? 0 : source<uint64_t>(v, site.a_descriptor)[0];
  uint64_t b_desc = source<uint64_t>(v, site.b_descriptor)[0];
  bool scale = site.scale_d_pred < 0 ? site.scale_d_value
                                     : (v.preds[site.scale_d_pred] & 1) !=
                                           static_cast<uint32_t>(site.scale_d_negated);
  if (CostLedger* costs = e.costs()) costs->matrix(w);
  uint64_t number = w.wgmma_issued++;
  if (number < g.first) return;  // performed without this warp; reported when that happened
  bool is_first = number - g.first == g.ops.size(), poisoned = false;
  const WgmmaForm& f = site.form;
  int ab = element_bytes(f.a), bb = element_bytes(f.b);
  int ak = addressed(f, f.a_k()), bk = addressed(f, f.k);
  if (!f.a_in_registers)
    check_operand(w, a_desc, f.a_mn_major, ab, 64, ak, "wgmma (matrix A)", is_first, &poisoned);
  check_operand(w, b_desc, f.b_mn_major, bb, f.n, bk, "wgmma (matrix B)", is_first, &poisoned);
  if (e.launch().stop) return;
  if (e.races()) e.races()->wgmma(w, site, a_desc, b_desc, number, is_first);
  if (is_first) {
    WgmmaOp fresh;
    fresh.pc = w.pc - 1;
    fresh.site = &site;
    fresh.a_descriptor = a_desc, fresh.b_descriptor = b_desc;
    fresh.scale_d = scale;
    if (!f.a_in_registers) cover(a_desc, f.a_mn_major, ab, 64, ak, &fresh.a.lo, &fresh.a.hi);
    cover(b_desc, f.b_mn_major, bb, f.n, bk, &fresh.b.lo, &fresh.b.hi);
    include(c, fresh);
    mark_wgmma_read(g, c, fresh.a, static_cast<uint32_t>(64 * ak * ab), number);
    mark_wgmma_read(g, c, fresh.b, static_cast<uint32_t>(f.n * bk * bb), number);
    g.ops.push_back(fresh);
  }
  WgmmaOp& mine = g.ops[number - g.first];
  if (mine.site != &site || mine.a_descriptor != a_desc || mine.b_descriptor != b_desc ||
      mine.scale_d != scale)
    e.report(
        w, "warpgroup-divergence", plan::HazardClass::fatal, w.active,
        "the warps of the warpgroup issue different wgmmas (instruction, descriptors or scale-d)",
        "all four warps must execute the same wgmma with the same descriptors");
  mine.issued |= self;
  if (poisoned) mine.poisoned |= self;
  mine.regs[w.index % 4] = v.regs;
  if (f.sparse) {
    mine.metadata.resize(4);
    std::memcpy(mine.metadata[w.index % 4].data(), source<uint32_t>(v, site.metadata), 128);
  }
  if (e.eager() && mine.issued == 0xf) e.perform_wgmmas(w, number + 1, false);
}

void wgmma_fence(RegisterView& v, const MicroOp&, uint32_t) { warp_of(v).matrix_dirty = false; }

void wgmma_commit(RegisterView& v, const MicroOp&, uint32_t) {
  Warp& w = warp_of(v);
  w.wgmma_groups.push_back(w.wgmma_issued);
}

void wgmma_wait(RegisterView& v, const MicroOp& op, uint32_t) {
  Warp& w = warp_of(v);
  Executor& e = *w.exec;
  Warpgroup& g = w.cta->warpgroups[w.index / 4];
  if (op.imm == 0 &&
      (w.wgmma_groups.empty() ? w.wgmma_issued > 0 : w.wgmma_groups.back() < w.wgmma_issued)) {
    e.report(
        w, "wgmma-commit-missing", plan::HazardClass::repaired, w.active,
        "wgmmas were issued after the last wgmma.commit_group and are not covered by this wait",
        "wgmma.commit_group before wgmma.wait_group");
    w.wgmma_groups.push_back(w.wgmma_issued);
  }
  if (w.wgmma_groups.size() <= op.imm) return;
  uint64_t target = w.wgmma_groups[w.wgmma_groups.size() - 1 - op.imm];
  if (target > g.first) {
    size_t last = target - 1 - g.first;
    if (last < g.ops.size() && g.ops[last].issued != 0xf)
      return e.block(w, {Wait::Kind::wgmma_partners, 0, w.index / 4, target - 1, false}, true);
    e.perform_wgmmas(w, target, false);
  }
  if (CostLedger* costs = e.costs()) costs->wgmma_wait(target == w.wgmma_issued);
  e.know_wgmmas(w, target);
  w.wgmma_groups.erase(w.wgmma_groups.begin(), w.wgmma_groups.end() - static_cast<long>(op.imm));
}

}  // namespace ops
}  // namespace ptxbench::emu
