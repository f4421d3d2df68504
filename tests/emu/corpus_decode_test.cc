// What nvcc makes of ordinary CUDA code decodes.
#include <filesystem>

#include "base/files.h"
#include "emu/decode.h"
#include "ptx/parser.h"

namespace ptxbench::emu {
namespace {

TEST(CorpusDecode, EveryKernelDecodes) {
  int kernels = 0;
  const std::filesystem::path folder =
      std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tests/ptx/corpus";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    auto text = read_file(entry.path());
    ASSERT_TRUE(text.ok());
    auto parsed = ptx::parse(*text);
    ASSERT_TRUE(parsed.ok()) << entry.path();
    auto module = std::make_shared<const ptx::Module>(parsed.take());
    if (module->target.starts_with("sm_10") || module->target.starts_with("sm_12")) continue;
    std::vector<uint64_t> addresses(module->variables.size(), uint64_t{0x7f00} << 32);
    for (const ptx::Function& f : module->functions) {
      if (!f.is_entry || f.is_declaration) continue;
      kernels++;
      auto kernel = decode(module, f.name, addresses);
      if (kernel.ok()) continue;
      ADD_FAILURE() << entry.path().filename() << ": " << kernel.error().message;
    }
  }
  EXPECT_GE(kernels, 25);
}

}  // namespace
}  // namespace ptxbench::emu
