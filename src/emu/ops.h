#pragma once
// Handlers of the instructions that need more than registers, by file. Each is found by decode.cc.

#include "emu/micro_op.h"

namespace ptxbench::emu::ops {

// ops_control.cc
void branch(RegisterView&, const MicroOp&, uint32_t mask);        // extra: target pc
void branch_table(RegisterView&, const MicroOp&, uint32_t mask);  // operand 0: index; extra: table
void exit(RegisterView&, const MicroOp&, uint32_t mask);
void trap(RegisterView&, const MicroOp&, uint32_t mask);
void no_operation(RegisterView&, const MicroOp&, uint32_t mask);
void pause(RegisterView&, const MicroOp&, uint32_t mask);  // nanosleep: end of the time slice
void read_special(RegisterView&, const MicroOp&,
                  uint32_t mask);  // operand 0: dst; imm: Special | component << 8 | bytes << 16
void shared_address(RegisterView&, const MicroOp&,
                    uint32_t mask);  // operand 0: dst; imm: offset | bytes << 32
void local_address(RegisterView&, const MicroOp&, uint32_t mask);  // likewise, in the current frame
void set_max_registers(RegisterView&, const MicroOp&,
                       uint32_t mask);  // imm: count | increase << 32

// ops_builtin.cc
void call_builtin(RegisterView&, const MicroOp&, uint32_t mask);  // extra: CallSite

// ops_call.cc; extra: CallSite
void call(RegisterView&, const MicroOp&, uint32_t mask);
void call_indirect(RegisterView&, const MicroOp&, uint32_t mask);
void ret(RegisterView&, const MicroOp&, uint32_t mask);
void stack_allocate(RegisterView&, const MicroOp&,
                    uint32_t mask);  // operand 0: address, 1: size; imm: bytes | align << 8
void stack_save(RegisterView&, const MicroOp&, uint32_t mask);     // 0: top; imm: bytes
void stack_restore(RegisterView&, const MicroOp&, uint32_t mask);  // 0: top; imm: bytes

// ops_barrier.cc
void barrier_sync(RegisterView&, const MicroOp&,
                  uint32_t mask);  // operand 0: id, 1: count; imm: has count
void barrier_arrive(RegisterView&, const MicroOp&, uint32_t mask);
void barrier_reduce(RegisterView&, const MicroOp&,
                    uint32_t mask);  // operand 0: d, 1: id, 2: count, 3: predicate; imm
void cluster_arrive(RegisterView&, const MicroOp&, uint32_t mask);  // imm: relaxed
void cluster_wait(RegisterView&, const MicroOp&, uint32_t mask);
void fence(RegisterView&, const MicroOp&,
           uint32_t mask);  // imm 1: proxy.async, 2: mbarrier_init; extra: SyncScope, 4: .sc

// ops_memory.cc; extra: MemorySite
void load_global(RegisterView&, const MicroOp&, uint32_t mask);
void load_shared(RegisterView&, const MicroOp&, uint32_t mask);
void load_local(RegisterView&, const MicroOp&, uint32_t mask);
void load_param(RegisterView&, const MicroOp&, uint32_t mask);
void load_generic(RegisterView&, const MicroOp&, uint32_t mask);
void store_global(RegisterView&, const MicroOp&, uint32_t mask);
void store_shared(RegisterView&, const MicroOp&, uint32_t mask);
void store_local(RegisterView&, const MicroOp&, uint32_t mask);
void store_generic(RegisterView&, const MicroOp&, uint32_t mask);

// ops_atomic.cc; extra: MemorySite (results, operands, second operands), imm: AtomicOp | Type << 8
// | has result << 16 | space << 24 | vector length << 32
void atomic(RegisterView&, const MicroOp&, uint32_t mask);

// ops_address.cc
void to_generic(RegisterView&, const MicroOp&, uint32_t mask);    // imm: window
void from_generic(RegisterView&, const MicroOp&, uint32_t mask);  // imm: window
void is_space(RegisterView&, const MicroOp&, uint32_t mask);      // imm: Space
void map_shared(RegisterView&, const MicroOp&, uint32_t mask);    // mapa; imm: operand bytes
void get_rank(RegisterView&, const MicroOp&, uint32_t mask);      // getctarank; imm: operand bytes

void widen_address(RegisterView&, const MicroOp&, uint32_t mask);  // 0: 64-bit dst, 1: 32-bit src
void write_zero64(RegisterView&, const MicroOp&, uint32_t mask);   // 0: 64-bit dst

// ops_mbarrier.cc; extra: MemorySite (address), operands as noted
void mbarrier_init(RegisterView&, const MicroOp&, uint32_t mask);  // 0: count
void mbarrier_inval(RegisterView&, const MicroOp&, uint32_t mask);
void mbarrier_arrive(RegisterView&, const MicroOp&,
                     uint32_t mask);  // 0: state or sink, 1: count/tx, imm: MbarrierFlags
void mbarrier_expect_tx(RegisterView&, const MicroOp&, uint32_t mask);    // 0: bytes
void mbarrier_complete_tx(RegisterView&, const MicroOp&, uint32_t mask);  // 0: bytes
void mbarrier_wait(RegisterView&, const MicroOp&,
                   uint32_t mask);  // 0: predicate, 1: parity or state
void mbarrier_pending_count(RegisterView&, const MicroOp&, uint32_t mask);  // 0: dst, 1: state
enum MbarrierFlags : uint64_t {
  kDrop = 1,
  kExpectTx = 2,
  kHasCount = 4,
  kParity = 8,
  kTryWait = 16,
  kRelaxed = 32
};

// ops_async.cc
void cp_async(RegisterView&, const MicroOp&,
              uint32_t mask);  // extra: BulkSite; imm: bytes | has src size << 32
void cp_async_commit(RegisterView&, const MicroOp&, uint32_t mask);
void cp_async_wait(RegisterView&, const MicroOp&,
                   uint32_t mask);  // imm: groups left, ~0 = wait_all
void cp_async_mbarrier_arrive(RegisterView&, const MicroOp&,
                              uint32_t mask);  // extra: MemorySite; imm: noinc

// ops_bulk.cc; extra: BulkSite
void bulk_load(RegisterView&, const MicroOp&, uint32_t mask);   // global (or shared::cta) -> shared
void bulk_store(RegisterView&, const MicroOp&, uint32_t mask);  // shared -> global, reductions too
void bulk_commit(RegisterView&, const MicroOp&, uint32_t mask);
void bulk_wait(RegisterView&, const MicroOp&, uint32_t mask);  // imm: groups left; extra: .read

// ops_matrix.cc
void ldmatrix(RegisterView&, const MicroOp&,
              uint32_t mask);  // extra: MemorySite; imm: count | trans << 8
void stmatrix(RegisterView&, const MicroOp&, uint32_t mask);

// ops_mma.cc
void mma(RegisterView&, const MicroOp&, uint32_t mask);          // also wmma.mma; extra: MmaSite
void wmma_memory(RegisterView&, const MicroOp&, uint32_t mask);  // extra: WmmaMemorySite

void movmatrix(RegisterView&, const MicroOp&, uint32_t mask);  // operand 0: d, 1: a

// ops_remote.cc; extra: MemorySite of the destination, then of the mbarrier; imm: AtomicOp
// (st.async: 0xff) | Type << 8
void remote_store(RegisterView&, const MicroOp&, uint32_t mask);

// ops_tensormap.cc; extra: MemorySite
void tensormap_replace(RegisterView&, const MicroOp&,
                       uint32_t mask);  // 0: value; imm: MapField | 64 bits << 8 | ordinal << 16
void tensormap_copy(RegisterView&, const MicroOp&, uint32_t mask);   // extra + 1: the source
void tensormap_fence(RegisterView&, const MicroOp&, uint32_t mask);  // imm: acquire

// ops_wgmma.cc
void wgmma_issue(RegisterView&, const MicroOp&, uint32_t mask);  // extra: WgmmaSite
void wgmma_fence(RegisterView&, const MicroOp&, uint32_t mask);
void wgmma_commit(RegisterView&, const MicroOp&, uint32_t mask);
void wgmma_wait(RegisterView&, const MicroOp&, uint32_t mask);  // imm: groups left

}  // namespace ptxbench::emu::ops
