#include "toolchain/elf.h"

#include <elf.h>

#include <cstring>
#include <map>

namespace ptxbench::toolchain {
namespace {

constexpr size_t kMaxSections = 65536;
constexpr size_t kMaxSymbols = 1 << 20;
constexpr size_t kMaxName = 4096;

Error damaged(const char* what) {
  return Error{"syntax", std::string("damaged ELF file: ") + what};
}

template <class T>
bool load(std::span<const uint8_t> bytes, uint64_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

std::string text_at(std::span<const uint8_t> table, uint64_t offset) {
  if (offset >= table.size()) return "";
  const auto rest = table.subspan(offset);
  const size_t length =
      strnlen(reinterpret_cast<const char*>(rest.data()), std::min(rest.size(), kMaxName));
  return std::string(reinterpret_cast<const char*>(rest.data()), length);
}

Result<std::vector<Elf64_Shdr>> headers(std::span<const uint8_t> bytes, const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> out;
  if (header.e_shoff == 0) return out;
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return damaged("section header size");
  Elf64_Shdr first;
  if (!load(bytes, header.e_shoff, &first)) return damaged("section headers");
  const uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  if (count > kMaxSections) return damaged("too many sections");
  for (uint64_t i = 0; i < count; ++i) {
    Elf64_Shdr section;
    if (!load(bytes, header.e_shoff + i * sizeof section, &section))
      return damaged("section headers");
    out.push_back(section);
  }
  return out;
}

// Version names by index, from .gnu.version_r (imports).
std::map<uint16_t, std::string> version_names(std::span<const uint8_t> table,
                                              std::span<const uint8_t> strings, uint32_t count) {
  std::map<uint16_t, std::string> names;
  uint64_t at = 0;
  for (uint32_t i = 0; i < count && i < 4096; ++i) {
    Elf64_Verneed need;
    if (!load(table, at, &need)) break;
    uint64_t aux_at = at + need.vn_aux;
    for (uint16_t j = 0; j < need.vn_cnt; ++j) {
      Elf64_Vernaux aux;
      if (!load(table, aux_at, &aux)) break;
      names[aux.vna_other] = text_at(strings, aux.vna_name);
      if (aux.vna_next == 0) break;
      aux_at += aux.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  return names;
}

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Result<ElfFile> read() {
    Elf64_Ehdr header;
    if (!is_elf(bytes_) || !load(bytes_, 0, &header)) return damaged("no header");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      return Error{"unsupported", "not a 64-bit little-endian ELF file"};
    PB_ASSIGN_OR_RETURN(headers_, headers(bytes_, header));
    for (const Elf64_Shdr& section : headers_) {
      if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL && !contents(section))
        return damaged("section out of range");
    }
    const uint64_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx
                           : headers_.empty()              ? 0
                                                           : headers_[0].sh_link;
    for (const Elf64_Shdr& section : headers_)
      file_.sections.push_back(
          {text_at(section_bytes(names), section.sh_name), section.sh_type, bytes_of(section)});
    symbols();
    dynamic();
    return std::move(file_);
  }

 private:
  bool contents(const Elf64_Shdr& section) const {
    return section.sh_offset <= bytes_.size() &&
           section.sh_size <= bytes_.size() - section.sh_offset;
  }
  std::span<const uint8_t> bytes_of(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) return {};
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }
  std::span<const uint8_t> section_bytes(uint64_t index) const {
    return index < headers_.size() ? bytes_of(headers_[index]) : std::span<const uint8_t>{};
  }
  const Elf64_Shdr* of_type(uint32_t type) const {
    for (const Elf64_Shdr& section : headers_)
      if (section.sh_type == type) return &section;
    return nullptr;
  }

  void symbols() {
    const Elf64_Shdr* table = of_type(SHT_DYNSYM);
    if (table == nullptr) return;
    const auto strings = section_bytes(table->sh_link);
    std::map<uint16_t, std::string> versions;
    std::span<const uint8_t> indices;
    if (const Elf64_Shdr* need = of_type(SHT_GNU_verneed))
      versions = version_names(bytes_of(*need), section_bytes(need->sh_link), need->sh_info);
    if (const Elf64_Shdr* versym = of_type(SHT_GNU_versym)) indices = bytes_of(*versym);
    const auto symbols = bytes_of(*table);
    const size_t count = std::min(symbols.size() / sizeof(Elf64_Sym), kMaxSymbols);
    for (size_t i = 1; i < count; ++i) {
      Elf64_Sym symbol;
      if (!load(symbols, i * sizeof symbol, &symbol)) break;
      ElfSymbol out{text_at(strings, symbol.st_name), "", symbol.st_shndx != SHN_UNDEF,
                    ELF64_ST_BIND(symbol.st_info) == STB_WEAK};
      uint16_t version = 0;
      if (load(indices, i * sizeof version, &version)) {
        if (auto it = versions.find(version & 0x7fff); it != versions.end())
          out.version = it->second;
      }
      file_.dynamic_symbols.push_back(std::move(out));
    }
  }

  void dynamic() {
    const Elf64_Shdr* table = of_type(SHT_DYNAMIC);
    if (table == nullptr) return;
    const auto entries = bytes_of(*table);
    const auto strings = section_bytes(table->sh_link);
    for (size_t i = 0; i < std::min<size_t>(entries.size() / sizeof(Elf64_Dyn), 4096); ++i) {
      Elf64_Dyn entry;
      if (!load(entries, i * sizeof entry, &entry) || entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) file_.needed.push_back(text_at(strings, entry.d_un.d_val));
    }
  }

  std::span<const uint8_t> bytes_;
  std::vector<Elf64_Shdr> headers_;
  ElfFile file_;
};

}  // namespace

const ElfSection* ElfFile::section(const std::string& name) const {
  for (const ElfSection& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

bool is_elf(std::span<const uint8_t> bytes) {
  return bytes.size() >= sizeof(Elf64_Ehdr) && memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

Result<ElfFile> read_elf(std::span<const uint8_t> bytes) { return Reader(bytes).read(); }

}  // namespace ptxbench::toolchain
