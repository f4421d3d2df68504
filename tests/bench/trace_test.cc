// FlashInfer Trace documents in and out.
#include "bench/trace.h"

#include <gtest/gtest.h>

#include "bench/solution.h"

namespace ptxbench::bench {
namespace {

Verdict verdict(const char* status) {
  Verdict v;
  v.level = Level::numerics;
  v.reason = "numerics";
  v.message = "wrong";
  v.status = status;
  v.definition = "gemm_n7168_k5120";
  v.workload = "smoke";
  v.axes = {{"K", 832}, {"M", 200}, {"N", 1024}};
  v.arch = "sm_90a";
  v.device = "emu:h200";
  v.candidate = "mine";
  v.seed = "00000000000000050000000000000006";
  v.correctness = Correctness{};
  v.correctness->max_abs = 0.25;
  v.correctness->max_rel = INFINITY;
  return v;
}

TEST(Trace, RoundTrip) {
  for (const char* status : {"PASSED", "INCORRECT_NUMERICAL", "RUNTIME_ERROR", "COMPILE_ERROR"}) {
    SCOPED_TRACE(status);
    const Json json = to_trace(verdict(status), {"A", "B"}, "2026-01-02T03:04:05Z");
    const auto trace = read_trace(dump_json(json), "t.json");
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace->definition, "gemm_n7168_k5120");
    EXPECT_EQ(trace->uuid, "smoke");
    EXPECT_EQ(trace->axes, verdict(status).axes);
    EXPECT_EQ(trace->solution, "mine");
    EXPECT_EQ(trace->status, status);
    ASSERT_TRUE(trace->seed.has_value());
    EXPECT_EQ(to_hex(*trace->seed), "00000000000000050000000000000006");
    EXPECT_EQ(trace->arch, "sm_90a");
    // The format's own rules: correctness where values were compared, performance where they
    // passed.
    const bool compared =
        std::string(status) == "PASSED" || std::string(status) == "INCORRECT_NUMERICAL";
    EXPECT_EQ(json["evaluation"]["correctness"].is_null(), !compared);
    EXPECT_EQ(json["evaluation"]["performance"].is_null(), std::string(status) != "PASSED");
    EXPECT_EQ(trace->max_abs.has_value(), compared);
    if (compared) {
      EXPECT_EQ(*trace->max_abs, 0.25);
      EXPECT_EQ(*trace->max_rel, INFINITY);
    }
    EXPECT_EQ(json["workload"]["inputs"]["B"]["type"], "random");
  }
}

TEST(Trace, WorkloadOnlyAndFaults) {
  const auto bare = read_trace(
      R"({"definition": "d", "workload": {"uuid": "u", "axes": {"M": 1}}, "solution": null, "evaluation": null})",
      "t.json");
  ASSERT_TRUE(bare.ok()) << bare.error().message;
  EXPECT_FALSE(bare->solution || bare->status || bare->seed);
  const Json good = to_trace(verdict("PASSED"), {}, "now");
  const auto refused = [&](const char* pointer, Json value, const char* why) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = std::move(value);
    const auto trace = read_trace(dump_json(bad), "t.json");
    ASSERT_FALSE(trace.ok()) << pointer;
    EXPECT_EQ(trace.error().kind, "usage");
    EXPECT_NE(trace.error().message.find(why), std::string::npos) << trace.error().message;
  };
  refused("/definition", 3, "definition");
  refused("/workload/axes/M", "x", "axes.M");
  refused("/workload/axes/M", 1e30, "axes.M");
  refused("/evaluation/status", "FINE", "FINE");
  refused("/evaluation/correctness", nullptr, "correctness");
  refused("/evaluation/correctness/max_absolute_error", "big", "max_absolute_error");
  refused("/evaluation/environment/libs/ptxbench.seed", "xyz", "seed");
  EXPECT_EQ(read_trace("{", "t.json").error().kind, "usage");
}

Json solution() {
  return parse_json(R"({"name": "mine", "definition": "gemm_n7168_k5120", "author": "x",
    "spec": {"language": "cuda", "target_hardware": ["H200"], "entry_point": "src/main.cu::matmul",
             "destination_passing_style": true, "binding": "tvm-ffi"},
    "sources": [{"path": "src/util.cuh", "content": "int helper();"},
                {"path": "src/main.cu", "content": "#include \"util.cuh\"\n"}]})")
      .take();
}

TEST(Solution, BecomesACandidate) {
  const auto extraction = extract_solution(solution(), "s.json");
  ASSERT_TRUE(extraction.ok()) << extraction.error().message;
  const Candidate& candidate = extraction->candidate;
  EXPECT_EQ(candidate.name, "mine");
  EXPECT_EQ(candidate.entry_point, "matmul");
  EXPECT_EQ(candidate.file_name, "main.cu");
  EXPECT_EQ(candidate.definition, "gemm_n7168_k5120");
  EXPECT_EQ(candidate.source, "#include \"util.cuh\"\n");
  ASSERT_EQ(candidate.extra_files.size(), 1u);
  EXPECT_EQ(candidate.extra_files[0].first, "util.cuh");
}

TEST(Solution, Faults) {
  const auto refused = [&](const char* pointer, Json value, const char* kind, const char* why) {
    Json bad = solution();
    bad[Json::json_pointer(pointer)] = std::move(value);
    const auto extraction = extract_solution(bad, "s.json");
    ASSERT_FALSE(extraction.ok()) << pointer;
    EXPECT_EQ(extraction.error().kind, kind);
    EXPECT_NE(extraction.error().message.find(why), std::string::npos)
        << extraction.error().message;
  };
  refused("/spec/language", "triton", "unsupported", "triton");
  refused("/spec/binding", "torch", "unsupported", "torch");
  refused("/spec/destination_passing_style", false, "unsupported", "outputs");
  refused("/spec/entry_point", "main.cu", "usage", "FILE::FUNCTION");
  refused("/spec/entry_point", "none.cu::run", "usage", "none.cu");
  refused("/spec/entry_point", "src/main.cu::run;rm", "usage", "identifier");
  refused("/sources/0/path", "src/main.cu", "usage", "twice");
  refused("/sources/1/content", "", "usage", "empty");
  refused("/sources", 1, "usage", "sources");
  EXPECT_EQ(extract_solution(Json::array(), "s.json").error().kind, "usage");
}

}  // namespace
}  // namespace ptxbench::bench
