// How pointers are found. Everything the host hands to the device is compared byte by byte between
// the two runs. Equal bytes are data. Where they differ, the eight bytes from there on (at a
// multiple of four) must differ by exactly the distance of the bases and, read as an address, lie
// in a buffer or one past its end: then they are a pointer. Anything else depends on addresses,
// time or chance in a way that can't be replayed: host-nondeterministic. Kernel parameters are
// opaque structures whose padding may hold anything; bytes that no instruction of the kernel can
// read (kernel_table.h) are cleared before they are compared.
#include "cudart/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/hash.h"
#include "cudart/names.h"

namespace ptxbench::cudart {
namespace {

// Thrown within this file only; merge() turns it into an outcome.
struct Refused {
  std::string reason, message;
};

[[noreturn]] void differs(std::string message) {
  throw Refused{"host-nondeterministic", std::move(message)};
}

class Merger {
 public:
  Merger(const Recording& a, const Recording& b, const RecordRequest& request,
         const KernelTable& table)
      : a_(a), b_(b), request_(request), table_(table) {}

  plan::LaunchPlan run();

 private:
  void buffers();
  void maps();
  void step(size_t index);
  plan::Step launch(const RecordedLaunch& a, const RecordedLaunch& b, const std::string& what);
  std::optional<plan::BufferRef> locate(const Recording& r, uint64_t address) const;
  plan::BufferRef pair(uint64_t a, uint64_t b, const std::string& what) const;
  plan::BufferRef range(uint64_t a, uint64_t b, uint64_t bytes, const std::string& what) const;
  plan::Blob blob(std::vector<uint8_t> a, std::vector<uint8_t> b, const std::string& what,
                  const wire::KernelInfo* kernel) const;
  size_t tensor_map_at(const std::vector<uint8_t>& a, size_t at, plan::Blob& out,
                       const std::string& what) const;
  std::string place(size_t at, const wire::KernelInfo* kernel) const;
  void check_pinned(const plan::Blob& blob, const std::string& what) const;
  void drop_unused_symbols();

  const Recording &a_, &b_;
  const RecordRequest& request_;
  const KernelTable& table_;
  plan::LaunchPlan plan_;
};

std::string dims(const plan::Dim3& d) { return fmt::format("{}x{}x{}", d.x, d.y, d.z); }

const char* kind_name(const RecordedStep& step) {
  constexpr const char* kNames[] = {"a kernel launch", "a memset", "a host-to-device copy",
                                    "a device-to-device copy", "a free"};
  return kNames[step.index()];
}

std::optional<plan::BufferRef> Merger::locate(const Recording& r, uint64_t address) const {
  auto after =
      std::upper_bound(r.buffers.begin(), r.buffers.end(), address,
                       [](uint64_t x, const RecordedBuffer& buffer) { return x < buffer.address; });
  if (after == r.buffers.begin()) return std::nullopt;
  --after;
  const uint64_t offset = address - after->address;
  if (offset > after->bytes) return std::nullopt;
  return plan::BufferRef{static_cast<uint32_t>(after - r.buffers.begin()), offset};
}

plan::BufferRef Merger::pair(uint64_t a, uint64_t b, const std::string& what) const {
  const auto ref_a = locate(a_, a), ref_b = locate(b_, b);
  if (!ref_a || !ref_b || *ref_a != *ref_b)
    differs(fmt::format("{}: another address in each run ({:#x}, {:#x})", what, a, b));
  return *ref_a;
}

plan::BufferRef Merger::range(uint64_t a, uint64_t b, uint64_t bytes,
                              const std::string& what) const {
  const plan::BufferRef ref = pair(a, b, what);
  if (bytes > a_.buffers[ref.buffer].bytes - ref.offset)
    throw Refused{"launch-refused",
                  fmt::format("{}: {} bytes run past the end of the buffer", what, bytes)};
  return ref;
}

void Merger::buffers() {
  if (a_.buffers.size() != b_.buffers.size())
    differs(fmt::format("one run allocates {} buffers, the other {}", a_.buffers.size(),
                        b_.buffers.size()));
  uint32_t scratch = 0;
  for (size_t i = 0; i < a_.buffers.size(); ++i) {
    const RecordedBuffer &x = a_.buffers[i], &y = b_.buffers[i];
    if (x.kind != y.kind || x.name != y.name || x.bytes != y.bytes ||
        x.address - kBaseA != y.address - kBaseB)
      differs(fmt::format("allocation {} is {} bytes in one run and {} in the other", i, x.bytes,
                          y.bytes));
    plan::Buffer out;
    out.size = x.bytes;
    switch (x.kind) {
      case wire::BufferKind::argument:
        if (x.argument != i || i >= request_.arguments.size())
          throw Refused{"host-crash", "the recording names no such argument"};
        out.role = plan::BufferRole::argument;
        out.argument = x.argument;
        out.name = request_.arguments[i].name;
        break;
      case wire::BufferKind::scratch:
        out.role = plan::BufferRole::scratch;
        out.name = fmt::format("scratch{}", scratch++);
        break;
      case wire::BufferKind::symbol:
        out.role = plan::BufferRole::symbol;
        out.name = x.name;
        if (!table_.variables.contains(x.name))
          for (const auto& [name, bytes] : table_.variables)
            if (without_hashes(name) == without_hashes(x.name)) out.name = name;
        break;
    }
    plan_.buffers.push_back(std::move(out));
  }
}

void Merger::maps() {
  if (a_.maps.size() != b_.maps.size())
    differs(fmt::format("one run encodes {} tensor maps, the other {}", a_.maps.size(),
                        b_.maps.size()));
  for (size_t i = 0; i < a_.maps.size(); ++i) {
    plan::TensorMap map;
    map.args = a_.maps[i].args;
    map.address = pair(a_.maps[i].args.global_address, b_.maps[i].args.global_address,
                       fmt::format("tensor map {}", i));
    plan::TensorMapArgs other = b_.maps[i].args;
    map.args.global_address = other.global_address = 0;
    if (map.args != other) differs(fmt::format("tensor map {} has other arguments in each run", i));
    plan_.tensor_maps.push_back(map);
  }
}

std::string Merger::place(size_t at, const wire::KernelInfo* kernel) const {
  if (kernel)
    for (size_t i = kernel->params.size(); i-- > 0;)
      if (at >= kernel->params[i].offset)
        return fmt::format("parameter {} (byte {} of {})", i, at - kernel->params[i].offset,
                           kernel->params[i].bytes);
  return fmt::format("byte {}", at);
}

// The tensor map whose token stands at `at`; returns the first byte after it.
size_t Merger::tensor_map_at(const std::vector<uint8_t>& a, size_t at, plan::Blob& out,
                             const std::string& what) const {
  uint32_t serial = 0;
  if (a.size() - at >= wire::kTokenBytes) std::memcpy(&serial, &a[at + 16], 4);
  if (a.size() - at < wire::kTokenBytes || serial >= a_.maps.size() ||
      std::memcmp(&a[at], a_.maps[serial].token, wire::kTokenBytes) != 0)
    throw Refused{
        "unsupported-runtime-call",
        fmt::format(
            "{}: the tensor map at byte {} was cut or changed by the host after it was encoded",
            what, at)};
  out.tensor_maps.push_back({at, serial});
  return at + wire::kTokenBytes;
}

plan::Blob Merger::blob(std::vector<uint8_t> a, std::vector<uint8_t> b, const std::string& what,
                        const wire::KernelInfo* kernel) const {
  if (a.size() != b.size())
    differs(fmt::format("{}: {} bytes in one run, {} in the other", what, a.size(), b.size()));
  plan::Blob out;
  const auto next_token = [&](size_t from) -> size_t {
    const void* found =
        from < a.size() ? memmem(&a[from], a.size() - from, wire::kTokenMagic, 16) : nullptr;
    return found ? static_cast<size_t>(static_cast<const uint8_t*>(found) - a.data()) : a.size();
  };
  size_t token = next_token(0);
  for (size_t at = 0; at < a.size();) {
    if (at >= token) {
      const size_t end = tensor_map_at(a, at, out, what);
      if (std::memcmp(&a[at], &b[at], wire::kTokenBytes) != 0)
        differs(fmt::format("{}: another tensor map at byte {} in each run", what, at));
      std::fill(a.begin() + static_cast<ptrdiff_t>(at), a.begin() + static_cast<ptrdiff_t>(end),
                uint8_t{0});
      at = end;
      token = next_token(at);
      continue;
    }
    const size_t stop = std::min(token, a.size());
    const auto same = std::mismatch(a.begin() + static_cast<ptrdiff_t>(at),
                                    a.begin() + static_cast<ptrdiff_t>(stop),
                                    b.begin() + static_cast<ptrdiff_t>(at));
    const size_t found = static_cast<size_t>(same.first - a.begin());
    if (found == stop) {
      at = stop;
      continue;
    }
    const size_t start = std::max(at, found / 4 * 4);
    uint64_t x = 0, y = 0;
    const size_t width = std::min<size_t>(8, stop - start);
    std::memcpy(&x, &a[start], width);
    std::memcpy(&y, &b[start], width);
    if (width < 8 || y - x != kBaseB - kBaseA)
      differs(
          fmt::format("{}: {} is {:#x} in one run and {:#x} in the other (time, chance, or "
                      "computed from an address)",
                      what, place(found, kernel), x, y));
    const auto target = locate(a_, x);
    if (!target || locate(b_, y) != target)
      differs(
          fmt::format("{}: {} is an address outside every buffer ({:#x} with the device at {:#x})",
                      what, place(start, kernel), x, kBaseA));
    out.pointers.push_back({start, *target});
    std::fill_n(a.begin() + static_cast<ptrdiff_t>(start), 8, uint8_t{0});
    at = start + 8;
  }
  out.bytes = std::move(a);
  check_pinned(out, what);
  return out;
}

// A kernel could follow an address of page-locked host memory; the plan has no such buffer.
void Merger::check_pinned(const plan::Blob& blob, const std::string& what) const {
  if (a_.pinned.empty()) return;
  for (size_t at = 0; at + 8 <= blob.bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &blob.bytes[at], 8);
    for (const HostBuffer& host : a_.pinned)
      if (word - host.address < host.bytes)
        throw Refused{"unsupported-runtime-call",
                      fmt::format("{}: byte {} is the address of page-locked host memory; kernels "
                                  "can only use device memory here",
                                  what, at)};
  }
}

plan::Step Merger::launch(const RecordedLaunch& a, const RecordedLaunch& b,
                          const std::string& what) {
  plan::Launch out = a.launch;
  const plan::Launch& other = b.launch;
  if (out.kernel != other.kernel)
    differs(
        fmt::format("{}: kernel {} in one run, {} in the other", what, out.kernel, other.kernel));
  const std::string name = fmt::format("{} ({})", what, out.kernel);
  const auto same = [&](const char* which, const plan::Dim3& x, const plan::Dim3& y) {
    if (x != y)
      differs(fmt::format("{}: {} {} in one run, {} in the other", name, which, dims(x), dims(y)));
  };
  same("grid", out.grid, other.grid);
  same("block", out.block, other.block);
  same("cluster", out.cluster, other.cluster);
  if (out.dynamic_shared_bytes != other.dynamic_shared_bytes ||
      out.max_dynamic_shared_bytes != other.max_dynamic_shared_bytes)
    differs(fmt::format("{}: dynamic shared memory differs between the runs", name));
  if (out.explicit_cluster != other.explicit_cluster || out.cooperative != other.cooperative ||
      out.programmatic_stream_serialization != other.programmatic_stream_serialization ||
      out.stream != other.stream)
    differs(fmt::format("{}: launch attributes or stream differ between the runs", name));
  const auto kernel =
      std::find_if(table_.kernels.begin(), table_.kernels.end(),
                   [&](const wire::KernelInfo& info) { return info.name == out.kernel; });
  if (kernel == table_.kernels.end() || out.params.bytes.size() != kernel->param_bytes)
    throw Refused{"host-crash",
                  fmt::format("{}: the recording does not fit the candidate's kernels", name)};
  std::vector<uint8_t> x = out.params.bytes, y = other.params.bytes;
  const std::vector<bool>& read = table_.read_bytes.find(out.kernel)->second;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (!read[i]) x[i] = y[i] = 0;
  out.params = blob(std::move(x), std::move(y), name, &*kernel);
  return out;
}

void Merger::step(size_t index) {
  const RecordedStep &a = a_.steps[index], &b = b_.steps[index];
  const std::string what = fmt::format("step {}", index);
  if (a.index() != b.index())
    differs(
        fmt::format("{} is {} in one run and {} in the other", what, kind_name(a), kind_name(b)));
  if (const auto* x = std::get_if<RecordedLaunch>(&a)) {
    plan_.steps.push_back(launch(*x, std::get<RecordedLaunch>(b), what));
  } else if (const auto* m = std::get_if<RecordedMemset>(&a)) {
    const auto& n = std::get<RecordedMemset>(b);
    if (m->value != n.value || m->bytes != n.bytes || m->element_size != n.element_size)
      differs(what + ": a memset of another value or size in each run");
    plan_.steps.emplace_back(
        plan::Memset{range(m->dst, n.dst, m->bytes, what), m->value, m->element_size, m->bytes});
  } else if (const auto* u = std::get_if<RecordedUpload>(&a)) {
    const auto& v = std::get<RecordedUpload>(b);
    plan::BufferRef dst = range(u->dst, v.dst, u->bytes.size(), what);
    plan_.steps.emplace_back(plan::CopyHostToDevice{
        dst, blob(u->bytes, v.bytes, what + " (host-to-device copy)", nullptr)});
  } else if (const auto* c = std::get_if<RecordedCopy>(&a)) {
    const auto& d = std::get<RecordedCopy>(b);
    if (c->bytes != d.bytes) differs(what + ": a copy of another size in each run");
    plan_.steps.emplace_back(plan::CopyDeviceToDevice{
        range(c->dst, d.dst, c->bytes, what), range(c->src, d.src, c->bytes, what), c->bytes});
  } else if (const auto* f = std::get_if<RecordedFree>(&a)) {
    const plan::BufferRef freed = pair(f->address, std::get<RecordedFree>(b).address, what);
    plan_.steps.emplace_back(plan::Free{freed.buffer});
  }
}

// Every __device__ variable was registered; only those that the plan mentions are buffers of it.
void Merger::drop_unused_symbols() {
  std::vector<bool> used(plan_.buffers.size());
  const auto visit = [&](const auto& each) {
    const auto visit_blob = [&](plan::Blob& blob) {
      for (auto& patch : blob.pointers) each(patch.target);
    };
    for (auto& map : plan_.tensor_maps) each(map.address);
    for (plan::Step& step : plan_.steps) {
      if (auto* launch = std::get_if<plan::Launch>(&step)) visit_blob(launch->params);
      if (auto* memset = std::get_if<plan::Memset>(&step)) each(memset->dst);
      if (auto* upload = std::get_if<plan::CopyHostToDevice>(&step))
        each(upload->dst), visit_blob(upload->data);
      if (auto* copy = std::get_if<plan::CopyDeviceToDevice>(&step))
        each(copy->dst), each(copy->src);
    }
  };
  visit([&](plan::BufferRef& ref) { used[ref.buffer] = true; });
  std::vector<uint32_t> moved(plan_.buffers.size());
  std::vector<plan::Buffer> kept;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const bool is_symbol = plan_.buffers[i].role == plan::BufferRole::symbol;
    if (is_symbol && !used[i]) continue;
    if (is_symbol && !table_.variables.contains(plan_.buffers[i].name))
      throw Refused{"launch-refused",
                    fmt::format("cudaErrorInvalidSymbol: {} is not in the device code",
                                plan_.buffers[i].name)};
    moved[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(plan_.buffers[i]);
  }
  visit([&](plan::BufferRef& ref) { ref.buffer = moved[ref.buffer]; });
  for (plan::Step& step : plan_.steps)
    if (auto* free = std::get_if<plan::Free>(&step)) free->buffer = moved[free->buffer];
  plan_.buffers = std::move(kept);
}

plan::LaunchPlan Merger::run() {
  plan_.arch = request_.arch;
  plan_.device_profile = request_.device_profile;
  plan_.definition = request_.definition;
  plan_.axes = request_.axes;
  plan_.modules.push_back({hash_hex(request_.ptx), request_.ptx, request_.cubin});
  buffers();
  maps();
  if (a_.steps.size() != b_.steps.size())
    differs(fmt::format("one run issues {} operations, the other {}", a_.steps.size(),
                        b_.steps.size()));
  bool launched = false;
  for (size_t i = 0; i < a_.steps.size(); ++i) {
    step(i);
    launched |= std::holds_alternative<plan::Launch>(plan_.steps.back());
  }
  if (!launched)
    throw Refused{"no-launch", "the host function returned without launching a kernel"};
  drop_unused_symbols();
  if (const auto valid = plan::validate(plan_); !valid.ok())
    throw Refused{"launch-refused", valid.error().message};
  return std::move(plan_);
}

}  // namespace

RecordOutcome merge(const Recording& a, const Recording& b, const RecordRequest& request,
                    const KernelTable& table) {
  RecordOutcome outcome;
  try {
    outcome.plan = Merger(a, b, request, table).run();
    outcome.ok = true;
  } catch (Refused& refused) {
    outcome.reason = std::move(refused.reason);
    outcome.message = std::move(refused.message);
  }
  return outcome;
}

}  // namespace ptxbench::cudart
