#pragma once
// Builds CUDA programs with plain nvcc and runs them through `ptxbench emulate`.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "toolchain/toolkit.h"

namespace ptxbench::cudart {

struct Emulated {
  int exit_code = -1;
  std::string out, err;
  Json report;  // of --json; null if none was written
  // The first process's report.
  const Json& process() const { return report["processes"][0]; }
  std::vector<std::string> kinds() const {
    std::vector<std::string> all;
    for (const Json& f : process()["findings"]) all.push_back(f["kind"]);
    return all;
  }
};

class LivePrograms : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = new TempDir(TempDir::create("live").take()); }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
    built_.clear();
  }

  // The program made of one source file (relative to the source tree); built once.
  static std::string build(const std::string& source, std::vector<std::string> options = {
                                                          "-arch=sm_90a", "-cudart", "shared"}) {
    std::string key = source;
    for (const std::string& option : options) key += " " + option;
    if (const auto known = built_.find(key); known != built_.end()) return known->second;
    const auto toolkit = toolchain::find_toolkit();
    EXPECT_TRUE(toolkit.ok()) << "these tests need nvcc";
    if (!toolkit.ok()) return {};
    const std::string program =
        (folder_->path() / ("program" + std::to_string(built_.size()))).string();
    ProcessSpec spec;
    spec.argv = {toolkit->nvcc.string(), "-o", program,
                 (std::filesystem::path(PTXBENCH_SOURCE_DIR) / source).string()};
    // A toolkit made of wheels has the library, but not the name that the linker looks for.
    if (const auto library = toolchain::find_cuda_library(*toolkit, "cudart"); !library.empty()) {
      const auto link = folder_->path() / "libcudart.so";
      std::error_code exists;
      std::filesystem::create_symlink(library, link, exists);
      spec.argv.push_back("-L" + folder_->path().string());
    }
    spec.argv.insert(spec.argv.end(), options.begin(), options.end());
    const auto result = run_process(spec);
    EXPECT_TRUE(result.ok() && result->exit_code == 0) << (result.ok() ? result->err : "nvcc");
    return built_[key] = program;
  }

  static Emulated emulate(const std::string& program, std::vector<std::string> arguments = {},
                          std::vector<std::string> options = {}) {
    const std::string json = (folder_->path() / "report.json").string();
    std::filesystem::remove(json);
    ProcessSpec spec;
    spec.argv = {(std::filesystem::path(PTXBENCH_BUILD_DIR) / "bin/ptxbench").string(), "emulate",
                 "--json", json};
    spec.argv.insert(spec.argv.end(), options.begin(), options.end());
    spec.argv.push_back("--");
    spec.argv.push_back(program);
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.wall_s = 120;
    const auto result = run_process(spec);
    EXPECT_TRUE(result.ok() && result->signal == 0);
    Emulated out;
    if (!result.ok()) return out;
    out.exit_code = result->exit_code;
    out.out = result->out;
    out.err = result->err;
    if (auto text = read_file(json); text.ok())
      if (auto document = parse_json(*text); document.ok()) out.report = document.take();
    return out;
  }

  // What a program wrote to the file that its first argument names.
  template <class T>
  static std::vector<T> result_of(const std::string& program,
                                  const std::vector<std::string>& options = {}) {
    const std::string path = (folder_->path() / "result").string();
    std::filesystem::remove(path);
    const Emulated run = emulate(program, {path}, options);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_NE(run.out.find(" 0 wrong"), std::string::npos) << run.out;
    EXPECT_EQ(run.err, "");
    const auto bytes = read_bytes(path);
    std::vector<T> values;
    if (!bytes.ok()) return values;
    values.resize(bytes->size() / sizeof(T));
    std::memcpy(values.data(), bytes->data(), values.size() * sizeof(T));
    return values;
  }

  static inline TempDir* folder_ = nullptr;
  static inline std::map<std::string, std::string> built_;
};

}  // namespace ptxbench::cudart
