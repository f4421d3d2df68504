// The smallest program that uses the device.
__global__ void nothing() {}

int main() {
  nothing<<<1, 1>>>();
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
