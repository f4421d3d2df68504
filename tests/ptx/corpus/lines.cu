// Inlining three deep, for .loc chains; compiled with -lineinfo and with -G.
struct Vector {
  float x, y;
  __device__ Vector operator+(const Vector& o) const { return {x + o.x, y + o.y}; }
  __device__ float dot(const Vector& o) const { return x * o.x + y * o.y; }
};

__device__ inline float helper(Vector a, Vector b) {
  Vector s = a + b;
  return s.dot(b);
}

__device__ inline float outer(const Vector* v, int i) {
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += helper(v[i + k], v[i]);
  return sum;
}

__global__ void lines(const Vector* v, float* out, int n) {
  __shared__ float partial[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = i < n ? outer(v, i) : 0.0f;
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0] + helper(v[0], v[1]);
}
