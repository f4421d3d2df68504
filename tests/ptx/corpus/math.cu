// The mathematics library: slow paths, local arrays, many constants.
__global__ void functions(float* f, double* d) {
  int i = threadIdx.x;
  f[i] = sinf(f[i]) + cosf(f[i + 1]) + tanf(f[i + 2]) + expf(f[i + 3]) + logf(f[i + 4]);
  f[i + 5] = powf(f[i], f[i + 1]) + erff(f[i]) + tanhf(f[i]) + rsqrtf(f[i]) + cbrtf(f[i]) +
             fmodf(f[i], 3.0f);
  f[i + 6] =
      __sinf(f[i]) + __expf(f[i]) + __logf(f[i]) + __powf(f[i], 2.0f) + hypotf(f[i], f[i + 1]);
  f[i + 7] = isnan(f[i]) ? 1.0f : isinf(f[i]) ? 2.0f : copysignf(f[i], f[i + 1]) + ldexpf(f[i], 3);
  d[i] = exp(d[i]) + sqrt(d[i + 1]) + d[i + 2] / d[i + 3];
}
