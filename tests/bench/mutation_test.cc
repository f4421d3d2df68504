// Random mutations of valid candidates, plans, manifests, traces and solutions: an error of a known
// kind or a verdict, never a crash, a hang, or a pass that was not earned. A mutant that reaches
// level 5 is judged again with another seed and must reach it again; those that do not under
// another schedule or at another size are counted and printed. PTXBENCH_MUTATIONS=N tries N of each
// kind, PTXBENCH_MUTATION_SEED=S other ones (docs/fuzzing.md).
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "bench/evaluate.h"
#include "bench/launch_manifest.h"
#include "bench/solution.h"
#include "bench/trace.h"

namespace ptxbench::bench {
namespace {

namespace fs = std::filesystem;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Named when the program dies, so that the mutant can be made again.
char current_case[128];
void say_case(int signal) {
  (void)!write(2, current_case, std::strlen(current_case));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }

  // Mostly in place: a length that changes is nearly always noticed at once.
  std::vector<uint8_t> bytes(std::vector<uint8_t> data) {
    const uint64_t ways = below(8) == 0 ? 5 : 3;
    for (uint64_t i = 0, n = 1 + below(4); i < n && !data.empty(); ++i) {
      const size_t at = below(data.size());
      const size_t length = 1 + below(std::min<size_t>(64, data.size() - at));
      const auto first = data.begin() + static_cast<ptrdiff_t>(at);
      switch (below(ways)) {
        case 0:
          data[at] ^= static_cast<uint8_t>(1u << below(8));
          break;
        case 1:
          data[at] = static_cast<uint8_t>(random_());
          break;
        case 2:
          std::fill_n(first, std::min<size_t>(length, 8), static_cast<uint8_t>(below(2) * 0xff));
          break;
        case 3:
          data.erase(first, first + static_cast<ptrdiff_t>(length));
          break;
        default: {
          const std::vector<uint8_t> copy(first, first + static_cast<ptrdiff_t>(length));
          data.insert(data.begin() + static_cast<ptrdiff_t>(below(data.size())), copy.begin(),
                      copy.end());
        }
      }
    }
    return data;
  }

  // Lines and numbers of a program.
  std::string text(const std::string& source) {
    std::vector<std::string> lines = split(source);
    for (uint64_t i = 0, n = 1 + below(3); i < n && !lines.empty(); ++i) {
      const size_t at = below(lines.size());
      switch (below(6)) {
        case 0:
          lines.erase(lines.begin() + static_cast<ptrdiff_t>(at));
          break;
        case 1:
          lines.insert(lines.begin() + static_cast<ptrdiff_t>(at), lines[below(lines.size())]);
          break;
        case 2:
          std::swap(lines[at], lines[below(lines.size())]);
          break;
        case 3:
          if (!lines[at].empty()) lines[at].erase(below(lines[at].size()), 1 + below(3));
          break;
        default:
          change_number(lines[at]);
      }
    }
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
  }

  Json json(Json document) {
    for (uint64_t i = 0, n = 1 + below(2); i < n; ++i) {
      std::vector<Json::json_pointer> places;
      collect(document, Json::json_pointer(), places);
      change(document, places[below(places.size())]);
    }
    return document;
  }

 private:
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> out;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      out.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }

  std::string odd_number() {
    static constexpr const char* kOdd[] = {"0",
                                           "1",
                                           "2",
                                           "3",
                                           "-1",
                                           "16",
                                           "128",
                                           "2147483648",
                                           "4294967295",
                                           "1e308",
                                           "63",
                                           "256",
                                           "9223372036854775807"};
    return kOdd[below(std::size(kOdd))];
  }

  void change_number(std::string& line) {
    std::vector<size_t> starts;
    for (size_t i = 0; i < line.size(); ++i)
      if (std::isdigit(static_cast<unsigned char>(line[i])) &&
          (i == 0 || !std::isalnum(static_cast<unsigned char>(line[i - 1]))))
        starts.push_back(i);
    if (starts.empty()) return;
    const size_t at = starts[below(starts.size())];
    size_t end = at;
    while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end]))) ++end;
    line.replace(at, end - at, odd_number());
  }

  static void collect(const Json& node, const Json::json_pointer& at,
                      std::vector<Json::json_pointer>& out) {
    out.push_back(at);
    if (node.is_object())
      for (const auto& [key, value] : node.items()) collect(value, at / key, out);
    if (node.is_array())
      for (size_t i = 0; i < node.size(); ++i) collect(node[i], at / i, out);
  }

  void change(Json& document, const Json::json_pointer& at) {
    static const std::vector<Json> kValues = {nullptr,
                                              true,
                                              0,
                                              1,
                                              -1,
                                              64,
                                              1e300,
                                              0.5,
                                              INT64_MAX,
                                              INT64_MIN,
                                              UINT64_MAX,
                                              "",
                                              "M",
                                              "K * N",
                                              "ceil_div(M, 0)",
                                              "1 << 62",
                                              "(((((((",
                                              std::string(10'000, '('),
                                              std::string("\xff\0x", 3),
                                              Json::array(),
                                              Json::object(),
                                              Json::array({1, 2, 3, 4, 5, 6})};
    Json& node = document[at];
    if (at.empty() || below(3) == 0) {
      if (node.is_object() && !node.empty()) {
        auto it = node.begin();
        std::advance(it, static_cast<ptrdiff_t>(below(node.size())));
        node.erase(it.key());
      } else if (node.is_array() && !node.empty()) {
        below(2) == 0 ? node.erase(below(node.size())) : node.push_back(node[below(node.size())]);
      } else if (node.is_string()) {
        std::string text = node.get<std::string>();
        change_number(text);
        if (!text.empty() && below(2) == 0) text.erase(below(text.size()), 1);
        node = text;
      }
      return;
    }
    if (node.is_number() && below(2) == 0)
      node = Json::parse(odd_number());
    else if (node.is_string() && below(2) == 0)
      node = node.get<std::string>() + " + " + odd_number();
    else
      node = kValues[below(kValues.size())];
  }

  std::mt19937_64 random_;
};

class Mutation : public ::testing::Test {
 protected:
  Mutation() {
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, say_case);
    task_ = TaskSuite::open(fs::path(PTXBENCH_SOURCE_DIR) / "tasks").take().load(kTask).take();
    ptx_ = example("gemm_ptx.ptx");
    manifest_ = parse_json(example("gemm_ptx.launch.json")).take();
  }
  ~Mutation() override {
    std::string text;
    for (const auto& [what, count] : counts_) text += " " + what + ":" + std::to_string(count);
    printf("  %s: %llu mutants;%s\n",
           ::testing::UnitTest::GetInstance()->current_test_info()->name(),
           static_cast<unsigned long long>(tried_), text.c_str());
  }
  static constexpr const char* kTask = "gemm_n7168_k5120";

  static std::string example(const char* name) {
    return read_file(fs::path(PTXBENCH_SOURCE_DIR) / "examples/candidates" / name).take();
  }

  // Calls body(mutator) once for each mutant, `sample` of them where the environment says nothing.
  template <class Body>
  void each(uint64_t sample, Body body) {
    const uint64_t count = from_environment("PTXBENCH_MUTATIONS", sample);
    const uint64_t seed = from_environment("PTXBENCH_MUTATION_SEED", 1);
    for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) {
      std::snprintf(current_case, sizeof current_case, "died at mutant %llu of seed %llu\n",
                    static_cast<unsigned long long>(i), static_cast<unsigned long long>(seed));
      SCOPED_TRACE(current_case);
      Mutator mutator(seed * 1'000'003 + i);
      ++tried_;
      body(mutator);
    }
    EXPECT_EQ(tried_, count);
    EXPECT_GE(counts_.size(), count < 10 ? 1u : 2u) << "all mutants ended alike: nothing was tried";
  }

  static bool contains(const Error& error, const char* file) {
    return error.to_string().find(file) != std::string::npos;
  }
  void count(const std::string& what) { ++counts_[what]; }

  EvalRequest request(int64_t m, int64_t n, int64_t k) const {
    EvalRequest out;
    out.task = task_;
    out.axes = resolve_axes(task_.definition, nullptr, {{"M", m}, {"N", n}, {"K", k}}).take();
    out.sm_count = 3;
    out.threads = 1;
    out.timeout_s = 3;
    out.seed = Seed{1, 2};
    out.cache_dir = cache_.path();
    return out;
  }
  EvalRequest ptx_request(const std::string& ptx, const std::string& manifest, bool second) const {
    EvalRequest out = second ? request(200, 64, 128) : request(96, 128, 192);
    out.extraction.ok = true;
    Candidate& candidate = out.extraction.candidate;
    candidate.kind = Candidate::Kind::ptx;
    candidate.name = candidate.file_name = "mutant.ptx";
    candidate.source = ptx;
    candidate.manifest = manifest;
    return out;
  }

  // Without ptxas, which would keep most mutants from the emulator.
  static Result<toolchain::CompiledCandidate> take_as_it_is(const toolchain::CompileRequest& r) {
    toolchain::CompiledCandidate out;
    out.ok = true;
    out.ptx = r.source;
    return out;
  }
  Result<Verdict> judge(const EvalRequest& request, bool compilers = false) {
    const auto device = device::make_emu_device(request.device_profile);
    Services services = real_services(*device);
    if (!compilers) services.compile = take_as_it_is;
    return evaluate(request, services);
  }

  // One mutant, and again where it passed. `second` makes the request at another size.
  void try_candidate(EvalRequest request, const std::function<EvalRequest()>& second,
                     bool compilers = false) {
    static const std::set<std::string> kKinds = {"usage",      "unsupported",   "bad-plan",
                                                 "too-large",  "ptx-syntax",    "ptx-operands",
                                                 "ptx-target", "unknown-kernel"};
    const auto verdict = judge(request, compilers);
    if (!verdict.ok()) {
      EXPECT_TRUE(kKinds.count(verdict.error().kind))
          << verdict.error().kind << ": " << verdict.error().to_string();
      EXPECT_FALSE(verdict.error().message.empty());
      return count("error " + verdict.error().kind);
    }
    EXPECT_FALSE(verdict->reason.empty());
    EXPECT_FALSE(verdict->feedback.empty());
    count("level " + std::to_string(static_cast<int>(verdict->level)));
    if (verdict->level < Level{5}) return;
    request.seed = Seed{3, 4};
    const auto again = judge(request, compilers);
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(static_cast<int>(again->level), static_cast<int>(verdict->level)) << again->message;
    request.schedule = "random:7";
    const auto shuffled = judge(request, compilers);
    if (!shuffled.ok() || shuffled->level != verdict->level) count("in this order only");
    if (!second) return;
    const auto other = judge(second(), compilers);
    count(other.ok() && other->level >= Level{5} ? "also at another size" : "this size only");
  }

  TempDir cache_ = TempDir::create("mutation").take();  // mutants are nobody's to keep
  Task task_;
  std::string ptx_;
  Json manifest_;
  uint64_t tried_ = 0;
  std::map<std::string, int> counts_;
};

TEST_F(Mutation, TheOriginalPasses) {
  for (bool second : {false, true}) {
    const auto verdict = judge(ptx_request(ptx_, dump_json(manifest_), second));
    ASSERT_TRUE(verdict.ok()) << verdict.error().to_string();
    EXPECT_EQ(static_cast<int>(verdict->level), 5) << verdict->message;
  }
}

TEST_F(Mutation, Manifests) {
  each(150, [&](Mutator& mutator) {
    const std::string text = dump_json(mutator.json(manifest_));
    try_candidate(ptx_request(ptx_, text, false), [&] { return ptx_request(ptx_, text, true); });
  });
}

TEST_F(Mutation, PtxPrograms) {
  const std::string manifest = dump_json(manifest_);
  each(100, [&](Mutator& mutator) {
    const std::string text = mutator.text(ptx_);
    try_candidate(ptx_request(text, manifest, false),
                  [&] { return ptx_request(text, manifest, true); });
  });
}

// Bytes of the body, under a checksum that is right again.
TEST_F(Mutation, Plans) {
  const EvalRequest original = ptx_request(ptx_, dump_json(manifest_), false);
  const auto device = device::make_emu_device("h200");
  Services services = real_services(*device);
  services.compile = take_as_it_is;
  Recording recording = compile_and_record(original, services).take();
  ASSERT_FALSE(recording.verdict.has_value());
  // Most bytes of a plan are the program's text, mutated above: here it is one line in two.
  std::vector<uint8_t> bytes = plan::serialize(recording.plan);
  const auto sealed = [](std::vector<uint8_t> file) {
    if (file.size() < 52) return file;
    const std::string hash = hash_hex(std::span<const uint8_t>(file.data() + 20, file.size() - 52));
    std::memcpy(file.data() + file.size() - 32, hash.data(), 32);
    const uint64_t size = file.size() - 52;
    std::memcpy(file.data() + 12, &size, 8);
    return file;
  };
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t program = all.find(recording.plan.modules[0].ptx);
  ASSERT_NE(program, std::string_view::npos);
  const size_t behind = program + recording.plan.modules[0].ptx.size();
  each(300, [&](Mutator& mutator) {
    const auto part = [&](size_t begin, size_t end) {
      return std::vector<uint8_t>(bytes.begin() + static_cast<ptrdiff_t>(begin),
                                  bytes.begin() + static_cast<ptrdiff_t>(end));
    };
    std::vector<uint8_t> head = part(0, program), body = part(program, behind),
                         tail = part(behind, bytes.size());
    const uint64_t which = mutator.below(8);
    if (which == 0) body = mutator.bytes(body);
    if (which % 2 == 1) head = mutator.bytes(head);
    if (which >= 4 || which == 2) tail = mutator.bytes(tail);
    std::vector<uint8_t> file = head;
    file.insert(file.end(), body.begin(), body.end());
    file.insert(file.end(), tail.begin(), tail.end());
    if (mutator.below(10) != 0) file = sealed(file);
    auto plan = plan::deserialize(file);
    if (!plan.ok()) {
      EXPECT_EQ(plan.error().kind, "bad-plan");
      return count("not read");
    }
    EvalRequest request = original;
    request.extraction.candidate.kind = Candidate::Kind::plan;
    request.extraction.candidate.name = "mutant.plan";
    request.extraction.candidate.plan = plan.take();
    try_candidate(request, nullptr);
  });
}

TEST_F(Mutation, Traces) {
  Verdict v;
  v.level = Level::numerics;
  v.status = "INCORRECT_NUMERICAL";
  v.definition = kTask;
  v.workload = "smoke";
  v.axes = {{"K", 832}, {"M", 200}, {"N", 1024}};
  v.arch = "sm_90a";
  v.seed = "00000000000000050000000000000006";
  v.correctness = Correctness{};
  const Json trace = to_trace(v, {"A", "B"}, "2026-01-02T03:04:05Z");
  const Json solution = {
      {"name", "mine"},
      {"definition", kTask},
      {"spec", {{"language", "cuda"}, {"binding", "tvm-ffi"}, {"entry_point", "a/kernel.cu::run"}}},
      {"sources",
       {{{"path", "a/kernel.cu"}, {"content", "int x;"}}, {{"path", "b.h"}, {"content", ""}}}}};
  each(1000, [&](Mutator& mutator) {
    std::string text = dump_json(mutator.json(trace));
    if (mutator.below(4) == 0) text = mutator.text(text);
    const auto read = read_trace(text, "t.json");
    count(read.ok() ? "trace read" : "trace refused");
    if (!read.ok()) {
      EXPECT_TRUE(contains(read.error(), "t.json")) << read.error().to_string();
    }
    const auto extraction = extract_solution(mutator.json(solution), "s.json");
    count(extraction.ok() ? "solution read" : "solution refused");
    if (!extraction.ok()) {
      EXPECT_TRUE(contains(extraction.error(), "s.json")) << extraction.error().to_string();
    }
  });
}

// With the compilers and the recorder, so a few only.
TEST_F(Mutation, CudaCandidates) {
  const std::string markdown = example("gemm_bf16.md");
  const std::string wgmma = fenced_blocks(markdown).back().text, simt = example("naive_simt.cu");
  each(3, [&](Mutator& mutator) {
    const std::string& source = mutator.below(2) == 0 ? wgmma : simt;
    EvalRequest mutant = request(96, 128, 192);
    mutant.extraction = extract_markdown("```cuda\n" + mutator.text(source) + "```\n", "mutant.md");
    EvalRequest other = request(200, 64, 128);
    other.extraction = mutant.extraction;
    try_candidate(
        mutant, [&] { return other; }, true);
  });
}

}  // namespace
}  // namespace ptxbench::bench
