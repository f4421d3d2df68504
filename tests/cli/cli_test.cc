// The real binary on bad input: one clear line and exit code 2, or a verdict; nothing left behind.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "evaluation.h"

namespace ptxbench {
namespace {

const std::filesystem::path kBinary = std::filesystem::path(PTXBENCH_BUILD_DIR) / "bin/ptxbench";
const std::filesystem::path kSource = PTXBENCH_SOURCE_DIR;

class Cli : public ::testing::Test {
 protected:
  Cli() : folder_(TempDir::create("cli").take()) {
    std::filesystem::create_directory(folder_.path() / "tmp");
  }
  ProcessResult run(std::vector<std::string> arguments, double wall_s = 120) {
    ProcessSpec spec;
    spec.argv = {kBinary.string()};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    const auto has = [&](const char* option) {
      return std::count(arguments.begin(), arguments.end(), option) != 0;
    };
    if (!arguments.empty() && arguments[0] == "eval" && !has("--seed") && !has("--from-trace"))
      spec.argv.insert(spec.argv.end(), {"--seed", test_seed()});
    spec.environment = environment();
    spec.wall_s = wall_s;
    auto result = run_process(spec);
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result->signal, 0) << result->err;
    EXPECT_FALSE(result->timed_out);
    // Whatever happened, no temporary file stays.
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "tmp"));
    return result.take();
  }
  // The caller's environment with a private temporary folder.
  std::vector<std::pair<std::string, std::string>> environment() const {
    std::vector<std::pair<std::string, std::string>> variables = {
        {"TMPDIR", (folder_.path() / "tmp").string()}, {"NO_COLOR", "1"}};
    for (const char* name : {"PATH", "HOME", "PTXBENCH_CACHE", "XDG_CACHE_HOME", "CUDA_HOME",
                             "PTXBENCH_CUDA_HOME", "PTXBENCH_TVM_FFI_HOME"})
      if (const char* value = std::getenv(name)) variables.emplace_back(name, value);
    return variables;
  }
  std::string write(const char* name, const std::string& bytes) {
    const auto path = folder_.path() / name;
    EXPECT_TRUE(write_file_atomically(path, std::string_view(bytes)).ok());
    return path.string();
  }
  void expect_refused(const std::vector<std::string>& arguments, const char* word) {
    const ProcessResult r = run(arguments);
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err.rfind("ptxbench: ", 0), 0u) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(word), std::string::npos) << r.err;
  }
  // A verdict of this level and reason (exit code 1).
  void expect_verdict(const std::string& source, int level, const char* reason,
                      std::vector<std::string> more = {}) {
    const std::string json = (folder_.path() / "verdict.json").string();
    std::vector<std::string> arguments = {"eval",   write("candidate.cu", source),
                                          "--task", "gemm_n7168_k5120",
                                          "--axes", "M=64,N=64,K=64",
                                          "--json", json};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult r = run(arguments);
    EXPECT_EQ(r.exit_code, 1) << r.out << r.err;
    auto text = read_file(json);
    ASSERT_TRUE(text.ok());
    const Json verdict = parse_json(*text).take();
    ASSERT_TRUE(verdict.contains("level")) << *text;
    EXPECT_EQ(verdict["level"], level) << *text;
    EXPECT_EQ(verdict["reason"], reason) << *text;
    EXPECT_NE(r.out.find(reason), std::string::npos);
  }
  TempDir folder_;
};

TEST_F(Cli, GpusThatAreNotThere) {
  const std::string file = (kSource / "examples/candidates/gemm_bf16.md").string();
  expect_refused({"eval", file, "--task", "gemm_n7168_k5120", "--device", "cuda:900"}, "no ");
  expect_refused({"eval", file, "--task", "gemm_n7168_k5120", "--device", "cuda:x"},
                 "unknown device");
}

TEST_F(Cli, HelpForEverySubcommand) {
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  for (const char* name : {"doctor", "tasks", "eval", "record", "inspect"}) {
    const ProcessResult r = run({name, "--help"});
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_NE(r.out.find("--help"), std::string::npos);
  }
}

TEST_F(Cli, DoctorAndTasks) {
  const std::string json = (folder_.path() / "out.json").string();
  EXPECT_EQ(run({"doctor", "--json", json}).exit_code, 0);
  EXPECT_TRUE(parse_json(read_file(json).take())->contains("tools"));
  EXPECT_EQ(run({"tasks", "list", "--json", json}).exit_code, 0);
  size_t folders = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks"))
    folders += entry.is_directory();
  EXPECT_GE(folders, 31u);
  EXPECT_EQ(parse_json(read_file(json).take())->size(), folders);
  const ProcessResult show = run({"tasks", "show", "gemm_n7168_k5120"});
  EXPECT_EQ(show.exit_code, 0);
  EXPECT_NE(show.out.find("94920358-01a8-4c5b-9209-3103fd490e94"), std::string::npos);
}

TEST_F(Cli, WrongUsage) {
  expect_refused({}, "subcommand");
  expect_refused({"evil", "--task", "x"}, "unknown command 'evil'; nearest: eval");
  expect_refused({"eval"}, "");
  expect_refused({"eval", "--task", "gemm_n7168_k5120"}, "FILE");
  expect_refused({"tasks", "show", "gemm_n7168_k512"}, "gemm_n7168_k5120");
  expect_refused({"tasks", "list", "--tasks", "/nonexistent"}, "/nonexistent");
  const std::string good = write("good.cu", "int x;");
  auto eval = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", good});
    return more;
  };
  // Where the answer cannot go is said before the work, not after it.
  const std::string nowhere = (folder_.path() / "nowhere/v.json").string();
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--json", nowhere}), "there is no folder");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--trace", folder_.path().string()}),
                 "is a folder");
  expect_refused({"doctor", "--json", nowhere}, "there is no folder");
  expect_refused({"tasks", "list", "--json", nowhere}, "there is no folder");
  expect_refused({"emulate", "--json", nowhere, "--", "/bin/true"}, "there is no folder");
  expect_refused(eval({"--task", "nothing_like_it"}), "nearest");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--axes", "M=0"}), "out of range");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--axes", "M=999999999999999"}), "range");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--axes", "Q=3"}), "no axis");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--workload", "smok"}), "smoke");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--device", "tpu"}), "tpu");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--arch", "sm_12"}), "sm_90a");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--seed", "xyz"}), "seed");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--schedule", "random:"}), "schedule");
  expect_refused(eval({"--task", "gemm_n7168_k5120", "--axes", "M=200,M=300"}), "twice");
  for (const char* timeout : {"0", "-1", "1e300", "1e999", "inf", "nan", "soon", ""}) {
    SCOPED_TRACE(timeout);
    const std::string option = std::string("--timeout=") + timeout;
    expect_refused(eval({"--task", "gemm_n7168_k5120", option}), "--timeout");
    EXPECT_LT(run(eval({"--task", "gemm_n7168_k5120", option})).err.size(), 200u);
  }
}

TEST_F(Cli, FilesThatAreNoCandidates) {
  auto refused = [&](const std::string& file, const char* word) {
    expect_refused({"eval", file, "--task", "gemm_n7168_k5120"}, word);
    expect_refused(
        {"record", file, "--task", "gemm_n7168_k5120", "-o", (folder_.path() / "x.plan").string()},
        word);
    expect_refused({"inspect", file}, word);
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "x.plan"));
  };
  refused((folder_.path() / "missing.cu").string(), "missing.cu");
  refused(folder_.path().string(), "");
  refused(write("empty.cu", ""), "empty");
  refused(write("binary.cu", std::string("\x7f\0\1\2\0", 5)), "binary");
  refused(write("big.cu", std::string(100 << 20, 'x')), "big.cu");
  refused(write("bad.plan", "not a plan"), "bad.plan");
  refused(write("thing.py", "print(1)"), ".cu");
}

TEST_F(Cli, AnswerWithoutCodeIsLevelZero) {
  const ProcessResult r =
      run({"eval", write("answer.md", "I can't help with that.\n"), "--task", "gemm_n7168_k5120"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_NE(r.out.find("no-code"), std::string::npos);
  EXPECT_EQ(
      run({"eval", write("answer.md", "none\n"), "--task", "gemm_n7168_k5120", "--require", "0"})
          .exit_code,
      0);
}

const std::string kHead =
    "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n"
    "#include <tvm/ffi/extra/c_env_api.h>\n#include <cuda_bf16.h>\n"
    "using tvm::ffi::TensorView;\n";
const std::string kKernel =
    "__global__ void fill(__nv_bfloat16* c, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) c[i] = __float2bfloat16(0.f);\n}\n";
std::string candidate(const std::string& body,
                      const std::string& parameters = "TensorView a, TensorView b, TensorView c",
                      const std::string& name = "run") {
  return kHead + kKernel + "void run(" + parameters + ") {\n" + body +
         "\n}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(" + name + ", run);\n";
}
const std::string kLaunch = "fill<<<16, 256>>>((__nv_bfloat16*)c.data_ptr(), 64 * 64);";

TEST_F(Cli, ZerosAreWrong) { expect_verdict(candidate(kLaunch), 3, "numerics"); }
TEST_F(Cli, DoesNotCompile) {
  expect_verdict(candidate("undeclared_thing();"), 1, "does-not-compile");
}
TEST_F(Cli, WrongExportName) {
  expect_verdict(candidate(kLaunch, "TensorView a, TensorView b, TensorView c", "walk"), 1,
                 "entry-point-missing");
}
TEST_F(Cli, WrongNumberOfArguments) {
  expect_verdict(candidate(kLaunch, "TensorView a, TensorView c"), 1, "wrong-arguments");
}
TEST_F(Cli, NothingLaunched) { expect_verdict(candidate(""), 2, "no-output"); }
TEST_F(Cli, HostNeverReturns) {
  expect_verdict(candidate("for (volatile int i = 0;; ) { (void)i; }"), 2, "timeout");
}
TEST_F(Cli, FileAccessIsBanned) {
  expect_verdict(
      "#include <cstdio>\n" + candidate("if (FILE* f = fopen(\"x\", \"w\")) fclose(f);" + kLaunch),
      1, "banned-call");
}
// Around the C library, too, nothing gets out of the sandbox.
TEST_F(Cli, HostWritesElsewhere) {
  const auto target = folder_.path() / "written";
  expect_verdict(
      candidate("long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(2L), \"D\"(\"" +
                target.string() +
                "\"), \"S\"(0101L), \"d\"(0644L) : \"rcx\", \"r11\", \"memory\");" + kLaunch),
      3, "numerics");
  EXPECT_FALSE(std::filesystem::exists(target));
}
TEST_F(Cli, HostCrashes) { expect_verdict(candidate("*(volatile int*)8 = 1;"), 2, "host-crash"); }
TEST_F(Cli, KernelNeverEnds) {
  std::string source = candidate("forever<<<1, 32>>>((int*)c.data_ptr());");
  source.insert(kHead.size(),
                "__global__ void forever(int* p) { while (atomicAdd(p, 0) != 12345) {} }\n");
  expect_verdict(source, 2, "timeout", {"--timeout", "2"});
}
TEST_F(Cli, NothingWrittenByTheKernel) {
  expect_verdict(candidate("fill<<<1, 32>>>((__nv_bfloat16*)c.data_ptr(), 0);"), 2, "no-output");
}

TEST_F(Cli, NamesTheSmCountThatHostCodeWasTold) {
  const std::string json = (folder_.path() / "v.json").string();
  const std::string file = write("zeros.cu", candidate(kLaunch));
  const ProcessResult smoke =
      run({"eval", file, "--task", "gemm_n7168_k5120", "--workload", "smoke", "--json", json});
  EXPECT_NE(smoke.out.find("emu:h200 with 4 SMs sm_90a"), std::string::npos) << smoke.out;
  EXPECT_EQ((*parse_json(read_file(json).take()))["sm_count"], 4);
  const ProcessResult own =
      run({"eval", file, "--task", "gemm_n7168_k5120", "--axes", "M=64,N=64,K=64", "--json", json});
  EXPECT_NE(own.out.find("emu:h200 sm_90a"), std::string::npos) << own.out;
  EXPECT_TRUE((*parse_json(read_file(json).take()))["sm_count"].is_null());
}

// Signals end the program, its children and its temporary folders, whatever it is busy with.
class CliSignal : public Cli, public ::testing::WithParamInterface<int> {};

TEST_P(CliSignal, LeavesNothingBehind) {
  std::string endless = candidate("forever<<<1, 32>>>((int*)c.data_ptr());");
  endless.insert(kHead.size(),
                 "__global__ void forever(int* p) { while (atomicAdd(p, 0) != 12345) {} }\n");
  // New text each time, so that the compilers run; the second one is stuck in the host process.
  const std::string stamp = "// " + folder_.path().string() + "\n";
  const std::string device = write("device.cu", endless + stamp);
  const std::string host =
      write("host.cu", candidate("for (volatile int i = 0;; ) { (void)i; }" + kLaunch) + stamp);
  const auto tmp = folder_.path() / "tmp";
  auto interrupt = [&](const std::string& file, double after_s) {
    SCOPED_TRACE(file + " after " + std::to_string(after_s));
    ProcessSpec spec;
    // The shell tells which process to signal and waits for it.
    spec.argv = {"/bin/sh",
                 "-c",
                 "\"$0\" eval \"$1\" --task gemm_n7168_k5120 --axes M=64,N=64,K=64 --quiet & p=$!; "
                 "sleep $2; kill -$3 $p; wait $p; code=$?; sleep 0.1; "
                 "for f in $(grep -lsF \"$TMPDIR/\" /proc/[0-9]*/cmdline); do "
                 "name=$(cat ${f%cmdline}comm 2>&-); "
                 "case $name in grep|\"\") ;; *) echo ptxbench-process $name ;; esac; done; "
                 "ls \"$TMPDIR\"; exit $code",
                 kBinary.string(),
                 file,
                 std::to_string(after_s),
                 std::to_string(GetParam())};
    spec.environment = environment();
    spec.wall_s = 60;
    auto result = run_process(spec);
    ASSERT_TRUE(result.ok());
    EXPECT_FALSE(result->timed_out);
    EXPECT_EQ(result->exit_code, 128 + GetParam()) << result->out << result->err;
    EXPECT_EQ(result->err, "");
    EXPECT_TRUE(std::filesystem::is_empty(tmp)) << result->out;
    // The verdict did not come out, and neither a process nor a folder is left.
    EXPECT_EQ(result->out.find("ptxbench-"), std::string::npos) << result->out;
    EXPECT_EQ(result->out.find("level"), std::string::npos) << result->out;
  };
  interrupt(device, 0.5);  // compiling
  interrupt(host, 5);      // most likely recording
  interrupt(device, 5);    // most likely replaying
}

// Not SIGINT: a shell without job control has its background commands ignore it.
INSTANTIATE_TEST_SUITE_P(All, CliSignal, ::testing::Values(SIGTERM, SIGHUP));

const std::string kExamples = (kSource / "examples/candidates").string();

TEST_F(Cli, PtxWithAManifest) {
  const std::string json = (folder_.path() / "v.json").string();
  const std::string trace = (folder_.path() / "trace.json").string();
  const std::string ptx = kExamples + "/gemm_ptx.ptx";
  const auto eval = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", ptx, "--json", json});
    const ProcessResult r = run(more);
    EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
    return parse_json(read_file(json).take()).take();
  };
  const Json first =
      eval({"--task", "gemm_n7168_k5120", "--workload", "smoke-m70", "--trace", trace});
  EXPECT_EQ(first["level"], 5);
  // The trace brings the same inputs back, and the same verdict.
  const Json again = eval({"--from-trace", trace});
  for (const char* field :
       {"level", "seed", "axes", "workload", "correctness", "evidence", "sm_count"})
    EXPECT_EQ(first[field], again[field]) << field;
  expect_refused({"eval", ptx, "--from-trace", trace, "--axes", "M=1"}, "--from-trace");
  expect_refused({"eval", ptx, "--from-trace", trace, "--task", "gemm_n128_k2048"}, "gemm_n128");
  expect_refused({"eval", ptx, "--from-trace", ptx}, "gemm_ptx.ptx");
  EXPECT_EQ(run({"inspect", ptx}).exit_code, 0);
  // A faulty manifest and faulty PTX are the candidate's fault, told by place.
  const std::string text = read_file(ptx).take();
  const std::string manifest = read_file(kExamples + "/gemm_ptx.launch.json").take();
  const auto faulty = [&](const std::string& kernel, const std::string& launch, const char* reason,
                          const char* word) {
    write("bad.launch.json", launch);
    const ProcessResult r = run({"eval", write("bad.ptx", kernel), "--task", "gemm_n7168_k5120",
                                 "--workload", "smoke-m70"});
    EXPECT_EQ(r.exit_code, 1) << r.err;
    EXPECT_NE(r.out.find(reason), std::string::npos) << r.out;
    EXPECT_NE(r.out.find(word), std::string::npos) << r.out;
  };
  faulty(text, "{", "bad-launch-manifest", "launch manifest");
  std::string misspelt = text;
  misspelt.replace(misspelt.find("mov.u32 %r0"), 11, "muv.u32 %r0");
  faulty(misspelt, manifest, "does-not-compile", "bad.ptx:");
  std::string zero = manifest;
  zero.replace(zero.find("\"ceil_div(K, tile)\""), 19, "0");
  faulty(text, zero, "numerics", "");
}

TEST_F(Cli, FlashInferSolution) {
  const std::string json = (folder_.path() / "v.json").string();
  Json solution = {
      {"name", "zeros"},
      {"definition", "gemm_n7168_k5120"},
      {"author", "nobody"},
      {"spec",
       {{"language", "cuda"},
        {"target_hardware", {"H200"}},
        {"entry_point", "src/main.cu::matmul"},
        {"binding", "tvm-ffi"}}},
      {"sources",
       {{{"path", "src/fill.cuh"}, {"content", kKernel}},
        {{"path", "src/main.cu"},
         {"content", kHead +
                         "#include \"fill.cuh\"\nvoid run(TensorView a, TensorView b,"
                         " TensorView c) {\n" +
                         kLaunch + "\n}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(matmul, run);\n"}}}}};
  const std::string file = write("solution.json", dump_json(solution));
  const ProcessResult r =
      run({"eval", file, "--task", "gemm_n7168_k5120", "--axes", "M=64,N=64,K=64", "--json", json});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  const Json verdict = parse_json(read_file(json).take()).take();
  EXPECT_EQ(verdict["reason"], "numerics") << r.out;
  EXPECT_EQ(verdict["candidate"]["name"], "zeros");
  expect_refused({"eval", file, "--task", "gemm_n128_k2048"}, "solution of gemm_n7168_k5120");
  solution["sources"][0]["path"] = "../../outside.cuh";
  expect_refused({"eval", write("s.json", dump_json(solution)), "--task", "gemm_n7168_k5120"},
                 "outside.cuh");
}

// Each candidate of a folder gets its own verdict; a bad one does not stop the others.
TEST_F(Cli, FolderOfCandidates) {
  const auto folder = folder_.path() / "many";
  std::filesystem::create_directory(folder);
  const auto put = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder / name, std::string_view(text)).ok());
  };
  put("a_answer.md", "no code\n");
  put("b_empty.cu", "");
  put("c_zeros.cu", candidate(kLaunch));
  put("d_crash.cu", candidate("*(volatile int*)8 = 1;"));
  put("e_bad.plan", "not a plan");
  put("f_good.ptx", read_file(kExamples + "/gemm_ptx.ptx").take());
  put("f_good.launch.json", read_file(kExamples + "/gemm_ptx.launch.json").take());
  put("notes.json", "{}");
  const std::string json = (folder_.path() / "all.jsonl").string();
  const ProcessResult r = run({"eval", folder.string(), "--task", "gemm_n7168_k5120", "--axes",
                               "M=64,N=64,K=64", "--jobs", "3", "--quiet", "--json", json});
  EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
  std::map<std::string, Json> lines;
  const std::string text = read_file(json).take();
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const Json line = parse_json(text.substr(at, text.find('\n', at) - at)).take();
    lines[line["file"].get<std::string>()] = line;
  }
  ASSERT_EQ(lines.size(), 6u) << text;
  EXPECT_EQ(lines["a_answer.md"]["verdict"]["level"], 0);
  EXPECT_EQ(lines["b_empty.cu"]["infrastructure"]["kind"], "usage");
  EXPECT_EQ(lines["c_zeros.cu"]["verdict"]["reason"], "numerics");
  EXPECT_EQ(lines["d_crash.cu"]["verdict"]["reason"], "host-crash");
  EXPECT_EQ(lines["e_bad.plan"]["infrastructure"]["kind"], "bad-plan");
  EXPECT_EQ(lines["f_good.ptx"]["verdict"]["level"], 5);
  EXPECT_NE(r.out.find("6 of 6 candidates"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("not judged: 2"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("notes.json"), std::string::npos) << r.out;
  for (const char* gone : {"b_empty.cu", "c_zeros.cu", "d_crash.cu", "e_bad.plan"})
    std::filesystem::remove(folder / gone);
  const auto again = [&](const char* require) {
    return run({"eval", folder.string(), "--task", "gemm_n7168_k5120", "--axes", "M=64,N=64,K=64",
                "--quiet", "--require", require})
        .exit_code;
  };
  EXPECT_EQ(again("5"), 1);
  EXPECT_EQ(again("0"), 0);
  std::filesystem::create_directory(folder_.path() / "none");
  expect_refused({"eval", (folder_.path() / "none").string(), "--task", "gemm_n7168_k5120"},
                 "no candidate");
  expect_refused({"eval", folder.string(), "--task", "nothing_like_it"}, "nearest");
}

// A signal ends a batch; what was judged by then is in the lines and in a last table.
TEST_F(Cli, InterruptedFolderKeepsResults) {
  const auto folder = folder_.path() / "many";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(write_file_atomically(folder / "a.md", std::string_view("no code\n")).ok());
  ASSERT_TRUE(
      write_file_atomically(folder / "b.cu",
                            std::string_view(candidate("for (volatile int i = 0;; ) { (void)i; }") +
                                             "// " + folder_.path().string()))
          .ok());
  const std::string json = (folder_.path() / "all.jsonl").string();
  ProcessSpec spec;
  spec.argv = {
      "/bin/sh",
      "-c",
      "\"$0\" eval \"$1\" --task gemm_n7168_k5120 --axes M=64,N=64,K=64 --jobs 1 --quiet "
      "--json \"$2\" & p=$!; until [ -s \"$2\" ]; do sleep 0.1; done; kill -TERM $p; wait $p",
      kBinary.string(),
      folder.string(),
      json};
  spec.environment = environment();
  spec.wall_s = 60;
  auto result = run_process(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 128 + SIGTERM) << result->out << result->err;
  EXPECT_NE(result->out.find("1 of 2 candidates; level 0: 1"), std::string::npos) << result->out;
  const std::string text = read_file(json).take();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ((*parse_json(text.substr(0, text.find('\n'))))["file"], "a.md");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "tmp"));
}

// A plan judged elsewhere gets the verdict of the candidate itself.
TEST_F(Cli, RecordThenEvalPlan) {
  const std::string file = write("zeros.cu", candidate(kLaunch));
  const std::string plan = (folder_.path() / "zeros.plan").string();
  const std::string json = (folder_.path() / "v.json").string();
  const std::vector<std::string> size = {"--task", "gemm_n7168_k5120", "--axes", "M=64,N=64,K=64"};
  auto with = [&](std::vector<std::string> arguments, std::vector<std::string> more) {
    arguments.insert(arguments.end(), size.begin(), size.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  EXPECT_EQ(with({"record", file, "-o", plan}, {}).exit_code, 0);
  EXPECT_EQ(with({"eval", file}, {"--seed", "7", "--json", json}).exit_code, 1);
  Json direct = parse_json(read_file(json).take()).take();
  EXPECT_EQ(with({"eval", "--plan", plan}, {"--seed", "7", "--json", json}).exit_code, 1);
  Json replayed = parse_json(read_file(json).take()).take();
  for (const char* field :
       {"level", "reason", "label", "status", "correctness", "findings", "evidence"})
    EXPECT_EQ(direct[field], replayed[field]) << field;
  EXPECT_EQ(run({"inspect", plan}).exit_code, 0);
  EXPECT_EQ(with({"record", file, "-o", (folder_.path() / "none/x.plan").string()}, {}).exit_code,
            2);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none"));
  // Errors name the plan's file, whatever its name holds.
  const std::string odd = (folder_.path() / "od\x1b[31md\xc2\x9b.plan").string();
  std::filesystem::copy_file(plan, odd);
  expect_refused({"eval", "--plan", odd, "--task", "gemm_n128_k2048"},
                 "od\\x1b[31md\\x9b.plan: the plan was recorded for");
  // Not for another size or task.
  expect_refused({"eval", "--plan", plan, "--task", "gemm_n7168_k5120", "--workload", "smoke"},
                 "recorded");
  expect_refused({"eval", "--plan", plan, "--task", "gemm_n128_k2048"}, "recorded");
}

}  // namespace
}  // namespace ptxbench
