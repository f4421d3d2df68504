// Candidates through the real compiler, then recorded.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "cudart/kernel_table.h"
#include "cudart/record.h"
#include "sandbox/sandbox.h"
#include "toolchain/compiler.h"

namespace ptxbench::cudart {
namespace {

namespace fs = std::filesystem;

bool can_compile() {
  if (!sandbox::available().ok()) return false;
  for (const toolchain::ToolInfo& tool : toolchain::find_tools())
    if (tool.name == "nvcc") return tool.found;
  return false;
}

Result<RecordRequest> compiled(const fs::path& file,
                               std::vector<toolchain::KernelResources>* resources = nullptr) {
  PB_ASSIGN_OR_RETURN(const std::string source, read_file(fs::path(PTXBENCH_SOURCE_DIR) / file));
  toolchain::CompileRequest request;
  request.source = source;
  request.include_dirs = {(fs::path(PTXBENCH_SOURCE_DIR) / file).parent_path()};
  request.cache_dir = fs::path(PTXBENCH_BUILD_DIR) / "tests/cudart/cache";
  PB_ASSIGN_OR_RETURN(const toolchain::CompiledCandidate candidate, toolchain::compile(request));
  if (!candidate.ok) return Error{"candidate", candidate.failure_reason};
  if (resources) *resources = candidate.kernels;
  RecordRequest out;
  out.host_library = candidate.host_library;
  out.ptx = candidate.ptx;
  out.cubin = candidate.cubin;
  return out;
}

TEST(Candidate, SymbolsWithInternalLinkage) {
  if (!can_compile()) FAIL() << "no compiler or no sandbox";
  auto request = compiled("tests/cudart/candidates/local_symbols.cu");
  ASSERT_TRUE(request.ok()) << request.error().message;
  request->arguments = {{"in", "float32", {512}, false, {}},
                        {"bias", "float32", {128}, false, {}},
                        {"out", "float32", {512}, true, {}}};
  const auto outcome = record(*request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_TRUE(outcome->ok) << outcome->reason << ": " << outcome->message;
  const plan::LaunchPlan& plan = outcome->plan;
  ASSERT_EQ(plan.steps.size(), 2u);
  const auto& upload = std::get<plan::CopyHostToDevice>(plan.steps[0]);
  EXPECT_EQ(plan.buffers[upload.dst.buffer].role, plan::BufferRole::symbol);
  EXPECT_EQ(upload.data.pointers, (std::vector<plan::PointerPatch>{{8, {1, 0}}}));
  const auto& launch = std::get<plan::Launch>(plan.steps[1]);
  EXPECT_EQ(launch.grid.x, 4u);
  ASSERT_EQ(launch.params.pointers.size(), 3u);
  EXPECT_EQ(launch.params.pointers[1], (plan::PointerPatch{8, {2, 0}}));
  const uint32_t slots = launch.params.pointers[2].target.buffer;
  EXPECT_EQ(plan.buffers[slots].role, plan::BufferRole::symbol);
  // The names are the device code's own.
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.role == plan::BufferRole::symbol) {
      EXPECT_NE(plan.modules[0].ptx.find(buffer.name), std::string::npos) << buffer.name;
    }
  EXPECT_NE(plan.modules[0].ptx.find(launch.kernel), std::string::npos);

  request->arguments.pop_back();
  const auto fewer = record(*request);
  ASSERT_TRUE(fewer.ok());
  EXPECT_EQ(fewer->reason, "wrong-arguments") << fewer->message;
  request->arguments.push_back({"out", "float32", {512}, true, {}});
  request->entry_point = "main";
  EXPECT_EQ(record(*request)->reason, "entry-point-missing");
}

TEST(Candidate, ExpertGemm) {
  if (!can_compile()) FAIL() << "no compiler or no sandbox";
  std::vector<toolchain::KernelResources> resources;
  auto request = compiled("kernels/sm_90a/gemm_bf16.cu", &resources);
  ASSERT_TRUE(request.ok()) << request.error().message;
  // The register counts in the machine code are those that the assembler reported.
  const auto registers = register_counts(request->cubin);
  ASSERT_FALSE(resources.empty());
  for (const toolchain::KernelResources& kernel : resources) {
    ASSERT_TRUE(registers.contains(kernel.name)) << kernel.name;
    EXPECT_EQ(registers.at(kernel.name), static_cast<uint32_t>(kernel.registers));
  }
  for (const int64_t m : {70, 8192}) {
    request->arguments = {{"A", "bfloat16", {m, 5120}, false, {}},
                          {"B", "bfloat16", {7168, 5120}, false, {}},
                          {"C", "bfloat16", {m, 7168}, true, {}}};
    const auto outcome = record(*request);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    ASSERT_TRUE(outcome->ok) << outcome->reason << ": " << outcome->message;
    const plan::LaunchPlan& plan = outcome->plan;
    ASSERT_EQ(plan.steps.size(), 1u);
    const auto& launch = std::get<plan::Launch>(plan.steps[0]);
    ASSERT_EQ(plan.tensor_maps.size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(plan.tensor_maps[i].address, (plan::BufferRef{i, 0}));
      EXPECT_EQ(launch.params.tensor_maps[i], (plan::TensorMapPatch{i * 128, i}));
    }
    EXPECT_EQ(plan.tensor_maps[0].args.dims[1], static_cast<uint64_t>(m));
    EXPECT_GT(launch.dynamic_shared_bytes, 100u << 10);
  }
}

}  // namespace
}  // namespace ptxbench::cudart
