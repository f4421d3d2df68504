// One program, many small cases: `live_api CASE` prints "ok" and exits with 0 if the runtime did
// what CUDA does.
#include <cooperative_groups.h>
#include <cuda.h>

#include <cassert>
#include <cstring>
#include <string>
#include <vector>

#include "../../../examples/programs/check.h"

namespace cg = cooperative_groups;

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                    \
    }                                                                              \
  } while (0)

__constant__ int weights[4];
__device__ int table[8];
__managed__ int shared_counter;

template <class T>
__global__ void add(T* p, int n, T value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}

int graphs() {
  constexpr int n = 300;
  int *device = nullptr, host[n] = {}, calls = 0;
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  cudaGraph_t graph;
  cudaGraphNode_t fill, kernel, back, call, empty, found;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams m = {device, 0, 7, sizeof(int), n, 1};
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &m));
  int count = n, value = 5;
  void* arguments[] = {&device, &count, &value};
  cudaKernelNodeParams k = {(void*)add<int>, dim3(3), dim3(128), 0, arguments, nullptr};
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &k));
  CHECK(cudaGraphAddMemcpyNode1D(&back, graph, nullptr, 0, host, device, sizeof host,
                                 cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddDependencies(graph, &kernel, &back, nullptr, 1));
  CHECK(cudaGraphAddEmptyNode(&empty, graph, &back, 1));
  cudaHostNodeParams h = {[](void* p) { ++*static_cast<int*>(p); }, &calls};
  CHECK(cudaGraphAddHostNode(&call, graph, &empty, 1, &h));
  size_t nodes = 0, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(nodes == 5 && edges == 4);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  value = 1000;  // the node has copied its arguments
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  for (int v : host) EXPECT(v == 12);
  CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &k));
  CHECK(cudaGraphLaunch(exec, nullptr));
  EXPECT(host[0] == 1007 && host[n - 1] == 1007 && calls == 2);
  CHECK(cudaGraphNodeSetEnabled(exec, kernel, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  EXPECT(host[9] == 7);
  // A graph of the same shape updates the executable one, another shape does not.
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
  CHECK(cudaGraphAddEmptyNode(&found, graph, nullptr, 0));
  EXPECT(cudaGraphExecUpdate(exec, graph, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  // A cycle cannot be instantiated.
  CHECK(cudaGraphAddDependencies(graph, &call, &fill, nullptr, 1));
  EXPECT(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorInvalidValue);
  return 0;
}

int capture() {
  int *device = to_device(std::vector<int>(64, 1)), *extra = nullptr, host = 0;
  cudaStream_t a, b;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  add<<<1, 64, 0, a>>>(device, 64, 10);
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork));
  CHECK(cudaMallocAsync(&extra, 64 * sizeof(int), b));
  CHECK(cudaMemcpyAsync(extra, device, 64 * sizeof(int), cudaMemcpyDeviceToDevice, b));
  CHECK(cudaEventRecord(join, b));
  CHECK(cudaStreamWaitEvent(a, join));
  CHECK(cudaMemcpyAsync(&host, extra, sizeof host, cudaMemcpyDeviceToHost, a));
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(b, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  EXPECT(cudaStreamSynchronize(b) == cudaErrorStreamCaptureUnsupported);  // spoils the capture
  cudaGraph_t graph;
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated && !graph);
  EXPECT(to_host(device, 1)[0] == 1);  // nothing ran

  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  add<<<1, 64, 0, a>>>(device, 64, 10);
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork));
  add<<<1, 64, 0, b>>>(device, 64, 100);
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureUnjoined);
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorIllegalState);
  return 0;
}

int memory() {
  int *managed, *pinned, *device;
  CHECK(cudaMallocManaged(&managed, 256 * sizeof(int)));
  CHECK(cudaMallocHost(&pinned, 256 * sizeof(int)));
  std::vector<int> registered(256, 3);
  CHECK(cudaHostRegister(registered.data(), 256 * sizeof(int), 0));
  for (int i = 0; i < 256; ++i) managed[i] = i, pinned[i] = 2 * i;
  for (int* p : {managed, pinned, registered.data()}) add<<<2, 128>>>(p, 256, 1);
  CHECK(cudaDeviceSynchronize());
  EXPECT(managed[255] == 256 && pinned[255] == 511 && registered[255] == 4);
  CHECK(cudaHostUnregister(registered.data()));
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, managed));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&attributes, pinned + 5));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == pinned + 5);
  CHECK(cudaPointerGetAttributes(&attributes, registered.data()));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);

  // A 3 x 5 box of ints, in and out through pitched memory.
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&device, &pitch, 5 * sizeof(int), 3));
  EXPECT(pitch >= 5 * sizeof(int) && pitch % 32 == 0);
  CHECK(cudaMemset2D(device, pitch, 0, 5 * sizeof(int), 3));
  CHECK(cudaMemcpy2D(device, pitch, managed, 16 * sizeof(int), 5 * sizeof(int), 3,
                     cudaMemcpyHostToDevice));
  int out[15];
  CHECK(cudaMemcpy2D(out, 5 * sizeof(int), device, pitch, 5 * sizeof(int), 3,
                     cudaMemcpyDeviceToHost));
  EXPECT(out[0] == 1 && out[4] == 5 && out[5] == 17 && out[14] == 37);
  cudaPitchedPtr box;
  CHECK(cudaMalloc3D(&box, make_cudaExtent(4 * sizeof(int), 3, 2)));
  CHECK(cudaMemset3D(box, 0x11, make_cudaExtent(4 * sizeof(int), 3, 2)));
  cudaMemcpy3DParms p = {};
  int small[2 * 2 * 2] = {};
  p.srcPtr = box;
  p.srcPos = make_cudaPos(sizeof(int), 1, 0);
  p.dstPtr = make_cudaPitchedPtr(small, 2 * sizeof(int), 2, 2);
  p.extent = make_cudaExtent(2 * sizeof(int), 2, 2);
  p.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&p));
  for (int v : small) EXPECT(v == 0x11111111);

  cudaStream_t stream;
  int* async;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocAsync(&async, 64, stream));
  CHECK(cudaMemsetAsync(async, 1, 64, stream));
  CHECK(cudaFreeAsync(async, stream));
  EXPECT(cudaFree(async) == cudaErrorInvalidValue);  // freed already
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
  EXPECT(cudaMemcpy(device, out, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK((cudaGetLastError(), cudaSuccess));
  size_t free_bytes, total;
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(free_bytes > 0 && free_bytes < total);
  EXPECT(cudaMalloc(&async, total) == cudaErrorMemoryAllocation);
  CHECK((cudaGetLastError(), cudaSuccess));
  return 0;
}

__global__ void use_symbols(int* out) {
  table[threadIdx.x] = weights[threadIdx.x % 4] * 10;
  out[threadIdx.x] = table[threadIdx.x] + shared_counter;
}

int symbols() {
  const int w[4] = {1, 2, 3, 4};
  CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
  shared_counter = 5;
  int *out, host[8], back[8];
  size_t bytes;
  void* address;
  CHECK(cudaMalloc(&out, sizeof host));
  use_symbols<<<1, 8>>>(out);
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyFromSymbol(back, table, sizeof back));
  for (int i = 0; i < 8; ++i) EXPECT(host[i] == w[i % 4] * 10 + 5 && back[i] == w[i % 4] * 10);
  CHECK(cudaGetSymbolSize(&bytes, table));
  CHECK(cudaGetSymbolAddress(&address, table));
  EXPECT(bytes == 32);
  CHECK(cudaMemcpy(back, static_cast<int*>(address) + 1, 4, cudaMemcpyDeviceToHost));
  EXPECT(back[0] == 20);
  EXPECT(cudaMemcpyToSymbol(weights, w, sizeof w, 4) == cudaErrorInvalidValue);
  return 0;
}

__global__ void print_all() {
  char name[8] = {'l', 'o', 'c', 'a', 'l', 0};
  printf("%d|%5d|%-5d|%05d|%+d|%x|%#X|%o|%u\n", -7, 42, 42, 42, 42, 0xabcu, 0xabcu, 8u,
         4000000000u);
  printf("%lld|%llu|%ld|%hd|%hhu\n", -(1ll << 40), 1ull << 63, -5l, short(-3),
         (unsigned char)(200));
  printf("%f|%.3f|%10.2e|%g|%c|%s|%5.3s|%%|%s\n", 1.5, 3.14159f, 12345.678, 0.0001, 'x', "text",
         "abcdef", name);
  printf("no arguments\n");
  const int n = printf("%d %d\n", 1, 2);
  if (n != 2) printf("printf gave %d\n", n);
}

int print() {
  print_all<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  char name[8] = "local";
  printf("%d|%5d|%-5d|%05d|%+d|%x|%#X|%o|%u\n", -7, 42, 42, 42, 42, 0xabcu, 0xabcu, 8u,
         4000000000u);
  printf("%lld|%llu|%ld|%hd|%hhu\n", -(1ll << 40), 1ull << 63, -5l, short(-3),
         (unsigned char)(200));
  printf("%f|%.3f|%10.2e|%g|%c|%s|%5.3s|%%|%s\n", 1.5, 3.14159f, 12345.678, 0.0001, 'x', "text",
         "abcdef", name);
  printf("no arguments\n1 2\n");
  return 0;
}

__global__ void use_heap(int* out) {
  int* block = static_cast<int*>(malloc(40 * sizeof(int)));
  for (int i = 0; i < 40; ++i) block[i] = threadIdx.x * 100 + i;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 40; ++i) sum += block[i];
  out[threadIdx.x] = sum;
  free(block);
  if (threadIdx.x == 0) out[64] = malloc(size_t{1} << 40) == nullptr;
}

int heap() {
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
  int* out;
  CHECK(cudaMalloc(&out, 65 * sizeof(int)));
  for (int round = 0; round < 200; ++round)
    use_heap<<<1, 64>>>(out);  // more than fits without free
  CHECK(cudaDeviceSynchronize());
  const auto sums = to_host(out, 65);
  for (int i = 0; i < 64; ++i) EXPECT(sums[i] == 4000 * i + 780);
  EXPECT(sums[64] == 1);
  return 0;
}

__global__ void store(int* p, long long at) { p[at] = 1; }
__global__ void fail_assertion(int* p) { assert(threadIdx.x < 33 || p == nullptr); }
__global__ void execute_trap() { __trap(); }
__global__ void free_twice() {
  void* p = malloc(8);
  free(p);
  free(p);
}

// After a fault every call fails with the same error.
int sticky(cudaError_t expected) {
  void* p;
  EXPECT(cudaGetLastError() == cudaSuccess);  // the launch itself succeeded
  EXPECT(cudaDeviceSynchronize() == expected);
  EXPECT(cudaMalloc(&p, 16) == expected);
  EXPECT(cudaGetLastError() == expected && cudaGetLastError() == expected);
  return 0;
}

int fault(const std::string& kind) {
  int* p;
  CHECK(cudaMalloc(&p, 64));
  if (kind == "bounds") return store<<<1, 1>>>(p, 16), sticky(cudaErrorIllegalAddress);
  if (kind == "misaligned")
    return store<<<1, 1>>>(reinterpret_cast<int*>(reinterpret_cast<char*>(p) + 2), 0),
           sticky(cudaErrorMisalignedAddress);
  if (kind == "assert") return fail_assertion<<<2, 64>>>(p), sticky(cudaErrorAssert);
  if (kind == "trap") return execute_trap<<<1, 1>>>(), sticky(cudaErrorLaunchFailure);
  if (kind == "free") return free_twice<<<1, 1>>>(), sticky(cudaErrorLaunchFailure);
  if (kind == "null") return store<<<1, 1>>>(nullptr, 0), sticky(cudaErrorIllegalAddress);
  if (kind == "freed") {
    CHECK(cudaFree(p));
    return store<<<1, 1>>>(p, 0), sticky(cudaErrorIllegalAddress);
  }
  return 2;
}

__global__ void __cluster_dims__(2) exchange(int* out) {
  __shared__ int own;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) own = blockIdx.x + 1;
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&own, cluster.block_rank() ^ 1);
  cluster.sync();
}

__global__ void dynamic(int* out, int n) {
  extern __shared__ int bytes[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) bytes[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = bytes[n - 1];
}

__global__ void dependent(int* out) {
  cudaGridDependencySynchronize();
  if (threadIdx.x == 0) *out += 1;
}

int launches() {
  int* out;
  CHECK(cudaMalloc(&out, 64));
  exchange<<<4, 32>>>(out);
  const auto seen = to_host(out, 4);
  EXPECT(seen[0] == 2 && seen[1] == 1 && seen[2] == 4 && seen[3] == 3);
  exchange<<<3, 32>>>(out);  // no multiple of the cluster
  EXPECT(cudaGetLastError() == cudaErrorInvalidClusterSize);
  constexpr int n = 50'000;
  dynamic<<<1, 64, n * 4>>>(out, n);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4));
  dynamic<<<1, 64, n * 4>>>(out, n);
  CHECK(cudaGetLastError());
  EXPECT(to_host(out, 1)[0] == n - 1);
  add<<<1, 2000>>>(out, 1, 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1), config.blockDim = dim3(32);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute, config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, dependent, out));
  EXPECT(to_host(out, 1)[0] == n);
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 1024, 0));
  EXPECT(blocks == 2);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, exchange));
  EXPECT(attributes.numRegs > 0 && attributes.clusterDimMustBeSet &&
         attributes.sharedSizeBytes >= 4);
  return 0;
}

int callbacks() {
  static std::vector<int> order;
  int* p = to_device(std::vector<int>(4, 0));
  static int seen;
  add<<<1, 4>>>(p, 4, 3);
  CHECK(cudaMemcpyAsync(&seen, p, 4, cudaMemcpyDeviceToHost, nullptr));
  CHECK(cudaLaunchHostFunc(
      nullptr, [](void*) { order.push_back(seen); }, nullptr));
  CHECK(cudaStreamAddCallback(
      nullptr, [](cudaStream_t, cudaError_t e, void* d) { order.push_back(e + *(int*)d); },
      new int(9), 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(order == std::vector<int>({3, 9}));
  cudaEvent_t a, b;
  float ms = -1;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  EXPECT(cudaEventElapsedTime(&ms, a, b) == cudaErrorInvalidResourceHandle);  // not recorded
  CHECK((cudaGetLastError(), cudaSuccess));
  CHECK(cudaEventRecord(a));
  add<<<1, 4>>>(p, 4, 3);
  CHECK(cudaEventRecord(b));
  CHECK(cudaEventSynchronize(b));
  CHECK(cudaEventElapsedTime(&ms, a, b));
  EXPECT(ms > 0);
  return 0;
}

template <class F>
F entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<F>(found) : nullptr;
}

const char* const kPtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 offset = 100;
.visible .entry twice(.param .u64 p) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [offset];
  ld.global.u32 %r2, [%rd1];
  mad.lo.s32 %r3, %r2, 2, %r1;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

int modules() {
  const auto load = entry<decltype(&cuModuleLoadDataEx)>("cuModuleLoadDataEx");
  const auto get = entry<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
  const auto global =
      entry<CUresult (*)(CUdeviceptr*, size_t*, CUmodule, const char*)>("cuModuleGetGlobal");
  const auto launch = entry<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  const auto unload = entry<decltype(&cuModuleUnload)>("cuModuleUnload");
  EXPECT(load && get && global && launch && unload);
  EXPECT(!entry<void*>("cuNoSuchThing"));
  CUmodule m;
  CUfunction f;
  CUdeviceptr address;
  size_t bytes;
  EXPECT(load(&m, kPtx, 0, nullptr, nullptr) == CUDA_SUCCESS);
  EXPECT(get(&f, m, "thrice") == CUDA_ERROR_NOT_FOUND);
  EXPECT(get(&f, m, "twice") == CUDA_SUCCESS);
  EXPECT(global(&address, &bytes, m, "offset") == CUDA_SUCCESS && bytes == 4);
  int* p = to_device(std::vector<int>{21});
  void* arguments[] = {&p};
  EXPECT(launch(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS);
  EXPECT(to_host(p, 1)[0] == 142);
  const int fresh = 1;
  CHECK(cudaMemcpy(reinterpret_cast<void*>(address), &fresh, 4, cudaMemcpyHostToDevice));
  size_t packed_bytes = 8;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT(launch(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) == CUDA_SUCCESS);
  EXPECT(to_host(p, 1)[0] == 285);
  EXPECT(unload(m) == CUDA_SUCCESS && unload(m) != CUDA_SUCCESS);
  // What is wrong stands in the log that the caller gave.
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  std::string broken = kPtx;
  broken.replace(broken.find("mad.lo"), 6, "mud.lo");
  EXPECT(load(&m, broken.c_str(), 2, options, values) == CUDA_ERROR_INVALID_PTX);
  EXPECT(std::strstr(log, "mud"));
  cudaLibrary_t library;
  cudaKernel_t kernel;
  CHECK(cudaLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cudaLibraryGetKernel(&kernel, library, "twice"));
  CHECK(cudaLaunchKernel(reinterpret_cast<void*>(kernel), dim3(1), dim3(1), arguments, 0, nullptr));
  EXPECT(to_host(p, 1)[0] == 670);
  CHECK(cudaLibraryUnload(library));
  return 0;
}

struct Shape {
  virtual __device__ int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
};
struct Strip : Shape {
  int side;
  __device__ explicit Strip(int s) : side(s) {}
  __device__ int area() const override { return side; }
};
__global__ void virtual_call(int* out, int which) {
  Square a(3);
  Strip b(4);
  const Shape* shapes[] = {&a, &b};
  *out = shapes[which]->area();
}

// Not emulated: named, and an error for the caller.
int unsupported() {
  int* out;
  CHECK(cudaMalloc(&out, 4));
  cudaTextureObject_t texture;
  cudaResourceDesc resource = {};
  cudaTextureDesc description = {};
  EXPECT(cudaCreateTextureObject(&texture, &resource, &description, nullptr) ==
         cudaErrorNotSupported);
  EXPECT(cudaCreateTextureObject(&texture, &resource, &description, nullptr) ==
         cudaErrorNotSupported);
  return 0;
}

int indirect() {
  int *out, result = 0;
  CHECK(cudaMalloc(&out, 4));
  virtual_call<<<1, 1>>>(out, 1);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaErrorNotSupported) return std::printf("indirect calls are refused\n"), 0;
  CHECK(error);
  CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
  EXPECT(result == 4);
  return 0;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  int code = 2;
  if (name == "graphs") code = graphs();
  if (name == "capture") code = capture();
  if (name == "memory") code = memory();
  if (name == "symbols") code = symbols();
  if (name == "print") code = print();
  if (name == "heap") code = heap();
  if (name == "launches") code = launches();
  if (name == "callbacks") code = callbacks();
  if (name == "modules") code = modules();
  if (name == "unsupported") code = unsupported();
  if (name == "indirect") code = indirect();
  if (name == "fault") code = fault(argv[2]);
  if (code == 0) std::printf("ok\n");
  return code;
}
