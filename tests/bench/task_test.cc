#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/temp_dir.h"
#include "bench/inputs.h"
#include "bench/op/operation.h"
#include "bench/task.h"

namespace ptxbench::bench {
namespace {

TaskSuite published_suite() {
  return TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks").take();
}

TEST(Tasks, EveryPublishedWorkloadIsThere) {
  const TaskSuite suite = published_suite();
  std::ifstream csv(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks/gemm_published.csv");
  std::string line;
  std::getline(csv, line);
  int rows = 0;
  while (std::getline(csv, line)) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.pop_back();
    if (line.empty()) continue;
    const size_t first = line.find(','), second = line.find(',', first + 1);
    auto task = suite.load(line.substr(0, first));
    ASSERT_TRUE(task.ok()) << task.error().to_string();
    const Workload* workload = task->find_workload(line.substr(first + 1, second - first - 1));
    ASSERT_NE(workload, nullptr) << line;
    EXPECT_TRUE(workload->published);
    auto axes = resolve_axes(task->definition, workload, {});
    ASSERT_TRUE(axes.ok()) << axes.error().to_string();
    EXPECT_EQ(axis_value(*axes, "M"), std::stoll(line.substr(second + 1)));
    ++rows;
  }
  EXPECT_EQ(rows, 82);
}

TEST(Tasks, EveryPublishedAttentionIsThere) {
  const TaskSuite suite = published_suite();
  std::ifstream csv(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks/attention_published.csv");
  std::string line;
  std::getline(csv, line);
  int rows = 0;
  while (std::getline(csv, line)) {
    const size_t first = line.find(','), second = line.find(',', first + 1);
    auto task = suite.load(line.substr(0, first));
    ASSERT_TRUE(task.ok()) << task.error().to_string();
    const Workload* workload = task->find_workload(line.substr(first + 1, second - first - 1));
    ASSERT_NE(workload, nullptr) << line;
    const AxisValues axes = resolve_axes(task->definition, workload, {}).take();
    const double s = std::stod(line.substr(second + 1)), d = axis_value(axes, "D");
    EXPECT_EQ(axis_value(axes, "S"), s);
    // Heads times scores times the products that the definition has, multiply and add.
    const bool causal = line.find("_causal") < first, backward = line[4] == 'b';
    const double scores = 4 * 48 * (causal ? s * (s + 1) / 2 : s * s);
    EXPECT_EQ(task_flop(task->definition, axes).take(), scores * d * (backward ? 10 : 4)) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 84);
}

TEST(Tasks, SmokeWorkloadsKeepTheTileStructure) {
  const TaskSuite suite = published_suite();
  size_t gemms = 0;
  for (const std::string& name : suite.names()) {
    const Task task = suite.load(name).take();
    if (task.definition.op_type != "gemm") continue;
    ++gemms;
    const Workload* smoke = task.find_workload("smoke");
    ASSERT_NE(smoke, nullptr) << name;
    EXPECT_FALSE(smoke->published);
    const AxisValues axes = resolve_axes(task.definition, smoke, {}).take();
    const int64_t m = axis_value(axes, "M"), n = axis_value(axes, "N"), k = axis_value(axes, "K");
    EXPECT_NE(m % 64, 0) << name << ": M must be ragged";
    EXPECT_GE(k / 64, 12) << name << ": three wraps of a four-stage ring";
    EXPECT_GT(smoke->sm_count, 0);
    const int64_t tile_n = n <= 128 ? 128 : 256;
    EXPECT_GE((m + 127) / 128 * ((n + tile_n - 1) / tile_n), 2 * smoke->sm_count) << name;
    EXPECT_LE(task_flop(task.definition, axes).take(), 0.5e9) << name;
    EXPECT_EQ(task.requirements.architectures.count("sm_90a"), 1u);
  }
  EXPECT_EQ(gemms, 17u);
}

TEST(Tasks, UnknownNamesSuggestNearOnes) {
  auto task = published_suite().load("gemm_n7168_k512");
  ASSERT_FALSE(task.ok());
  EXPECT_EQ(task.error().kind, "usage");
  EXPECT_NE(task.error().message.find("gemm_n7168_k5120"), std::string::npos);
  EXPECT_FALSE(published_suite().load("../tasks").ok());
  EXPECT_FALSE(published_suite().load("").ok());
}

TEST(Tasks, AxesOutOfRange) {
  const Task task = published_suite().load("gemm_n7168_k5120").take();
  for (const char* text : {"M=0", "M=-4", "M=99999999999", "Q=4", "M=16777216"}) {
    auto pairs = parse_axes(text);
    ASSERT_TRUE(pairs.ok()) << text;
    auto axes = resolve_axes(task.definition, nullptr, *pairs);
    ASSERT_FALSE(axes.ok()) << text;
    EXPECT_EQ(axes.error().kind, "usage") << text;
  }
  EXPECT_FALSE(resolve_axes(task.definition, nullptr, {}).ok());  // M has no value
  for (const char* text :
       {"", "M", "=4", "M=", "M=4x", "M=200,M=300", "M=4,K=2,M=4", "M=99999999999999999999"})
    EXPECT_FALSE(parse_axes(text).ok()) << text;
  auto axes = resolve_axes(task.definition, nullptr, parse_axes("M=8,K=64").take()).take();
  EXPECT_EQ(axis_value(axes, "K"), 64);
  EXPECT_EQ(axis_value(axes, "N"), 7168);
}

// A user's folder: works without a rebuild, and each mistake gives one clear error.
class UserTask : public ::testing::Test {
 protected:
  UserTask() : folder_(TempDir::create("tasks").take()) {
    const auto from = std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks/gemm_n128_k2048";
    std::filesystem::copy(from, folder_.path() / "mine", std::filesystem::copy_options::recursive);
    edit("definition.json", "\"gemm_n128_k2048\"", "\"mine\"");
  }
  void edit(const char* file, const std::string& from, const std::string& to) {
    const auto path = folder_.path() / "mine" / file;
    std::string text = read_file(path).take();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    ASSERT_TRUE(write_file_atomically(path, std::string_view(text)).ok());
  }
  Result<Task> load() { return TaskSuite::open(folder_.path()).take().load("mine"); }
  void expect_error(const char* word) {
    auto task = load();
    ASSERT_FALSE(task.ok());
    EXPECT_EQ(task.error().kind, "bad-task");
    EXPECT_NE(task.error().message.find(word), std::string::npos) << task.error().message;
  }
  TempDir folder_;
};

TEST_F(UserTask, Loads) {
  auto task = load();
  ASSERT_TRUE(task.ok()) << task.error().to_string();
  EXPECT_EQ(task->definition.inputs[1].name, "B");
}
TEST_F(UserTask, BadJson) {
  edit("definition.json", "{", "{{");
  expect_error("definition.json");
}
TEST_F(UserTask, WrongType) {
  edit("definition.json", "\"type\": \"var\"", "\"type\": 3");
  expect_error("axes.M.type");
}
TEST_F(UserTask, UnknownAxisKind) {
  edit("definition.json", "\"type\": \"var\"", "\"type\": \"free\"");
  expect_error("free");
}
TEST_F(UserTask, BadWorkloadLine) {
  edit("workloads.jsonl", "\"uuid\": \"smoke-m70\"", "\"uuid\": 4");
  expect_error("workloads.jsonl:2");
}
TEST_F(UserTask, WhatIsMissingHasADefault) {
  for (const char* file : {"calibration.json", "requirements.json", "workloads.jsonl"})
    std::filesystem::remove(folder_.path() / "mine" / file);
  const auto task = load();
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ(task->calibration.kind, "tolerance");
  EXPECT_TRUE(task->requirements.architectures.empty());
  EXPECT_TRUE(task->workloads.empty());
  EXPECT_NE(task->admission, AdmissionState::admitted);
}
TEST_F(UserTask, NoHonestMeasurement) {
  edit("calibration.json", "\"points\"", "\"dots\"");
  expect_error("points");
}

TEST(Inputs, AreAFunctionOfTheSeed) {
  const Task task = published_suite().load("gemm_n7168_k5120").take();
  const AxisValues axes = {{"M", 64}, {"N", 48}, {"K", 320}};
  auto one = make_inputs(task.definition, axes, Seed{1, 2}, 1).take();
  auto again = make_inputs(task.definition, axes, Seed{1, 2}, 2).take();
  auto other = make_inputs(task.definition, axes, Seed{1, 3}, 1).take();
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].bytes.size(), 64u * 320 * 2);
  EXPECT_EQ(one[0].bytes, again[0].bytes);
  EXPECT_EQ(one[1].bytes, again[1].bytes);
  EXPECT_NE(one[0].bytes, other[0].bytes);
  EXPECT_NE(std::vector<uint8_t>(one[0].bytes.begin(), one[0].bytes.begin() + 1000),
            std::vector<uint8_t>(one[1].bytes.begin(), one[1].bytes.begin() + 1000));
}

TEST(Inputs, SeedsRoundTripAndBadOnesAreRefused) {
  const Seed seed = draw_seed();
  EXPECT_EQ(parse_seed(to_hex(seed)).take(), seed);
  EXPECT_EQ(parse_seed("0x2a").take(), (Seed{0, 42}));
  for (const char* bad : {"", "0x", "xyz", "123456789012345678901234567890123"})
    EXPECT_FALSE(parse_seed(bad).ok()) << bad;
  EXPECT_NE(draw_seed(), draw_seed());
}

TEST(Inputs, PoisonIsANanThatNoInstructionMakes) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint16_t p = poison_pattern(Seed{i, i * i});
    EXPECT_EQ(p & 0x7f80, 0x7f80);
    EXPECT_NE(p & 0x003f, 0);
    EXPECT_EQ(p & 0x0040, 0);  // quiet bit clear
  }
}

}  // namespace
}  // namespace ptxbench::bench
