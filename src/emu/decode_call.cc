// Decoding of calls and of the stack.

#include <fmt/format.h>

#include "emu/address.h"
#include "emu/decoder.h"

namespace ptxbench::emu {

using ptx::Op;
using ptx::Operand;
using ptx::Type;

namespace {

uint32_t builtin_named(const std::string& name) {
  if (name == "vprintf") return kVprintf;
  if (name == "__assertfail") return kAssertFail;
  if (name == "malloc") return kMalloc;
  if (name == "free") return kFree;
  return kNoBuiltin;
}

struct CallOperands {
  const Operand* results = nullptr;
  const Operand* target = nullptr;
  const Operand* arguments = nullptr;
  const Operand* signature = nullptr;  // of an indirect call: prototype or list of targets
};

CallOperands split(const ptx::Instruction& i) {
  CallOperands c;
  for (const Operand& o : i.operands) {
    if (o.kind == Operand::Kind::list)
      (c.target ? c.arguments : c.results) = &o;
    else
      (c.target ? c.signature : c.target) = &o;
  }
  return c;
}

bool same_sizes(const std::vector<ptx::Variable>& declared, const std::vector<uint32_t>& bytes) {
  if (declared.size() != bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); i++)
    if (declared[i].size != bytes[i]) return false;
  return true;
}

// Functions whose address a kernel can get hold of: operands that are no call target, and
// initialisers of variables.
std::vector<uint32_t> functions_with_address(const ptx::Module& module) {
  std::vector<bool> taken(module.functions.size());
  std::function<void(const Operand&)> look = [&](const Operand& o) {
    if (o.kind == Operand::Kind::function) taken[o.index] = true;
    for (const Operand& e : o.elements) look(e);
  };
  for (const ptx::Function& f : module.functions)
    for (const ptx::Statement& st : f.body)
      if (auto* i = std::get_if<ptx::Instruction>(&st); i && i->op != Op::call)
        for (const Operand& o : i->operands) look(o);
  for (const ptx::Variable& v : module.variables)
    for (const ptx::InitElement& e : v.init)
      if (e.is_symbol && e.symbol_is_function) taken[e.symbol] = true;
  std::vector<uint32_t> out;
  for (uint32_t f = 0; f < taken.size(); f++)
    if (taken[f] && !module.functions[f].is_entry && !module.functions[f].is_declaration)
      out.push_back(f);
  return out;
}

}  // namespace

// The functions that an indirect call may reach: those its list names, or all with an address.
std::vector<uint32_t> Decoder::call_candidates(const Scope& s, const Operand* signature) const {
  if (signature)
    for (const ptx::Statement& st : s.f->body)
      if (auto* t = std::get_if<ptx::CallTargets>(&st); t && t->label == signature->index)
        return t->functions;
  return functions_with_address(*module_);
}

Result<void> Decoder::decode_call(Scope& s, const Instruction& i) {
  CallSite site;
  const CallOperands call = split(i);
  auto offsets = [&](const Operand* from, std::vector<uint32_t>* at,
                     std::vector<uint32_t>* bytes) -> bool {
    if (!from) return true;
    for (const Operand& o : from->elements) {
      if (o.kind != Operand::Kind::variable || !o.is_local) return false;
      const auto& list = o.is_param ? s.f->params : o.is_return ? s.f->returns : s.f->variables;
      Place p = place(s, o);
      if (p.kind != Place::Kind::local) return false;
      at->push_back(static_cast<uint32_t>(p.offset));
      bytes->push_back(static_cast<uint32_t>(list[o.index].size));
    }
    return true;
  };
  std::vector<uint32_t> arg_at, arg_bytes, res_at, res_bytes;
  if (!call.target || !offsets(call.results, &res_at, &res_bytes) ||
      !offsets(call.arguments, &arg_at, &arg_bytes))
    return unsupported(s, i, "call arguments outside .param space are not supported");
  auto add_target = [&](uint32_t function) -> Result<void> {
    CallTarget target;
    PB_ASSIGN_OR_RETURN(target.callee, function_code(function));
    for (size_t a = 0; a < arg_at.size(); a++)
      target.arguments.push_back({arg_at[a], 0, arg_bytes[a]});
    for (size_t r = 0; r < res_at.size(); r++)
      target.results.push_back({res_at[r], 0, res_bytes[r]});
    site.targets.push_back(std::move(target));
    return {};
  };
  Handler handler = ops::call;
  if (call.target->kind == Operand::Kind::function) {
    const ptx::Function& callee = module_->functions[call.target->index];
    const uint32_t builtin = callee.is_declaration ? builtin_named(callee.name) : kNoBuiltin;
    if (builtin != kNoBuiltin) {
      site.builtin = builtin;
      kernel_->prints |= builtin == kVprintf;
      kernel_->allocates |= builtin == kMalloc || builtin == kFree;
      site.argument_offsets = arg_at;
      site.result_offset = res_at.empty() ? ~0u : res_at[0];
      handler = ops::call_builtin;
    } else if (callee.is_declaration) {
      return unsupported(s, i, "the function called has no body (device runtime call?)");
    } else {
      PB_RETURN_IF_ERROR(add_target(call.target->index));
    }
  } else {
    PB_ASSIGN_OR_RETURN(site.pointer, read(s, i, *call.target, Type::b64));
    for (uint32_t f : call_candidates(s, call.signature))
      if (same_sizes(module_->functions[f].params, arg_bytes) &&
          same_sizes(module_->functions[f].returns, res_bytes))
        PB_RETURN_IF_ERROR(add_target(f));
    handler = ops::call_indirect;
  }
  MicroOp& op = emit(s, i, handler);
  op.extra = static_cast<uint32_t>(kernel_->calls.size());
  kernel_->calls.push_back(std::move(site));
  call_sites_.push_back(static_cast<uint32_t>(kernel_->code.size() - 1));
  return {};
}

Result<void> Decoder::decode_stack(Scope& s, const Instruction& i) {
  const bool wide = i.mods.type() == Type::u64;
  const uint64_t bytes = wide ? 8 : 4;
  if (i.op == Op::stackrestore) {
    PB_ASSIGN_OR_RETURN(Slot from, read(s, i, i.operands[0], i.mods.type()));
    MicroOp& op = emit(s, i, ops::stack_restore);
    op.operand[0] = from;
    op.imm = bytes;
    return {};
  }
  PB_ASSIGN_OR_RETURN(Slot to, write(s, i, i.operands[0]));
  Slot size = 0;
  uint64_t align = 8;
  if (i.op == Op::alloca) {
    PB_ASSIGN_OR_RETURN(size, read(s, i, i.operands[1], i.mods.type()));
    if (i.operands.size() > 2) align = i.operands[2].value;
    if (align == 0 || align > 4096 || (align & (align - 1)))
      return unsupported(s, i, "the alignment must be a power of two");
  }
  MicroOp& op = emit(s, i, i.op == Op::alloca ? ops::stack_allocate : ops::stack_save);
  op.operand[0] = to, op.operand[1] = size;
  op.imm = bytes | align << 8;
  return {};
}

}  // namespace ptxbench::emu
