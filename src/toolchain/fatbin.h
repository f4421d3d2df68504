#pragma once
// CUDA fat binaries: what nvcc embeds in a host program (section .nv_fatbin) or writes with
// -fatbin.
//
// Layout, read from files of CUDA 13.0: a container header {u32 magic 0xba55ed50, u16 version 1,
// u16 header bytes 16, u64 bytes that follow}, then entries {u16 kind (1 PTX, 2 ELF), u16, u32
// header bytes, u64 payload bytes (padded to 8), u32 compressed bytes (0: not compressed), u32, u16
// ISA minor, u16 ISA major, u32 architecture number, …, at 40 u64 flags (0x2000 LZ4, 0x8000 zstd,
// 0x100000 architecture-specific), …, at 56 u64 decompressed bytes}. A section may hold several
// containers.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxbench::toolchain {

struct FatbinEntry {
  enum class Kind : uint8_t { ptx, cubin } kind = Kind::ptx;
  std::string arch;            // "sm_90a"
  std::vector<uint8_t> bytes;  // decompressed; PTX without its terminating zeros
};

// All PTX and cubin entries; entries of other kinds are skipped. At most 1 GiB in all.
// Errors: "syntax" (damaged), "too-large".
Result<std::vector<FatbinEntry>> read_fatbin(std::span<const uint8_t> bytes);

// Of a host program or library (ELF with .nv_fatbin), a fat binary file, a cubin, or PTX text.
// No device code at all: an empty list.
Result<std::vector<FatbinEntry>> read_device_code(std::span<const uint8_t> file);

// Whether the program carries a static CUDA runtime (its calls can't be intercepted): it registers
// fat binaries but does not import the function that does so.
Result<bool> has_static_runtime(std::span<const uint8_t> file);

}  // namespace ptxbench::toolchain
