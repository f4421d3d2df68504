// Tasks that the program has never heard of: a folder with a reference.cu, and a FlashInfer-Trace
// dataset made of it.
#include <gtest/gtest.h>

#include "evaluation.h"

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

const std::string kExamples = std::string(PTXBENCH_SOURCE_DIR) + "/examples/tasks";

std::string edited(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = read_file(file).take();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class UserTask : public ::testing::Test {
 protected:
  TempDir temp_ = TempDir::create("user_task").take();
  fs::path tasks_ = temp_.path() / "tasks", candidate_ = temp_.path() / "c.cu";

  void SetUp() override { fs::copy(kExamples, tasks_, fs::copy_options::recursive); }
  Evaluation eval(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--tasks", tasks_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return evaluate(candidate_, "rmsnorm_h256", arguments, 120);
  }
  void put(const fs::path& path, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(path, text).ok());
  }
};

TEST_F(UserTask, RunsWithItsOwnReference) {
  put(candidate_, read_file(kExamples + "/rmsnorm.cu").take());
  for (const char* workload : {"smoke", "large-eps"}) {
    const Evaluation ran = eval({"--workload", workload});
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.verdict.value("level", 0), 5);
    EXPECT_EQ(ran.verdict.at("correctness").at("verified"),
              workload == std::string("smoke") ? 77 * 256 : 32 * 256);
  }
}

TEST_F(UserTask, FaultsAreSeen) {
  struct Fault {
    const char *from, *to, *reason;
  };
  for (const Fault& fault : {
           Fault{"/ 256 + eps", "/ 256", "numerics"},  // the number is not used
           Fault{"* inverse * w.x", "* inverse", "numerics"},
           Fault{"if (row >= rows) return", "if (row >= rows - 1) return", "no-output"},
           Fault{"if (row >= rows) return;", "", "memory-fault"},
       }) {
    put(candidate_, edited(kExamples + "/rmsnorm.cu", fault.from, fault.to));
    const Evaluation ran = eval({"--workload", "large-eps", "--axes", "rows=30"});
    EXPECT_EQ(ran.exit_code, 1) << fault.from << ran.out << ran.err;
    EXPECT_EQ(ran.verdict.value("reason", ""), fault.reason) << fault.from;
  }
}

TEST_F(UserTask, ABadReferenceIsTheTasksFault) {
  put(candidate_, read_file(kExamples + "/rmsnorm.cu").take());
  const fs::path reference = tasks_ / "rmsnorm_h256/reference.cu";
  struct Fault {
    const char *from, *to, *says;
  };
  for (const Fault& fault : {
           Fault{"double sum = 0;", "double sum = 0", "does not compile"},
           Fault{"i < hidden; i += blockDim.x", "i < hidden - 1; i += blockDim.x", "never written"},
           Fault{"row[i]);\n    sum", "row[i + (1 << 30)]);\n    sum", "reference.cu"},
           Fault{"double eps, tvm", "int64_t eps, tvm", "reference.cu"},
       }) {
    const std::string text = edited(kExamples + "/rmsnorm_h256/reference.cu", fault.from, fault.to);
    put(reference, text);
    const Evaluation ran = eval();
    EXPECT_EQ(ran.exit_code, 2) << fault.from << ran.out;
    EXPECT_NE(ran.err.find(fault.says), std::string::npos) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  fs::remove(reference);
  const Evaluation without = eval();
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("op_type 'rmsnorm' cannot be evaluated"), std::string::npos)
      << without.err;
}

TEST_F(UserTask, AsADataset) {
  put(candidate_, read_file(kExamples + "/rmsnorm.cu").take());
  const fs::path dataset = temp_.path() / "dataset";
  const ProcessResult exported = run_ptxbench(
      {"tasks", "export", dataset.string(), "rmsnorm_h256", "--tasks", tasks_.string()}, 120);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_TRUE(fs::exists(dataset / "definitions/rmsnorm/rmsnorm_h256.json"));
  tasks_ = dataset;
  const fs::path trace = temp_.path() / "trace.json";
  const Evaluation ran = eval({"--trace", trace.string()});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const Json document = parse_json(read_file(trace).take()).take();
  EXPECT_EQ(document.at("workload").at("inputs").at("eps").at("value"), 1e-6);
  const ProcessResult listed = run_ptxbench({"tasks", "list", "--tasks", dataset.string()}, 120);
  EXPECT_NE(listed.out.find("rmsnorm_h256"), std::string::npos) << listed.out;
}

}  // namespace
}  // namespace ptxbench
