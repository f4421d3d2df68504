// What nvcc makes of ordinary CUDA code decodes; what does not is refused by a known name.
#include <filesystem>

#include "base/files.h"
#include "emu/decode.h"
#include "ptx/parser.h"

namespace ptxbench::emu {
namespace {

TEST(CorpusDecode, EveryKernelDecodesOrIsRefusedByName) {
  int kernels = 0, refused = 0;
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
      refused++;
      EXPECT_EQ(kernel.error().kind, "unsupported");
      EXPECT_GT(kernel.error().where.line, 0) << kernel.error().message;
      const std::string& why = kernel.error().message;
      bool known = why.find("indirect calls are not supported") != std::string::npos;
      EXPECT_TRUE(known) << entry.path().filename() << ": " << why;
    }
  }
  EXPECT_GE(kernels, 25);
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace ptxbench::emu
