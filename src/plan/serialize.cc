// File: 8 bytes magic, u32 version, u64 body length, body, the XXH128 of the body in hex. The
// checksum catches accidents; hostile files can have a right one, so the reader does not lean on
// it.
#include <fmt/format.h>

#include "base/hash.h"
#include "plan/archive.h"
#include "plan/launch_plan.h"

namespace ptxbench::plan {

namespace {

constexpr char kMagic[8] = {'P', 'T', 'X', 'B', 'P', 'L', 'A', 'N'};
constexpr size_t kHeaderBytes = 8 + 4 + 8, kHashBytes = 32;

// const for the writer, mutable for the reader.
template <class A, class T>
using Ref = std::conditional_t<A::kReading, T&, const T&>;

template <class A, std::integral T>
void field(A& a, T& v) {
  a.number(v);
}

template <class A, class T>
void enumeration(A& a, T& v, std::remove_const_t<T> last, std::string_view what) {
  using Number = std::underlying_type_t<std::remove_const_t<T>>;
  if constexpr (A::kReading) {
    Number n = 0;
    a.number(n);
    if (n > static_cast<Number>(last)) a.fail(fmt::format("{} {} does not exist", what, n));
    v = a.ok() ? static_cast<T>(n) : T{};
  } else {
    a.number(static_cast<Number>(v));
  }
}

// std::string and std::vector<uint8_t>.
template <class A, class T>
void bytes(A& a, T& v) {
  if constexpr (A::kReading)
    v.resize(a.length(1));
  else
    a.length(v.size(), 1);
  a.raw(v.data(), v.size());
}

template <class A, class T, class F>
void list(A& a, T& v, size_t least, F element) {
  if constexpr (A::kReading) {
    uint64_t n = a.length(least);
    // Grown as elements really arrive: an element in memory is larger than its least encoding.
    for (uint64_t i = 0; i < n && a.ok(); ++i) element(a, v.emplace_back());
    if (!a.ok()) v.clear();
  } else {
    a.length(v.size(), least);
    for (auto& e : v) element(a, e);
  }
}

template <class A, class T, size_t N>
void all(A& a, std::array<T, N>& v) {
  for (T& e : v) a.number(e);
}
template <class A, class T, size_t N>
void all(A& a, const std::array<T, N>& v) {
  for (const T& e : v) a.number(e);
}

template <class A>
void dim3(A& a, Ref<A, Dim3> d) {
  field(a, d.x);
  field(a, d.y);
  field(a, d.z);
}

template <class A>
void ref(A& a, Ref<A, BufferRef> r) {
  field(a, r.buffer);
  field(a, r.offset);
}

template <class A>
void blob(A& a, Ref<A, Blob> b) {
  bytes(a, b.bytes);
  list(a, b.pointers, 20, [](A& in, Ref<A, PointerPatch> p) {
    field(in, p.at);
    ref(in, p.target);
  });
  list(a, b.tensor_maps, 12, [](A& in, Ref<A, TensorMapPatch> p) {
    field(in, p.at);
    field(in, p.map);
  });
}

template <class A>
void buffer(A& a, Ref<A, Buffer> b) {
  bytes(a, b.name);
  enumeration(a, b.role, BufferRole::symbol, "buffer role");
  field(a, b.argument);
  field(a, b.module);
  field(a, b.size);
}

template <class A>
void module(A& a, Ref<A, Module> m) {
  bytes(a, m.hash);
  bytes(a, m.ptx);
  bytes(a, m.cubin);
}

template <class A>
void tensor_map(A& a, Ref<A, TensorMap> m) {
  auto& g = m.args;
  enumeration(a, g.type, MapType::tf32_ftz, "tensor map type");
  field(a, g.rank);
  field(a, g.global_address);
  all(a, g.dims);
  all(a, g.strides);
  all(a, g.box);
  all(a, g.element_strides);
  enumeration(a, g.interleave, MapInterleave::b32, "tensor map interleave");
  enumeration(a, g.swizzle, MapSwizzle::b128, "tensor map swizzle");
  field(a, g.l2_promotion);
  field(a, g.nan_fill);
  if (a.has(2)) {
    field(a, g.im2col);
    field(a, g.pixels);
    all(a, g.lower);
    all(a, g.upper);
  }
  ref(a, m.address);
}

template <class A>
void launch(A& a, Ref<A, Launch> l) {
  field(a, l.module);
  bytes(a, l.kernel);
  dim3(a, l.grid);
  dim3(a, l.block);
  dim3(a, l.cluster);
  field(a, l.explicit_cluster);
  field(a, l.cooperative);
  field(a, l.programmatic_stream_serialization);
  field(a, l.dynamic_shared_bytes);
  field(a, l.max_dynamic_shared_bytes);
  blob(a, l.params);
  field(a, l.stream);
}

template <class A>
void memset_step(A& a, Ref<A, Memset> m) {
  ref(a, m.dst);
  field(a, m.value);
  field(a, m.element_size);
  field(a, m.bytes);
}

template <class A>
void step(A& a, Ref<A, Step> s) {
  uint8_t kind = static_cast<uint8_t>(s.index());
  if constexpr (A::kReading) {
    a.number(kind);
    if (kind == 1) s.template emplace<Memset>();
    if (kind == 2) s.template emplace<CopyHostToDevice>();
    if (kind == 3) s.template emplace<CopyDeviceToDevice>();
    if (kind == 4) s.template emplace<Free>();
    if (kind > 4) return a.fail(fmt::format("step kind {} does not exist", kind));
  } else {
    a.number(kind);
  }
  if (kind == 0) return launch(a, std::get<Launch>(s));
  if (kind == 1) return memset_step(a, std::get<Memset>(s));
  if (kind == 2) {
    auto& copy = std::get<CopyHostToDevice>(s);
    ref(a, copy.dst);
    return blob(a, copy.data);
  }
  if (kind == 4) return field(a, std::get<Free>(s).buffer);
  auto& copy = std::get<CopyDeviceToDevice>(s);
  ref(a, copy.dst);
  ref(a, copy.src);
  field(a, copy.bytes);
}

template <class A>
void plan_fields(A& a, Ref<A, LaunchPlan> p) {
  bytes(a, p.arch);
  bytes(a, p.device_profile);
  bytes(a, p.definition);
  list(a, p.axes, 16, [](A& in, Ref<A, std::pair<std::string, int64_t>> axis) {
    bytes(in, axis.first);
    field(in, axis.second);
  });
  list(a, p.buffers, 25, [](A& in, Ref<A, Buffer> b) { buffer(in, b); });
  list(a, p.modules, 24, [](A& in, Ref<A, Module> m) { module(in, m); });
  list(a, p.tensor_maps, 60, [](A& in, Ref<A, TensorMap> m) { tensor_map(in, m); });
  list(a, p.steps, 20, [](A& in, Ref<A, Step> s) { step(in, s); });
}

Error bad(std::string_view why) {
  return Error{"bad-plan", fmt::format("not a usable launch plan: {}", why)};
}

}  // namespace

std::vector<uint8_t> serialize(const LaunchPlan& plan) {
  Writer body;
  plan_fields(body, plan);
  std::vector<uint8_t> content = body.take();
  Writer file;
  file.raw(kMagic, sizeof kMagic);
  file.number(LaunchPlan::kVersion);
  file.number(uint64_t{content.size()});
  file.raw(content.data(), content.size());
  std::string hash = hash_hex(std::span<const uint8_t>(content));
  file.raw(hash.data(), hash.size());
  return file.take();
}

Result<LaunchPlan> deserialize(const std::vector<uint8_t>& file) {
  if (file.size() < sizeof kMagic || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0)
    return bad("it does not start with PTXBPLAN");
  Reader header(file.data() + sizeof kMagic, file.size() - sizeof kMagic);
  uint32_t version = 0;
  uint64_t size = 0;
  header.number(version);
  header.number(size);
  if (!header.ok()) return bad(header.error());
  if (version < 1 || version > LaunchPlan::kVersion)
    return bad(fmt::format("format version {}, this program knows 1 to {}", version,
                           LaunchPlan::kVersion));
  if (header.left() < kHashBytes || size > header.left() - kHashBytes)
    return bad("it ends too early");
  if (size < header.left() - kHashBytes) return bad("something follows its end");
  std::span<const uint8_t> content(file.data() + kHeaderBytes, size);
  std::string_view stored(reinterpret_cast<const char*>(content.data() + size), kHashBytes);
  if (hash_hex(content) != stored) return bad("its checksum is wrong (damaged file)");
  LaunchPlan plan;
  Reader body(content.data(), content.size(), version);
  plan_fields(body, plan);
  if (!body.ok()) return bad(body.error());
  if (body.left() != 0) return bad("something follows its last step");
  return plan;
}

}  // namespace ptxbench::plan
