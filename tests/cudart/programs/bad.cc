// Host functions that must be refused, one way each.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <stdexcept>
#include <string>

#include "program.h"

PROGRAM(no_launch) {
  UNUSED;
  return 0;
}
PROGRAM(three_arguments_only) {
  UNUSED;
  return fail("TypeError",
              "Mismatched number of arguments when calling: `three_arguments_only`. Expected 2 but "
              "got 3 arguments");
}
PROGRAM(reports_error) {
  UNUSED;
  return fail("ValueError", "M must be a multiple of 128");
}
PROGRAM(throws) {
  UNUSED;
  throw std::runtime_error("thrown past the boundary");
}

PROGRAM(endless) {
  UNUSED;
  for (volatile uint64_t i = 0;;) i = i + 1;
}
PROGRAM(exits) {
  UNUSED;
  std::exit(0);
}
PROGRAM(quick_exits) {
  UNUSED;
  _exit(7);
}
PROGRAM(crashes) {
  UNUSED;
  volatile uint64_t nowhere = 8;  // not a constant: the compiler would remove the access
  *reinterpret_cast<volatile int*>(nowhere) = 1;
  return 0;
}
PROGRAM(touches_device_memory) {
  return count > 0 ? *reinterpret_cast<volatile int*>(DATA(2) + 4) : 0;
}

PROGRAM(random_value) {
  UNUSED;
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), int(std::random_device{}())));
}
PROGRAM(time_value) {
  UNUSED;
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), int(time(nullptr))));
}
PROGRAM(chrono_seed) {
  UNUSED;
  std::srand(static_cast<unsigned>(std::chrono::system_clock::now().time_since_epoch() /
                                   std::chrono::hours(1)));
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), std::rand()));
}
PROGRAM(packs_address) {
  UNUSED;
  const auto descriptor = static_cast<int>((reinterpret_cast<uint64_t>(DATA(0)) >> 4) & 0x3fffffff);
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), descriptor));
}
PROGRAM(grid_from_address) {
  UNUSED;
  const auto grid = static_cast<unsigned>(1 + (reinterpret_cast<uint64_t>(DATA(0)) >> 28 & 7));
  return check(launch(&vec, dim3(grid), dim3(32), 0, DATA(2), DATA(0), 1));
}
PROGRAM(pointer_past_buffers) {
  UNUSED;
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0) + (1 << 24), 1));
}

PROGRAM(zero_grid) {
  UNUSED;
  return check(launch(&vec, dim3(0), dim3(32), 0, DATA(2), DATA(0), 1));
}
PROGRAM(zero_grid_ignored) {
  UNUSED;
  launch(&vec, dim3(0), dim3(32), 0, DATA(2), DATA(0), 1);
  return 0;
}
PROGRAM(block_too_large) {
  UNUSED;
  return check(launch(&with_struct, dim3(1), dim3(1025), 0, DATA(2), DATA(0), DATA(0)));
}
PROGRAM(above_launch_bounds) {
  UNUSED;
  return check(launch(&vec, dim3(1), dim3(512), 0, DATA(2), DATA(0), 1));
}
PROGRAM(shared_without_attribute) {
  UNUSED;
  return check(launch(&shared_user, dim3(1), dim3(32), 49152, DATA(2)));
}
PROGRAM(attribute_too_large) {
  UNUSED;
  return check(
      cudaFuncSetAttribute(&shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
}
PROGRAM(unknown_kernel) {
  UNUSED;
  return check(launch(&not_in_ptx, dim3(1), dim3(32), 0, DATA(2)));
}
PROGRAM(odd_grid_for_pairs) {
  UNUSED;
  return check(launch(&pairs, dim3(3), dim3(32), 0, DATA(2)));
}
PROGRAM(large_cluster) {
  UNUSED;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {16, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(16);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* out = DATA(2);
  void* values[] = {&out};
  return check(cudaLaunchKernelExC(&config, &shared_user, values));
}
PROGRAM(cooperative_too_large) {
  UNUSED;
  void *out = DATA(2), *a = DATA(0);
  int n = 1;
  void* values[] = {&out, &a, &n};
  return check(cudaLaunchCooperativeKernel(&vec, dim3(100000), dim3(256), values, 0, nullptr));
}
PROGRAM(map_misaligned) {
  UNUSED;
  CUtensorMap map;
  const cuuint64_t dims[] = {64, 8}, strides[] = {250};  // no multiple of 16
  const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
  const CUresult result =
      cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, DATA(0), dims, strides, box,
                             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? 0 : fail("RuntimeError", "encode failed");
}
PROGRAM(map_edited) {
  UNUSED;
  CUtensorMap map;
  const cuuint64_t dims[] = {64, 8}, strides[] = {256};
  const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, DATA(0), dims, strides, box,
                         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  map.opaque[9] ^= 1;
  return check(launch(&with_map, dim3(1), dim3(32), 0, map, DATA(2)));
}

PROGRAM(reads_result) {
  UNUSED;
  if (int status = check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), 1))) return status;
  float value = 0;
  return check(cudaMemcpy(&value, DATA(2), 4, cudaMemcpyDeviceToHost));
}
PROGRAM(reads_integers_late) {
  UNUSED;
  if (int status = check(launch(&vec, dim3(1), dim3(32), 0, DATA(1), DATA(0), 1))) return status;
  int value = 0;
  return check(cudaMemcpy(&value, DATA(1), 4, cudaMemcpyDeviceToHost));
}
PROGRAM(uses_graphs) {
  UNUSED;
  cudaGraph_t graph;
  return check(cudaGraphCreate(&graph, 0));
}
PROGRAM(memset_too_long) {
  UNUSED;
  return check(cudaMemset(DATA(2), 0, 1 << 20));
}
PROGRAM(copy_past_end) {
  UNUSED;
  static char bytes[4096];
  return check(cudaMemcpy(DATA(2), bytes, sizeof bytes, cudaMemcpyHostToDevice));
}

// These do something to the machine and then launch properly; nothing of it may outlive the
// recording.
PROGRAM(writes_files) {
  UNUSED;
  for (const char* path :
       {"/tmp/ptxbench-test-escape", "/etc/ptxbench-test-escape", "/ptxbench-test-escape",
        "/var/tmp/ptxbench-test-escape", "ptxbench-test-escape"})
    if (FILE* file = std::fopen(path, "w")) std::fclose(file);
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), 1));
}
PROGRAM(leaves_children) {
  UNUSED;
  for (int i = 0; i < 3; ++i)
    if (fork() == 0) {
      setsid();
      // The name makes it findable by the test, and by that of this build only.
      Dl_info library{};
      dladdr(reinterpret_cast<void*>(&__tvm_ffi_leaves_children), &library);
      execl("/bin/sleep", (std::string(library.dli_fname) + ":straggler").c_str(), "3600", nullptr);
      _exit(1);
    }
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), 1));
}
PROGRAM(floods_output) {
  UNUSED;
  const std::string line(1 << 16, 'x');
  for (int i = 0; i < 200; ++i) std::fputs(line.c_str(), stderr);
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), DATA(0), 1));
}
PROGRAM(zero_copy) {
  UNUSED;
  char* pinned = nullptr;
  if (int status =
          check(cudaHostAlloc(reinterpret_cast<void**>(&pinned), 4096, cudaHostAllocMapped)))
    return status;
  return check(launch(&vec, dim3(1), dim3(32), 0, DATA(2), pinned + 16, 1));
}
PROGRAM(allocates_too_much) {
  UNUSED;
  void* p = nullptr;
  return check(cudaMalloc(&p, 1ull << 40));
}
PROGRAM(frees_twice) {
  UNUSED;
  void* p = nullptr;
  cudaMalloc(&p, 64);
  cudaFree(p);
  return check(cudaFree(p));
}
PROGRAM(forks_forever) {
  UNUSED;
  for (;;)
    if (fork() == 0) setsid();
}
