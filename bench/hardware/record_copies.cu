// Records what tensor copies do where tests/data/hw is silent: interleaved layouts, im2col maps of
// rank 3 and 5 with swizzles and stores, the descriptor words of im2col maps, and what
// tensormap.replace makes of a descriptor.
//
//   nvcc -std=c++17 -O1 -cudart static -gencode arch=compute_90a,code=sm_90a -o DIR/record_copies
//        bench/hardware/record_copies.cu
//   DIR/record_copies DIR         (on a Hopper GPU; twice, and compare: the files must be equal)
//   gzip DIR/copies_more.out.bin; scripts/import_hw_vectors.py DIR tests/data/hw copies_more
//
// Global element e holds e + 1. A copy that kills the kernel is recorded as "fault".
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define CHECK(x)                                                                                \
  do {                                                                                          \
    cudaError_t e_ = (x);                                                                       \
    if (e_) fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(1); \
  } while (0)

constexpr int kImage = 16384, kGlobal = 1 << 18;
enum Mode { kTiled, kIm2col };

struct Case {
  Mode mode = kTiled;
  bool store = false;
  int rank = 3, interleave = 0, swizzle = 0;
  int element = 2;  // bytes; FLOAT16 or FLOAT32
  uint64_t dims[5] = {}, strides[4] = {};
  uint32_t box[5] = {}, element_strides[5] = {1, 1, 1, 1, 1};
  int lower[3] = {}, upper[3] = {};
  uint32_t channels = 0, pixels = 0;
  int at[5] = {};
  int offsets[3] = {};
};

__global__ void load(const __grid_constant__ CUtensorMap map, Case c, uint8_t* image,
                     uint64_t* bar_word) {
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ __align__(8) uint64_t bar;
  uint32_t s = (uint32_t)__cvta_generic_to_shared(shared),
           b = (uint32_t)__cvta_generic_to_shared(&bar);
  uint64_t m = (uint64_t)&map;
  for (int i = 0; i < kImage; ++i) shared[i] = c.store ? (uint8_t)(i * 7 + i / 256) : 0xAA;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
  asm volatile("fence.proxy.async;");
#define LOAD(D, ...)                                                                        \
  asm volatile(                                                                             \
      "cp.async.bulk.tensor." #D                                                            \
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" __VA_ARGS__ \
      "}], [%2];" ::"r"(s),                                                                 \
      "l"(m), "r"(b), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4])  \
      : "memory")
#define IMAGE(D, at_, off_)                                                                    \
  asm volatile("cp.async.bulk.tensor." #D                                                      \
               "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {" at_ \
               "}], [%2], {" off_ "};" ::"r"(s),                                               \
               "l"(m), "r"(b), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]),         \
               "r"(c.at[4]), "h"((short)c.offsets[0]), "h"((short)c.offsets[1]),               \
               "h"((short)c.offsets[2])                                                        \
               : "memory")
#define STORE(D, mode_, at_)                                                                     \
  asm volatile("cp.async.bulk.tensor." #D "d.global.shared::cta." mode_ ".bulk_group [%1, {" at_ \
               "}], [%0]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::"r"(s),     \
               "l"(m), "r"(b), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]),           \
               "r"(c.at[4])                                                                      \
               : "memory")
  if (!c.store && c.mode == kTiled) {
    if (c.rank == 3) LOAD(3, "%3, %4, %5");
    if (c.rank == 4) LOAD(4, "%3, %4, %5, %6");
    if (c.rank == 5) LOAD(5, "%3, %4, %5, %6, %7");
  } else if (!c.store) {
    if (c.rank == 3) IMAGE(3, "%3, %4, %5", "%8");
    if (c.rank == 4) IMAGE(4, "%3, %4, %5, %6", "%8, %9");
    if (c.rank == 5) IMAGE(5, "%3, %4, %5, %6, %7", "%8, %9, %10");
  } else if (c.mode == kTiled) {
    if (c.rank == 3) STORE(3, "tile", "%3, %4, %5");
    if (c.rank == 4) STORE(4, "tile", "%3, %4, %5, %6");
    if (c.rank == 5) STORE(5, "tile", "%3, %4, %5, %6, %7");
  } else {
    if (c.rank == 3) STORE(3, "im2col_no_offs", "%3, %4, %5");
    if (c.rank == 4) STORE(4, "im2col_no_offs", "%3, %4, %5, %6");
    if (c.rank == 5) STORE(5, "im2col_no_offs", "%3, %4, %5, %6, %7");
  }
  for (long long t = clock64(); clock64() - t < 20000000;) {
  }  // no phase to wait for: tx is unknown
  asm volatile("fence.proxy.async;");
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b) : "memory");
  *bar_word = *(volatile uint64_t*)&bar;
  for (int i = 0; i < kImage; ++i) image[i] = shared[i];
}

__global__ void replace(const __grid_constant__ CUtensorMap map, int what, uint64_t value,
                        uint64_t* out) {
  __shared__ __align__(128) uint64_t copy[16];
  for (int i = 0; i < 16; ++i) copy[i] = ((const uint64_t*)&map)[i];
  uint32_t s = (uint32_t)__cvta_generic_to_shared(copy);
#define R64(n, field, ord)                                                                         \
  if (what == n)                                                                                   \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b64 [%0]" ord ", %1;" ::"r"(s), \
               "l"(value)                                                                          \
               : "memory")
#define R32(n, field, ord)                                                                         \
  if (what == n)                                                                                   \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0]" ord ", %1;" ::"r"(s), \
               "r"((uint32_t)value)                                                                \
               : "memory")
#define RI(n, field, imm)                                                                        \
  if (what == n)                                                                                 \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " #imm ";" ::"r"(s) \
               : "memory")
  R64(0, "global_address", "");
  R32(1, "rank", "");
  R32(2, "box_dim", ", 0");
  R32(3, "box_dim", ", 1");
  R32(4, "box_dim", ", 2");
  R32(5, "global_dim", ", 0");
  R32(6, "global_dim", ", 1");
  R32(7, "global_dim", ", 2");
  R64(8, "global_stride", ", 0");
  R64(9, "global_stride", ", 1");
  R32(10, "element_stride", ", 0");
  R32(11, "element_stride", ", 1");
  R32(12, "element_stride", ", 2");
  RI(20, "elemtype", 0);
  RI(21, "elemtype", 1);
  RI(22, "elemtype", 2);
  RI(23, "elemtype", 3);
  RI(24, "elemtype", 4);
  RI(25, "elemtype", 5);
  RI(26, "elemtype", 6);
  RI(27, "elemtype", 7);
  RI(28, "elemtype", 8);
  RI(29, "elemtype", 9);
  RI(30, "elemtype", 10);
  RI(31, "elemtype", 11);
  RI(32, "elemtype", 12);
  RI(40, "interleave_layout", 0);
  RI(41, "interleave_layout", 1);
  RI(42, "interleave_layout", 2);
  RI(50, "swizzle_mode", 0);
  RI(51, "swizzle_mode", 1);
  RI(52, "swizzle_mode", 2);
  RI(53, "swizzle_mode", 3);
  RI(60, "fill_mode", 0);
  RI(61, "fill_mode", 1);
  for (int i = 0; i < 16; ++i) out[i] = ((volatile uint64_t*)copy)[i];
}

struct Output {
  FILE* data;
  std::string tests;
  size_t at = 0;
  std::string array(const void* p, size_t n, const char* type, int width) {
    std::string r = "{\"offset\":" + std::to_string(at) + ",\"dtype\":\"" + type +
                    "\",\"shape\":[" + std::to_string(n / width) + "]}";
    fwrite(p, 1, n, data);
    for (at += n; at % 16; ++at) fputc(0, data);
    return r;
  }
  void test(const std::string& body) { tests += (tests.empty() ? "{" : ",\n{") + body + "}"; }
} out;

template <class T>
std::string list(const T* v, int n) {
  std::string s = "[";
  for (int i = 0; i < n; ++i) s += (i ? "," : "") + std::to_string(v[i]);
  return s + "]";
}

void* entry(const char* name) {
  void* p = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault, &found));
  return p;
}

int encode(const Case& c, void* global, CUtensorMap* map) {
  const auto type =
      c.element == 2 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  if (c.mode == kTiled)
    return ((decltype(&cuTensorMapEncodeTiled))entry("cuTensorMapEncodeTiled"))(
        map, type, c.rank, global, c.dims, c.strides, c.box, c.element_strides,
        (CUtensorMapInterleave)c.interleave, (CUtensorMapSwizzle)c.swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return ((decltype(&cuTensorMapEncodeIm2col))entry("cuTensorMapEncodeIm2col"))(
      map, type, c.rank, global, c.dims, c.strides, c.lower, c.upper, c.channels, c.pixels,
      c.element_strides, (CUtensorMapInterleave)c.interleave, (CUtensorMapSwizzle)c.swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// Words of the map, barrier word, image, global memory after the copy; not done means that the copy
// faulted. Lies in memory that a child shares with its parent.
struct Answer {
  int done, encode_result;
  uint64_t words[16], barrier;
  uint8_t image[kImage], global[kGlobal];
};
std::vector<Case> cases;
Answer* answers;

void run(const Case& c, Answer* r) {
  static uint8_t *global, *image;
  static uint64_t* word;
  if (!global) {
    CHECK(cudaMalloc(&global, kGlobal));
    CHECK(cudaMalloc(&image, kImage));
    CHECK(cudaMalloc(&word, 8));
    CHECK(cudaFuncSetAttribute(load, cudaFuncAttributeMaxDynamicSharedMemorySize, kImage + 1024));
  }
  std::vector<uint8_t> start(kGlobal);
  for (int e = 0; e < kGlobal / c.element; ++e) {
    uint32_t v = c.store ? 0xEEEEEEEE : e + 1;
    memcpy(&start[(size_t)e * c.element], &v, c.element);
  }
  CHECK(cudaMemcpy(global, start.data(), kGlobal, cudaMemcpyHostToDevice));
  CUtensorMap map;
  r->encode_result = encode(c, global, &map);
  if (r->encode_result == 0) {
    memcpy(r->words, &map, 128);
    r->words[0] -= (uint64_t)global;
    load<<<1, 1, kImage + 1024>>>(map, c, image, word);
    if (cudaDeviceSynchronize() != cudaSuccess) _exit(3);
    CHECK(cudaMemcpy(r->image, image, kImage, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&r->barrier, word, 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(r->global, global, kGlobal, cudaMemcpyDeviceToHost));
  }
  r->done = 1;
}

// A faulting copy takes its process's context along, so children do the cases of a lane one after
// the other, and where one died (its answer stays open) the next starts behind it.
void run_all() {
  constexpr size_t kLanes = 8;
  answers = (Answer*)mmap(nullptr, cases.size() * sizeof(Answer), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (answers == MAP_FAILED) exit(1);
  size_t next[kLanes] = {};
  std::map<pid_t, size_t> lanes;
  const auto start = [&](size_t lane) {
    if (next[lane] >= cases.size()) return;
    const pid_t child = fork();
    if (child == 0) {
      for (size_t i = next[lane]; i < cases.size(); i += kLanes) run(cases[i], &answers[i]);
      _exit(0);
    }
    lanes[child] = lane;
  };
  for (size_t lane = 0; lane < kLanes; ++lane) next[lane] = lane, start(lane);
  while (!lanes.empty()) {
    int status = 0;
    const pid_t child = wait(&status);
    const size_t lane = lanes[child];
    lanes.erase(child);
    // Only a fault is an answer; no driver, no device or no memory is not.
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3))
      fprintf(stderr, "a child failed\n"), exit(1);
    while (next[lane] < cases.size() && answers[next[lane]].done) next[lane] += kLanes;
    if (next[lane] < cases.size()) next[lane] += kLanes, start(lane);
  }
}

void record(const Case& c) { cases.push_back(c); }

void write(const Case& c, const Answer* a) {
  std::string s = "\"kind\":\"copy_" + std::string(c.mode == kTiled ? "tiled" : "im2col") +
                  (c.store ? "_store" : "_load") + "\",\"rank\":" + std::to_string(c.rank) +
                  ",\"type\":\"" + (c.element == 2 ? "FLOAT16" : "FLOAT32") +
                  "\",\"interleave\":" + std::to_string(c.interleave) +
                  ",\"swizzle\":" + std::to_string(c.swizzle) +
                  ",\"dims\":" + list(c.dims, c.rank) +
                  ",\"strides\":" + list(c.strides, c.rank - 1) +
                  ",\"element_strides\":" + list(c.element_strides, c.rank) +
                  ",\"coords\":" + list(c.at, c.rank);
  if (c.mode == kTiled)
    s += ",\"box\":" + list(c.box, c.rank);
  else
    s += ",\"pixelBoxLowerCorner\":" + list(c.lower, c.rank - 2) +
         ",\"pixelBoxUpperCorner\":" + list(c.upper, c.rank - 2) +
         ",\"channelsPerPixel\":" + std::to_string(c.channels) +
         ",\"pixelsPerColumn\":" + std::to_string(c.pixels) +
         ",\"im2col_offsets\":" + list(c.offsets, c.rank - 2);
  if (!a->done)
    s += ",\"fault\":1";
  else {
    s += ",\"encode_result\":" + std::to_string(a->encode_result);
    if (a->encode_result == 0) {
      s += ",\"words\":" + out.array(a->words, 128, "u64", 8) +
           ",\"barrier_word\":" + out.array(&a->barrier, 8, "u64", 8);
      s += ",\"image\":" + out.array(a->image, kImage, "u8", 1);
      if (c.store) s += ",\"after\":" + out.array(a->global, 65536, "u8", 1);
    }
  }
  out.test(s);
}

void interleaved() {
  for (int layout : {1, 2})
    for (int rank : {3, 4, 5})
      for (int element : {2, 4})
        for (int swizzle : {0, 1})
          for (int variant = 0; variant < 6; ++variant) {
            Case c;
            c.rank = rank, c.interleave = layout, c.swizzle = swizzle, c.element = element;
            // Slices of 16 or 32 bytes; channels, width, height, ... ; strides as a packed tensor
            // has them.
            const int slice = 16 * layout, inner = slice / element;
            const uint64_t sizes[5] = {uint64_t(inner) * (variant % 2 ? 3 : 1), 5, 4, 3, 2};
            uint64_t stride = slice;
            for (int d = 0; d < rank; ++d) {
              c.dims[d] = sizes[d], c.box[d] = d == 0 ? inner : d == 1 ? 3 : 2;
              if (d) stride *= sizes[d] + (variant / 4);
              if (d + 1 < rank) c.strides[d] = d == 0 ? slice : stride;
            }
            if (variant >= 2) c.at[1] = 1, c.at[2] = 1, c.at[0] = variant == 3 ? 1 : 0;
            if (variant == 4) c.at[1] = -1;
            if (variant == 5) c.at[0] = inner, c.box[0] = inner;
            record(c);
            c.store = true;
            record(c);
          }
}

void images() {
  for (int rank : {3, 4, 5})
    for (int swizzle = 0; swizzle < 4; ++swizzle)
      for (int variant = 0; variant < 4; ++variant)
        for (bool store : {false, true}) {
          Case c;
          c.mode = kIm2col, c.rank = rank, c.swizzle = swizzle, c.element = 4, c.store = store;
          const uint64_t sizes[5] = {8, 7, rank == 3 ? 3u : 6u, rank == 4 ? 2u : 4u, 2};
          uint64_t stride = 4;
          for (int d = 0; d < rank; ++d) {
            c.dims[d] = sizes[d], stride *= sizes[d];
            if (d + 1 < rank) c.strides[d] = stride;
          }
          c.channels = variant == 3 ? 4 : 8, c.pixels = 20;
          for (int d = 0; d + 2 < rank; ++d) {
            c.lower[d] = variant == 1 ? -1 : 0, c.upper[d] = variant == 1   ? -1
                                                             : variant == 2 ? 1
                                                                            : -2;
            c.offsets[d] = store ? 0 : variant % 3, c.at[d + 1] = variant == 1   ? -1
                                                                  : variant == 3 ? 1
                                                                                 : 0;
          }
          if (variant == 2) c.element_strides[1] = 2;
          record(c);
        }
}

void replaced() {
  Case c;
  c.rank = 3, c.element = 2;
  const uint64_t dims[] = {64, 32, 16}, strides[] = {128, 4096};
  const uint32_t box[] = {16, 8, 4};
  for (int d = 0; d < 3; ++d) c.dims[d] = dims[d], c.box[d] = box[d];
  c.strides[0] = strides[0], c.strides[1] = strides[1];
  uint64_t* words;
  CHECK(cudaMalloc(&words, 128));
  CUtensorMap map;
  uint8_t* global = (uint8_t*)0x7f0000000000;  // never touched
  if (encode(c, global, &map)) exit(1);
  out.test("\"kind\":\"replace\",\"what\":-1,\"value\":0,\"words\":" +
           out.array(&map, 128, "u64", 8));
  const uint64_t values[][4] = {{0x7f1234567800},
                                {0, 1, 2, 4},
                                {1, 8, 255, 256},
                                {1, 8, 255, 256},
                                {1, 8, 255, 256},
                                {1, 100, 0xffffffff, 0},
                                {1, 100, 0xffffffff, 0},
                                {1, 100, 0xffffffff, 0},
                                {16, 256, 0x1000000000, 48},
                                {16, 4096, 0x1000000000, 48},
                                {1, 2, 8, 4},
                                {1, 2, 8, 4},
                                {1, 2, 8, 4}};
  for (int what = 0; what < 62; ++what)
    for (int v = 0; v < (what < 13 ? 4 : 1); ++v) {
      replace<<<1, 1>>>(map, what, what < 13 ? values[what][v] : 0, words);
      CHECK(cudaDeviceSynchronize());
      uint64_t now[16];
      CHECK(cudaMemcpy(now, words, 128, cudaMemcpyDeviceToHost));
      out.test("\"kind\":\"replace\",\"what\":" + std::to_string(what) +
               ",\"value\":" + std::to_string(what < 13 ? values[what][v] : 0) +
               ",\"words\":" + out.array(now, 128, "u64", 8));
    }
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: record_copies DIR\n"), 2;
  const std::string folder = argv[1];
  out.data = fopen((folder + "/copies_more.out.bin").c_str(), "wb");
  if (!out.data) return fprintf(stderr, "cannot write to %s\n", argv[1]), 2;
  interleaved();  // children first: a process that used the GPU must not fork
  images();
  run_all();
  for (size_t i = 0; i < cases.size(); ++i) write(cases[i], &answers[i]);
  replaced();
  fclose(out.data);
  FILE* f = fopen((folder + "/copies_more.json").c_str(), "w");
  fprintf(f, "{\"group\":\"copies_more\",\"tests\":[%s]}\n", out.tests.c_str());
  return fclose(f);
}
