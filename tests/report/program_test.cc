// The program on bad input: one line on stderr, exit code 2, nothing written.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace ptxbench::report {
namespace {

const std::filesystem::path kBinary = std::filesystem::path(PTXBENCH_BUILD_DIR) / "bin/ptxbench";
const std::filesystem::path kPublished =
    std::filesystem::path(PTXBENCH_SOURCE_DIR) / "examples/published/turns.csv.gz";

class Program : public ::testing::Test {
 protected:
  ProcessResult run(std::vector<std::string> arguments) {
    ProcessSpec spec;
    spec.argv = {kBinary.string()};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.environment = {{"PATH", "/usr/bin"}, {"PTXBENCH_VENV_DIR", venv_}};
    spec.wall_s = 60;
    return run_process(spec).take();
  }
  void refused(std::vector<std::string> arguments, const std::string& words) {
    const ProcessResult r = run(std::move(arguments));
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
  }
  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    EXPECT_TRUE(write_file_atomically(path, std::string_view(text)).ok());
    return path.string();
  }
  TempDir folder_ = TempDir::create("report").take();
  std::string venv_ = std::string(PTXBENCH_SOURCE_DIR) + "/.venv";
};

TEST_F(Program, RefusesSourcesThatAreNone) {
  refused({"report", "/no/such/file"}, "No such file");
  refused({"report", write("empty.csv", "")}, "empty file");
  refused({"report", write("other.csv", "a,b\n1,2\n")},
          "no column definition, trajectory_id, turn, correctness");
  refused({"report", write("header.csv", "definition,trajectory_id,turn,correctness\n")},
          "no turns");
  refused({"report", write("broken.json", "{\"level\": 1,")}, "broken.json");
  refused({"report", write("junk.csv", std::string("\0\1\2\xff\xfe junk", 12))}, "junk.csv");
  refused({"report", write("half.db", std::string("SQLite format 3\0", 16) + "xx")}, "half.db");
  refused({"report", folder_.path().string() + "/nothing"}, "nothing");
  refused({"report"}, "source");
  refused({"runs", "list", write("text.db", "not a store")}, "text.db");
  refused({"runs", "import", write("text2.db", "not a store"), kPublished.string()}, "text2.db");
}

TEST_F(Program, RefusesWhatItCannotDo) {
  const std::string published = kPublished.string();
  refused({"report", published, "--table", "nonsense"}, "there are models, results, rates");
  refused({"report", published, "--compare", "GLM-5.2", "nobody"}, "nobody");
  refused({"report", published, "--dates",
           write("dates.csv", "kind,name,arch,date,note\nmodel,x,,2025-06-31,\n")},
          "dates.csv:2: '2025-06-31' is no date");
  refused({"report", published, "--html", "/no/such/folder/x.html"}, "/no/such/folder");
  venv_ = "/no/such/venv";
  const auto page = folder_.path() / "x.html";
  refused({"report", published, "--html", page.string()}, "run scripts/setup.sh");
  EXPECT_FALSE(std::filesystem::exists(page));
}

TEST_F(Program, NamesWhatIsOdd) {
  const ProcessResult r = run({"report", write("odd.csv",
                                               "definition,trajectory_id,turn,correctness,speedup\n"
                                               "d,t,0,Corect,nan\nd,t,2,Correct,1\nd,t,x,,\n")});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char* kind : {"odd-label", "odd-speedup", "odd-turn", "missing-turns",
                           "missing-column", "no-model", "unknown-arch"})
    EXPECT_NE(r.out.find(kind), std::string::npos) << kind << "\n" << r.out;
}

TEST_F(Program, KeepsRuns) {
  const std::string store = (folder_.path() / "runs.db").string();
  EXPECT_NE(run({"runs", "import", store, kPublished.string()}).out.find("13674 new"),
            std::string::npos);
  EXPECT_NE(run({"runs", "import", store, kPublished.string()}).out.find("0 new, 13674 there"),
            std::string::npos);
  EXPECT_NE(run({"runs", "list", store}).out.find("glm52-gemm: 96 turns in 12 trajectories"),
            std::string::npos);
  // A report of the store is the report of its sources.
  const ProcessResult from_store = run({"report", store}), direct = run({"report", kPublished});
  EXPECT_EQ(from_store.exit_code, 0);
  EXPECT_EQ(from_store.out, direct.out);
}

}  // namespace
}  // namespace ptxbench::report
