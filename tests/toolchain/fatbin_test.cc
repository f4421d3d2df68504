#include "toolchain/fatbin.h"

#include <algorithm>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "toolchain/elf.h"
#include "toolchain/toolkit.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> built(const fs::path& dir, const std::vector<std::string>& options,
                           const std::string& name) {
  ProcessSpec nvcc;
  nvcc.argv = {find_toolkit()->nvcc.string()};
  nvcc.argv.insert(nvcc.argv.end(), options.begin(), options.end());
  nvcc.argv.insert(nvcc.argv.end(), {"-o", name, "k.cu"});
  nvcc.working_directory = dir;
  const auto outcome = run_process(nvcc);
  EXPECT_TRUE(outcome.ok() && outcome->succeeded()) << (outcome.ok() ? outcome->err : "");
  return *read_bytes(dir / name);
}

class Fatbin : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(find_toolkit().ok()) << "NO CUDA COMPILER ON THIS MACHINE";
    std::string source = "__global__ void k(int* p) {\n";
    for (int i = 0; i < 100; ++i)
      source += "  p[" + std::to_string(i) + "] = p[" + std::to_string(i * 7) + "] + 1;\n";
    ASSERT_TRUE(write_file_atomically(dir_.path() / "k.cu", source + "}\n").ok());
  }
  TempDir dir_ = TempDir::create("test-fatbin").take();
};

TEST_F(Fatbin, EveryCompressionGivesTheSame) {
  std::string first;
  for (const char* mode : {"none", "speed", "balance", "size"}) {
    const auto bytes = built(dir_.path(),
                             {"-fatbin", "-gencode", "arch=compute_90a,code=[compute_90a,sm_90a]",
                              std::string("--compress-mode=") + mode},
                             "k.fatbin");
    const auto entries = read_device_code(bytes);
    ASSERT_TRUE(entries.ok()) << mode << ": " << entries.error().message;
    ASSERT_EQ(entries->size(), 2u);
    for (const FatbinEntry& entry : *entries) {
      EXPECT_EQ(entry.arch, "sm_90a");
      if (entry.kind == FatbinEntry::Kind::cubin) {
        EXPECT_TRUE(is_elf(entry.bytes));
        const auto again = read_device_code(entry.bytes);
        ASSERT_TRUE(again.ok());
        EXPECT_EQ((*again)[0].arch, "sm_90");
        continue;
      }
      const std::string ptx(entry.bytes.begin(), entry.bytes.end());
      EXPECT_THAT(ptx, testing::HasSubstr(".visible .entry _Z1kPi("));
      if (first.empty()) first = ptx;
      EXPECT_EQ(ptx, first) << mode;
    }
  }
}

TEST_F(Fatbin, ProgramsAndTheirRuntime) {
  const auto shared = built(
      dir_.path(), {"-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-arch=sm_90a"}, "k.so");
  const auto entries = read_device_code(shared);
  ASSERT_TRUE(entries.ok());
  // nvcc's device linker, which runs for a program, keeps a second copy.
  const auto holds_kernel = [](const FatbinEntry& entry) {
    const std::string text(entry.bytes.begin(), entry.bytes.end());
    return entry.kind == FatbinEntry::Kind::ptx && text.find("_Z1kPi") != std::string::npos;
  };
  EXPECT_GE(std::count_if(entries->begin(), entries->end(), holds_kernel), 1);
  EXPECT_FALSE(*has_static_runtime(shared));
  EXPECT_TRUE(*has_static_runtime(
      built(dir_.path(), {"-shared", "-Xcompiler", "-fPIC", "-cudart", "static"}, "k.so")));
  const auto self = read_bytes("/proc/self/exe");
  ASSERT_TRUE(self.ok());
  EXPECT_TRUE(read_device_code(*self)->empty());
  EXPECT_FALSE(*has_static_runtime(*self));
}

TEST_F(Fatbin, DamageIsAnErrorNeverACrash) {
  const auto shared = built(
      dir_.path(), {"-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-arch=sm_90a"}, "k.so");
  const auto fatbin =
      built(dir_.path(), {"-fatbin", "-arch=sm_90a", "--compress-mode=speed"}, "k.fatbin");
  ASSERT_TRUE(read_fatbin(fatbin).ok());
  for (size_t cut = 16; cut < fatbin.size(); cut += 1 + cut / 64)
    EXPECT_FALSE(read_fatbin(std::span(fatbin).first(cut)).ok()) << cut;
  for (size_t cut = 0; cut < shared.size(); cut += 1 + cut / 16)
    (void)read_device_code(std::span(shared).first(cut));
  uint32_t random = 12345;
  for (const auto& original : {shared, fatbin}) {
    for (int round = 0; round < 3000; ++round) {
      std::vector<uint8_t> bytes = original;
      for (int flips = 0; flips < 4; ++flips) {
        random = random * 1664525 + 1013904223;
        // Headers, where damage matters, are hit more often than the rest.
        const size_t range = flips % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 256);
        bytes[(random >> 8) % range] ^= static_cast<uint8_t>(1u << (random >> 5 & 7));
      }
      (void)read_device_code(bytes);
      (void)read_elf(bytes);
    }
  }
  EXPECT_FALSE(read_device_code(std::vector<uint8_t>{}).ok());
  EXPECT_FALSE(read_device_code(std::vector<uint8_t>(1000, 0xff)).ok());
}

}  // namespace
}  // namespace ptxbench::toolchain
