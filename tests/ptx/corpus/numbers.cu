// Half, bfloat16, fp8, double and integer arithmetic and the conversions between them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void halves(__half2* h, __nv_bfloat162* b, float* f) {
  __half2 x = h[0], y = h[1];
  h[2] = __hfma2(x, y, h[3]);
  h[4] = __hmul2(__hadd2(x, y), __hsub2(x, y));
  h[5] = h2exp2(x);
  h[6] = __hmax2(x, __hmin2(y, x));
  h[7] = __hfma2_relu(x, y, x);
  h[8].x = __hgt(x.x, y.x) ? x.y : y.y;
  h[9] = __hadd2_sat(x, y);
  __nv_bfloat162 p = b[0], q = b[1];
  b[2] = __hfma2(p, q, b[3]);
  b[4] = __hmax2(p, q);
  b[5] = __habs2(__hneg2(p));
  b[6] = __floats2bfloat162_rn(f[0], f[1]);
  f[2] = __bfloat162float(p.x) + __half2float(x.x);
  f[3] = __low2float(x) + __high2float(p);
  h[10].x = __float2half_rz(f[4]);
  h[10].y = __int2half_rn(int(f[5]));
  f[6] = htanh(x.x);
}

__global__ void eights(__nv_fp8_e4m3* a, __nv_fp8_e5m2* b, __nv_fp8x2_e4m3* c, __nv_fp8x4_e4m3* d,
                       float* f) {
  a[0] = __nv_fp8_e4m3(f[0]);
  b[0] = __nv_fp8_e5m2(f[1]);
  f[2] = float(a[1]) + float(b[1]);
  c[0] = __nv_fp8x2_e4m3(make_float2(f[3], f[4]));
  d[0] = __nv_fp8x4_e4m3(make_float4(f[5], f[6], f[7], f[8]));
  float4 v = float4(d[1]);
  f[9] = v.x + v.y * v.z - v.w;
}

__global__ void integers(long long* a, int* b, unsigned char* c, unsigned short* d,
                         unsigned long long* u) {
  a[0] = a[1] / a[2] + a[3] % a[4];
  b[0] = b[1] / b[2] + b[3] % 13;
  u[0] = u[1] / 10 + __umul64hi(u[2], u[3]) + (u[4] >> 3);
  c[0] = c[1] * c[2] + (signed char)(c[3]) / 3;
  d[0] = d[1] % 7 + (short)(d[2]) * d[3];
  a[5] = (long long)(b[4]) * b[5] + (a[6] < a[7] ? a[8] : ~a[9]);
  __int128 wide = (__int128)a[10] * a[11];
  a[12] = (long long)(wide >> 64);
  b[6] = max(b[7], min(b[8], b[9])) - abs(b[10]);
}

__global__ void conversions(double* d, float* f, int* i, unsigned long long* u) {
  d[0] = f[0] + double(i[0]) + double(u[0]);
  f[1] = float(d[1]);
  i[1] = int(f[2]) + __float2int_rd(f[3]) + __double2int_ru(d[2]) + int(rintf(f[4])) +
         int(floor(d[3]));
  u[1] = (unsigned long long)(f[5]) + __double2ull_rn(d[4]);
  f[6] = ceilf(f[7]) + truncf(f[8]) + roundf(f[9]) + __saturatef(f[10]) + __int_as_float(i[2]);
  d[5] = __fma_rz(d[6], d[7], d[8]) + __ddiv_rn(d[9], d[10]) + __dsqrt_rn(d[11]);
  f[11] = __fdividef(f[12], f[13]) + __frcp_rn(f[14]) + __fsqrt_rd(f[15]) + __fadd_ru(f[1], f[2]);
}
