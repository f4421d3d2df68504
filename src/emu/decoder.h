#pragma once
// The decoder's working state, shared by the decode*.cc files. Not for use outside of them.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emu/decode.h"
#include "emu/ops.h"
#include "emu/regalloc.h"

namespace ptxbench::emu {

class Decoder {
 public:
  Decoder(std::shared_ptr<const ptx::Module> module, const std::vector<uint64_t>& globals)
      : module_(std::move(module)), globals_(globals) {}
  Result<std::shared_ptr<Kernel>> run(const std::string& name);

 private:
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;
  using Type = ptx::Type;

  // What one function's decoding needs.
  struct Scope {
    uint32_t function = 0, code_index = 0;
    const ptx::Function* f = nullptr;
    RegisterLayout layout;
    std::vector<uint32_t> variable_offset;  // local/param variables of the body: local offset;
                                            // shared: offset from kReservedShared
    std::vector<uint32_t> label_pc;
    int next_temp32 = 0, next_temp64 = 0;
  };

  // ------------------------------------------------------------------ decode.cc
  Result<void> layout_shared();
  Result<void> layout_locals(Scope& s, FunctionCode& code);
  Result<uint32_t> function_code(uint32_t function);  // index into kernel.functions, decoding later
  Result<void> decode_function(uint32_t code_index);
  Result<void> decode_instruction(Scope& s, const Instruction& i);
  Result<void> decode_scalar(Scope& s, const Instruction& i);
  Result<void> decode_control(Scope& s, const Instruction& i, bool* done);
  Result<void> decode_branch(Scope& s, const Instruction& i);
  Result<void> decode_barrier(Scope& s, const Instruction& i);
  Result<void> decode_move(Scope& s, const Instruction& i, bool* done);
  Result<void> decode_tensormap_fence(Scope& s, const Instruction& i);

  // ------------------------------------------------------------------ decode_call.cc
  Result<void> decode_call(Scope& s, const Instruction& i);
  Result<void> decode_stack(Scope& s, const Instruction& i);
  std::vector<uint32_t> call_candidates(const Scope& s, const Operand* signature) const;

  // ------------------------------------------------------------------ decode_memory.cc
  Result<void> decode_memory(Scope& s, const Instruction& i, bool* done);
  Result<MemorySite> address(Scope& s, const Instruction& i, const Operand& o);
  Result<void> load_store(Scope& s, const Instruction& i);
  Result<void> atomic(Scope& s, const Instruction& i);
  Result<void> convert_address(Scope& s, const Instruction& i);
  Result<void> mbarrier(Scope& s, const Instruction& i);
  Result<void> matrix(Scope& s, const Instruction& i);
  Result<void> wgmma(Scope& s, const Instruction& i);
  Result<void> address_register(Scope& s, const Instruction& i, const Operand& o, Slot* slot,
                                int64_t* offset);

  // ------------------------------------------------------------------ decode_async.cc
  Result<void> cp_async(Scope& s, const Instruction& i);
  Result<void> bulk(Scope& s, const Instruction& i);
  Result<void> remote(Scope& s, const Instruction& i);
  Result<void> tensormap(Scope& s, const Instruction& i);

  // ------------------------------------------------------------------ decode_mma.cc
  Result<void> mma(Scope& s, const Instruction& i);
  Result<void> wmma(Scope& s, const Instruction& i);
  Result<void> wmma_memory(Scope& s, const Instruction& i);
  Result<void> multiply(Scope& s, const Instruction& i, MmaSite site, MmaRegisters count,
                        int bytes);
  Result<std::vector<Slot>> fragment(Scope& s, const Instruction& i, const Operand& o, int expected,
                                     int bytes, bool written);

  // ------------------------------------------------------------------ helpers
  MicroOp& emit(Scope& s, const Instruction& i, Handler h);
  // Where an operand can be read as `type`; emits micro-ops before the instruction where the
  // operand is an address or a special register. Call before emit().
  Result<Slot> read(Scope& s, const Instruction& i, const Operand& o, Type type);
  Result<Slot> write(Scope& s, const Instruction& i, const Operand& o);
  Slot constant(Type type, uint64_t bits);
  uint64_t immediate_bits(const Operand& o, Type type) const;
  Slot temp(Scope& s, int bytes);
  struct Place {
    enum class Kind : uint8_t { global, parameter, shared, local } kind = Kind::global;
    uint64_t offset =
        0;  // global: device address; shared: from kReservedShared; local: in the frame
  };
  Place place(const Scope& s, const Operand& o) const;
  Result<Slot> variable_address(Scope& s, const Instruction& i, const Operand& o, int bytes);
  uint32_t family(const Instruction& i);
  Error unsupported(const Scope& s, const Instruction& i, const std::string& why) const;
  static Type register_type(int bytes) {
    return bytes <= 2 ? Type::b16 : bytes == 4 ? Type::b32 : bytes == 8 ? Type::b64 : Type::b128;
  }
  int operand_bytes(const Scope& s, const Operand& o) const;

  std::shared_ptr<const ptx::Module> module_;
  const std::vector<uint64_t>& globals_;
  std::shared_ptr<Kernel> kernel_;
  std::map<std::pair<int, uint64_t>, Slot> constants_;
  std::map<uint32_t, uint32_t> code_of_function_;
  std::vector<uint32_t> pending_;  // code indices to decode
  std::map<std::string, uint32_t> families_;
  std::vector<uint32_t> module_shared_offset_;  // by Module::variables
  struct Branch {
    uint32_t pc;
    uint32_t label;
  };
  std::vector<Branch> branches_;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> tables_;  // table index, label ids
  std::vector<uint32_t> call_sites_;  // pcs whose callee entry is patched at the end
};

enum Builtin : uint32_t { kNoBuiltin, kVprintf, kAssertFail, kMalloc, kFree };

}  // namespace ptxbench::emu
