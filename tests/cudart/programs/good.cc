// Host functions that record well. Arguments: a (float32 input), idx (int32 input with contents),
// out.
#include <cstdlib>
#include <cstring>
#include <random>

#include "program.h"

namespace {
const bool registered = [] {
  void** handle = __cudaRegisterFatBinary(nullptr);
  const auto function = [&](char* stub, const char* name) {
    __cudaRegisterFunction(handle, stub, stub, name, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
  };
  function(&vec, "vec");
  function(&with_struct, "with_struct");
  function(&with_map, "with_map");
  function(&shared_user, "shared_user");
  function(&pairs, "pairs");
  function(&not_in_ptx, "not_in_ptx");
  __cudaRegisterVar(handle, &table, &table, "table", 0, 4096, 0, 0);
  __cudaRegisterVar(handle, &scale, &scale, "scale", 0, 4, 1, 0);
  __cudaRegisterFatBinaryEnd(handle);
  return true;
}();

cudaError_t encode(CUtensorMap* map, void* address, uint64_t rows, bool by_entry_point) {
  const cuuint64_t dims[] = {64, rows}, strides[] = {256};
  const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
  decltype(&cuTensorMapEncodeTiled) function = &cuTensorMapEncodeTiled;
  if (by_entry_point) {
    cudaDriverEntryPointQueryResult status{};
    void* found = nullptr;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                         &status) != cudaSuccess ||
        status != cudaDriverEntryPointSuccess)
      return cudaErrorUnknown;
    function = reinterpret_cast<decltype(function)>(found);
  }
  const CUresult result =
      function(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, address, dims, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return static_cast<cudaError_t>(result);
}

struct Params {
  int n;
  float* p;
  uint64_t q;
};
}  // namespace

// As nvcc compiles vec<<<dim3(3, 2), 128, 0, stream>>>(out, a + 64 bytes, 7).
PROGRAM(angle_brackets) {
  UNUSED;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  __cudaPushCallConfiguration(dim3(3, 2), dim3(128), 0, stream);
  static cudaKernel_t handle;
  if (__cudaGetKernel(&handle, &vec) != cudaSuccess) return fail("RuntimeError", "no kernel");
  dim3 grid, block;
  size_t shared;
  void* popped;
  if (__cudaPopCallConfiguration(&grid, &block, &shared, &popped) != cudaSuccess)
    return fail("RuntimeError", "pop");
  void *out = DATA(2), *a = DATA(0) + 64;
  int n = 7;
  void* values[] = {&out, &a, &n};
  return check(
      __cudaLaunchKernel(handle, grid, block, values, shared, static_cast<cudaStream_t>(popped)));
}

PROGRAM(cluster) {
  UNUSED;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = 4;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(64);
  config.dynamicSmemBytes = 200000;
  config.attrs = attributes;
  config.numAttrs = 2;
  if (int status = check(
          cudaFuncSetAttribute(&shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000)))
    return status;
  void* out = DATA(2);
  void* values[] = {&out};
  return check(cudaLaunchKernelExC(&config, &shared_user, values));
}

PROGRAM(compiled_cluster) {
  UNUSED;
  return check(launch(&pairs, dim3(6), dim3(32), 0, DATA(2)));
}

PROGRAM(map_by_entry_point) {
  UNUSED;
  CUtensorMap map;
  if (int status = check(encode(&map, DATA(0) + 512, 30, true))) return status;
  return check(launch(&with_map, dim3(1), dim3(32), 0, map, DATA(2)));
}

PROGRAM(map_direct_cached) {
  UNUSED;
  static CUtensorMap map;  // encoded once, launched twice
  static const cudaError_t status = encode(&map, DATA(0), 32, false);
  if (int bad = check(status)) return bad;
  for (int i = 0; i < 2; ++i)
    if (int bad = check(launch(&with_map, dim3(1), dim3(32), 0, map, DATA(2)))) return bad;
  return 0;
}

// The padding holds chance; the kernel cannot read it.
PROGRAM(padding) {
  UNUSED;
  Params params;
  const uint64_t noise = std::random_device{}() | uint64_t{std::random_device{}()} << 32;
  std::memcpy(&params, &noise, 8);
  params.n = 5;
  params.p = reinterpret_cast<float*>(DATA(2));
  params.q = 0x1234567890abcdefu;
  return check(launch(&with_struct, dim3(1), dim3(32), 0, params));
}

// A table of addresses and tensor maps, uploaded to scratch memory and to a symbol.
PROGRAM(tables) {
  UNUSED;
  struct alignas(64) Table {
    CUtensorMap map;
    int32_t count;
    uint32_t packed_low, packed_high;  // an address at a multiple of four
    int32_t pad;
    void *begin, *end;
  } entries{};
  if (int status = check(encode(&entries.map, DATA(0), 16, true))) return status;
  void* scratch = nullptr;
  if (int status = check(cudaMalloc(&scratch, 1 << 16))) return status;
  entries.count = 42;
  const uint64_t address = reinterpret_cast<uint64_t>(scratch) + 4096;
  std::memcpy(&entries.packed_low, &address, 8);
  entries.begin = DATA(2);
  entries.end = DATA(2) + 64 * 4;  // one past the end of out
  cudaMemsetAsync(scratch, 0xff, 1 << 16, nullptr);
  if (int status = check(
          cudaMemcpyAsync(scratch, &entries, sizeof entries, cudaMemcpyHostToDevice, nullptr)))
    return status;
  if (int status =
          check(cudaMemcpyToSymbol(&table, &entries, sizeof entries, 256, cudaMemcpyHostToDevice)))
    return status;
  void* address_of_table = nullptr;
  if (int status = check(cudaGetSymbolAddress(&address_of_table, &table))) return status;
  if (int status = check(cudaMemcpy(static_cast<char*>(scratch) + 1024, address_of_table, 512,
                                    cudaMemcpyDeviceToDevice)))
    return status;
  if (int status = check(launch(&vec, dim3(1), dim3(32), 0, scratch, address_of_table, 1)))
    return status;
  return check(cudaFree(scratch));
}

// Schedules by the contents of an integer input.
PROGRAM(reads_integers) {
  UNUSED;
  int32_t lengths[4];
  if (int status = check(cudaMemcpy(lengths, DATA(1), sizeof lengths, cudaMemcpyDeviceToHost)))
    return status;
  return check(launch(&vec, dim3(static_cast<unsigned>(lengths[2])), dim3(32), 0, DATA(2), DATA(0),
                      lengths[3]));
}

PROGRAM(queries) {
  UNUSED;
  cudaDeviceProp properties;
  int sms = 0, blocks = 0, driver = 0, clusters = 0, device = -1;
  cudaGetDeviceProperties(&properties, 0);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &shared_user, 128, 0);
  cudaDriverGetVersion(&driver);
  cudaGetDevice(&device);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(2);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = 0;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaOccupancyMaxActiveClusters(&clusters, &shared_user, &config);
  if (properties.multiProcessorCount != sms || device != 0 || driver < 13000 ||
      properties.major != 9)
    return fail("RuntimeError", "queries contradict each other");
  return check(launch(&vec, dim3(static_cast<unsigned>(sms)), dim3(static_cast<unsigned>(blocks)),
                      0, DATA(2), DATA(0), clusters));
}

// Page-locked staging memory and the default memory pool.
PROGRAM(staging) {
  UNUSED;
  int* staging = nullptr;
  if (int status = check(cudaMallocHost(reinterpret_cast<void**>(&staging), 64))) return status;
  for (int i = 0; i < 16; ++i) staging[i] = i * i;
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  uint64_t threshold = ~0ull;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  void* scratch = nullptr;
  if (int status = check(cudaMallocAsync(&scratch, 64, nullptr))) return status;
  if (int status = check(cudaMemcpyAsync(scratch, staging, 64, cudaMemcpyHostToDevice, nullptr)))
    return status;
  if (int status = check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), scratch, 1))) return status;
  cudaFreeAsync(scratch, nullptr);
  return check(cudaFreeHost(staging));
}

// Addresses of the process itself are the same in both runs.
PROGRAM(own_addresses) {
  UNUSED;
  int local = 0;
  const uint64_t mixed =
      reinterpret_cast<uint64_t>(&local) ^ reinterpret_cast<uint64_t>(&encode) * 3 ^
      reinterpret_cast<uint64_t>(new int) * 5 ^ reinterpret_cast<uint64_t>(&cudaMalloc) * 7;
  return check(launch(&with_struct, dim3(1), dim3(32), 0,
                      Params{1, reinterpret_cast<float*>(DATA(2)), mixed}));
}

// The padding is whatever the stack, the heap and earlier calls left there.
PROGRAM(leftovers) {
  UNUSED;
  struct Entry {
    char tag;
    void* p;
  };
  auto* entries = static_cast<Entry*>(std::malloc(sizeof(Entry) * 64));
  Entry local[8];
  for (int i = 0; i < 64; ++i) {
    entries[i].tag = static_cast<char>(i);
    entries[i].p = DATA(0) + i;
    if (i < 8) local[i].tag = 1, local[i].p = DATA(2);
  }
  if (int status =
          check(cudaMemcpyToSymbol(&table, entries, sizeof(Entry) * 64, 0, cudaMemcpyHostToDevice)))
    return status;
  if (int status =
          check(cudaMemcpyToSymbol(&table, local, sizeof local, 0, cudaMemcpyHostToDevice)))
    return status;
  std::free(entries);
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), 1));
}
