// printf, assert, functions that are not inlined, recursion, function pointers, a jump table,
// structs by value.
#include <cassert>
#include <cstdio>

struct Big {
  double values[6];
  char tag;
};

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ Big scale(Big b, double f) {
  for (double& v : b.values) v *= f;
  b.tag++;
  return b;
}
using Function = int (*)(int);
__device__ int twice(int a) { return a * 2; }
__device__ int square(int a) { return a * a; }
__device__ Function table[3] = {twice, square, fibonacci};

__global__ void calls(int* out, Big* big, int which) {
  assert(which >= 0);
  out[0] = fibonacci(out[1]);
  out[2] = table[which](out[3]);
  *big = scale(*big, 0.5);
  if (threadIdx.x == 0) printf("thread %d says %f and %s\n", threadIdx.x, big->values[0], "hello");
}

__global__ void jump(int* out, int which) {
  switch (which) {
    case 0:
      out[0] = out[1] + 1;
      break;
    case 1:
      out[2] = out[3] * 3;
      break;
    case 2:
      out[4] = out[5] / 7;
      break;
    case 3:
      out[6] = twice(out[7]) ^ 12;
      break;
    case 4:
      out[8] = out[9] - 4;
      break;
    case 5:
      out[10] = out[11] << 3;
      break;
    case 6:
      out[12] = fibonacci(out[1]);
      break;
    default:
      __trap();
  }
}
