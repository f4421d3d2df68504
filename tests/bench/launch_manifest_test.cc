// The example's manifest becomes the plan that host code would have made; faulty ones are told by
// place.
#include "bench/launch_manifest.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"

namespace ptxbench::bench {
namespace {

std::string example(const char* name) {
  return read_file(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "examples/candidates" / name)
      .take();
}

ManifestRequest request() {
  ManifestRequest out;
  out.manifest = example("gemm_ptx.launch.json");
  out.ptx = example("gemm_ptx.ptx");
  out.arch = "sm_90a";
  out.device_profile = "h200";
  out.definition = "gemm_n7168_k5120";
  out.axes = {{"M", 200}, {"N", 1024}, {"K", 832}};
  out.arguments = {{"A", "bfloat16", {200, 832}, false, {}},
                   {"B", "bfloat16", {1024, 832}, false, {}},
                   {"C", "bfloat16", {200, 1024}, true, {}}};
  return out;
}

TEST(LaunchManifest, BecomesAPlan) {
  const auto outcome = plan_from_manifest(request());
  ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
  ASSERT_TRUE(outcome->ok) << outcome->message;
  const plan::LaunchPlan& plan = outcome->plan;
  ASSERT_EQ(plan.buffers.size(), 3u);
  EXPECT_EQ(plan.buffers[1].size, 1024u * 832 * 2);
  ASSERT_EQ(plan.tensor_maps.size(), 2u);
  const plan::TensorMapArgs& b = plan.tensor_maps[1].args;
  EXPECT_EQ(plan.tensor_maps[1].address, (plan::BufferRef{1, 0}));
  EXPECT_EQ(b.rank, 2u);
  EXPECT_EQ(b.dims[0], 832u);
  EXPECT_EQ(b.dims[1], 1024u);
  EXPECT_EQ(b.strides[0], 1664u);
  EXPECT_EQ(b.box[1], 64u);
  EXPECT_EQ(b.swizzle, plan::MapSwizzle::b128);
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto& launch = std::get<plan::Launch>(plan.steps[0]);
  EXPECT_EQ(launch.grid, (plan::Dim3{16, 4, 1}));
  EXPECT_EQ(launch.block, (plan::Dim3{128, 1, 1}));
  ASSERT_EQ(launch.params.bytes.size(), 128u + 128 + 8 + 12);
  EXPECT_EQ(launch.params.tensor_maps[1].at, 128u);
  EXPECT_EQ(launch.params.pointers, (std::vector<plan::PointerPatch>{{256, {2, 0}}}));
  uint32_t words[3];
  std::memcpy(words, launch.params.bytes.data() + 264, sizeof words);
  EXPECT_EQ(words[0], 200u);
  EXPECT_EQ(words[1], 1024u);
  EXPECT_EQ(words[2], 13u);
}

constexpr char kPtx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .align 8 .b8 s[24]) .maxntid 256, 1, 1 { ret; }\n";

// A manifest for kPtx with one launch and further fields of it and of the document.
std::string manifest(const std::string& arguments, const std::string& launch = "",
                     const std::string& document = "") {
  return "{\"launches\": [{\"kernel\": \"k\", \"grid\": [1], \"block\": [32], \"arguments\": " +
         arguments + launch + "}]" + document + "}";
}
const std::string kGood =
    R"([{"buffer": "A"}, {"struct": [{"i32": -2}, {"f64": 0.5}, {"u32": 7}]}])";

cudart::RecordOutcome plan_of(const std::string& text) {
  ManifestRequest r = request();
  r.ptx = kPtx;
  r.manifest = text;
  auto outcome = plan_from_manifest(r);
  EXPECT_TRUE(outcome.ok()) << outcome.error().to_string();
  return outcome.ok() ? outcome.take() : cudart::RecordOutcome{};
}

TEST(LaunchManifest, StructuresScratchAndMemset) {
  const auto outcome = plan_of(
      R"({"scratch": {"w": "M * 4"}, "launches": [{"memset": "w", "value": 255, "offset": 16},
          {"kernel": "k", "grid": ["M", 2, 3], "block": [32], "cluster": [2], "dynamic_shared": 50000,
           "arguments": [{"buffer": "w", "offset": "2 * 8"},
                         {"struct": [{"i32": -2}, {"f64": 0.5}, {"u32": 7}]}]}]})");
  ASSERT_TRUE(outcome.ok) << outcome.message;
  ASSERT_EQ(outcome.plan.steps.size(), 2u);
  const auto& memset = std::get<plan::Memset>(outcome.plan.steps[0]);
  EXPECT_EQ(memset.bytes, 784u);
  EXPECT_EQ(memset.value, 255u);
  const auto& launch = std::get<plan::Launch>(outcome.plan.steps[1]);
  EXPECT_EQ(launch.cluster, (plan::Dim3{2, 1, 1}));
  EXPECT_EQ(launch.max_dynamic_shared_bytes, 50000u);
  EXPECT_EQ(launch.params.pointers, (std::vector<plan::PointerPatch>{{0, {3, 16}}}));
  int32_t first = 0;
  double second = 0;
  std::memcpy(&first, launch.params.bytes.data() + 8, 4);
  std::memcpy(&second, launch.params.bytes.data() + 16, 8);
  EXPECT_EQ(first, -2);
  EXPECT_EQ(second, 0.5);
  EXPECT_EQ(launch.params.bytes[24], 7);
}

TEST(LaunchManifest, FaultsAreToldByPlace) {
  ASSERT_TRUE(plan_of(manifest(kGood)).ok);
  const std::tuple<std::string, const char*, const char*> cases[] = {
      {"{", "bad-launch-manifest", "launch manifest"},
      {"[]", "bad-launch-manifest", "object"},
      {"{}", "bad-launch-manifest", "launches"},
      {R"({"launches": []})", "bad-launch-manifest", "at least one"},
      {manifest(kGood, "", R"(, "lanches": 1)"), "bad-launch-manifest",
       "unknown field \"lanches\""},
      {manifest(kGood, R"(, "blok": 1)"), "bad-launch-manifest", "blok"},
      {manifest("[]"), "bad-launch-manifest", "0 arguments, but k takes 2"},
      {manifest(R"([{"i32": 1}, {"struct": []}])"), "bad-launch-manifest", "arguments[0]"},
      {manifest(R"([{"buffer": "Q"}, {"struct": []}])"), "bad-launch-manifest", "\"Q\""},
      {manifest(R"([{"buffer": "A", "offset": "M * K * 2 + 1"}, {"struct": []}])"),
       "bad-launch-manifest", "out of range"},
      {manifest(
           R"([{"buffer": "A"}, {"struct": [{"f64": 1}, {"f64": 1}, {"f64": 1}, {"i32": 1}]}])"),
       "bad-launch-manifest", "needs 4 bytes"},
      {manifest(R"([{"buffer": "A"}, {"struct": [{"u32": -1}]}])"), "bad-launch-manifest", "-1"},
      {manifest(R"([{"buffer": "A"}, {"tensor_map": "t"}])"), "bad-launch-manifest", "\"t\""},
      {manifest(R"([{"buffer": "A"}, {"struct": [{"i32": "M +"}]}])"), "bad-launch-manifest",
       "unexpected end"},
      {manifest(kGood, R"(, "cooperative": 1)"), "bad-launch-manifest", "cooperative"},
      {manifest(kGood, "", R"(, "scratch": {"A": 1})"), "bad-launch-manifest",
       "tensor of the task"},
      {manifest(kGood, "", R"(, "constants": {"M": 1})"), "bad-launch-manifest", "axis"},
      {manifest(kGood, "",
                R"(, "tensor_maps": {"t": {"buffer": "A", "dims": ["K"], "box": [300]}})"),
       "bad-launch-manifest", "tensor_maps.t.box"},
      {manifest(
           kGood, "",
           R"(, "tensor_maps": {"t": {"buffer": "A", "dims": ["K", "M"], "strides": [3], "box": [8, 8]}})"),
       "bad-launch-manifest", "tensor_maps.t"},
      {manifest(
           kGood, "",
           R"(, "tensor_maps": {"t": {"buffer": "A", "dims": ["K"], "box": [8], "swizzle": "99B"}})"),
       "bad-launch-manifest", "99B"},
      {R"({"launches": [{"kernel": "j", "grid": [1], "block": [1], "arguments": []}]})",
       "bad-launch-manifest", "no kernel \"j\""},
      {R"({"launches": [{"kernel": "k", "grid": [0], "block": [1], "arguments": []}]})",
       "launch-refused", "empty grid"},
      {R"({"launches": [{"kernel": "k", "grid": [1], "block": [512], "arguments": []}]})",
       "launch-refused", "at most 256"},
      {R"({"launches": [{"kernel": "k", "grid": [3], "block": [1], "cluster": [2], "arguments": []}]})",
       "launch-refused", "multiple"},
  };
  for (const auto& [text, reason, why] : cases) {
    const auto outcome = plan_of(text);
    EXPECT_FALSE(outcome.ok) << text;
    EXPECT_EQ(outcome.reason, reason) << text << outcome.message;
    EXPECT_NE(outcome.message.find(why), std::string::npos) << outcome.message;
  }
}

}  // namespace
}  // namespace ptxbench::bench
