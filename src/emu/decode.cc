#include "emu/decode.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emu/address.h"
#include "emu/decoder.h"
#include "emu/isa.h"
#include "ptx/def_use.h"
#include "ptx/parser.h"

namespace ptxbench::emu {
namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

uint32_t align_up(uint32_t v, uint32_t a) { return a < 2 ? v : (v + a - 1) / a * a; }

constexpr char kNotImplemented[] = "this instruction form is not implemented in the emulator";

// A branch target or the name of a target table.
bool names_label(const Operand& o) {
  return o.kind == Operand::Kind::label || o.kind == Operand::Kind::string;
}

bool is_shared(Space s) {
  return s == Space::shared || s == Space::shared_cta || s == Space::shared_cluster;
}

}  // namespace

// -------------------------------------------------------------------------------------------
// helpers

Error Decoder::unsupported(const Scope& s, const ptx::Instruction& i,
                           const std::string& why) const {
  return Error{"unsupported",
               fmt::format("{}: line {}: `{}`: {}", kernel_->name, i.line,
                           ptx::print(i, *s.f, *module_), why),
               {"", static_cast<int>(i.line), static_cast<int>(i.column)}};
}

uint32_t Decoder::family(const Instruction& i) {
  std::string name = ptx::family(i);
  auto [it, fresh] = families_.try_emplace(name, static_cast<uint32_t>(kernel_->families.size()));
  if (fresh) kernel_->families.push_back(name);
  return it->second;
}

MicroOp& Decoder::emit(Scope& s, const Instruction& i, Handler h) {
  MicroOp op;
  op.handler = h;
  if (i.guard != ptx::kNone) {
    op.guard = static_cast<uint32_t>(s.layout.slot[i.guard]);
    op.guard_negated = i.guard_negated;
  }
  bool touches = false, writes = false;
  ptx::for_each_register(i, [&](uint32_t r, bool w) {
    if (s.layout.is_matrix[r]) touches = true, writes |= w;
  });
  bool wgmma = i.op == Op::wgmma_mma_async || i.op == Op::wgmma_mma_async_sp;
  if (touches && !wgmma) op.flags |= kTouchesMatrix | (writes ? kWritesMatrix : 0);
  if (i.op == Op::mov) op.flags |= kIsMove;
  kernel_->code.push_back(op);
  OpInfo info;
  info.instruction = &i;
  info.function = s.function;
  info.family = static_cast<uint16_t>(family(i));
  kernel_->info.push_back(info);
  return kernel_->code.back();
}

Slot Decoder::constant(Type type, uint64_t bits) {
  int bytes = type == Type::b128 ? 16 : std::max(2, (ptx::bits(type) + 7) / 8);
  auto key = std::make_pair(bytes, bits);
  if (auto it = constants_.find(key); it != constants_.end()) return it->second;
  uint32_t at = static_cast<uint32_t>(kernel_->constants.size());
  kernel_->constants.resize(at + static_cast<size_t>(bytes) * 32);
  for (int l = 0; l < 32; l++)
    std::memcpy(kernel_->constants.data() + at + l * bytes, &bits, std::min(bytes, 8));
  return constants_[key] = ~static_cast<Slot>(at);
}

uint64_t Decoder::immediate_bits(const Operand& o, Type type) const {
  if (o.kind == Operand::Kind::floating) {
    double d = o.is_f32 ? std::bit_cast<float>(static_cast<uint32_t>(o.value))
                        : std::bit_cast<double>(o.value);
    if (ptx::bits(type) == 64) return std::bit_cast<uint64_t>(d);
    if (o.is_f32) return o.value & 0xffffffffu;
    return std::bit_cast<uint32_t>(static_cast<float>(d));
  }
  int n = ptx::bits(type);
  uint64_t v = o.negated ? -o.value : o.value;
  return n >= 64 ? v : v & ((uint64_t{1} << n) - 1);
}

Slot Decoder::temp(Scope& s, int bytes) {
  return bytes <= 4 ? s.layout.temp32[s.next_temp32++ % 4] : s.layout.temp64[s.next_temp64++ % 4];
}

int Decoder::operand_bytes(const Scope& s, const Operand& o) const {
  return o.kind == Operand::Kind::reg ? register_bytes(s.f->registers[o.index]) : 0;
}

Decoder::Place Decoder::place(const Scope& s, const Operand& o) const {
  const FunctionCode& code = kernel_->functions[s.code_index];
  if (o.is_param)
    return s.f->is_entry ? Place{Place::Kind::parameter, s.f->param_offsets[o.index]}
                         : Place{Place::Kind::local, code.param_local[o.index]};
  if (o.is_return) return {Place::Kind::local, code.return_local[o.index]};
  if (o.is_local) {
    bool shared = is_shared(s.f->variables[o.index].space);
    return {shared ? Place::Kind::shared : Place::Kind::local, s.variable_offset[o.index]};
  }
  if (is_shared(module_->variables[o.index].space))
    return {Place::Kind::shared, module_shared_offset_[o.index]};
  return {Place::Kind::global, globals_[o.index]};
}

// Dynamic shared memory starts where the static part ends, which is known only after all functions
// are laid out: until then its offsets carry this mark (offsets within it stay below 16 MiB).
constexpr uint32_t kDynamicMark = 0x40000000;

Result<Slot> Decoder::variable_address(Scope& s, const Instruction& i, const Operand& o,
                                       int bytes) {
  Place at = place(s, o);
  at.offset += static_cast<uint64_t>(o.offset);
  if (at.kind == Place::Kind::global || at.kind == Place::Kind::parameter)
    return constant(bytes == 4 ? Type::b32 : Type::b64, at.offset);
  Slot t = temp(s, bytes);
  MicroOp& op =
      emit(s, i, at.kind == Place::Kind::shared ? ops::shared_address : ops::local_address);
  op.operand[0] = t;
  op.imm = (at.offset & 0xffffffffu) | static_cast<uint64_t>(bytes) << 32;
  return t;
}

Result<Slot> Decoder::read(Scope& s, const Instruction& i, const Operand& o, Type type) {
  switch (o.kind) {
    case Operand::Kind::reg:
      return s.layout.slot[o.index];
    case Operand::Kind::integer:
    case Operand::Kind::floating:
      if (type == Type::pred) return static_cast<Slot>(o.value ? 0 : 1);
      return constant(type, immediate_bits(o, type));
    case Operand::Kind::special: {
      int bytes = ptx::bits(type) <= 32 ? 4 : 8;
      Slot t = temp(s, bytes);
      MicroOp& op = emit(s, i, ops::read_special);
      op.operand[0] = t;
      op.imm =
          o.index | static_cast<uint64_t>(o.component) << 8 | static_cast<uint64_t>(bytes) << 16;
      return t;
    }
    case Operand::Kind::variable:
      return variable_address(s, i, o, ptx::bits(type) <= 32 ? 4 : 8);
    case Operand::Kind::function:
      return constant(Type::b64, kFunctionWindow + o.index);
    case Operand::Kind::sink:
      return s.layout.sink;
    default:
      return unsupported(s, i, "operand of a kind that is not read here");
  }
}

Result<Slot> Decoder::write(Scope& s, const Instruction& i, const Operand& o) {
  if (o.kind == Operand::Kind::reg) return s.layout.slot[o.index];
  if (o.kind == Operand::Kind::sink) return s.layout.sink;
  return unsupported(s, i, "destination is neither a register nor _");
}

// -------------------------------------------------------------------------------------------
// layout

Result<void> Decoder::layout_shared() {
  uint32_t at = 0;
  module_shared_offset_.assign(module_->variables.size(), 0);
  uint32_t dynamic_align = 16;
  for (uint32_t v = 0; v < module_->variables.size(); v++) {
    const ptx::Variable& var = module_->variables[v];
    if (!is_shared(var.space)) continue;
    if (var.linkage == ptx::Linkage::extern_ || var.size == 0) {
      module_shared_offset_[v] = kDynamicMark;
      dynamic_align = std::max(dynamic_align, var.align);
      continue;
    }
    at = align_up(at, var.align);
    module_shared_offset_[v] = at;
    kernel_->shared_symbols.push_back({var.name, at, static_cast<uint32_t>(var.size)});
    at += static_cast<uint32_t>(var.size);
  }
  kernel_->static_shared = at;  // function-scope variables are added as functions are laid out
  kernel_->dynamic_shared_offset = dynamic_align;
  return {};
}

Result<void> Decoder::layout_locals(Scope& s, FunctionCode& code) {
  uint32_t local = 0;
  s.variable_offset.assign(s.f->variables.size(), 0);
  for (uint32_t v = 0; v < s.f->variables.size(); v++) {
    const ptx::Variable& var = s.f->variables[v];
    if (is_shared(var.space)) {
      if (var.size == 0) {
        s.variable_offset[v] = kDynamicMark;
        continue;
      }
      kernel_->static_shared = align_up(kernel_->static_shared, var.align);
      s.variable_offset[v] = kernel_->static_shared;
      kernel_->shared_symbols.push_back(
          {var.name, kernel_->static_shared, static_cast<uint32_t>(var.size)});
      kernel_->static_shared += static_cast<uint32_t>(var.size);
      continue;
    }
    local = align_up(local, std::max(var.align, 4u));
    s.variable_offset[v] = local;
    if (var.size > (1u << 24))
      return Error{"unsupported", "local variable " + var.name + " is too large"};
    local += static_cast<uint32_t>(var.size);
  }
  auto add = [&](const std::vector<ptx::Variable>& list,
                 std::vector<uint32_t>* offsets) -> Result<void> {
    for (const ptx::Variable& var : list) {
      if (var.reg != ptx::kNone)
        return Error{"unsupported", s.f->name + ": parameters in registers are not supported"};
      local = align_up(local, std::max(var.align, 4u));
      offsets->push_back(local);
      local += static_cast<uint32_t>(var.size);
    }
    return {};
  };
  if (!s.f->is_entry) {
    PB_RETURN_IF_ERROR(add(s.f->params, &code.param_local));
    PB_RETURN_IF_ERROR(add(s.f->returns, &code.return_local));
  }
  code.local_bytes = align_up(local, 16);
  return {};
}

Result<uint32_t> Decoder::function_code(uint32_t function) {
  if (auto it = code_of_function_.find(function); it != code_of_function_.end()) return it->second;
  uint32_t index = static_cast<uint32_t>(kernel_->functions.size());
  kernel_->functions.push_back({});
  kernel_->functions.back().function = function;
  code_of_function_[function] = index;
  pending_.push_back(index);
  return index;
}

// --------------------------------------------------------------------------------------------- run

Result<std::shared_ptr<Kernel>> Decoder::run(const std::string& name) {
  kernel_ = std::make_shared<Kernel>();
  kernel_->module = module_;
  kernel_->name = name;
  kernel_->families.push_back("");
  uint32_t entry = ptx::kNone;
  for (uint32_t f = 0; f < module_->functions.size(); f++)
    if (module_->functions[f].name == name && module_->functions[f].is_entry &&
        !module_->functions[f].is_declaration)
      entry = f;
  if (entry == ptx::kNone)
    return Error{"unknown-kernel", "no kernel named " + name + " in the module"};
  kernel_->entry = entry;
  PB_RETURN_IF_ERROR(layout_shared());
  PB_RETURN_IF_ERROR(function_code(entry));
  while (!pending_.empty()) {
    uint32_t next = pending_.back();
    pending_.pop_back();
    PB_RETURN_IF_ERROR(decode_function(next));
  }
  for (uint32_t pc : call_sites_) {
    MicroOp& op = kernel_->code[pc];
    for (CallTarget& target : kernel_->calls[op.extra].targets) {
      const FunctionCode& callee = kernel_->functions[target.callee];
      for (size_t a = 0; a < target.arguments.size() && a < callee.param_local.size(); a++)
        target.arguments[a].callee = callee.param_local[a];
      for (size_t r = 0; r < target.results.size() && r < callee.return_local.size(); r++)
        target.results[r].callee = callee.return_local[r];
    }
  }
  // Dynamic shared memory follows the static part.
  kernel_->dynamic_shared_offset = align_up(kernel_->static_shared, kernel_->dynamic_shared_offset);
  for (MicroOp& op : kernel_->code)
    if (op.handler == ops::shared_address && (op.imm & kDynamicMark))
      op.imm = (op.imm & ~uint64_t{kDynamicMark}) + kernel_->dynamic_shared_offset;
  for (MemorySite& m : kernel_->memories)
    if (m.base_kind == MemorySite::Base::shared_constant && (m.offset & kDynamicMark))
      m.offset = (m.offset & ~int64_t{kDynamicMark}) + kernel_->dynamic_shared_offset;
  const ptx::Function& f = module_->functions[entry];
  kernel_->has_clusters = !f.directives.reqnctapercluster.empty() || f.directives.explicitcluster;
  return kernel_;
}

Result<void> Decoder::decode_function(uint32_t code_index) {
  Scope s;
  s.code_index = code_index;
  s.function = kernel_->functions[code_index].function;
  s.f = &module_->functions[s.function];
  if (s.f->is_declaration)
    return Error{"unsupported",
                 fmt::format("{}: calls {}, which has no body", kernel_->name, s.f->name)};
  s.layout = allocate_registers(*s.f);
  FunctionCode code = kernel_->functions[code_index];
  code.register_bytes = s.layout.register_bytes;
  code.predicates = s.layout.predicates;
  code.live_slots = s.layout.live_slots;
  PB_RETURN_IF_ERROR(layout_locals(s, code));
  kernel_->functions[code_index] = code;
  code.entry_pc = static_cast<uint32_t>(kernel_->code.size());
  s.label_pc.assign(s.f->labels.size(), 0);
  branches_.clear();
  tables_.clear();
  for (const ptx::Statement& st : s.f->body) {
    if (auto* l = std::get_if<ptx::LabelMark>(&st))
      s.label_pc[l->label] = static_cast<uint32_t>(kernel_->code.size());
    else if (auto* i = std::get_if<ptx::Instruction>(&st))
      PB_RETURN_IF_ERROR(decode_instruction(s, *i));
  }
  // Falling off the end returns.
  MicroOp end;
  end.handler = s.f->is_entry ? ops::exit : ops::ret;
  kernel_->code.push_back(end);
  kernel_->info.push_back({nullptr, s.function, 0, 0});
  for (const Branch& b : branches_) kernel_->code[b.pc].extra = s.label_pc[b.label];
  for (auto& [table, labels] : tables_)
    for (uint32_t l : labels) kernel_->branch_tables[table].push_back(s.label_pc[l]);
  kernel_->functions[code_index].entry_pc = code.entry_pc;
  return {};
}

// ----------------------------------------------------------------------------------------
// instructions

// A register declared .v2 or .v4, or an element of one.
static bool is_vector_register(const ptx::Function& f, const Operand& o) {
  const bool names_one = o.kind == Operand::Kind::reg ||
                         (o.kind == Operand::Kind::address && o.base == Operand::Base::reg);
  if (names_one && o.index < f.registers.size() && f.registers[o.index].vector != 1) return true;
  return std::any_of(o.elements.begin(), o.elements.end(),
                     [&](const Operand& e) { return is_vector_register(f, e); });
}

Result<void> Decoder::decode_instruction(Scope& s, const Instruction& i) {
  s.next_temp32 = s.next_temp64 = 0;
  for (const Operand& o : i.operands)
    if (is_vector_register(*s.f, o))
      return unsupported(s, i, "registers declared .v2 or .v4 are not emulated");
  if (const char* why = refused(i.op)) return unsupported(s, i, why);
  if (i.op == Op::mma) return mma(s, i);
  if (i.op == Op::wmma_mma || i.op == Op::wmma_load || i.op == Op::wmma_store) return wmma(s, i);
  bool done = false;
  PB_RETURN_IF_ERROR(decode_control(s, i, &done));
  if (done) return {};
  PB_RETURN_IF_ERROR(decode_memory(s, i, &done));
  if (done) return {};
  PB_RETURN_IF_ERROR(decode_move(s, i, &done));
  if (done) return {};
  return decode_scalar(s, i);
}

Result<void> Decoder::decode_move(Scope& s, const Instruction& i, bool* done) {
  if (i.op != Op::mov || i.operands.size() != 2 || i.operands[0].kind != Operand::Kind::reg)
    return {};
  const Operand& src = i.operands[1];
  int bytes = operand_bytes(s, i.operands[0]);
  if (src.kind == Operand::Kind::special && bytes != 0) {
    *done = true;
    MicroOp& op = emit(s, i, ops::read_special);
    op.operand[0] = s.layout.slot[i.operands[0].index];
    op.imm =
        src.index | static_cast<uint64_t>(src.component) << 8 | static_cast<uint64_t>(bytes) << 16;
  }
  return {};
}

Result<void> Decoder::decode_scalar(Scope& s, const Instruction& i) {
  std::vector<const Operand*> leaves;
  std::function<void(const Operand&)> flatten = [&](const Operand& o) {
    if (o.kind == Operand::Kind::pair || o.kind == Operand::Kind::vector)
      for (const Operand& e : o.elements) flatten(e);
    else
      leaves.push_back(&o);
  };
  for (const Operand& o : i.operands) flatten(o);
  if (leaves.size() > 8) return unsupported(s, i, kNotImplemented);
  std::array<LeafInfo, 8> info{};
  for (size_t l = 0; l < leaves.size(); l++) {
    const Operand& o = *leaves[l];
    info[l].kind = LeafInfo::Kind::immediate;
    if (o.kind == Operand::Kind::sink) info[l].kind = LeafInfo::Kind::sink;
    if (o.kind == Operand::Kind::reg) {
      info[l].bytes = static_cast<uint8_t>(operand_bytes(s, o));
      info[l].kind = info[l].bytes ? LeafInfo::Kind::reg : LeafInfo::Kind::pred;
    }
  }
  ScalarSpec spec = find_scalar(i, info, static_cast<int>(leaves.size()));
  if (!spec.handler || spec.leaves != leaves.size()) return unsupported(s, i, kNotImplemented);
  std::array<Slot, 8> slots{};
  uint8_t negated = 0;
  for (size_t l = 0; l < leaves.size(); l++) {
    const Operand& o = *leaves[l];
    if (o.negated && spec.type[l] == Type::pred) negated |= static_cast<uint8_t>(1u << l);
    if (o.kind == Operand::Kind::sink) {
      slots[l] = spec.type[l] == Type::pred ? 2 : s.layout.sink;
      continue;
    }
    PB_ASSIGN_OR_RETURN(slots[l],
                        l < spec.destinations ? write(s, i, o) : read(s, i, o, spec.type[l]));
  }
  MicroOp& op = emit(s, i, spec.handler);
  op.operand = slots;
  op.negated = negated;
  op.imm = spec.imm;
  // Warp-wide register operations: the named lanes have to meet first.
  int member = -1;
  switch (i.op) {
    case Op::shfl_sync:
      member = static_cast<int>(leaves.size()) - 1;
      break;
    case Op::vote_sync:
    case Op::match_sync:
    case Op::redux_sync:
    case Op::elect_sync:
      member = static_cast<int>(leaves.size()) - 1;
      break;
    default:
      break;
  }
  if (member >= 0) {
    op.flags |= kMemberMask;
    kernel_->info.back().member_mask = slots[static_cast<size_t>(member)];
  }
  return {};
}

// --------------------------------------------------------------------------------------------
// control

Result<void> Decoder::decode_branch(Scope& s, const Instruction& i) {
  if (i.op == Op::bra) {
    if (i.operands.size() != 1 || i.operands[0].kind != Operand::Kind::label)
      return unsupported(s, i, "branch target is not a label");
    emit(s, i, ops::branch);
    branches_.push_back({static_cast<uint32_t>(kernel_->code.size() - 1), i.operands[0].index});
    return {};
  }
  if (i.operands.size() != 2 || !names_label(i.operands[1]))
    return unsupported(s, i, "brx.idx needs an index and a table");
  PB_ASSIGN_OR_RETURN(Slot index, read(s, i, i.operands[0], Type::u32));
  MicroOp& op = emit(s, i, ops::branch_table);
  op.operand[0] = index;
  op.extra = static_cast<uint32_t>(kernel_->branch_tables.size());
  kernel_->branch_tables.emplace_back();
  for (const ptx::Statement& st : s.f->body)
    if (auto* t = std::get_if<ptx::BranchTargets>(&st); t && t->label == i.operands[1].index)
      tables_.emplace_back(op.extra, t->targets);
  return {};
}

Result<void> Decoder::decode_barrier(Scope& s, const Instruction& i) {
  if (i.op == Op::bar_warp_sync) {
    PB_ASSIGN_OR_RETURN(Slot members, read(s, i, i.operands[0], Type::u32));
    MicroOp& op = emit(s, i, ops::no_operation);
    op.flags |= kMemberMask;
    kernel_->info.back().member_mask = members;
    return {};
  }
  const auto& m = i.mods;
  bool reduce = m.has(Mod::red), arrive = m.has(Mod::arrive);
  size_t at = reduce ? 1 : 0;
  size_t n = i.operands.size() - (reduce ? 1 : 0);  // the predicate comes last
  std::array<Slot, 4> slot{};
  bool has_count = n > at + 1;
  if (reduce) {
    PB_ASSIGN_OR_RETURN(slot[0], write(s, i, i.operands[0]));
  }
  PB_ASSIGN_OR_RETURN(slot[at], read(s, i, i.operands[at], Type::u32));
  if (has_count) {
    PB_ASSIGN_OR_RETURN(slot[at + 1], read(s, i, i.operands[at + 1], Type::u32));
  }
  bool negated = false;
  if (reduce) {
    PB_ASSIGN_OR_RETURN(slot[3], read(s, i, i.operands.back(), Type::pred));
    negated = i.operands.back().negated;
  }
  MicroOp& op = emit(s, i,
                     reduce   ? ops::barrier_reduce
                     : arrive ? ops::barrier_arrive
                              : ops::barrier_sync);
  for (size_t k = 0; k < 4; k++) op.operand[k] = slot[k];
  if (negated) op.negated = 8;
  op.imm = has_count;
  if (reduce) op.imm |= m.has(Mod::popc) ? 0x100 : m.has(Mod::and_) ? 0x200 : 0x300;
  // bar{.cta} is always .aligned; barrier only where it says so.
  if (i.op == Op::bar || m.has(Mod::aligned)) op.flags |= kAligned;
  return {};
}

// fence.proxy.tensormap::generic: release names no map, acquire the one that will be used.
Result<void> Decoder::decode_tensormap_fence(Scope& s, const Instruction& i) {
  MemorySite m;
  const bool acquire = i.mods.has(Mod::acquire);
  if (acquire) {
    if (i.operands.empty()) return unsupported(s, i, "an acquire names the map's address");
    PB_ASSIGN_OR_RETURN(m, address(s, i, i.operands[0]));
  }
  MicroOp& op = emit(s, i, ops::tensormap_fence);
  op.imm = acquire;
  op.extra = static_cast<uint32_t>(kernel_->memories.size());
  kernel_->memories.push_back(std::move(m));
  return {};
}

Result<void> Decoder::decode_control(Scope& s, const Instruction& i, bool* done) {
  *done = true;
  switch (i.op) {
    case Op::bra:
    case Op::brx_idx:
      return decode_branch(s, i);
    case Op::call:
      return decode_call(s, i);
    case Op::alloca:
    case Op::stacksave:
    case Op::stackrestore:
      return decode_stack(s, i);
    case Op::ret:
      emit(s, i, s.f->is_entry ? ops::exit : ops::ret);
      return {};
    case Op::exit:
      emit(s, i, ops::exit);
      return {};
    case Op::trap:
      emit(s, i, ops::trap);
      return {};
    case Op::nanosleep:
      emit(s, i, ops::pause);
      return {};
    case Op::brkpt:
    case Op::pmevent:
    case Op::griddepcontrol_wait:
    case Op::griddepcontrol_launch_dependents:
    case Op::prefetch:
    case Op::prefetchu:
    case Op::applypriority:
    case Op::discard:
    case Op::cp_async_bulk_prefetch:
    case Op::cp_async_bulk_prefetch_tensor:
      emit(s, i, ops::no_operation);
      return {};
    case Op::bar:
    case Op::barrier:
    case Op::bar_warp_sync:
      return decode_barrier(s, i);
    case Op::barrier_cluster_arrive:
    case Op::barrier_cluster_wait: {
      MicroOp& op =
          emit(s, i, i.op == Op::barrier_cluster_arrive ? ops::cluster_arrive : ops::cluster_wait);
      if (i.mods.has(Mod::aligned)) op.flags |= kAligned;
      op.imm = i.mods.has(Mod::relaxed);
      return {};
    }
    case Op::fence:
    case Op::membar: {
      if (i.mods.has(Mod::tensormap_generic)) return decode_tensormap_fence(s, i);
      uint64_t async = i.mods.has(Mod::proxy) && i.mods.has(Mod::async) ? 1
                       : i.mods.has(Mod::mbarrier_init)                 ? 2
                                                                        : 0;
      MicroOp& op = emit(s, i, ops::fence);
      op.imm = async;
      // A proxy fence orders nothing between threads.
      if (!i.mods.has(Mod::proxy) && !i.mods.has(Mod::mbarrier_init))
        op.extra =
            static_cast<uint32_t>(memory_order(i.mods, {Order::acq_rel, SyncScope::weak}).scope) |
            (i.op == Op::membar || i.mods.has(Mod::sc) ? 4 : 0);
      return {};
    }
    case Op::setmaxnreg: {
      bool increase = i.mods.has(Mod::inc);
      uint64_t n = i.operands.empty() ? 0 : i.operands[0].value;
      MicroOp& op = emit(s, i, ops::set_max_registers);
      op.imm = n | static_cast<uint64_t>(increase) << 32;
      op.flags |= kAligned;
      return {};
    }
    default:
      *done = false;
      return {};
  }
}

Result<std::shared_ptr<Kernel>> decode(std::shared_ptr<const ptx::Module> module,
                                       const std::string& kernel,
                                       const std::vector<uint64_t>& global_addresses) {
  return Decoder(std::move(module), global_addresses).run(kernel);
}

}  // namespace ptxbench::emu
