// Runs the kernels that record_forms.py wrote and keeps what they write.
//
//   record_forms DIR OUT     reads DIR/forms.{cubin,list,in.bin}, writes OUT/forms.out.bin
//
// A line of the list: kernel, position of the output among the parameters (0: first, 1: last),
// threads, CTAs (of one cluster), bytes out, number of inputs, their offsets in forms.in.bin.
// Outputs start at multiples of 16 bytes; bytes that no kernel writes are 0xAA.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#define CHECK(x)                                                                        \
  do {                                                                                  \
    cudaError_t e_ = (x);                                                               \
    if (e_) fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(e_)), exit(1); \
  } while (0)

static std::vector<char> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fprintf(stderr, "cannot open %s\n", path.c_str()), exit(2);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: record_forms DIR OUT\n"), 2;
  const std::string dir = argv[1];
  std::string what = "setting up";
  std::vector<char> cubin = bytes_of(dir + "/forms.cubin"), input = bytes_of(dir + "/forms.in.bin");
  cudaLibrary_t library;
  CHECK(cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  char *in, *out;
  constexpr size_t kMost = 1 << 16;
  CHECK(cudaMalloc(&in, input.size()));
  CHECK(cudaMalloc(&out, kMost));
  CHECK(cudaMemcpy(in, input.data(), input.size(), cudaMemcpyHostToDevice));
  std::ofstream file(std::string(argv[2]) + "/forms.out.bin", std::ios::binary);
  if (!file) return fprintf(stderr, "cannot write to %s\n", argv[2]), 2;
  std::ifstream list(dir + "/forms.list");
  int done = 0;
  for (std::string line; std::getline(list, line); ++done) {
    std::istringstream fields(line);
    size_t last = 0, threads = 0, ctas = 0, size = 0, inputs = 0;
    fields >> what >> last >> threads >> ctas >> size >> inputs;
    std::vector<char*> pointers(last ? 0 : 1, out);
    for (size_t i = 0, offset = 0; i < inputs; ++i)
      fields >> offset, pointers.push_back(in + offset);
    if (last) pointers.push_back(out);
    if (!fields || size > kMost) return fprintf(stderr, "broken line: %s\n", line.c_str()), 2;
    std::vector<void*> args;
    for (char*& p : pointers) args.push_back(&p);
    cudaKernel_t kernel;
    CHECK(cudaLibraryGetKernel(&kernel, library, what.c_str()));
    CHECK(cudaMemset(out, 0xAA, size));
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(ctas), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(ctas)),
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.attrs = &cluster, config.numAttrs = ctas > 1;
    CHECK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), args.data()));
    std::vector<char> result((size + 15) / 16 * 16);
    CHECK(cudaMemcpy(result.data(), out, size, cudaMemcpyDeviceToHost));
    file.write(result.data(), static_cast<std::streamsize>(result.size()));
  }
  file.close();
  if (!file || done == 0) return fprintf(stderr, "nothing recorded\n"), 1;
  printf("%d cases\n", done);
}
