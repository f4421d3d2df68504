// Inline PTX for sm_100a: tensor memory, tcgen05, packed f32, 256-bit stores.
#include <cuda.h>

#include <cstdint>

__global__ void tensor(uint64_t a, uint64_t b, uint32_t idesc, uint32_t* out,
                       const __grid_constant__ CUtensorMap map) {
  __shared__ uint32_t tmem;
  __shared__ __align__(8) uint64_t done;
  __shared__ __align__(1024) uint8_t tile[16384];
  uint32_t t = uint32_t(__cvta_generic_to_shared(&tmem)),
           m = uint32_t(__cvta_generic_to_shared(&done));
  uint32_t s = uint32_t(__cvta_generic_to_shared(tile));
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(t));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, "
      "%2, %2}], [%3];" ::"r"(s),
      "l"(&map), "r"(0), "r"(m));
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n"
      "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], [%4], %2, %3, p; }" ::"r"(tmem),
      "l"(a), "l"(b), "r"(idesc), "r"(tmem));
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(m));
  asm volatile("tcgen05.fence::after_thread_sync;");
  uint32_t r[8];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
                 "=r"(r[7])
               : "r"(tmem));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(out), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]));
  uint64_t packed;
  asm volatile("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(packed) : "l"(a), "l"(b));
  out[9] = uint32_t(packed);
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(a));
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(tmem));
}
