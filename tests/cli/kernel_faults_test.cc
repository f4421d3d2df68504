// Faults planted in the expert attention kernels, a line each: the verdict names them.
#include <gtest/gtest.h>

#include "evaluation.h"

namespace ptxbench {
namespace {

struct Edit {
  const char *name, *kernel, *task, *file, *from, *to;
  const char *output, *kind, *words;  // of the explanation of that output
};

void PrintTo(const Edit& edit, std::ostream* out) { *out << edit.name; }

class KernelFaults : public ::testing::TestWithParam<Edit> {
 protected:
  // The kernel and the headers beside it as one solution, with the edit, which must match once.
  static Json solution(const Edit& edit) {
    const std::filesystem::path kernels = std::filesystem::path(PTXBENCH_SOURCE_DIR) / "kernels";
    const std::filesystem::path kernel = kernels / edit.kernel, edited = kernels / edit.file;
    Json sources = Json::array();
    int edits = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kernel.parent_path())) {
      const std::filesystem::path& path = entry.path();
      if (path.extension() == ".cu" && path != kernel) continue;
      std::string text = read_file(path).take();
      if (path == edited) {
        const std::string from = edit.from;
        for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++edits)
          text.replace(at, from.size(), edit.to), at += std::string(edit.to).size();
      }
      sources.push_back({{"path", path.filename().string()}, {"content", text}});
    }
    EXPECT_EQ(edits, 1) << edit.from;
    return {{"name", edit.name},
            {"definition", edit.task},
            {"spec", {{"language", "cuda"}, {"entry_point", kernel.filename().string() + "::run"}}},
            {"sources", sources}};
  }
};

TEST_P(KernelFaults, AreNamed) {
  const Edit& edit = GetParam();
  const TempDir folder = TempDir::create("kernel-faults").take();
  const std::filesystem::path candidate = folder.path() / "solution.json";
  ASSERT_TRUE(write_file_atomically(candidate, dump_json(solution(edit))).ok());
  const auto [exit_code, out, err, verdict] =
      evaluate(candidate, edit.task, {"--workload", "smoke"});
  EXPECT_EQ(exit_code, 1) << out << err;
  EXPECT_EQ(verdict.value("reason", ""), "numerics");
  std::string found;
  for (const Json& output : verdict.at("outputs")) {
    found += output.dump() + "\n";
    if (output["output"] != edit.output) continue;
    EXPECT_EQ(output["pattern_kind"], edit.kind) << output.dump();
    EXPECT_NE(output["pattern"].get<std::string>().find(edit.words), std::string::npos)
        << output.dump();
  }
  EXPECT_NE(found.find(edit.output), std::string::npos) << found;
  // And the text that a model gets says so.
  EXPECT_NE(verdict.value("feedback", "").find(edit.words), std::string::npos)
      << verdict.value("feedback", "");
}

constexpr const char* kForward = "sm_90a/attention_forward.cuh";
constexpr const char* kForwardMma = "sm_80/attention_forward_mma.cuh";
constexpr const char* kBackward = "sm_90a/attention_backward.cuh";
constexpr const char* kBackwardParts = "sm_90a/attention_backward_parts.cuh";

INSTANTIATE_TEST_SUITE_P(
    Attention, KernelFaults,
    ::testing::Values(
        Edit{"MissingRescale", "sm_90a/mha_with_lse_d64_causal.cu", "mha_with_lse_d64_causal",
             kForward, "o[i] *= rescale[i >> 1 & 1];", "o[i] *= 1.f;", "O", "missing-rescale",
             "O is not rescaled"},
        Edit{"MaskOffByOne", "sm_90a/mha_with_lse_d64_causal.cu", "mha_with_lse_d64_causal",
             kForward, "Config::kCausal ? min(row, seq - 1)",
             "Config::kCausal ? min(row + 1, seq - 1)", "O", "mask-shifted",
             "the key after its own"},
        Edit{"LseBase2", "sm_80/mha_with_lse_d64_causal.cu", "mha_with_lse_d64_causal", kForwardMma,
             "lse[query] = maximum[0] * args.scale + logf(upper);",
             "lse[query] = (maximum[0] * args.scale + logf(upper)) * 1.44269504f;", "LSE",
             "lse-base-2", "LSE in base 2"},
        Edit{"HeadsMixed", "sm_80/mha_with_lse_d64_causal.cu", "mha_with_lse_d64_causal",
             kForwardMma, "(stage, args.k + head, block * kForwardKeys,",
             "(stage, args.k + (head_index + 1) % args.heads * args.seq * HeadDim, block * "
             "kForwardKeys,",
             "O", "heads-mixed", "K is another head's"},
        Edit{"NoDelta", "sm_90a/mha_bwd_d64_causal.cu", "mha_bwd_d64_causal", kBackwardParts,
             "args.workspace[offsets.delta + row] = sum;",
             "args.workspace[offsets.delta + row] = 0 * sum;", "dQ", "delta-missing",
             "delta term is missing"},
        Edit{"DqUnscaled", "sm_90a/mha_bwd_d64_causal.cu", "mha_bwd_d64_causal", kBackward,
             "const float4 sum = sums[i];",
             "float4 sum = sums[i];\n    for (float* x : {&sum.x, &sum.y, &sum.z, &sum.w}) *x /= "
             "args.scale;",
             "dQ", "dq-unscaled", "not multiplied by 1/sqrt(D)"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ptxbench
