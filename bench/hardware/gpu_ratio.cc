// Is the timing itself right? Two things that are equal are timed against each other and must come
// out equal:
//   gpu_ratio same PLAN                      one plan in two workers
//   gpu_ratio library M N K PROGRAM          cuBLASLt in a worker, and in
//   bench/hardware/cublaslt_alone.cu
// Prints medians and the ratio with its 95 % interval; exit 0 if the interval lies inside 1 +-
// 0.03. PTXBENCH_CUBLASLT names the library.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "bench/gpu/timing.h"
#include "numeric/float_formats.h"
#include "numeric/random.h"

using namespace ptxbench;
using namespace ptxbench::bench;

namespace {

constexpr int kGroups = 4, kLaunches = 12;

// A program of its own with pipes for commands and answers.
class Alone : public Contestant {
 public:
  Alone(const std::string& program, std::string load) : load_(std::move(load)) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) return;
    if (fork() == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      close(to[1]);
      close(from[0]);
      execl(program.c_str(), program.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    commands_ = fdopen(to[1], "w");
    answers_ = fdopen(from[0], "r");
  }
  ~Alone() override {
    if (commands_ != nullptr) fclose(commands_);
    if (answers_ != nullptr) fclose(answers_);
  }
  Result<double> ask(const std::string& command) {
    char line[256];
    if (commands_ == nullptr || fprintf(commands_, "%s\n", command.c_str()) < 0 ||
        fflush(commands_) != 0 || fgets(line, sizeof line, answers_) == nullptr)
      return Error{"infrastructure", "cublaslt_alone does not answer"};
    return std::atof(line);
  }
  Result<void> upload(uint32_t, std::span<const device::Binding>) override {
    if (loaded_) return {};
    loaded_ = true;
    auto found = ask(load_);
    return found.ok() ? Result<void>() : found.error();
  }
  Result<void> clone(const device::cuda::Clone&) override { return {}; }
  Result<bool> equal(const device::cuda::Clone&) override { return true; }
  Result<double> run(uint32_t, device::cuda::Timing) override { return ask("run"); }
  Result<std::vector<plan::Finding>> check(uint32_t) override {
    return std::vector<plan::Finding>();
  }
  Result<void> download(uint32_t, uint32_t, std::span<uint8_t>) override { return {}; }
  Result<void> release(uint32_t) override { return {}; }
  std::string description() override { return "cublaslt_alone"; }

 private:
  std::string load_;
  FILE *commands_ = nullptr, *answers_ = nullptr;
  bool loaded_ = false;
};

std::vector<uint8_t> random_bf16(uint64_t elements, uint64_t seed) {
  const numeric::Random random(numeric::Seed{seed, 1}, 1);
  std::vector<float> values(elements);
  random.fill_normal(0, values);
  std::vector<uint8_t> bytes(2 * elements);
  numeric::bf16_from_float(
      values, std::span<uint16_t>(reinterpret_cast<uint16_t*>(bytes.data()), elements));
  return bytes;
}

int fail(const Error& error) {
  std::fprintf(stderr, "gpu_ratio: %s\n", error.to_string().c_str());
  return 2;
}

struct Case {
  std::string name;
  std::unique_ptr<Contestant> first, second;
  std::vector<std::vector<uint8_t>> arguments;  // the last one is the output
};

int compare(Case& c, const std::string& bus_id) {
  TimingOptions options;
  options.launches = kLaunches;
  options.end_to_end_every = 0;
  TimingDevice timing(c.name, *c.first, c.second.get(), options, bus_id);
  std::vector<device::Binding> bindings;
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    const bool output = i + 1 == c.arguments.size();
    bindings.push_back({c.arguments[i], !output, !output});
  }
  for (int group = 0; group < kGroups; ++group)
    if (auto run = timing.replay({}, bindings, {}); !run.ok()) return fail(run.error());
  const RatioInterval r = ratio_of_medians(timing.first_ms, timing.second_ms);
  const bool good = r.low > 0.97 && r.high < 1.03;
  std::printf("%s: %.4f ms and %.4f ms, ratio %.4f [%.4f, %.4f] of %zu pairs, SM %u..%u MHz: %s\n",
              c.name.c_str(), median(timing.first_ms), median(timing.second_ms), r.ratio, r.low,
              r.high, timing.first_ms.size(), timing.low.sm_mhz, timing.high.sm_mhz,
              good ? "equal" : "NOT EQUAL");
  return good ? 0 : 1;
}

int run_same(const device::CudaOptions& options, const char* path) {
  auto bytes = read_bytes(path);
  if (!bytes.ok()) return fail(bytes.error());
  auto plan = plan::deserialize(*bytes);
  if (!plan.ok()) return fail(plan.error());
  auto device = device::CudaDevice::open(options);
  if (!device.ok()) return fail(device.error());
  Case c;
  c.name = std::filesystem::path(path).filename().string() + " against itself";
  for (auto* slot : {&c.first, &c.second}) {
    auto made = make_contestant(options, *plan, 10);
    if (!made.ok()) return fail(made.error());
    *slot = made.take();
  }
  for (const plan::Buffer& b : plan->buffers)
    if (b.role == plan::BufferRole::argument)
      c.arguments.push_back(random_bf16(b.size / 2, c.arguments.size()));
  return compare(c, (*device)->info().bus_id);
}

int run_library(const device::CudaOptions& options, char** sizes, const char* program) {
  const int64_t m = std::atoll(sizes[0]), n = std::atoll(sizes[1]), k = std::atoll(sizes[2]);
  const char* path = std::getenv("PTXBENCH_CUBLASLT");
  auto device = device::CudaDevice::open(options);
  if (!device.ok()) return fail(device.error());
  Case c;
  c.name = fmt::format("cuBLASLt {}x{}x{} here and alone", m, n, k);
  auto made = make_contestant(
      options,
      device::cuda::LoadLibrary{"cublaslt-bf16", path ? path : "libcublasLt.so.13", {m, n, k}}, 10);
  if (!made.ok()) return fail(made.error());
  c.first = made.take();
  const auto size = [](int64_t x, int64_t y) { return static_cast<uint64_t>(x * y); };
  c.arguments = {random_bf16(size(m, k), 1), random_bf16(size(n, k), 2),
                 std::vector<uint8_t>(2 * size(m, n))};
  // A first run chooses the algorithm; the other program is told which.
  std::vector<device::Binding> bindings;
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    const bool output = i + 1 == c.arguments.size();
    bindings.push_back({c.arguments[i], !output, !output});
  }
  if (auto done = c.first->upload(0, bindings); !done.ok()) return fail(done.error());
  if (auto ran = c.first->run(0, device::cuda::Timing::kernel); !ran.ok()) return fail(ran.error());
  const std::string described = c.first->description();
  int algorithm = 0;
  if (const size_t at = described.find("algorithm "); at != std::string::npos)
    algorithm = std::atoi(described.c_str() + at + 10);
  const auto folder = std::filesystem::temp_directory_path();
  const std::string a = (folder / "gpu_ratio_a.bin").string(),
                    b = (folder / "gpu_ratio_b.bin").string();
  for (const auto& [file, bytes] : {std::pair(a, &c.arguments[0]), std::pair(b, &c.arguments[1])})
    if (auto done = write_file_atomically(file, std::span<const uint8_t>(*bytes)); !done.ok())
      return fail(done.error());
  c.second = std::make_unique<Alone>(
      program, fmt::format("load {} {} {} {} {} {}", m, n, k, algorithm, a, b));
  std::printf("%s\n", described.c_str());
  return compare(c, (*device)->info().bus_id);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  device::CudaOptions options;
  if (argc == 3 && std::strcmp(argv[1], "same") == 0) return run_same(options, argv[2]);
  if (argc == 6 && std::strcmp(argv[1], "library") == 0)
    return run_library(options, argv + 2, argv[5]);
  std::fputs("usage: gpu_ratio same PLAN | library M N K PROGRAM\n", stderr);
  return 2;
}
