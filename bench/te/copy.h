#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

// bytes: a multiple of 16; both pointers 16-byte aligned.
cudaError_t launch_copy(const void* from, void* to, int64_t bytes, cudaStream_t stream);
