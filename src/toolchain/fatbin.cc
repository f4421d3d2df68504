#include "toolchain/fatbin.h"

#include <elf.h>
#include <fmt/format.h>
#include <zstd.h>

#include <cstring>
#include <string_view>

#include "toolchain/elf.h"

namespace ptxbench::toolchain {
namespace {

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000;
constexpr uint64_t kMaxTotal = uint64_t{1} << 30;
constexpr uint16_t kElfMachineCuda = 190;

template <class T>
T field(std::span<const uint8_t> bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Error damaged(const std::string& what) { return Error{"syntax", "damaged fat binary: " + what}; }

// A length of LZ4: 15 in the token's half means that bytes follow, each added, until one is not
// 255.
bool lz4_length(std::span<const uint8_t> in, size_t* at, size_t* length) {
  if (*length != 15) return true;
  while (*at < in.size()) {
    const uint8_t more = in[(*at)++];
    *length += more;
    if (more != 255) return true;
  }
  return false;
}

// One LZ4 block that decompresses to exactly `size` bytes.
bool lz4_block(std::span<const uint8_t> in, size_t size, std::vector<uint8_t>* out) {
  out->clear();
  out->reserve(size);
  for (size_t at = 0; at < in.size();) {
    const uint8_t token = in[at++];
    size_t literals = token >> 4;
    if (!lz4_length(in, &at, &literals)) return false;
    if (literals > in.size() - at || literals > size - out->size()) return false;
    out->insert(out->end(), in.begin() + static_cast<ptrdiff_t>(at),
                in.begin() + static_cast<ptrdiff_t>(at + literals));
    at += literals;
    if (at == in.size()) break;  // the last sequence has no match
    if (in.size() - at < 2) return false;
    const size_t distance = in[at] | (in[at + 1] << 8);
    at += 2;
    size_t match = token & 15;
    if (!lz4_length(in, &at, &match)) return false;
    match += 4;
    if (distance == 0 || distance > out->size() || match > size - out->size()) return false;
    for (size_t i = 0; i < match; ++i) out->push_back((*out)[out->size() - distance]);
  }
  return out->size() == size;
}

Result<std::vector<uint8_t>> decompress(std::span<const uint8_t> payload, uint64_t flags,
                                        uint64_t size) {
  std::vector<uint8_t> out;
  if (flags & kZstd) {
    out.resize(size);
    const size_t got = ZSTD_decompress(out.data(), out.size(), payload.data(), payload.size());
    if (ZSTD_isError(got) || got != size) return damaged("zstd entry");
    return out;
  }
  if (flags & kLz4) {
    if (!lz4_block(payload, size, &out)) return damaged("LZ4 entry");
    return out;
  }
  return damaged("unknown compression");
}

std::string arch_name(uint32_t number, uint64_t flags) {
  return fmt::format("sm_{}{}", number, flags & kArchSpecific ? "a" : "");
}

class Reader {
 public:
  Result<void> container(std::span<const uint8_t> body) {
    while (!body.empty()) {
      if (body.size() < 64) return damaged("entry header");
      const auto header_bytes = field<uint32_t>(body, 4);
      const auto payload_bytes = field<uint64_t>(body, 8);
      if (header_bytes < 64 || header_bytes > body.size() ||
          payload_bytes > body.size() - header_bytes)
        return damaged("entry out of range");
      PB_RETURN_IF_ERROR(entry(body, body.subspan(header_bytes, payload_bytes)));
      body = body.subspan(header_bytes + payload_bytes);
    }
    return {};
  }

  std::vector<FatbinEntry> take() { return std::move(entries_); }

 private:
  Result<void> entry(std::span<const uint8_t> header, std::span<const uint8_t> payload) {
    const auto kind = field<uint16_t>(header, 0);
    if (kind != 1 && kind != 2) return {};
    const auto compressed = field<uint32_t>(header, 16);
    const auto flags = field<uint64_t>(header, 40);
    const auto size = compressed != 0 ? field<uint64_t>(header, 56) : payload.size();
    if (compressed > payload.size()) return damaged("compressed entry out of range");
    // zstd and LZ4 reach ratios of hundreds, not millions: refuse bombs before reserving memory.
    if (size > kMaxTotal - total_ || (compressed != 0 && size / 100'000 > compressed))
      return Error{"too-large", "fat binary: the device code is too large"};
    total_ += size;
    FatbinEntry out;
    out.kind = kind == 1 ? FatbinEntry::Kind::ptx : FatbinEntry::Kind::cubin;
    out.arch = arch_name(field<uint32_t>(header, 28), flags);
    if (compressed != 0) {
      PB_ASSIGN_OR_RETURN(out.bytes, decompress(payload.first(compressed), flags, size));
    } else {
      out.bytes.assign(payload.begin(), payload.end());
    }
    if (out.kind == FatbinEntry::Kind::ptx)
      while (!out.bytes.empty() && out.bytes.back() == 0) out.bytes.pop_back();
    entries_.push_back(std::move(out));
    return {};
  }

  std::vector<FatbinEntry> entries_;
  uint64_t total_ = 0;
};

bool looks_like_ptx(std::string_view text) {
  const std::string_view head = text.substr(0, 65536);
  return head.find(".version") != std::string_view::npos &&
         head.find(".target") != std::string_view::npos;
}

std::string target_of(std::string_view ptx) {
  const size_t at = ptx.find(".target");
  if (at == std::string_view::npos) return "";
  const size_t begin = ptx.find("sm_", at);
  if (begin == std::string_view::npos) return "";
  size_t end = begin;
  while (end < ptx.size() && (isalnum(static_cast<unsigned char>(ptx[end])) || ptx[end] == '_'))
    ++end;
  return std::string(ptx.substr(begin, std::min<size_t>(end - begin, 16)));
}

}  // namespace

Result<std::vector<FatbinEntry>> read_fatbin(std::span<const uint8_t> bytes) {
  Reader reader;
  while (bytes.size() >= 16) {
    // Containers in a section are aligned; what is between them is zero.
    if (field<uint32_t>(bytes, 0) == 0) {
      bytes = bytes.subspan(8);
      continue;
    }
    if (field<uint32_t>(bytes, 0) != kMagic) return damaged("no container where one should be");
    const auto header_bytes = field<uint16_t>(bytes, 6);
    const auto body_bytes = field<uint64_t>(bytes, 8);
    if (header_bytes < 16 || header_bytes > bytes.size() ||
        body_bytes > bytes.size() - header_bytes)
      return damaged("container out of range");
    PB_RETURN_IF_ERROR(reader.container(bytes.subspan(header_bytes, body_bytes)));
    bytes = bytes.subspan(header_bytes + body_bytes);
  }
  return reader.take();
}

Result<std::vector<FatbinEntry>> read_device_code(std::span<const uint8_t> file) {
  if (file.size() >= 16 && field<uint32_t>(file, 0) == kMagic) return read_fatbin(file);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!is_elf(file)) {
    if (!looks_like_ptx(text))
      return Error{"syntax", "neither a program, a fat binary, a cubin nor PTX"};
    return std::vector<FatbinEntry>{
        {FatbinEntry::Kind::ptx, target_of(text), {file.begin(), file.end()}}};
  }
  if (field<uint16_t>(file, offsetof(Elf64_Ehdr, e_machine)) == kElfMachineCuda) {
    // CUDA 13 keeps the architecture number in bits 8–15 of the ELF flags.
    const auto flags = field<uint32_t>(file, offsetof(Elf64_Ehdr, e_flags));
    return std::vector<FatbinEntry>{{FatbinEntry::Kind::cubin,
                                     fmt::format("sm_{}", (flags >> 8) & 0xff),
                                     {file.begin(), file.end()}}};
  }
  PB_ASSIGN_OR_RETURN(const ElfFile elf, read_elf(file));
  const ElfSection* section = elf.section(".nv_fatbin");
  if (section == nullptr) return std::vector<FatbinEntry>{};
  return read_fatbin(section->bytes);
}

Result<bool> has_static_runtime(std::span<const uint8_t> file) {
  PB_ASSIGN_OR_RETURN(const ElfFile elf, read_elf(file));
  if (elf.section(".nv_fatbin") == nullptr) return false;
  for (const ElfSymbol& symbol : elf.dynamic_symbols)
    if (symbol.name == "__cudaRegisterFatBinary" && !symbol.defined) return false;
  return true;
}

}  // namespace ptxbench::toolchain
