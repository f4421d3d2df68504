// ld and st in every space, width, cache operator and order; atom and red in every operation, type,
// order, scope and space. The oracles are memcpy and arithmetic on host types.
#include <fmt/format.h>

#include <cmath>

#include "emu/ptx_runner.h"
#include "numeric/float_formats.h"

namespace ptxbench::emu::test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes pattern(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; i++) b[i] = static_cast<uint8_t>(i * 0x9E3779B1u >> 23 ^ i);
  return b;
}

int bytes_of_type(const std::string& type) { return std::stoi(type.substr(1)) / 8; }
std::string register_of(int bytes) {
  return bytes == 1 ? ".b16" : ".b" + std::to_string(8 * bytes);
}
std::string elements(int n) {
  std::string s = "%v0";
  for (int i = 1; i < n; i++) s += ", %v" + std::to_string(i);
  return n == 1 ? s : "{" + s + "}";
}

// Thread t moves its part of p0 to p1 with the given load and store; `middle` may use %at, the
// byte offset of the thread, and %rin, %rout, its addresses.
PtxRun copy(const std::string& load, const std::string& store, int bytes, int n,
            const std::string& middle = "", const std::string& declare = "") {
  PtxRun r;
  r.ptx =
      ".const .align 32 .b8 fixed[1024];\n.visible .entry k(.param .u64 p0, .param .u64 p1) {"
      ".reg .b32 %t, %at, %s<4>; .reg .b64 %rin, %rout, %wide, %policy, %l<4>; .reg " +
      register_of(bytes) + " %v<8>;" + declare + R"(
    ld.param.u64 %rin, [p0]; ld.param.u64 %rout, [p1];
    createpolicy.fractional.L2::evict_last.b64 %policy;
    mov.u32 %t, %tid.x; mul.lo.u32 %at, %t, )" +
      std::to_string(bytes * n) + R"(; cvt.u64.u32 %wide, %at;
    add.s64 %rin, %rin, %wide; add.s64 %rout, %rout, %wide;
)" + load +
      "\n" + middle + "\n" + store + "\nret; }";
  Bytes in = pattern(static_cast<size_t>(32 * bytes * n));
  r.buffers = {buffer_of("in", in, true), output_of("out", in.size())};
  r.block = {32};
  r.go();
  EXPECT_EQ(r.error, "") << load << store;
  EXPECT_EQ(r.kinds(), "") << load << store;
  EXPECT_EQ(r.buffers[1].bytes, r.buffers[0].bytes) << load << store;
  return r;
}

void copy_global(const std::string& ld, const std::string& st, const std::string& type, int n = 1,
                 bool hints = false) {
  const std::string vec = n == 1 ? "" : ".v" + std::to_string(n), policy = hints ? ", %policy" : "";
  copy(ld + vec + "." + type + " " + elements(n) + ", [%rin]" +
           (ld.find("cache_hint") != std::string::npos ? policy : "") + ";",
       st + vec + "." + type + " [%rout], " + elements(n) +
           (st.find("cache_hint") != std::string::npos ? policy : "") + ";",
       bytes_of_type(type), n);
}

TEST(IsaMemory, GlobalWidths) {
  for (const char* type : {"b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8",
                           "s16", "s32", "s64", "f32", "f64"}) {
    copy_global("ld.global", "st.global", type);
    copy_global("ld", "st", type);
    for (int n : {2, 4})
      if (bytes_of_type(type) * n <= 16) copy_global("ld.global", "st.global", type, n);
  }
}

TEST(IsaMemory, CacheOperatorsAndOrders) {
  for (const char* word : {"ca", "cg", "cs", "cv", "lu"})
    copy_global(std::string("ld.global.") + word, "st.global", "u32");
  for (const char* word : {"wb", "cg", "cs", "wt"})
    copy_global("ld.global", std::string("st.global.") + word, "u32");
  for (const char* word : {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
                           "L1::evict_last", "L1::no_allocate"})
    copy_global(std::string("ld.global.nc.") + word, std::string("st.global.") + word, "b32", 4);
  for (const char* word : {"L2::64B", "L2::128B", "L2::256B"})
    copy_global(std::string("ld.global.") + word, "st.global", "b64", 2);
  copy_global("ld.global.L2::cache_hint", "st.global.L2::cache_hint", "f32", 1, true);
  for (const char* scope : {"cta", "cluster", "gpu", "sys"}) {
    const std::string s = scope;
    copy_global("ld.relaxed." + s + ".global", "st.relaxed." + s + ".global", "b32");
    copy_global("ld.acquire." + s + ".global", "st.release." + s + ".global", "u64");
  }
  copy_global("ld.weak.global", "st.weak.global", "u16");
  copy_global("ld.volatile.global", "st.volatile.global", "s32");
  copy_global("ld.mmio.relaxed.sys.global", "st.mmio.relaxed.sys.global", "u32");
  copy("ldu.global.u32 %v0, [%rin];", "st.global.u32 [%rout], %v0;", 4, 1);
  copy("ldu.global.v2.f32 {%v0, %v1}, [%rin];", "st.global.v2.f32 [%rout], {%v0, %v1};", 4, 2);
  copy("ldu.global.v4.f32 {%v0, %v1, %v2, %v3}, [%rin];",
       "st.global.v4.f32 [%rout], {%v0, %v1, %v2, %v3};", 4, 4);
  for (const char* type :
       {"b8", "b16", "b32", "b64", "b128", "u8", "u16", "u64", "s8", "s16", "s32", "s64", "f64"})
    copy(std::string("ldu.global.") + type + " %v0, [%rin];",
         std::string("st.global.") + type + " [%rout], %v0;", bytes_of_type(type), 1);
}

const char* const kTypes[] = {"b8",  "b16", "b32", "b64", "b128", "u8",  "u16", "u32",
                              "u64", "s8",  "s16", "s32", "s64",  "f32", "f64"};

// Orders, volatile and mmio with every type and vector; levels of caches and hints beside them.
TEST(IsaMemory, OrderedAndVolatileAccesses) {
  const char* const scopes[] = {"cta", "cluster", "gpu", "sys"};
  const char* const first[] = {".L1::evict_normal", ".L1::evict_unchanged", ".L1::evict_first",
                               ".L1::evict_last", ".L1::no_allocate"};
  const char* const second[] = {".L2::64B", ".L2::128B", ".L2::256B"};
  size_t turn = 0;
  for (const char* type : kTypes) {
    for (int n : {1, 2, 4, 8}) {
      if (bytes_of_type(type) * n > 16) continue;
      for (bool strong : {false, true}) {
        const std::string scope = std::string(".") + scopes[turn % 4] + ".global";
        const std::string l1 = first[turn % 5], l2 = second[turn % 3];
        const std::string load = strong ? ".acquire" : ".relaxed",
                          store = strong ? ".release" : ".relaxed";
        copy_global("ld" + load + scope + l1 + ".L2::cache_hint" + l2,
                    "st" + store + scope + l1 + ".L2::cache_hint", type, n, true);
        turn++;
      }
      copy_global("ld.volatile.global", "st.volatile.global", type, n);
      copy_global("ld.volatile", "st.volatile", type, n);
      copy_global(std::string("ld.volatile.global") + second[turn % 3], "st.volatile", type, n);
      copy_global(
          std::string("ld.global.nc") + first[turn % 5] + ".L2::cache_hint" + second[turn % 3],
          std::string("st.global") + first[turn % 5] + ".L2::cache_hint", type, n, true);
      const std::string cop[] = {".ca", ".cg", ".cs"};
      copy_global("ld.global" + cop[turn % 3] + ".nc.L2::cache_hint" + second[turn % 3],
                  "st.global" + cop[turn % 2 + 1] + ".L2::cache_hint", type, n, true);
      copy_global("ld.global.ca.L2::cache_hint" + std::string(second[turn % 3]), "st.global.wt",
                  type, n, true);
      copy_global("ld.global.L1::evict_first.L2::cache_hint" + std::string(second[turn % 3]),
                  "st.global.wb", type, n, true);
    }
    copy_global("ld.mmio.relaxed.sys.global", "st.mmio.relaxed.sys.global", type);
    copy_global("ld.mmio.relaxed.sys", "st.mmio.relaxed.sys", type);
  }
  for (const char* word : {"evict_normal", "evict_unchanged", "evict_first", "evict_last"})
    copy_global(std::string("ld.global.L1::") + word + ".L2::cache_hint", "st.global", "u32", 1,
                true);
  copy_global("ld.global.L1::no_allocate", "st.global", "u32");
}

// The same through shared memory.
TEST(IsaMemory, OrderedSharedAccesses) {
  const char* const scopes[] = {"cta", "cluster", "gpu", "sys"};
  const char* const spaces[] = {".shared", ".shared::cta", ".shared::cluster"};
  size_t turn = 0;
  for (const char* type : kTypes)
    for (int n : {1, 2, 4, 8}) {
      const int bytes = bytes_of_type(type) * n;
      if (bytes > 16) continue;
      for (const char* space : spaces)
        for (const std::string words : {".volatile", ".acquire", ".relaxed"}) {
          const std::string scope =
              words == ".volatile" ? "" : std::string(".") + scopes[turn++ % 4];
          const std::string vec = n == 1 ? "" : ".v" + std::to_string(n);
          const std::string tail = scope + space + vec + "." + type;
          copy("ld.global" + vec + "." + type + " " + elements(n) +
                   ", [%rin]; mov.u32 %s0, tile; add.u32 %s0, %s0, %at;",
               "st.global" + vec + "." + type + " [%rout], " + elements(n) + ";",
               bytes_of_type(type), n,
               "st" + (words == ".acquire" ? ".release" : words) + tail + " [%s0], " + elements(n) +
                   "; ld" + words + tail + " " + elements(n) + ", [%s0];",
               ".shared .align 16 .b8 tile[512];");
        }
    }
}

// ".unified" behind the address: generic and global addresses are the same.
TEST(IsaMemory, UnifiedAddresses) {
  for (const std::string load : {"ld.u32", "ld.global.u32", "ld.global.L1::evict_last.u32",
                                 "ld.volatile.global.u32", "ld.volatile.global.L2::128B.u32",
                                 "ld.relaxed.gpu.global.u32", "ld.mmio.relaxed.sys.global.u32",
                                 "ld.global.ca.nc.u32", "ld.global.nc.u32", "ldu.global.u32"})
    copy(load + " %v0, [%rin].unified;", "st.global.u32 [%rout], %v0;", 4, 1);
}

// Through another space and back, by address and by generic address.
TEST(IsaMemory, OtherSpaces) {
  const std::string load = "ld.global.u32 %v0, [%rin];", store = "st.global.u32 [%rout], %v1;";
  for (const char* space : {"shared", "shared::cta", "shared::cluster"}) {
    const std::string s = space;
    copy(load, store, 4, 1,
         "mov.u32 %s0, tile; add.u32 %s0, %s0, %at; st." + s + ".u32 [%s0], %v0; ld." + s +
             ".u32 %v1, [%s0];",
         ".shared .align 16 .b8 tile[128];");
  }
  copy(load, store, 4, 1, "st.local.u32 [own+8], %v0; ld.local.u32 %v1, [own+8];",
       ".local .align 16 .b8 own[16];");
  copy(load, store, 4, 1,
       "mov.u64 %l0, own; cvta.local.u64 %l1, %l0; st.u32 [%l1+4], %v0; ld.local.u32 %v1, [%l0+4];",
       ".local .align 16 .b8 own[16];");
  copy(
      load, store, 4, 1,
      "mov.u64 %l0, fixed; cvta.const.u64 %l1, %l0; ld.const.u32 %v2, [%l0+8]; ld.u32 %v3, [%l1+8];"
      "add.u32 %v1, %v0, %v2; add.u32 %v1, %v1, %v3;");
}

TEST(IsaMemory, ParametersOfKernelsAndFunctions) {
  PtxRun r;
  r.ptx = R"(.visible .func (.param .b32 out) add_one(.param .b32 in) {
    .reg .b32 %r<3>; ld.param::func.u32 %r1, [in]; add.u32 %r2, %r1, 1; st.param::func.b32 [out], %r2; ret; }
  .visible .entry k(.param .u64 p0, .param .u32 p1, .param .u32 p2) {
    .reg .b32 %r<9>; .reg .b64 %rd<5>;
    ld.param::entry.u64 %rd1, [p0]; ld.param.u32 %r1, [p1]; ld.param.v2.u32 {%r1, %r2}, [p1];
    { .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call.uni (b), add_one, (a); ld.param.b32 %r3, [b]; }
    st.global.v2.u32 [%rd1], {%r2, %r3};
    ret.uni; })";
  r.buffers = {output_of("out", 8)};
  r.scalars = {7, 9};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), (std::vector<uint32_t>{9, 8}));
}

TEST(IsaMemory, NarrowLoadsExtend) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    ld.global.s8 %r1, [%rd1]; ld.global.u8 %r2, [%rd1]; ld.global.s16 %r3, [%rd1]; ld.global.b16 %r4, [%rd1];
    ld.global.s8 %rd3, [%rd1]; ld.global.s32 %rd4, [%rd1]; ld.global.u32 %rd5, [%rd1];
    st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};
    st.global.u64 [%rd2+16], %rd3; st.global.u64 [%rd2+24], %rd4; st.global.u64 [%rd2+32], %rd5;
    st.global.u8 [%rd2+40], %r1; st.global.u16 [%rd2+42], %r3; st.global.b32 [%rd2+44], %rd5;
    ret; })";
  r.buffers = {buffer_of<uint32_t>("in", {0x8765FFF0u}, true), output_of("out", 48)};
  r.buffers[1].bytes[41] = 0xee;
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[1]),
            (std::vector<uint32_t>{0xfffffff0, 0xf0, 0xfffffff0, 0xfff0, 0xfffffff0, 0xffffffff,
                                   0x8765fff0, 0xffffffff, 0x8765fff0, 0, 0xfff0eef0, 0x8765fff0}));
}

// ---------------------------------------------------------------------------------------- atomics

template <class T>
T bits_as(uint64_t b) {
  T v;
  std::memcpy(&v, &b, sizeof(T));
  return v;
}
template <class T>
uint64_t as_bits(T v) {
  uint64_t b = 0;
  std::memcpy(&b, &v, sizeof(T));
  return b;
}

template <class T>
uint64_t on(const std::string& op, uint64_t old, uint64_t b) {
  const T x = bits_as<T>(old), y = bits_as<T>(b);
  if (op == "min") return as_bits<T>(x < y ? x : y);
  if (op == "max") return as_bits<T>(x < y ? y : x);
  if constexpr (std::is_floating_point_v<T>) {
    return as_bits<T>(x + y);
  } else {
    if (op == "add")
      return as_bits<T>(static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)));
    if (op == "inc") return as_bits<T>(x >= y ? T{0} : static_cast<T>(x + 1));
    if (op == "dec") return as_bits<T>(x == 0 || x > y ? y : static_cast<T>(x - 1));
    if (op == "and") return as_bits<T>(x & y);
    if (op == "or") return as_bits<T>(x | y);
    return as_bits<T>(x ^ y);
  }
}

// Values are exact in every format, so a sum in double is the sum.
uint64_t on_half(const std::string& op, bool bf16, uint64_t old, uint64_t b) {
  auto wide = [&](uint64_t v) {
    const uint16_t h = static_cast<uint16_t>(v);
    return static_cast<double>(bf16 ? numeric::bf16_to_float(h) : numeric::f16_to_float(h));
  };
  const double x = wide(old), y = wide(b);
  const float r = static_cast<float>(op == "min"   ? std::fmin(x, y)
                                     : op == "max" ? std::fmax(x, y)
                                                   : x + y);
  return bf16 ? numeric::bf16_from_float(r) : numeric::f16_from_float(r);
}

uint64_t expected(const std::string& op, const std::string& type, uint64_t old, uint64_t b) {
  if (op == "exch" || op == "cas") return b;
  if (type.ends_with("16x2"))
    return on_half(op, type[0] == 'b', old & 0xffff, b & 0xffff) |
           on_half(op, type[0] == 'b', old >> 16, b >> 16) << 16;
  if (type == "f16" || type == "bf16") return on_half(op, type[0] == 'b', old, b);
  if (type == "f32") return on<float>(op, old, b);
  if (type == "f64") return on<double>(op, old, b);
  if (type == "s32") return on<int32_t>(op, old, b);
  if (type == "s64") return on<int64_t>(op, old, b);
  return type.ends_with("64") ? on<uint64_t>(op, old, b) : on<uint32_t>(op, old, b);
}

struct AtomicCase {
  std::string words, op, type;  // words between the opcode and the operation
  bool hint = false;            // with a cache policy
  bool unified = false;         // .unified behind the address
};

int width_of(const std::string& type) {
  return type.ends_with("16x2") ? 4 : type.ends_with("16") ? 2 : bytes_of_type(type);
}

std::vector<uint64_t> edge_values(const std::string& type) {
  if (type == "f64") return {as_bits(1.5), as_bits(-2.0), as_bits(0.0), as_bits(1e300)};
  if (type == "f32") return {as_bits(1.5f), as_bits(-2.0f), as_bits(0.0f), as_bits(1e30f)};
  if (type.starts_with("f16")) return {0x3e003e00, 0xc000c000, 0, 0x44004400};
  if (type.starts_with("bf16")) return {0x3fc03fc0, 0xc000c000, 0, 0x40804080};
  return {0, 5, 0x7fffffffffffffff, 0xffffffffffffffff};
}

// Each lane owns a cell; old values and operands are all pairs of edge values.
void run_atomic(const AtomicCase& c, bool returns) {
  const int width = width_of(c.type);
  const std::string reg = width == 2 ? ".b16" : ".b" + std::to_string(8 * width);
  const std::string b = "b" + std::to_string(8 * width), step = std::to_string(width);
  const bool shared = c.words.find("shared") != std::string::npos;
  const bool cas = c.op == "cas", hint = c.hint && !cas;  // cas has no such form
  const std::string address = shared ? "%sa" : "%ra";
  // cas: lanes with an odd number compare with what is not there.
  const std::string operands = (cas ? "%compare, %v" : "%v") + std::string(hint ? ", %policy" : "");
  const std::string noftz =
      c.type.find("16") != std::string::npos && !cas && c.op != "exch" ? ".noftz" : "";
  const std::string form =
      c.words + "." + c.op + noftz + (hint ? ".L2::cache_hint." : ".") + c.type;
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) {
    .reg .pred %p; .reg .b32 %t, %at, %sa, %odd; .reg .b64 %ra, %rb, %rc, %wide, %policy; .reg )" +
          reg + R"( %v, %old, %compare, %now, %other;
    .shared .align 16 .b8 cells[256];
    ld.param.u64 %ra, [p0]; ld.param.u64 %rb, [p1]; ld.param.u64 %rc, [p2];
    createpolicy.fractional.L2::evict_first.b64 %policy;
    mov.u32 %t, %tid.x; mul.lo.u32 %at, %t, )" +
          step + R"(; cvt.u64.u32 %wide, %at;
    add.s64 %ra, %ra, %wide; add.s64 %rb, %rb, %wide; add.s64 %rc, %rc, %wide;
    mov.u32 %sa, cells; add.u32 %sa, %sa, %at;
    ld.global.)" +
          b + " %v, [%rb]; ld.global." + b + " %compare, [%ra]; ld.global." + b +
          " %now, [%ra]; st.shared." + b +
          " [%sa], %now; and.b32 %odd, %t, 1; setp.ne.u32 %p, %odd, 0;\n@%p mov." + b +
          " %compare, %v;\n" +
          (returns ? "atom" + form + " %old, [" + address + "]" + (c.unified ? ".unified" : "") +
                         ", " + operands + "; st.global." + b + " [%rc], %old;"
                   : "red" + form + " [" + address + "], " + operands + ";") +
          (shared ? " ld.shared." + b + " %now, [%sa]; st.global." + b + " [%ra], %now;" : "") +
          "\nret; }";
  const std::vector<uint64_t> values = edge_values(c.type);
  const uint64_t keep = width == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * width)) - 1;
  Bytes old(static_cast<size_t>(16 * width)), operand = old, want = old;
  for (size_t l = 0; l < 16; l++) {
    const uint64_t x = values[l % 4] & keep, y = values[l / 4] & keep;
    uint64_t now = expected(c.op, c.type, x, y) & keep;
    if (cas && l % 2 && x != y) now = x;
    for (auto [to, v] : {std::pair{&old, x}, {&operand, y}, {&want, now}})
      std::memcpy(to->data() + l * static_cast<size_t>(width), &v, static_cast<size_t>(width));
  }
  r.buffers = {buffer_of("cells", old), buffer_of("operands", operand, true),
               output_of("old", old.size())};
  r.block = {16};
  r.go();
  ASSERT_EQ(r.error, "") << form;
  EXPECT_EQ(r.kinds(), "") << form;
  EXPECT_EQ(r.buffers[0].bytes, want) << form;
  if (returns) {
    EXPECT_EQ(r.buffers[2].bytes, old) << form;
  }
}

const std::pair<const char*, std::vector<const char*>> kAtomics[] = {
    {"add", {"u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"}},
    {"min", {"u32", "s32", "u64", "s64"}},
    {"max", {"u32", "s32", "u64", "s64"}},
    {"inc", {"u32"}},
    {"dec", {"u32"}},
    {"and", {"b32", "b64"}},
    {"or", {"b32", "b64"}},
    {"xor", {"b32", "b64"}},
    {"exch", {"b32", "b64"}},
    {"cas", {"b16", "b32", "b64"}}};

TEST(IsaMemory, AtomicOperations) {
  for (const auto& [op, types] : kAtomics)
    for (const char* type : types)
      for (const char* space : {".global", ".shared", ""}) {
        run_atomic({space, op, type}, true);
        const std::string name = op;
        if (name != "exch" && name != "cas") run_atomic({space, op, type}, false);
      }
}

// Every operation and type with every order, scope and space; hints belong to global memory.
TEST(IsaMemory, AtomicOrdersScopesAndSpaces) {
  const char* const orders[] = {".relaxed", ".release", ".acquire", ".acq_rel"};
  const char* const scopes[] = {".cta", ".cluster", ".gpu", ".sys"};
  const char* const spaces[] = {".global", ".shared::cta", ".shared::cluster", ".shared"};
  for (const auto& [op, types] : kAtomics)
    for (const char* type : types)
      for (size_t i = 0; i < 4; i++) {
        const std::string words = std::string(orders[i]) + scopes[(i + 1) % 4], name = op;
        const bool reduces = name != "exch" && name != "cas";
        run_atomic({words + spaces[i], op, type, false, i == 0}, true);
        // Without a result there is no acquire: relaxed and release with two scopes each.
        const std::string plain = std::string(orders[i % 2]) + scopes[i];
        if (reduces) run_atomic({plain + spaces[i], op, type}, false);
        run_atomic({words + ".global", op, type, true, i % 2 != 0}, true);
        if (reduces) run_atomic({plain + ".global", op, type, true}, false);
      }
  for (const char* scope : scopes)
    for (bool returns : {true, false})
      run_atomic({std::string(".relaxed") + scope + ".global", "add", "u32"}, returns);
}

// 128 bits: the old value is there, then the new one; cas with what is not there changes nothing.
TEST(IsaMemory, WideExchanges) {
  for (const std::string words :
       {".global", ".shared", ".acq_rel.gpu.global", ".relaxed.cta.shared::cta",
        ".release.cluster.shared::cluster", ".acquire.sys"})
    for (bool hint : {false, true}) {
      const bool shared = words.find("shared") != std::string::npos;
      if (hint && words.find("global") == std::string::npos) continue;
      const std::string at = shared ? "[cell]" : "[%d1]", h = hint ? ".L2::cache_hint" : "",
                        policy = hint ? ", %d3" : "";
      PtxRun r;
      r.ptx = fmt::format(R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {{
    .reg .b64 %d<9>; .reg .b128 %q<9>; .shared .align 16 .b8 cell[16];
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; createpolicy.fractional.L2::evict_first.b64 %d3;
    ld.global.b128 %q0, [%d1]; ld.global.b128 %q1, [%d1+16]; ld.global.b128 %q2, [%d1+32];
    st.shared.b128 [cell], %q0;
    atom{0}.exch{1}.b128 %q3, {2}, %q1{3};
    atom{0}.cas{4}.b128 %q4, {2}, %q0, %q2{5};
    atom{0}.cas{4}.b128 %q5, {2}, %q1, %q2{5};
    atom{0}.exch{1}.b128 %q6, {2}, %q0{3};
    st.global.b128 [%d2], %q3; st.global.b128 [%d2+16], %q4; st.global.b128 [%d2+32], %q5; st.global.b128 [%d2+48], %q6;
    ret; }})",
                          words, h, at, policy, "", "");
      const Bytes in = pattern(48);
      r.buffers = {buffer_of("in", in), output_of("out", 64)};
      r.go();
      ASSERT_EQ(r.error, "") << r.ptx;
      EXPECT_EQ(r.kinds(), "");
      const auto part = [&](size_t i) {
        const auto first = in.begin() + static_cast<std::ptrdiff_t>(16 * i);
        return Bytes(first, first + 16);
      };
      Bytes want;
      for (size_t i : {0, 1, 1, 2})  // what was there: a, b (unchanged), b, c
        for (uint8_t byte : part(i)) want.push_back(byte);
      EXPECT_EQ(r.buffers[1].bytes, want) << r.ptx;
    }
}

// Elements of a vector are added, or compared, one by one.
TEST(IsaMemory, VectorAtomics) {
  struct Case {
    const char* type;
    int n;
    const char* op;
  };
  const char* const orders[] = {"", ".relaxed", ".release", ".acquire", ".acq_rel"};
  const char* const scopes[] = {".cta", ".cluster", ".gpu", ".sys"};
  size_t turn = 0;
  for (int repeat = 0; repeat < 5; repeat++)
    for (const Case& c : {Case{"f32", 2, "add"},
                          {"f32", 4, "add"},
                          {"f16", 2, "add"},
                          {"f16", 4, "min"},
                          {"f16", 8, "max"},
                          {"bf16", 2, "max"},
                          {"bf16", 4, "add"},
                          {"bf16", 8, "min"},
                          {"f16x2", 2, "add"},
                          {"f16x2", 4, "max"},
                          {"bf16x2", 2, "min"},
                          {"bf16x2", 4, "add"}})
      for (bool returns : {true, false}) {
        const std::string type = c.type, noftz = type == "f32" ? "" : ".noftz";
        const int width = width_of(type), all = width * c.n;
        std::string v, old, load, keep;
        for (int i = 0; i < c.n; i++) {
          v += fmt::format("{}%v{}", i ? ", " : "", i),
              old += fmt::format("{}%o{}", i ? ", " : "", i);
          load += fmt::format("ld.global.b{0} %v{1}, [%rb+{2}];\n", 8 * width, i, i * width);
          if (returns)
            keep += fmt::format("st.global.b{0} [%rc+{2}], %o{1};\n", 8 * width, i, i * width);
        }
        const size_t order = turn % (returns ? 5 : 3);
        const bool hint = turn % 2 != 0;
        const std::string form = fmt::format("{}{}.global.v{}.{}{}{}.{}", orders[order],
                                             order ? scopes[turn / 5 % 4] : "", c.n, c.op, noftz,
                                             hint ? ".L2::cache_hint" : "", type);
        const std::string policy = hint ? ", %policy" : "";
        turn++;
        PtxRun r;
        r.ptx =
            fmt::format(
                ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) {{ .reg .b{} "
                "%v<8>, %o<8>; .reg .b64 %ra, %rb, %rc, %policy;"
                "createpolicy.fractional.L2::evict_last.b64 %policy;"
                "ld.param.u64 %ra, [p0]; ld.param.u64 %rb, [p1]; ld.param.u64 %rc, [p2];\n",
                8 * width) +
            load +
            (returns ? "atom" + form + " {" + old + "}, [%ra]" + (repeat % 2 ? ".unified" : "") +
                           ", {" + v + "}" + policy + ";\n"
                     : "red" + form + " [%ra], {" + v + "}" + policy + ";\n") +
            keep + "ret; }";
        const std::vector<uint64_t> values = edge_values(type);
        Bytes cells(static_cast<size_t>(all)), operands = cells, want = cells;
        for (size_t e = 0; e < static_cast<size_t>(c.n); e++) {
          const uint64_t x = values[e % 4], y = values[(e + 1) % 4],
                         now = expected(c.op, type, x, y);
          for (auto [to, value] : {std::pair{&cells, x}, {&operands, y}, {&want, now}})
            std::memcpy(to->data() + e * static_cast<size_t>(width), &value,
                        static_cast<size_t>(width));
        }
        r.buffers = {buffer_of("cells", cells), buffer_of("operands", operands, true),
                     output_of("old", cells.size())};
        r.go();
        ASSERT_EQ(r.error, "") << form;
        EXPECT_EQ(r.buffers[0].bytes, want) << form;
        if (returns) {
          EXPECT_EQ(r.buffers[2].bytes, cells) << form;
        }
      }
}

// What was discarded holds nothing until it is written again.
TEST(IsaMemory, Discard) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p0]; discard.global.L2 [%rd1], 128; mov.u32 %r1, 5; st.global.u32 [%rd1], %r1;
    ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1+128], %r2; ret; })";
  r.buffers = {buffer_of("data", std::vector<uint32_t>(33, 1))};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[32], 5u);
}

}  // namespace
}  // namespace ptxbench::emu::test
