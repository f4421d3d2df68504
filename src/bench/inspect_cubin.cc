// Machine code is an ELF file: a section .text.<kernel> for each kernel, .nv.shared.<kernel> with
// the size of its shared memory (static, plus 1 KiB reserved by the system), and .nv.info, a list
// of attributes of which number 0x2f is {symbol, registers per thread}. Seen in the output of
// ptxas 13.0, whose -v prints the same numbers.
#include <elf.h>
#include <fmt/format.h>

#include <cstring>

#include "bench/inspect.h"

namespace ptxbench::bench {
namespace {

Error bad(const char* what) {
  return Error{"bad-cubin", std::string("not usable machine code: ") + what};
}

template <class T>
bool read_at(std::span<const uint8_t> bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

std::string name_at(std::span<const uint8_t> bytes, const Elf64_Shdr& names, uint32_t index) {
  const uint64_t begin = names.sh_offset + index;
  if (index >= names.sh_size || begin >= bytes.size()) return "";
  const uint64_t limit = std::min<uint64_t>(bytes.size(), begin + 65536);
  std::string name;
  for (uint64_t i = begin; i < limit && bytes[i] != 0; ++i) name += static_cast<char>(bytes[i]);
  return name;
}

uint32_t word_at(std::span<const uint8_t> bytes, uint64_t offset) {
  uint32_t word = 0;
  read_at(bytes, offset, word);
  return word;
}

struct Sections {
  Elf64_Shdr names{}, symbols{}, strings{}, info{};
};

std::string symbol_name(std::span<const uint8_t> bytes, const Sections& sections, uint32_t index) {
  Elf64_Sym symbol;
  if (index >= sections.symbols.sh_size / sizeof(symbol) ||
      !read_at(bytes, sections.symbols.sh_offset + uint64_t{index} * sizeof(symbol), symbol))
    return "";
  return name_at(bytes, sections.strings, symbol.st_name);
}

// Entries are {format, attribute, 16-bit size or value}; format 4 has `size` further bytes.
void read_registers(std::span<const uint8_t> bytes, const Sections& sections,
                    Inspection& inspection) {
  constexpr uint8_t kSized = 4, kRegisterCount = 0x2f;
  const uint64_t size = std::min<uint64_t>(sections.info.sh_size, bytes.size());
  for (uint64_t at = 0; at + 4 <= size;) {
    const uint32_t head = word_at(bytes, sections.info.sh_offset + at);
    const uint64_t data = sections.info.sh_offset + at + 4;
    const uint8_t format = head & 0xff, attribute = head >> 8 & 0xff;
    if (format == kSized && attribute == kRegisterCount) {
      const std::string kernel = symbol_name(bytes, sections, word_at(bytes, data));
      for (KernelInfo& info : inspection.kernels)
        if (info.name == kernel)
          info.machine_registers = static_cast<int>(word_at(bytes, data + 4));
    }
    at += 4 + (format == kSized ? head >> 16 : 0);
  }
}

KernelInfo& kernel_named(Inspection& inspection, const std::string& name) {
  for (KernelInfo& kernel : inspection.kernels)
    if (kernel.name == name) return kernel;
  inspection.kernels.push_back({});
  inspection.kernels.back().name = name;
  return inspection.kernels.back();
}

}  // namespace

Result<Inspection> inspect_cubin(std::span<const uint8_t> bytes) {
  Elf64_Ehdr header;
  if (!read_at(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return bad("no ELF header");
  constexpr uint16_t kMachineCuda = 190;
  if (header.e_machine != kMachineCuda) return bad("an ELF file for another machine");
  Sections sections;
  if (header.e_shentsize != sizeof(Elf64_Shdr) ||
      !read_at(bytes, header.e_shoff + uint64_t{header.e_shstrndx} * sizeof(Elf64_Shdr),
               sections.names))
    return bad("broken section table");
  Inspection inspection;
  inspection.kind = "cubin";
  inspection.target = fmt::format("sm_{}", header.e_flags >> 8 & 0xff);
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_at(bytes, header.e_shoff + uint64_t{i} * sizeof(section), section))
      return bad("truncated section table");
    const std::string name = name_at(bytes, sections.names, section.sh_name);
    if (name.rfind(".text.", 0) == 0)
      kernel_named(inspection, name.substr(6)).code_bytes = section.sh_size;
    else if (name.rfind(".nv.shared.", 0) == 0 && name != ".nv.shared.reserved.0")
      kernel_named(inspection, name.substr(11)).static_shared_bytes = section.sh_size;
    else if (name == ".symtab")
      sections.symbols = section;
    else if (name == ".strtab")
      sections.strings = section;
    else if (name == ".nv.info")
      sections.info = section;
  }
  if (inspection.kernels.empty()) return Error{"no-kernel", "machine code without a kernel"};
  read_registers(bytes, sections, inspection);
  return inspection;
}

}  // namespace ptxbench::bench
