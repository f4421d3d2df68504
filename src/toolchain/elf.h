#pragma once
// A bounded reader of 64-bit little-endian ELF files: sections, and what a shared object imports
// and exports. Never trusts an offset: anything out of range is an Error "syntax".

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::toolchain {

struct ElfSection {
  std::string name;
  uint32_t type = 0;
  std::span<const uint8_t> bytes;  // empty for SHT_NOBITS
};

struct ElfSymbol {
  std::string name;
  std::string version;  // "GLIBC_2.2.5", "libcudart.so.13"; "" if unversioned
  bool defined = false, weak = false;
};

struct ElfFile {
  std::vector<ElfSection> sections;        // spans into the bytes given
  std::vector<ElfSymbol> dynamic_symbols;  // of .dynsym
  std::vector<std::string> needed;         // DT_NEEDED

  const ElfSection* section(const std::string& name) const;
};

bool is_elf(std::span<const uint8_t> bytes);
Result<ElfFile> read_elf(std::span<const uint8_t> bytes);

}  // namespace ptxbench::toolchain
