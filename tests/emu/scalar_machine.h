#pragma once
// Runs straight-line PTX on the scalar handlers alone: parses a few instructions, gives every
// register a slot of its own and calls the handlers that the finder picks at a chosen
// instruction-set level.

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "emu/isa_recorder.h"
#include "emu/scalar/level.h"
#include "ptx/parser.h"

namespace ptxbench::emu::testing {

class ScalarMachine {
 public:
  // `text`: declarations and instructions in PTX, a kernel's body. error() is empty if all is well.
  ScalarMachine(const std::string& text, const scalar::Level& level) : level_(level) {
    auto parsed =
        ptx::parse(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n" +
                   text + "\nret;\n}\n");
    if (!parsed.ok()) {
      error_ = "parse: " + parsed.error().to_string();
      return;
    }
    module_ = std::move(parsed.value());
    const ptx::Function& f = module_.functions.at(0);
    for (size_t i = 0; i < f.registers.size() && error_.empty(); ++i) place(f.registers[i]);
    memory_.assign(bytes_ / 64 + 1, {});
    for (const ptx::Statement& s : f.body) {
      const auto* in = std::get_if<ptx::Instruction>(&s);
      if (in && in->op != ptx::Op::ret && error_.empty()) decode(*in);
    }
  }
  const std::string& error() const { return error_; }

  // The register of that name (with %), as lanes of T.
  template <class T>
  T* lanes(const std::string& name) {
    return reinterpret_cast<T*>(base() + slot_of(name));
  }
  uint32_t& predicate(const std::string& name) { return preds_.at(pred_of(name)); }
  uint32_t& carry() { return preds_[3]; }

  void run(uint32_t mask = 0xffffffffu) {
    for (const ptx::Instruction* in : std::exchange(fresh_, {})) isa::executed(*in);
    RegisterView view{base(), constants(), preds_.data()};
    for (const MicroOp& op : code_) op.handler(view, op, mask);
  }
  std::vector<MicroOp>& code() { return code_; }

 private:
  struct alignas(64) Line {
    uint8_t bytes[64] = {};
  };
  uint8_t* base() { return memory_[0].bytes; }
  const uint8_t* constants() const { return pool_.empty() ? nullptr : pool_[0].bytes; }

  void place(const ptx::Register& r) {
    if (r.type == ptx::Type::pred) {
      slots_.push_back(static_cast<Slot>(preds_.size()));
      preds_.push_back(0);
    } else {
      slots_.push_back(static_cast<Slot>(bytes_));
      bytes_ += static_cast<size_t>(width(r.type)) * 32;
    }
  }
  static int width(ptx::Type t) { return std::max(2, ptx::bits(t) / 8); }
  size_t index_of(const std::string& name) const {
    const auto& registers = module_.functions.at(0).registers;
    for (size_t i = 0; i < registers.size(); ++i)
      if (registers[i].name == name) return i;
    throw std::runtime_error("no register " + name);
  }
  size_t slot_of(const std::string& name) const {
    return static_cast<size_t>(slots_.at(index_of(name)));
  }
  size_t pred_of(const std::string& name) const {
    return static_cast<size_t>(slots_.at(index_of(name)));
  }

  static void flatten(const ptx::Operand& o, std::vector<const ptx::Operand*>& leaves) {
    if (o.kind == ptx::Operand::Kind::pair || o.kind == ptx::Operand::Kind::vector) {
      for (const ptx::Operand& e : o.elements) flatten(e, leaves);
    } else {
      leaves.push_back(&o);
    }
  }

  void decode(const ptx::Instruction& in) {
    using Kind = ptx::Operand::Kind;
    std::vector<const ptx::Operand*> leaves;
    for (const ptx::Operand& o : in.operands) flatten(o, leaves);
    if (leaves.size() > 8) return fail(in, "too many operands");
    std::array<LeafInfo, 8> info{};
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i]->kind == Kind::reg) {
        const ptx::Register& r = module_.functions[0].registers.at(leaves[i]->index);
        bool is_pred = r.type == ptx::Type::pred;
        info[i].kind = is_pred ? LeafInfo::Kind::pred : LeafInfo::Kind::reg;
        info[i].bytes = static_cast<uint8_t>(is_pred ? 0 : width(r.type));
      } else if (leaves[i]->kind == Kind::sink) {
        info[i].kind = LeafInfo::Kind::sink;
      } else {
        info[i].kind = LeafInfo::Kind::immediate;
      }
    }
    ScalarSpec spec = scalar::find(level_, in, info, static_cast<int>(leaves.size()));
    if (!spec.handler) return fail(in, "not implemented");
    MicroOp op;
    op.handler = spec.handler;
    op.imm = spec.imm;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const ptx::Operand& leaf = *leaves[i];
      if (leaf.kind == Kind::reg) {
        op.operand[i] = slots_.at(leaf.index);
        if (leaf.negated) op.negated |= static_cast<uint8_t>(1u << i);
      } else if (leaf.kind == Kind::sink) {
        op.operand[i] = spec.type[i] == ptx::Type::pred ? 2 : sink();
      } else {
        op.operand[i] = constant(leaf, spec.type[i]);
      }
    }
    code_.push_back(op);
    fresh_.push_back(&in);
  }

  Slot sink() {
    Slot s = static_cast<Slot>(bytes_);
    bytes_ += 512;
    memory_.resize(bytes_ / 64 + 1);
    return s;
  }
  Slot constant(const ptx::Operand& o, ptx::Type type) {
    if (type == ptx::Type::pred) return o.value ? 0 : 1;
    uint64_t value = o.value;
    if (o.kind == ptx::Operand::Kind::floating && type == ptx::Type::f32 && !o.is_f32) {
      double d;
      std::memcpy(&d, &value, 8);
      float f = static_cast<float>(d);
      value = 0;
      std::memcpy(&value, &f, 4);
    }
    const size_t at = pool_.size() * 64, w = static_cast<size_t>(width(type));
    pool_.resize(pool_.size() + w * 32 / 64);
    for (size_t lane = 0; lane < 32; ++lane)
      std::memcpy(pool_[0].bytes + at + lane * w, &value, std::min<size_t>(w, 8));
    return ~static_cast<Slot>(at);
  }
  void fail(const ptx::Instruction& in, const char* why) {
    error_ = std::string(why) + ": " + ptx::print(in, module_.functions[0], module_);
  }

  const scalar::Level& level_;
  ptx::Module module_;
  std::string error_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> preds_{0xffffffffu, 0, 0, 0};
  std::vector<Line> memory_, pool_;
  size_t bytes_ = 0;
  std::vector<MicroOp> code_;
  std::vector<const ptx::Instruction*> fresh_;  // not executed yet
};

}  // namespace ptxbench::emu::testing
