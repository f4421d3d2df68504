// FlashInfer-Trace datasets as task folders, in and out.
#include "bench/trace_folder.h"

#include <gtest/gtest.h>

#include "base/build_config.h"
#include "base/files.h"
#include "base/temp_dir.h"
#include "bench/inputs.h"
#include "bench/op/operation.h"
#include "bench/safetensors.h"

namespace ptxbench::bench {
namespace {

namespace fs = std::filesystem;

// What somebody else's dataset looks like: an unknown op_type, a number, indices from a blob,
// null where lists may be missing, fields of which we know nothing.
constexpr const char* kDefinition = R"({
  "name": "gather_d8", "op_type": "gather", "description": null, "future": [1, 2.50],
  "axes": {"n": {"type": "var", "parent": null}, "rows": {"type": "var"}, "d": {"type": "const", "value": 8}},
  "constraints": null, "tags": null,
  "inputs": {
    "table": {"shape": ["rows", "d"], "dtype": "float8_e4m3"},
    "index": {"shape": ["n"], "dtype": "int32"},
    "scale": {"shape": null, "dtype": "float32"}},
  "outputs": {"out": {"shape": ["n", "d"], "dtype": "float32"}},
  "reference": "def run(table, index, scale):\n    return table[index] * scale\n"
})";
constexpr const char* kWorkload =
    R"({"definition":"gather_d8","workload":{"uuid":"w1","axes":{"n":3,"rows":5},"inputs":{"table":{"type":"random"},)"
    R"("index":{"type":"safetensors","path":"./blob/workloads/gather/i.safetensors","tensor_key":"index"},)"
    R"("scale":{"type":"scalar","value":0.5}}},"solution":null,"evaluation":null})";

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder));
  std::sort(files.begin(), files.end());
  return files;
}

class TraceFolder : public ::testing::Test {
 protected:
  TempDir temp_ = TempDir::create("trace_folder").take();
  fs::path root_ = temp_.path() / "dataset";

  void put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    ASSERT_TRUE(write_file_atomically(root_ / file, text).ok());
  }
  void make_dataset() {
    put("definitions/gather/gather_d8.json", kDefinition);
    put("workloads/some/where/gather_d8.jsonl", std::string(kWorkload) + "\n");
    put("solutions/x/gather/gather_d8/s.json", "{}");
    fs::create_directories(root_ / "blob/workloads/gather");
    const SafeTensor index{"int32", {3}, {4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}};
    ASSERT_TRUE(
        write_safetensors(root_ / "blob/workloads/gather/i.safetensors", {{"index", index}}).ok());
  }
};

TEST_F(TraceFolder, SomebodyElsesLoads) {
  make_dataset();
  const auto suite = TaskSuite::open(root_);
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  ASSERT_EQ(suite->names(), std::vector<std::string>{"gather_d8"});
  const auto task = suite->load("gather_d8");
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ(task->definition.inputs[0].dtype, "float8_e4m3fn");
  EXPECT_TRUE(task->definition.inputs[2].scalar);
  ASSERT_EQ(task->workloads.size(), 1u);
  EXPECT_EQ(task->calibration.kind, "tolerance");
  const auto flop = task_flop(*task, {{"n", 3}, {"rows", 5}, {"d", 8}});
  ASSERT_FALSE(flop.ok());
  EXPECT_EQ(flop.error().kind, "unsupported");
  EXPECT_NE(flop.error().message.find("reference.cu"), std::string::npos) << flop.error().message;

  const AxisValues axes = resolve_axes(task->definition, &task->workloads[0], {}).take();
  const auto inputs = make_inputs(task->definition, axes, Seed{1, 2}, 1, Distribution::mixed,
                                  task->workloads[0].inputs);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  EXPECT_EQ((*inputs)[1].bytes[0], 4);
  EXPECT_EQ(to_doubles((*inputs)[2]), std::vector<double>{0.5});
}

TEST_F(TraceFolder, RoundTripsByteByByte) {
  make_dataset();
  put("ptxbench/gather_d8/reference.cu", "// nothing yet\n");
  const fs::path once = temp_.path() / "once", twice = temp_.path() / "twice";
  const auto suite = TaskSuite::open(root_).take();
  const auto counts = export_trace_folder(suite, suite.names(), once);
  ASSERT_TRUE(counts.ok()) << counts.error().message;
  EXPECT_EQ(counts->blobs, 1u);
  EXPECT_EQ(read_file(once / "definitions/gather/gather_d8.json").take(), kDefinition);
  const auto second = TaskSuite::open(once).take();
  ASSERT_TRUE(export_trace_folder(second, second.names(), twice).ok());
  EXPECT_EQ(files_of(once), files_of(twice));
  EXPECT_EQ(files_of(once).size(), 4u);
  for (const fs::path& file : files_of(once))
    EXPECT_EQ(read_file(once / file).take(), read_file(twice / file).take()) << file;
  // Again into the same place: nothing to do. With other contents there: refused, nothing replaced.
  EXPECT_TRUE(export_trace_folder(suite, suite.names(), once).ok());
  ASSERT_TRUE(
      write_file_atomically(once / "ptxbench/gather_d8/reference.cu", std::string("x")).ok());
  const auto refused = export_trace_folder(suite, suite.names(), once);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, "usage");
  EXPECT_EQ(read_file(once / "ptxbench/gather_d8/reference.cu").take(), "x");
}

// The project's own tasks survive the journey: the same workloads, bounds and admission.
TEST_F(TraceFolder, OwnTasksKeepTheirMeaning) {
  const auto suite = TaskSuite::open(source_dir() / "tasks").take();
  ASSERT_TRUE(export_trace_folder(suite, suite.names(), root_).ok());
  const auto exported = TaskSuite::open(root_);
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  ASSERT_EQ(exported->names(), suite.names());
  for (const std::string& name : suite.names()) {
    SCOPED_TRACE(name);
    const Task a = suite.load(name).take();
    const auto loaded = exported->load(name);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(a.admission, loaded->admission);
    EXPECT_EQ(a.calibration.kind, loaded->calibration.kind);
    EXPECT_EQ(a.requirements.architectures.size(), loaded->requirements.architectures.size());
    ASSERT_EQ(a.workloads.size(), loaded->workloads.size());
    for (size_t i = 0; i < a.workloads.size(); ++i) {
      EXPECT_EQ(a.workloads[i].uuid, loaded->workloads[i].uuid);
      EXPECT_EQ(a.workloads[i].axes, loaded->workloads[i].axes);
      EXPECT_EQ(a.workloads[i].published, loaded->workloads[i].published);
      EXPECT_EQ(a.workloads[i].sm_count, loaded->workloads[i].sm_count);
    }
  }
}

TEST_F(TraceFolder, MistakesAreNamed) {
  const auto why = [&] {
    const auto suite = TaskSuite::open(root_);
    if (!suite.ok()) return suite.error().to_string();
    const auto task = suite->load("gather_d8");
    if (!task.ok()) return task.error().to_string();
    const auto axes = resolve_axes(task->definition, &task->workloads[0], {});
    const auto inputs = make_inputs(task->definition, *axes, Seed{1, 2}, 1, Distribution::mixed,
                                    task->workloads[0].inputs);
    return inputs.ok() ? std::string() : inputs.error().to_string();
  };
  make_dataset();
  EXPECT_EQ(why(), "");
  put("definitions/other/copy.json", kDefinition);
  EXPECT_NE(why().find("gather_d8 is defined twice"), std::string::npos) << why();
  put("definitions/other/copy.json", "{");
  EXPECT_NE(why().find("copy.json"), std::string::npos) << why();
  fs::remove(root_ / "definitions/other/copy.json");
  put("workloads/gather_d8.jsonl", kWorkload);
  EXPECT_NE(why().find("two files of workloads"), std::string::npos) << why();
  fs::remove(root_ / "workloads/gather_d8.jsonl");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kWorkload;
    text.replace(text.find(from), from.size(), to);
    put("workloads/some/where/gather_d8.jsonl", text);
    return why();
  };
  EXPECT_NE(with("\"n\":3", "\"n\":4").find("[3], the definition int32[4]"), std::string::npos);
  EXPECT_NE(with("\"scalar\"", "\"magic\"").find("found \"magic\""), std::string::npos);
  EXPECT_NE(with("\"scale\"", "\"scalf\"").find("scale: is a number"), std::string::npos);
  EXPECT_NE(with("{\"type\":\"safetensors\",", "{\"type\":\"random\",").find("needs a range"),
            std::string::npos);
  EXPECT_NE(with("\"random\"", "\"scalar\",\"value\":1").find("a number for what is a tensor"),
            std::string::npos);
  put("blob/workloads/gather/i.safetensors",
      "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n");
  EXPECT_NE(with("w1", "w2").find("is a Git LFS pointer"), std::string::npos);
}

}  // namespace
}  // namespace ptxbench::bench
