#!/usr/bin/env python3
"""Writes record_matrix.cu: a program that records matrix instructions on a Hopper GPU, register by register.

    bench/hardware/record_matrix.py > DIR/record_matrix.cu
    nvcc -std=c++17 -O1 -cudart static -gencode arch=compute_90a,code=sm_90a -o DIR/record_matrix DIR/record_matrix.cu
    DIR/record_matrix DIR          (on the GPU; twice, and compare: the files must be equal)
    gzip DIR/matrix_more.out.bin; scripts/import_hw_vectors.py DIR tests/data/hw matrix_more

Covers what the first recording left out: sparse mma.sync and wgmma, f64 shapes, wgmma on single bits, .satfinite,
negated operands of wgmma, fp8 mma.sync with K = 16 and f16 accumulators, m8n8k4.f16, wmma's fragments.
"""
TYPES = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
         "b1": 1, "e4m3": 8, "e5m2": 8}
FILLS = ["small integers", "moderate", "random bits", "edges"]


def registers(rows, columns, kind):
    return rows * columns * TYPES[kind] // (2048 if kind == "f64" else 1024)


def mma_forms():
    """(text, type of A, B, C, registers of A, B, C, D, element type of D, metadata selector or None)"""
    def form(m, k, d, a, b, c, extra="", tail="", selector=None):
        sparse = selector is not None
        text = (f"mma{'.sp::ordered_metadata' if sparse else ''}.sync.aligned.m{m}n8k{k}.row.col{extra}"
                f".{d}.{a}.{b}.{c}{tail}")
        return (text, a, b, c, registers(m, k // 2 if sparse else k, a), registers(8, k, b), registers(m, 8, c),
                registers(m, 8, d), d, selector)
    for k in (4, 8, 16):
        yield form(16, k, "f64", "f64", "f64", "f64")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for d in ("f32", "f16"):
                for k in (16, 32):
                    yield form(16, k, d, a, b, d)
            yield form(16, 64, "f32", a, b, "f32", selector=0)
    for a, b in (("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")):
        for m, k in ((8, 16), (16, 16), (16, 32)):
            for extra in ("", ".satfinite"):
                yield form(m, k, "s32", a, b, "s32", extra)
        for k, selectors in ((32, 2), (64, 1)):
            for selector in range(selectors):
                yield form(16, k, "s32", a, b, "s32", ".satfinite", selector=selector)
    for a, b in (("s4", "s4"), ("u4", "s4"), ("u4", "u4")):
        for m, k in ((8, 32), (16, 32), (16, 64)):
            for extra in ("", ".satfinite"):
                yield form(m, k, "s32", a, b, "s32", extra)
        for k, selectors in ((64, 2), (128, 1)):
            for selector in range(selectors):
                yield form(16, k, "s32", a, b, "s32", selector=selector)
    for m, k in ((8, 128), (16, 128), (16, 256)):
        for tail in (".xor.popc", ".and.popc"):
            yield form(m, k, "s32", "b1", "b1", "s32", tail=tail)
    for d, a in (("f32", "f16"), ("f16", "f16"), ("f32", "bf16")):
        for k, selectors in ((16, 4), (32, 2)):
            for selector in range(selectors):
                yield form(16, k, d, a, a, d, selector=selector)
    for k, selectors in ((8, 4), (16, 2)):
        for selector in range(selectors):
            yield form(16, k, "f32", "tf32", "tf32", "f32", selector=selector)
    for d, c in (("f32", "f32"), ("f32", "f16"), ("f16", "f16")):
        for layout in ("row.col", "col.row", "row.row", "col.col"):
            text = f"mma.sync.aligned.m8n8k4.{layout}.{d}.f16.f16.{c}"
            yield (text, "f16", "f16", c, 2, 2, 8 if c == "f32" else 4, 8 if d == "f32" else 4, d, None)


def wgmma_forms():
    """(text before the operands, d, a, b, K, N, sparse selector or None, A in registers, immediates)"""
    def form(k, d, a, b, selector=None, registers=False, extra="", tail="", flags=""):
        sp = ".sp" if selector is not None else ""
        text = f"wgmma.mma_async{sp}.sync.aligned.m64n16k{k}{extra}.{d}.{a}.{b}{tail}"
        return (text, d, a, b, k, 16, selector, registers, flags)
    for registers in (False, True):
        for selector in (0, 1):
            for d, a in (("f32", "f16"), ("f16", "f16"), ("f32", "bf16")):
                flags = "1, 1, 0" if registers else "1, 1, 0, 0"
                yield form(32, d, a, a, selector, registers, flags=flags)
            yield form(16, "f32", "tf32", "tf32", selector, registers, flags="1, 1")
        for d in ("f32", "f16"):
            for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3")):
                yield form(64, d, a, b, 0, registers, flags="1, 1")
        for a, b in (("s8", "s8"), ("u8", "s8")):
            yield form(64, "s32", a, b, 0, registers)
            yield form(64, "s32", a, b, 0, registers, ".satfinite")
            yield form(32, "s32", a, b, None, registers, ".satfinite")
        yield form(256, "s32", "b1", "b1", None, registers, tail=".and.popc")
        for signs in ("-1, 1", "1, -1", "-1, -1"):
            flags = signs + (", 0" if registers else ", 0, 0")
            for d, a in (("f32", "bf16"), ("f16", "f16")):
                yield form(16, d, a, a, None, registers, flags=flags)
            yield form(8, "f32", "tf32", "tf32", None, registers, flags=signs)
            yield form(32, "f32", "e4m3", "e5m2", None, registers, flags=signs)


HEAD = r"""// Written by record_matrix.py.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(x) do { cudaError_t e_ = (x); if (e_) { fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, \
  cudaGetErrorString(e_)); exit(1); } } while (0)
typedef std::vector<uint32_t> Words;
struct Random { uint64_t s; explicit Random(uint64_t x) : s(x * 0x9E3779B97F4A7C15ull + 1) {}
  uint32_t next() { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return (uint32_t)(s >> 16); }
  uint32_t below(uint32_t n) { return next() % n; } };

struct Output {
  FILE* data; std::string tests; size_t at = 0; int count = 0;
  std::string array(const char* type, std::vector<int> shape, const void* p) {
    size_t n = atoi(type + 1) / 8; std::string s;
    for (int x : shape) n *= x, s += (s.empty() ? "" : ",") + std::to_string(x);
    std::string r = "{\"offset\":" + std::to_string(at) + ",\"dtype\":\"" + type + "\",\"shape\":[" + s + "]}";
    static const char zeros[16] = {};
    fwrite(p, 1, n, data); at += n; size_t pad = (16 - at % 16) % 16; fwrite(zeros, 1, pad, data); at += pad;
    return r;
  }
  void test(const std::string& body) { tests += (count++ ? ",\n{" : "{") + body + "}"; }
} out;

// One element. Fills: 0 small integers, 1 moderate, 2 random bits, 3 edges.
static uint64_t element(Random& g, const std::string& t, int fill) {
  int m = 0, e = 0;
  if (t == "f16") m = 10, e = 5;
  if (t == "bf16") m = 7, e = 8;
  if (t == "tf32" || t == "f32") m = 23, e = 8;
  if (t == "e4m3") m = 3, e = 4;
  if (t == "e5m2") m = 2, e = 5;
  if (t == "f64") m = 52, e = 11;
  if (e) {
    uint64_t top = (1ull << e) - 1, bias = top / 2, mask = (1ull << m) - 1;
    uint64_t sign = (uint64_t)(g.next() & 1) << (m + e), random = ((uint64_t)g.next() << 32 | g.next());
    if (fill == 0) {
      uint64_t i = g.below(5); return i == 0 ? 0 : sign | (i == 1 ? bias << m : i == 2 ? (bias + 1) << m
                 : i == 3 ? (bias + 1) << m | 1ull << (m - 1) : (bias + 2) << m);
    }
    if (fill == 1) return sign | (bias - 3 + g.below(7)) << m | (random & mask);
    if (fill == 2) return random >> (63 - m - e);
    const uint64_t edges[] = {0, 1, mask, 1ull << m, (top - 1) << m | mask, top << m, top << m | 1, bias << m};
    return sign | (g.below(4) ? bias << m | (random & mask) : edges[g.below(8)]);
  }
  if (t == "s32") return fill == 3 ? (g.next() & 1 ? 0x7fffffffu - g.below(4000) : 0x80000000u + g.below(4000))
                       : fill == 2 ? g.next() : (uint32_t)((int)g.below(2001) - 1000);
  const int width = t == "s8" || t == "u8" ? 8 : t == "b1" ? 1 : 4;
  const uint32_t mask = (1u << width) - 1;
  if (fill == 0) return (t[0] == 's' ? g.below(7) - 3 : g.below(4)) & mask;
  if (fill == 3) { const uint32_t edges[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1}; return edges[g.below(5)] & mask; }
  return g.next() & mask;
}
static int width_of(const std::string& t) {
  return t == "f64" ? 64 : t == "f16" || t == "bf16" ? 16 : t == "b1" ? 1 : t == "s4" || t == "u4" ? 4
       : t == "s8" || t == "u8" || t[0] == 'e' ? 8 : 32;
}
static void fill_words(Random& g, const std::string& t, int fill, Words& words) {
  const int width = width_of(t);
  if (width == 64) {
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
      const uint64_t x = element(g, t, fill); words[i] = (uint32_t)x, words[i + 1] = (uint32_t)(x >> 32);
    }
    return;
  }
  for (uint32_t& w : words) { w = 0; for (int b = 0; b < 32; b += width) w |= (uint32_t)element(g, t, fill) << b; }
}
// Metadata in order: two different indices a chunk; tf32 has two legal values.
static void fill_metadata(Random& g, bool tf32, Words& words) {
  const uint32_t legal[] = {4, 8, 9, 12, 13, 14};
  for (uint32_t& w : words) { w = 0;
    for (int b = 0; b < 32; b += 4) w |= (tf32 ? (g.next() & 1 ? 14u : 4u) : legal[g.below(6)]) << b; }
}
template <class T> T* up(const std::vector<T>& v) {
  T* p; CHECK(cudaMalloc(&p, v.size() * sizeof(T) + 256));
  CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice)); return p;
}
static Words down(const uint32_t* p, size_t n) {
  Words v(n); CHECK(cudaMemcpy(v.data(), p, n * 4, cudaMemcpyDeviceToHost)); return v;
}
typedef void (*Mma)(const uint32_t*, const uint32_t*, const uint32_t*, const uint32_t*, uint32_t*);
static void mma(Mma kernel, const char* ptx, const char* ta, const char* tb, const char* tc, int na, int nb, int nc,
                int nd, const char* td, int selector) {
  static const char* fills[] = {"small integers", "moderate", "random bits", "edges"};
  const int wide = std::string(ta) == "f64" ? 2 : 1, warps = 2, threads = 32 * warps;
  for (int fill = 0; fill < 4; ++fill) {
    Random g(1000 + fill);
    Words a(threads * na * wide), b(threads * nb * wide), c(threads * nc * wide), e(threads);
    fill_words(g, ta, fill, a), fill_words(g, tb, fill, b), fill_words(g, tc, fill, c);
    fill_metadata(g, std::string(ta) == "tf32", e);
    uint32_t *pa = up(a), *pb = up(b), *pc = up(c), *pe = up(e), *pd = up(Words(threads * nd * wide));
    kernel<<<warps, 32>>>(pa, pb, pc, pe, pd); CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
    Words d = down(pd, threads * nd * wide);
    const char* type = wide == 2 ? "u64" : "u32";
    auto shape = [&](int n) { return std::vector<int>{warps, 32, n}; };
    std::string body = std::string("\"kind\":\"mma_raw\",\"ptx\":\"") + ptx + "\",\"fill\":\"" + fills[fill] +
        "\",\"a\":" + out.array(type, shape(na), a.data()) + ",\"b\":" + out.array(type, shape(nb), b.data()) +
        ",\"c\":" + out.array(type, shape(nc), c.data()) + ",\"d\":" + out.array(type, shape(nd), d.data());
    if (selector >= 0) body += ",\"selector\":" + std::to_string(selector) + ",\"e\":" +
        out.array("u32", {warps, 32}, e.data());
    out.test(body);
    for (uint32_t* p : {pa, pb, pc, pe, pd}) cudaFree(p);
  }
}
typedef void (*Wgmma)(const uint4*, uint64_t, uint64_t, const uint32_t*, const uint32_t*, const uint32_t*, uint32_t*);
// K-major operands without swizzle: A at 0 (8 KiB at most), B at 16 KiB; 16-byte chunks 128 bytes apart along K.
static void wgmma(Wgmma kernel, const char* ptx, const char* td, const char* ta, const char* tb, int chunks_a,
                  int chunks_b, int registers, int selector) {
  static const char* fills[] = {"small integers", "moderate", "random bits", "edges"};
  for (int fill = 0; fill < 4; ++fill) {
    Random g(2000 + fill);
    Words a(64 * chunks_a * 4), b(16 * chunks_b * 4), regs(128 * 4), c(128 * registers), e(128);
    fill_words(g, ta, fill, a), fill_words(g, tb, fill, b), fill_words(g, ta, fill, regs);
    fill_words(g, td, fill, c), fill_metadata(g, std::string(ta) == "tf32", e);
    Words image(32768 / 4);
    memcpy(&image[0], a.data(), a.size() * 4), memcpy(&image[16384 / 4], b.data(), b.size() * 4);
    auto descriptor = [](uint64_t start, uint64_t chunks) { return start >> 4 | 8ull << 16 | chunks * 8 << 32; };
    const uint64_t da = descriptor(0, chunks_a), db = descriptor(16384, chunks_b);
    uint32_t *pi = up(image), *pr = up(regs), *pe = up(e), *pc = up(c), *pd = up(Words(128 * registers));
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    kernel<<<1, 128, 40960>>>((const uint4*)pi, da, db, pr, pe, pc, pd);
    CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
    Words d = down(pd, 128 * registers);
    std::string body = std::string("\"kind\":\"wgmma_raw\",\"ptx\":\"") + ptx + "\",\"fill\":\"" + fills[fill] +
        "\",\"a_desc\":" + std::to_string(da) + ",\"b_desc\":" + std::to_string(db) +
        ",\"image\":" + out.array("u8", {32768}, image.data()) + ",\"a_regs\":" +
        out.array("u32", {128, 4}, regs.data()) + ",\"c\":" + out.array("u32", {128, registers}, c.data()) +
        ",\"d\":" + out.array("u32", {128, registers}, d.data());
    if (selector >= 0) body += ",\"selector\":" + std::to_string(selector) + ",\"e\":" + out.array("u32", {128}, e.data());
    out.test(body);
    for (uint32_t* p : {pi, pr, pe, pc, pd}) cudaFree(p);
  }
}
"""

TAIL = r"""
  FILE* json = fopen((dir + "/matrix_more.json").c_str(), "w");
  fprintf(json, "{\"group\":\"matrix_more\",\"tests\":[%s]}\n", out.tests.c_str());
  fclose(json); fclose(out.data);
  printf("%d cases, %zu bytes\n", out.count, out.at);
}
"""


def operand_list(first, count):
    return "{" + ",".join(f"%{first + i}" for i in range(count)) + "}"


def mma_kernel(index, form):
    text, ta, _, _, na, nb, nc, nd, _, selector = form
    wide = ta == "f64"
    scalar, constraint = ("double", "d") if wide else ("uint32_t", "r")
    asm = (f"{text} {operand_list(0, nd)}, {operand_list(nd, na)}, {operand_list(nd + na, nb)}, "
           f"{operand_list(nd + na + nb, nc)}")
    inputs = [f'"{constraint}"({v}[{i}])' for v, n in (("a", na), ("b", nb), ("c", nc)) for i in range(n)]
    if selector is not None:
        asm += f", %{nd + na + nb + nc}, {selector}"
        inputs.append('"r"(e[t])')
    outputs = ",".join(f'"={constraint}"(r[{i}])' for i in range(nd))
    return f"""
static __global__ void m{index}(const uint32_t* pa, const uint32_t* pb, const uint32_t* pc, const uint32_t* e, uint32_t* pd) {{
  const int t = blockIdx.x * 32 + threadIdx.x;
  const {scalar} *a = ({scalar}*)pa + t * {na}, *b = ({scalar}*)pb + t * {nb}, *c = ({scalar}*)pc + t * {nc};
  {scalar} r[{nd}];
  asm volatile("{asm};" : {outputs} : {",".join(inputs)});
  for (int i = 0; i < {nd}; ++i) (({scalar}*)pd)[t * {nd} + i] = r[i];
}}
"""


def wgmma_kernel(index, form):
    text, d, _, _, _, n, selector, in_registers, flags = form
    count = n // 4 if d == "f16" else n // 2
    constraint, scalar = ("f", "float") if d == "f32" else ("r", "uint32_t")
    p = count
    if in_registers:
        a, p, inputs = operand_list(p, 4), p + 4, ['"r"(regs[t * 4 + %d])' % i for i in range(4)]
    else:
        a, p, inputs = f"%{p}", p + 1, ['"l"(da)']
    asm = f"{text} {operand_list(0, count)}, {a}, %{p}"
    p, inputs = p + 1, inputs + ['"l"(db)']
    if selector is not None:
        asm += f", %{p}, {selector}"
        inputs.append('"r"(e[t])')
    asm += ", 1" if not flags else f", 1, {flags}"
    outputs = ",".join(f'"+{constraint}"(r[{i}])' for i in range(count))
    return f"""
static __global__ void __launch_bounds__(128) w{index}(const uint4* image, uint64_t da, uint64_t db, const uint32_t* regs,
                                                       const uint32_t* e, const uint32_t* c, uint32_t* out) {{
  extern __shared__ uint8_t memory[];
  uint32_t base = (uint32_t)__cvta_generic_to_shared(memory); const uint32_t pad = (1024 - base % 1024) % 1024;
  const int t = threadIdx.x;
  for (int i = t; i < 2048; i += 128) ((uint4*)(memory + pad))[i] = image[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
  base += pad; da += base >> 4; db += base >> 4;
  {scalar} r[{count}];
  for (int i = 0; i < {count}; ++i) memcpy(&r[i], &c[t * {count} + i], 4);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{asm};" : {outputs} : {",".join(inputs)});
  asm volatile("wgmma.commit_group.sync.aligned;\\n\\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) memcpy(&out[t * {count} + i], &r[i], 4);
}}
"""


def main():
    mmas, wgmmas = list(mma_forms()), list(wgmma_forms())
    print(HEAD)
    for i, form in enumerate(mmas):
        print(mma_kernel(i, form))
    for i, form in enumerate(wgmmas):
        print(wgmma_kernel(i, form))
    print('int main(int argc, char** argv) {\n  const std::string dir = argc > 1 ? argv[1] : ".";\n'
          '  out.data = fopen((dir + "/matrix_more.out.bin").c_str(), "wb"); if (!out.data) return 2;')
    for i, (text, ta, tb, tc, na, nb, nc, nd, td, selector) in enumerate(mmas):
        s = -1 if selector is None else selector
        print(f'  mma(m{i}, "{text}", "{ta}", "{tb}", "{tc}", {na}, {nb}, {nc}, {nd}, "{td}", {s});')
    for i, (text, td, ta, tb, k, n, selector, in_registers, flags) in enumerate(wgmmas):
        s = -1 if selector is None else selector
        row_b = k * TYPES[tb] // 128
        row_a = row_b if selector is None else row_b // 2
        a = "{a}" if in_registers else "a-desc"
        print(f'  wgmma(w{i}, "{text} {{d}}, {a}, b-desc, p{", " + flags if flags else ""};", "{td}", "{ta}", '
              f'"{tb}", {row_a}, {row_b}, {n // 4 if td == "f16" else n // 2}, {s});')
    print(TAIL)


if __name__ == "__main__":
    main()
