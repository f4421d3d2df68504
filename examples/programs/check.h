// Shared by the example programs: error checks, reproducible inputs, results as raw bytes in a
// file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                      \
  do {                                                                   \
    const cudaError_t error_ = (call);                                   \
    if (error_ != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(error_));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

// The i-th pseudo-random number of a stream.
inline uint32_t mixed(uint32_t i, uint32_t stream) {
  uint32_t x = i * 2654435761u ^ stream * 0x9e3779b9u;
  x ^= x >> 16, x *= 0x85ebca6bu, x ^= x >> 13, x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

template <class T>
T* to_device(const std::vector<T>& host) {
  T* device = nullptr;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <class T>
std::vector<T> to_host(const T* device, size_t count) {
  std::vector<T> host(count);
  CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

// Writes the result to the file named on the command line, if any, and says how the program's own
// check went.
template <class T>
int finish(int argc, char** argv, const char* name, const std::vector<T>& result, size_t wrong) {
  if (argc > 1) {
    FILE* file = std::fopen(argv[1], "wb");
    if (!file || std::fwrite(result.data(), sizeof(T), result.size(), file) != result.size() ||
        std::fclose(file) != 0) {
      std::fprintf(stderr, "cannot write %s\n", argv[1]);
      return 1;
    }
  }
  std::printf("%s: %zu values, %zu wrong\n", name, result.size(), wrong);
  return wrong == 0 ? 0 : 1;
}
