// `ptxbench inspect` on every kind of file, whole and damaged.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace ptxbench {
namespace {

const std::string kSource = PTXBENCH_SOURCE_DIR;

class Inspect : public ::testing::Test {
 protected:
  ProcessResult run(std::vector<std::string> argv) {
    ProcessSpec spec;
    spec.argv = std::move(argv);
    spec.working_directory = folder_.path();
    spec.wall_s = 120;
    auto result = run_process(spec);
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result->signal, 0) << result->err;
    return result.take();
  }
  ProcessResult inspect(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench", "inspect",
                                     file};
    argv.insert(argv.end(), more.begin(), more.end());
    return run(argv);
  }
  Json json_of(const std::string& file) {
    const ProcessResult r = inspect(file, {"--json", "-"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    auto json = parse_json(r.out);
    EXPECT_TRUE(json.ok()) << r.out;
    return json.ok() ? *json : Json::object();
  }
  std::string write(const char* name, std::string_view bytes) {
    const auto path = folder_.path() / name;
    EXPECT_TRUE(write_file_atomically(path, bytes).ok());
    return path.string();
  }
  void expect_refused(const std::string& file) {
    const ProcessResult r = inspect(file);
    EXPECT_EQ(r.exit_code, 2) << file << r.out;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
  TempDir folder_ = TempDir::create("inspect").take();
};

TEST_F(Inspect, ExpertKernelHasResourcesAndNoHazards) {
  const Json json = json_of(kSource + "/kernels/sm_90a/gemm_bf16.cu");
  EXPECT_TRUE(json["hazards"].empty()) << json["hazards"].dump(1);
  EXPECT_TRUE(json["diagnostics"].empty()) << json["diagnostics"].dump(1);
  ASSERT_GE(json["kernels"].size(), 4u);
  for (const Json& kernel : json["kernels"]) {
    EXPECT_EQ(kernel["needs"], "sm_90a");
    EXPECT_EQ(kernel["spill_bytes"], 0);
    EXPECT_EQ(kernel["machine_registers"], 168);
    EXPECT_GT(kernel["register_pressure"], 32);
    EXPECT_GT(kernel["code_bytes"], 1000);
    EXPECT_EQ(kernel["families"]["wgmma.mma_async"]["needs"], "sm_90a");
    EXPECT_GT(kernel["families"]["wgmma.mma_async"]["count"], 0);
    EXPECT_EQ(kernel["families"]["stmatrix"]["needs"], "sm_90 or later");
  }
}

TEST_F(Inspect, HazardsAndAdvisoriesAreExplained) {
  const std::string file = write("wrong.ptx", R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [p];
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.f32 [%rd1], %f1;
  ret;
}
)");
  const Json json = json_of(file);
  ASSERT_EQ(json["hazards"].size(), 1u) << json.dump(1);
  EXPECT_EQ(json["hazards"][0]["kind"], "wgmma-without-fence");
  EXPECT_EQ(json["hazards"][0]["ptx_line"], 7);
  EXPECT_EQ(json["hazards"][0]["certain"], false);
  const ProcessResult text = inspect(file);
  EXPECT_NE(text.out.find("possible hazard wgmma-without-fence, PTX line 7"), std::string::npos)
      << text.out;
  if (!json["not_assembled"].get<std::string>().empty()) return;
  EXPECT_GT(json["kernels"][0]["machine_registers"], 0);
  bool explained = false;
  for (const Json& d : json["diagnostics"])
    explained |= d["code"].get<std::string>().rfind("C75", 0) == 0 && !d["hint"].empty();
  EXPECT_TRUE(explained) << json["diagnostics"].dump(1);
}

class Compiled : public Inspect {
 protected:
  void SetUp() override {
    nvcc_ = "/usr/local/cuda/bin/nvcc";
    if (!std::filesystem::exists(nvcc_)) GTEST_SKIP() << "no CUDA toolkit in its usual place";
    write("k.cu",
          "__global__ void k(int* p) { __shared__ int s[8]; s[threadIdx.x & 7] = *p;\n"
          "__syncthreads(); *p = s[0]; }\nvoid f(int* p) { k<<<1, 8>>>(p); }\n");
  }
  std::string build(std::vector<std::string> options, const char* name) {
    options.insert(options.begin(), nvcc_);
    options.insert(options.end(), {"-o", name, "k.cu"});
    const ProcessResult r = run(options);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return (folder_.path() / name).string();
  }
  std::string nvcc_;
};

TEST_F(Compiled, FatBinariesCubinsAndLibraries) {
  const std::string fatbin =
      build({"-fatbin", "-gencode", "arch=compute_90a,code=[compute_90a,sm_90a]", "-gencode",
             "arch=compute_80,code=sm_80"},
            "k.fatbin");
  Json json = json_of(fatbin);
  EXPECT_EQ(json["kind"], "fat binary");
  ASSERT_EQ(json["kernels"].size(), 2u) << json.dump(1);
  for (const Json& kernel : json["kernels"]) {
    EXPECT_EQ(kernel["name"], "_Z1kPi");
    EXPECT_GT(kernel["machine_registers"], 0);
    const bool hopper = kernel["target"] == "sm_90a";
    EXPECT_TRUE(hopper || kernel["target"] == "sm_80");
    EXPECT_EQ(kernel["families"].contains("bar.sync"), hopper);  // sm_80 has machine code alone
  }
  json = json_of(
      build({"-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-arch=sm_90a"}, "libk.so"));
  int whole = 0;  // PTX and machine code of one target are one kernel
  for (const Json& kernel : json["kernels"])
    whole += kernel["target"] == "sm_90a" && kernel["code_bytes"] > 0 &&
             kernel["families"]["bar.sync"]["count"] == 1;
  EXPECT_EQ(whole, 1) << json.dump(1);
  json = json_of(build({"-cubin", "-arch=sm_90a"}, "k.cubin"));
  EXPECT_EQ(json["kind"], "cubin");

  // Damage: every cut and every flipped byte of the heads is one error or a report, never a crash.
  for (const char* name : {"k.fatbin", "libk.so", "k.cubin"}) {
    const std::string whole = *read_file(folder_.path() / name);
    for (size_t size : {size_t{4}, size_t{40}, whole.size() / 2})
      expect_refused(write(name, whole.substr(0, size)));
    std::string broken = whole;
    for (size_t i = 4; i < 64; ++i) broken[i] = static_cast<char>(broken[i] ^ 0xff);
    expect_refused(write(name, broken));
  }
}

TEST_F(Inspect, NoDeviceCode) {
  expect_refused("/bin/true");
  expect_refused(write("empty.ptx", ""));
  expect_refused(
      write("broken.ptx", ".version 9.0\n.target sm_90a\n.entry k() { wgmma.fense; }\n"));
  expect_refused(write("x.plan", "PTXBPLAN but not really"));
}

}  // namespace
}  // namespace ptxbench
