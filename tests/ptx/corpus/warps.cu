// Warp intrinsics, bit operations, barriers, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void warps(int* out, unsigned mask) {
  int lane = threadIdx.x & 31, v = out[threadIdx.x];
  v += __shfl_sync(mask, v, 3) + __shfl_up_sync(mask, v, 1) + __shfl_down_sync(mask, v, 2, 16) +
       __shfl_xor_sync(mask, v, 8);
  v += __any_sync(mask, v > 3) + __all_sync(mask, v > 4) + __ballot_sync(mask, v & 1);
  int all_equal;
  v += __match_any_sync(mask, v) + __match_all_sync(mask, v, &all_equal) + all_equal;
  v += __reduce_add_sync(mask, v) + __reduce_max_sync(mask, v) +
       __reduce_xor_sync(mask, unsigned(v));
  v += __activemask() + __popc(v) + __clz(v) + __ffs(v) + __brev(v) + __byte_perm(v, lane, 0x1234);
  v += __funnelshift_l(v, lane, 5) + __popcll(out[1]) + __dp4a(v, lane, 3) + __sad(v, lane, 1u);
  v += __vadd4(v, lane) + __vabsdiffu4(v, lane) + __mulhi(v, lane) + __umul24(v, lane) +
       __fns(v, 0, 1);
  __syncwarp(mask);
  v += __syncthreads_count(v > 0) + __syncthreads_and(v) + __syncthreads_or(v);
  __nanosleep(20);
  out[threadIdx.x] = v + int(clock64());
}

__global__ void groups(int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int v = cg::reduce(tile, out[block.thread_rank()], cg::plus<int>());
  tile.sync();
  cg::coalesced_group active = cg::coalesced_threads();
  out[block.thread_rank()] = v + active.size() + tile.shfl(v, 2);
}

__global__ void whole_grid(int* out) {
  cg::grid_group grid = cg::this_grid();
  out[grid.thread_rank()] += 1;
  grid.sync();
  out[grid.thread_rank()] += out[0];
}

__global__ void __cluster_dims__(2, 1, 1) clusters(int* out) {
  __shared__ int value;
  cg::cluster_group cluster = cg::this_cluster();
  value = threadIdx.x;
  cluster.sync();
  int* other = cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
  out[threadIdx.x] = *other + cluster.num_blocks();
  cluster.sync();
}
