// A 7-point stencil in three dimensions. Each step runs as two halves on two streams that meet at
// the end of the step; two steps (there and back between two buffers) are captured as a graph and
// launched again and again.
#include "check.h"

constexpr int kX = 33, kY = 18, kZ = 14, kSteps = 6;

// Planes [z0, z1); the boundary keeps its values.
__global__ void step(const float* from, float* to, int z0, int z1) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
            z = z0 + blockIdx.z;
  if (x >= kX || y >= kY || z >= z1) return;
  const int at = (z * kY + y) * kX + x;
  const bool inside = x > 0 && x < kX - 1 && y > 0 && y < kY - 1 && z > 0 && z < kZ - 1;
  to[at] = !inside ? from[at]
                   : 0.25f * from[at] +
                         0.125f * (from[at - 1] + from[at + 1] + from[at - kX] + from[at + kX] +
                                   from[at - kX * kY] + from[at + kX * kY]);
}

void issue_step(const float* from, float* to, cudaStream_t main, cudaStream_t side,
                cudaEvent_t fork, cudaEvent_t join) {
  const dim3 block(32, 4), half((kX + 31) / 32, (kY + 3) / 4, kZ / 2);
  CHECK(cudaEventRecord(fork, main));
  CHECK(cudaStreamWaitEvent(side, fork));
  step<<<half, block, 0, main>>>(from, to, 0, kZ / 2);
  step<<<half, block, 0, side>>>(from, to, kZ / 2, kZ);
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamWaitEvent(main, join));
}

int main(int argc, char** argv) {
  constexpr size_t n = size_t{kX} * kY * kZ;
  std::vector<float> field(n);
  for (size_t i = 0; i < n; ++i) field[i] = float(mixed(i, 4) % 1024);  // multiples of 1: exact
  float *a = to_device(field), *b = nullptr;
  CHECK(cudaMalloc(&b, n * sizeof(float)));
  cudaStream_t main_stream, side;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  cudaGraph_t graph;
  cudaGraphExec_t two_steps;
  CHECK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
  issue_step(a, b, main_stream, side, fork, join);
  issue_step(b, a, main_stream, side, fork, join);
  CHECK(cudaStreamEndCapture(main_stream, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphInstantiate(&two_steps, graph, 0));
  for (int i = 0; i < kSteps; i += 2) CHECK(cudaGraphLaunch(two_steps, main_stream));
  CHECK(cudaStreamSynchronize(main_stream));
  const std::vector<float> result = to_host(a, n);
  CHECK(cudaGraphExecDestroy(two_steps));
  CHECK(cudaGraphDestroy(graph));

  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> old = field;
    for (int z = 1; z < kZ - 1; ++z)
      for (int y = 1; y < kY - 1; ++y)
        for (int x = 1; x < kX - 1; ++x) {
          const size_t at = (size_t(z) * kY + y) * kX + x;
          field[at] =
              0.25f * old[at] + 0.125f * (old[at - 1] + old[at + 1] + old[at - kX] + old[at + kX] +
                                          old[at - kX * kY] + old[at + kX * kY]);
        }
  }
  size_t wrong = nodes == 4 ? 0 : n;
  for (size_t i = 0; i < n; ++i) wrong += result[i] != field[i];
  return finish(argc, argv, "stencil3d", result, wrong);
}
