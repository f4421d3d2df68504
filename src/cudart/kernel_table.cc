#include "cudart/kernel_table.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "ptx/parser.h"
#include "toolchain/elf.h"

namespace ptxbench::cudart {
namespace {

uint32_t product(const std::vector<uint32_t>& extents, uint32_t none) {
  if (extents.empty()) return none;
  uint64_t n = 1;
  for (uint32_t extent : extents) n = std::min<uint64_t>(n * extent, 0xffffffffu);
  return static_cast<uint32_t>(n);
}

void copy_extents(const std::vector<uint32_t>& extents, uint32_t (&out)[3]) {
  if (extents.empty()) return;
  for (size_t i = 0; i < 3; ++i) out[i] = i < extents.size() ? extents[i] : 1;
}

// Marks what an operand can read of the kernel's parameters. A load with the parameter as its base
// reads a known range; any other mention (its address is taken) may read all of it.
void mark_operand(const ptx::Operand& operand, const ptx::Function& f, size_t bytes, bool is_load,
                  std::vector<bool>& read) {
  using Kind = ptx::Operand::Kind;
  const bool based = operand.kind == Kind::address && operand.base == ptx::Operand::Base::variable;
  if ((operand.kind == Kind::variable || based) && operand.is_param &&
      operand.index < f.params.size()) {
    const uint64_t begin = f.param_offsets[operand.index], size = f.params[operand.index].size;
    uint64_t from = 0, to = size;
    if (based && is_load && operand.offset >= 0) {
      from = std::min<uint64_t>(static_cast<uint64_t>(operand.offset), size);
      to = std::min<uint64_t>(from + bytes, size);
    }
    for (uint64_t i = begin + from; i < begin + to && i < read.size(); ++i) read[i] = true;
  }
  for (const ptx::Operand& element : operand.elements) mark_operand(element, f, bytes, false, read);
}

size_t access_bytes(const ptx::Instruction& instruction) {
  size_t lanes = 1;
  if (instruction.mods.has(ptx::Mod::v2)) lanes = 2;
  if (instruction.mods.has(ptx::Mod::v4)) lanes = 4;
  if (instruction.mods.has(ptx::Mod::v8)) lanes = 8;
  return lanes * static_cast<size_t>(std::max(ptx::bits(instruction.mods.type()), 8)) / 8;
}

std::vector<bool> readable_bytes(const ptx::Function& f) {
  std::vector<bool> read(f.param_bytes, false);
  for (const ptx::Statement& statement : f.body) {
    const auto* instruction = std::get_if<ptx::Instruction>(&statement);
    if (!instruction) continue;
    const bool is_load = instruction->op == ptx::Op::ld;
    for (const ptx::Operand& operand : instruction->operands)
      mark_operand(operand, f, access_bytes(*instruction), is_load, read);
  }
  return read;
}

uint32_t shared_bytes(const ptx::Module& module, const ptx::Function& f) {
  uint64_t at = 0;
  const auto add = [&](const ptx::Variable& v) {
    if (v.space != ptx::Space::shared && v.space != ptx::Space::shared_cta) return;
    if (v.linkage == ptx::Linkage::extern_) return;
    const uint64_t align = std::max<uint32_t>(v.align, 1);
    at = (at + align - 1) / align * align + v.size;
  };
  std::set<uint32_t> used;  // module-scope shared variables that this kernel or a function mentions
  const auto mention = [&](const auto& self, const ptx::Operand& operand) -> void {
    const bool variable = operand.kind == ptx::Operand::Kind::variable ||
                          operand.base == ptx::Operand::Base::variable;
    if (variable && !operand.is_local && operand.index < module.variables.size())
      used.insert(operand.index);
    for (const ptx::Operand& element : operand.elements) self(self, element);
  };
  for (const ptx::Function& other : module.functions) {
    if (other.is_entry && &other != &f) continue;  // functions may be called
    for (const ptx::Statement& statement : other.body)
      if (const auto* instruction = std::get_if<ptx::Instruction>(&statement))
        for (const ptx::Operand& operand : instruction->operands) mention(mention, operand);
  }
  for (uint32_t index : used) add(module.variables[index]);
  for (const ptx::Variable& v : f.variables) add(v);
  return static_cast<uint32_t>(std::min<uint64_t>(at, 0xffffffffu));
}

wire::KernelInfo describe(const ptx::Module& module, const ptx::Function& f) {
  wire::KernelInfo info;
  info.name = f.name;
  for (size_t i = 0; i < f.params.size(); ++i)
    info.params.push_back({f.param_offsets[i], static_cast<uint32_t>(f.params[i].size)});
  info.param_bytes = f.param_bytes;
  info.static_shared = shared_bytes(module, f);
  const auto& limits = f.directives;
  info.max_threads =
      std::min<uint32_t>(1024, product(limits.reqntid, product(limits.maxntid, 1024)));
  copy_extents(limits.reqntid, info.required_block);
  copy_extents(limits.reqnctapercluster, info.required_cluster);
  return info;
}

// Name of the index-th symbol of a cubin's .symtab.
std::string symbol_name(const toolchain::ElfFile& elf, uint32_t index) {
  const toolchain::ElfSection *symbols = elf.section(".symtab"), *strings = elf.section(".strtab");
  if (!symbols || !strings || index >= symbols->bytes.size() / sizeof(Elf64_Sym)) return {};
  Elf64_Sym symbol;
  std::memcpy(&symbol, &symbols->bytes[index * sizeof symbol], sizeof symbol);
  if (symbol.st_name >= strings->bytes.size()) return {};
  const auto* text = reinterpret_cast<const char*>(strings->bytes.data()) + symbol.st_name;
  return std::string(text, strnlen(text, strings->bytes.size() - symbol.st_name));
}

}  // namespace

std::map<std::string, uint32_t, std::less<>> register_counts(const std::vector<uint8_t>& cubin) {
  // .nv.info entries: u8 format (4 = u16 size and payload; else 4 bytes in all), u8 attribute;
  // attribute 0x2f holds {u32 symbol, u32 registers}.
  constexpr uint8_t kSized = 4, kRegisterCount = 0x2f;
  std::map<std::string, uint32_t, std::less<>> counts;
  const auto elf = toolchain::read_elf(cubin);
  const toolchain::ElfSection* info = elf.ok() ? elf->section(".nv.info") : nullptr;
  if (!info) return counts;
  for (size_t i = 0; i + 4 <= info->bytes.size();) {
    const uint8_t* entry = &info->bytes[i];
    uint16_t size = 0;
    std::memcpy(&size, entry + 2, 2);
    if (entry[0] == kSized && entry[1] == kRegisterCount && size == 8 &&
        i + 12 <= info->bytes.size()) {
      uint32_t value[2];
      std::memcpy(value, entry + 4, 8);
      if (std::string kernel = symbol_name(*elf, value[0]); !kernel.empty())
        counts[kernel] = value[1] & 0xffff;
    }
    i += 4 + (entry[0] == kSized ? size : 0);
  }
  return counts;
}

Result<KernelTable> build_kernel_table(std::string_view text, const std::vector<uint8_t>& cubin) {
  PB_ASSIGN_OR_RETURN(const ptx::Module module, ptx::parse(text));
  KernelTable table;
  table.target = module.target;
  const auto registers = register_counts(cubin);
  for (const ptx::Function& f : module.functions) {
    if (!f.is_entry || f.is_declaration) continue;
    wire::KernelInfo info = describe(module, f);
    if (const auto found = registers.find(info.name); found != registers.end())
      info.registers = found->second;
    table.read_bytes[f.name] = readable_bytes(f);
    table.kernels.push_back(std::move(info));
  }
  for (const ptx::Variable& v : module.variables)
    if (v.space == ptx::Space::global || v.space == ptx::Space::const_)
      table.variables[v.name] = v.size;
  return table;
}

}  // namespace ptxbench::cudart
