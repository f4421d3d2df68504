#include "cudart/kernel_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/files.h"

namespace ptxbench::cudart {
namespace {

KernelTable table() {
  const auto text =
      read_file(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tests/cudart/programs/kernels.ptx");
  return build_kernel_table(*text, {}).take();
}

const wire::KernelInfo& kernel(const KernelTable& table, const std::string& name) {
  for (const auto& info : table.kernels)
    if (info.name == name) return info;
  ADD_FAILURE() << name;
  return table.kernels[0];
}

TEST(KernelTable, LayoutAndLimits) {
  const KernelTable t = table();
  EXPECT_EQ(t.target, "sm_90a");
  const auto& vec = kernel(t, "vec");
  ASSERT_EQ(vec.params.size(), 3u);
  EXPECT_EQ(vec.params[2].offset, 16u);
  EXPECT_EQ(vec.params[2].bytes, 4u);
  EXPECT_EQ(vec.param_bytes, 20u);
  EXPECT_EQ(vec.max_threads, 256u);
  const auto& map = kernel(t, "with_map");
  EXPECT_EQ(map.params[0].bytes, 128u);
  EXPECT_EQ(map.params[1].offset, 128u);
  EXPECT_EQ(kernel(t, "shared_user").static_shared, 1024u);
  EXPECT_EQ(kernel(t, "vec").static_shared, 0u);
  EXPECT_EQ(kernel(t, "pairs").required_cluster[0], 2u);
  EXPECT_EQ(t.variables.at("table"), 4096u);
  EXPECT_EQ(t.variables.at("scale"), 4u);
}

TEST(KernelTable, KnowsWhichParameterBytesAreRead) {
  const KernelTable t = table();
  const auto& read = t.read_bytes.at("with_struct");
  ASSERT_EQ(read.size(), 24u);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(read[i], i < 4 || i >= 8) << i;
  for (bool flag : t.read_bytes.at("with_map")) EXPECT_TRUE(flag);
}

TEST(KernelTable, BrokenCubinsGiveNoRegisterCounts) {
  std::mt19937_64 random(3);
  for (size_t size : {0, 1, 16, 63, 64, 65, 200, 4096}) {
    std::vector<uint8_t> bytes(size);
    for (int round = 0; round < 200; ++round) {
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(random() % 5 ? 0 : random());
      const uint8_t elf[] = {0x7f, 'E', 'L', 'F', 2, 1};
      std::copy_n(elf, std::min(size, sizeof elf), bytes.begin());
      if (size >= 64) {
        bytes[40] = 64;  // section headers right behind the header
        bytes[60] = static_cast<uint8_t>(random() % 3);
      }
      EXPECT_TRUE(register_counts(bytes).empty());
    }
  }
}

}  // namespace
}  // namespace ptxbench::cudart
