#pragma once
// A kernel after decoding: micro-ops, constants, register layout, and what reports need to know
// about each instruction.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/memory_order.h"
#include "emu/micro_op.h"
#include "emu/mma.h"
#include "emu/tensor_core.h"
#include "emu/wmma.h"
#include "ptx/ast.h"

namespace ptxbench::emu {

// MicroOp::flags
enum OpFlag : uint16_t {
  kAligned = 1,        // .aligned: all live lanes of the warp must be here together
  kMemberMask = 2,     // .sync with a member mask: the named lanes must be here together
  kTouchesMatrix = 4,  // reads or writes a register that some wgmma uses (and is no wgmma itself)
  kIsMove = 8,         // register-to-register copy
  kWritesMatrix = 16,  // writes such a register
  kMemorySite = 32,    // extra is an index into Kernel::memories
};

struct OpInfo {
  const ptx::Instruction* instruction = nullptr;  // null for internal ops
  uint32_t function = 0;                          // index into Module::functions
  uint16_t family = 0;                            // index into Kernel::families
  Slot member_mask = 0;                           // kMemberMask: where the mask is
};

// Side table entries (MicroOp::extra)
struct WgmmaSite {
  WgmmaForm form;
  std::vector<Slot> d;  // accumulator registers
  std::vector<Slot> a;  // A fragment registers, empty if from shared memory
  Slot a_descriptor = 0, b_descriptor = 0;
  Slot metadata = 0;      // of a sparse form
  int scale_d_pred = -1;  // predicate slot; -1: constant
  bool scale_d_negated = false, scale_d_value = true;
};
struct MmaSite {
  bool is_wmma = false;
  MmaForm form;
  WmmaForm wmma;
  std::vector<Slot> a, b, c, d;  // fragment registers
  Slot metadata = 0;             // of a sparse form
};
struct MemorySite {
  std::vector<Slot> values;  // vector elements
  uint8_t element_bytes = 0, register_bytes = 0;
  bool sign_extend = false;
  bool is_store = false;
  MemoryOrder order;
  int64_t offset = 0;      // added to the base address
  Slot base = 0;           // address register
  uint8_t base_bytes = 8;  // 4 or 8
  enum class Base : uint8_t { reg, shared_constant, absolute } base_kind = Base::absolute;
};
struct WmmaMemorySite {
  WmmaFragment fragment;
  bool column_major = false, is_store = false;
  ptx::Space space{};
  std::vector<Slot> values;
  MemorySite address;
  Slot stride = 0;   // in elements
  Slot scratch = 0;  // register for one element at a time
};
struct CallTarget {
  uint32_t callee = 0;  // index into Kernel::functions
  struct Copy {
    uint32_t caller, callee, bytes;
  };
  std::vector<Copy> arguments, results;  // local-memory offsets
};
struct CallSite {
  std::vector<CallTarget> targets;  // one, or the candidates of an indirect call
  Slot pointer = 0;                 // of an indirect call: the function's address
  // built-in callee (decoder.h); 0 = none
  uint32_t builtin = 0;
  std::vector<uint32_t> argument_offsets;  // of a builtin
  uint32_t result_offset = 0;
};
struct BulkSite {    // bulk and tensor copies
  uint8_t dims = 0;  // 0: plain bulk copy
  std::vector<Slot> coordinates;
  Slot dst = 0, src = 0, size = 0, mbarrier = 0, multicast = 0, map = 0;
  std::vector<Slot> image_offsets;  // of an im2col load
  bool im2col = false;
  bool has_multicast = false;
  uint8_t reduce = 0xff;  // ReduceOp
  ptx::Type type{};
  int64_t dst_offset = 0, src_offset = 0, mbarrier_offset = 0, map_offset = 0;
};

struct FunctionCode {
  uint32_t function = 0;  // Module::functions
  uint32_t entry_pc = 0;
  uint32_t register_bytes = 0;  // frame size, multiple of 64
  uint32_t predicates = 0;      // of the frame, including the fixed ones
  uint32_t local_bytes = 0;     // .local and call .param variables and own parameters, per thread
  std::vector<uint32_t> param_local;  // local offset of each parameter (device functions)
  std::vector<uint32_t> return_local;
  int live_slots = 0;  // 32-bit registers after allocation
};

struct SharedSymbol {
  std::string name;
  uint32_t offset = 0, size = 0;
};

struct Kernel {
  std::shared_ptr<const ptx::Module> module;
  std::string name;
  uint32_t entry = 0;  // Module::functions
  std::vector<MicroOp> code;
  std::vector<OpInfo> info;  // parallel to code
  std::vector<std::string> families;
  std::vector<FunctionCode> functions;  // [0] is the kernel itself
  std::vector<uint8_t> constants;       // aligned storage is made by the executor
  std::vector<WgmmaSite> wgmmas;
  std::vector<MmaSite> mmas;
  std::vector<WmmaMemorySite> wmma_memories;
  std::vector<MemorySite> memories;
  std::vector<CallSite> calls;
  std::vector<BulkSite> bulks;
  std::vector<std::vector<uint32_t>> branch_tables;
  uint32_t static_shared = 0;          // bytes of .shared variables
  uint32_t dynamic_shared_offset = 0;  // where extern .shared starts, relative to kReservedShared
  std::vector<SharedSymbol> shared_symbols;
  bool stores_async = false;               // st.async or red.async
  bool prints = false, allocates = false;  // calls vprintf; malloc or free
  bool communicates = false;  // global atomics, acquire/volatile loads: CTAs run on one thread
  bool has_clusters = false;
};

}  // namespace ptxbench::emu
