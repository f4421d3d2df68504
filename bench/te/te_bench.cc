// Achieved bandwidth of the fused kernels against a measured copy of the same number of bytes.
//
//   te_bench [--rounds N] [--shape ROWSxCOLS]... [--only TEXT] [--variants] [--json FILE]
//
// Bytes are the compulsory ones: every operand read once, every result written once. Buffers rotate
// so that nothing is left in L2 from the call before; copy and operation are measured alternately,
// and the medians over the rounds are reported. The copy is the faster of a kernel with 16-byte
// accesses and cudaMemcpyAsync. --variants also measures the plans that the heuristic did not
// choose. Results are not checked here: the tests do that on the same card (run_h200.sh).

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "copy.h"
#include "numeric/dtype.h"
#include "numeric/random.h"
#include "te/kernels/device_buffer.h"
#include "te/kernels/fused_cast.h"
#include "te/kernels/norm_forward.h"
#include "te/kernels/optimizer.h"

namespace {

using namespace ptxbench;
using namespace ptxbench::te;

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "te_bench: {}\n", message);
  std::exit(2);
}
void need(cudaError_t status) {
  if (status != cudaSuccess) die(cudaGetErrorString(status));
}
template <class T>
T need(Result<T> result) {
  if (!result.ok()) die(result.error().message);
  return result.take();
}
void need(Result<void> result) {
  if (!result.ok()) die(result.error().message);
}

struct Options {
  int rounds = 15;
  std::vector<std::pair<int64_t, int64_t>> shapes;
  std::string only, json;
  bool variants = false;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&]() -> std::string {
      if (i + 1 >= argc) die(a + " needs a value");
      return argv[++i];
    };
    if (a == "--rounds") {
      o.rounds = std::atoi(value().c_str());
      if (o.rounds < 1) die("--rounds must be at least 1");
    } else if (a == "--shape") {
      long rows = 0, cols = 0;
      const std::string v = value();
      if (std::sscanf(v.c_str(), "%ldx%ld", &rows, &cols) != 2 || rows < 1 || cols < 1)
        die("--shape wants ROWSxCOLS, not " + v);
      o.shapes.push_back({rows, cols});
    } else if (a == "--only") {
      o.only = value();
    } else if (a == "--json") {
      o.json = value();
    } else if (a == "--variants") {
      o.variants = true;
    } else {
      die("unknown argument " + a);
    }
  }
  if (o.shapes.empty()) o.shapes = {{8192, 4096}};
  return o;
}

// A million bf16 normals, repeated.
DeviceBuffer random_buffer(int64_t bytes) {
  static const std::vector<uint16_t> pattern = [] {
    std::vector<uint16_t> v(1 << 20);
    numeric::Random({1, 2}).fill_normal(0, numeric::DType::bfloat16, v.data(), v.size());
    return v;
  }();
  DeviceBuffer b = need(DeviceBuffer::zeroed(bytes));
  for (int64_t at = 0; at < bytes; at += int64_t(pattern.size()) * 2)
    need(cudaMemcpy(b.as<uint8_t>() + at, pattern.data(),
                    std::min<int64_t>(bytes - at, pattern.size() * 2), cudaMemcpyHostToDevice));
  return b;
}
// Small positive fp32 values: moments of the optimizer.
DeviceBuffer small_f32_buffer(int64_t count) {
  std::vector<float> pattern(1 << 20);
  numeric::Random({1, 3}).fill_uniform(0, pattern);
  for (float& v : pattern) v *= 1e-4f;
  DeviceBuffer b = need(DeviceBuffer::zeroed(count * 4));
  for (int64_t at = 0; at < count; at += int64_t(pattern.size()))
    need(cudaMemcpy(b.as<float>() + at, pattern.data(),
                    std::min<int64_t>(count - at, pattern.size()) * 4, cudaMemcpyHostToDevice));
  return b;
}

// One operation: `run(set)` enqueues it on the buffers of a set.
struct Operation {
  std::string name, plan;
  int64_t bytes = 0;
  int sets = 1;
  std::function<void(int)> run;
};

float milliseconds(const std::function<void(int)>& run, int sets, int launches) {
  static cudaEvent_t start, stop;
  if (start == nullptr) {
    need(cudaEventCreate(&start));
    need(cudaEventCreate(&stop));
  }
  static int set = 0;
  need(cudaEventRecord(start, nullptr));
  for (int i = 0; i < launches; ++i) run(set = (set + 1) % sets);
  need(cudaEventRecord(stop, nullptr));
  need(cudaEventSynchronize(stop));
  float ms = 0;
  need(cudaEventElapsedTime(&ms, start, stop));
  return ms / launches;
}

float median(std::vector<float> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

struct Row {
  std::string name, shape, plan;
  double microseconds, bandwidth, copy_bandwidth;
};

class Table {
 public:
  Table(const Options& options) : options_(options) {
    fmt::print("{:<26} {:>13} {:>9} {:>9} {:>9} {:>8}  {}\n", "operation", "shape", "us", "GB/s",
               "copy GB/s", "of copy", "plan");
  }

  // Measures operations of the same size in turn with the copies.
  void measure(const std::string& shape, std::vector<Operation> all) {
    if (!options_.only.empty())
      std::erase_if(
          all, [&](const Operation& o) { return o.name.find(options_.only) == std::string::npos; });
    if (all.empty()) return;
    const int64_t half = all[0].bytes / 2 / 16 * 16;
    const int sets = static_cast<int>(std::clamp<int64_t>(400'000'000 / (2 * half), 2, 16));
    std::vector<DeviceBuffer> from, to;
    for (int i = 0; i < sets; ++i) {
      from.push_back(random_buffer(half));
      to.push_back(need(DeviceBuffer::zeroed(half)));
    }
    Operation kernel{"copy kernel", "", 2 * half, sets, [&](int s) {
                       need(launch_copy(from[s].as<void>(), to[s].as<void>(), half, nullptr));
                     }};
    Operation memcpy{"cudaMemcpyAsync", "", 2 * half, sets, [&](int s) {
                       need(cudaMemcpyAsync(to[s].as<void>(), from[s].as<void>(), half,
                                            cudaMemcpyDeviceToDevice, nullptr));
                     }};
    std::vector<Operation*> turn = {&kernel, &memcpy};
    for (Operation& o : all) turn.push_back(&o);
    std::vector<std::vector<float>> times(turn.size());
    for (int round = -1; round < options_.rounds; ++round)
      for (size_t i = 0; i < turn.size(); ++i) {
        const int launches =
            static_cast<int>(std::clamp<int64_t>(2'000'000'000 / turn[i]->bytes, 4, 200));
        const float ms = milliseconds(turn[i]->run, turn[i]->sets, launches);
        if (round >= 0) times[i].push_back(ms);
      }
    need(cudaDeviceSynchronize());
    const double copy =
        std::max(2.0 * half / median(times[0]), 2.0 * half / median(times[1])) / 1e6;
    for (size_t i = 0; i < turn.size(); ++i) {
      const float ms = median(times[i]);
      rows_.push_back(
          {turn[i]->name, shape, turn[i]->plan, ms * 1e3, turn[i]->bytes / ms / 1e6, copy});
      const Row& r = rows_.back();
      fmt::print("{:<26} {:>13} {:>9.2f} {:>9.0f} {:>9.0f} {:>7.1f}%  {}\n", r.name, r.shape,
                 r.microseconds, r.bandwidth, r.copy_bandwidth, 100 * r.bandwidth / copy, r.plan);
    }
    std::fflush(stdout);
  }

  void write_json() const {
    if (options_.json.empty()) return;
    std::FILE* f = std::fopen(options_.json.c_str(), "w");
    if (f == nullptr) die("cannot write " + options_.json);
    for (const Row& r : rows_)
      fmt::print(
          f,
          "{{\"operation\": \"{}\", \"shape\": \"{}\", \"us\": {:.3f}, \"gb_per_s\": {:.1f}, "
          "\"copy_gb_per_s\": {:.1f}, \"plan\": \"{}\"}}\n",
          r.name, r.shape, r.microseconds, r.bandwidth, r.copy_bandwidth, r.plan);
    std::fclose(f);
  }

 private:
  Options options_;
  std::vector<Row> rows_;
};

// ---- casts ----

struct CastBuffers {
  DeviceBuffer in, grad, data, transpose;
};

void bench_cast(Table& table, const Options& options, const char* name, CastOp op, bool bias,
                int64_t rows, int64_t cols) {
  const int64_t in_cols = cols * (is_gated(op) ? 2 : 1),
                out_cols = cols * (op == CastOp::dswiglu ? 2 : 1);
  const int64_t bytes = rows * (in_cols * 2 + (is_backward(op) ? cols * 2 : 0) + 2 * out_cols);
  const int sets = static_cast<int>(std::clamp<int64_t>(400'000'000 / bytes, 2, 16));
  std::vector<CastBuffers> buffers(sets);
  for (CastBuffers& b : buffers) {
    b.in = random_buffer(rows * in_cols * 2);
    if (is_backward(op)) b.grad = random_buffer(rows * cols * 2);
    b.data = need(DeviceBuffer::zeroed(rows * out_cols));
    b.transpose = need(DeviceBuffer::zeroed(rows * out_cols));
  }
  DeviceBuffer small = need(DeviceBuffer::zeroed(64));
  const float one = 16;
  need(small.upload(&one, 4));
  DeviceBuffer dbias = need(DeviceBuffer::zeroed(out_cols * 4));
  DeviceBuffer workspace = need(DeviceBuffer::zeroed(fused_cast_workspace(op, rows, cols)));
  auto call_of = [&](int set) {
    const CastBuffers& b = buffers[set];
    FusedCast c;
    c.op = op, c.rows = rows, c.cols = cols, c.in = b.in.as<void>(), c.grad = b.grad.as<void>();
    c.format = is_backward(op) || bias ? Fp8Format::e5m2 : Fp8Format::e4m3;
    c.out = {b.data.as<uint8_t>(), b.transpose.as<uint8_t>(), small.as<float>(),
             small.as<float>() + 4, small.as<float>() + 8};
    if (bias) {
      c.dbias = dbias.as<float>(), c.workspace = workspace.as<void>();
      c.workspace_bytes = workspace.bytes();
    }
    return c;
  };
  const int sms = need(multiprocessors());
  const FusedCastPlan chosen = plan_fused_cast(call_of(0), sms);
  std::vector<FusedCastPlan> plans = {chosen};
  if (options.variants && chosen.vector)
    for (CastTile tile : kCastTiles)
      for (bool down : {false, true}) {
        FusedCastPlan p = cut(call_of(0), tile);
        p.vector = true, p.down_first = down;
        for (int waves : {0, 3, 6}) {  // CTAs of a multiprocessor ahead
          p.prefetch = static_cast<uint32_t>(waves * sms);
          if (p.describe() != chosen.describe()) plans.push_back(p);
        }
      }
  std::vector<Operation> all;
  for (const FusedCastPlan& plan : plans)
    all.push_back({name, plan.describe(), bytes, sets,
                   [&, plan](int set) { need(fused_cast(call_of(set), plan, nullptr)); }});
  table.measure(fmt::format("{}x{}", rows, cols), std::move(all));
}

// ---- norms ----

void bench_norm(Table& table, const Options& options, NormKind kind, bool transposed, int64_t rows,
                int64_t cols) {
  const int64_t bytes = rows * cols * (transposed ? 4 : 3);
  const int sets = static_cast<int>(std::clamp<int64_t>(400'000'000 / bytes, 2, 16));
  std::vector<CastBuffers> buffers(sets);
  for (CastBuffers& b : buffers) {
    b.in = random_buffer(rows * cols * 2);
    b.data = need(DeviceBuffer::zeroed(rows * cols));
    b.transpose = need(DeviceBuffer::zeroed(rows * cols));
  }
  DeviceBuffer gamma = random_buffer(cols * 2), stats = need(DeviceBuffer::zeroed(rows * 8)),
               small = need(DeviceBuffer::zeroed(64));
  const float scale = 16;
  need(small.upload(&scale, 4));
  auto call_of = [&](int set) {
    const CastBuffers& b = buffers[set];
    NormForward c;
    c.kind = kind, c.rows = rows, c.cols = cols;
    c.x = b.in.as<void>(), c.gamma = gamma.as<void>();
    if (kind == NormKind::layer) c.beta = gamma.as<void>(), c.mean = stats.as<float>();
    c.rstd = stats.as<float>() + rows;
    c.out = {b.data.as<uint8_t>(), transposed ? b.transpose.as<uint8_t>() : nullptr,
             small.as<float>(), small.as<float>() + 4, small.as<float>() + 8};
    return c;
  };
  const NormPlan chosen = plan_norm_forward(call_of(0));
  std::vector<NormPlan> plans = {chosen};
  if (options.variants && chosen.vector)
    for (NormTile tile : kNormTiles) {
      NormPlan p = cut(call_of(0), tile);
      p.vector = true;
      for (int waves : {0, 2, 3, 4, 6}) {
        p.prefetch = static_cast<uint32_t>(waves * need(multiprocessors())) / p.cluster;
        if (p.cluster <= 8 && p.describe() != chosen.describe()) plans.push_back(p);
      }
    }
  std::vector<Operation> all;
  const std::string name = fmt::format("{}norm to FP8{}", kind == NormKind::layer ? "layer" : "rms",
                                       transposed ? "+transpose" : "");
  for (const NormPlan& plan : plans)
    all.push_back({name, plan.describe(), bytes, sets,
                   [&, plan](int set) { need(norm_forward(call_of(set), plan, nullptr)); }});
  table.measure(fmt::format("{}x{}", rows, cols), std::move(all));
}

// ---- optimizer ----

void bench_optimizer(Table& table, int64_t rows, int64_t cols) {
  const int64_t n = rows * cols;
  DeviceBuffer master = small_f32_buffer(n), m = small_f32_buffer(n), v = small_f32_buffer(n),
               grad = random_buffer(n * 2), param = random_buffer(n * 2),
               rest = random_buffer(n * 2), norm = need(DeviceBuffer::zeroed(64));
  auto made = [&](bool remainder) {
    OptimizerTensor t;
    t.count = n, t.grad = grad.as<void>(), t.m = m.as<float>(), t.v = v.as<float>();
    t.param = param.as<uint16_t>();
    if (remainder)
      t.remainder = rest.as<int16_t>();
    else
      t.master = master.as<float>();
    return need(OptimizerTensors::create({&t, 1}, GradType::bf16));
  };
  OptimizerTensors full = made(false), split = made(true);
  const std::string shape = fmt::format("{}x{}", rows, cols);
  float* out = norm.as<float>();
  auto adamw = [&](OptimizerTensors& t) {
    return [&](int) { need(t.adamw({.lr = 1e-9f}, nullptr, nullptr, nullptr)); };
  };
  table.measure(shape, {{"AdamW fp32 master", full.describe(), n * 28, 1, adamw(full)}});
  table.measure(shape, {{"AdamW bf16+remainder", split.describe(), n * 26, 1, adamw(split)}});
  table.measure(shape, {{"gradient norm", full.describe(), n * 2, 1,
                         [&](int) { need(full.grad_norm(1, out, out + 1, nullptr)); }}});
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  cudaDeviceProp prop;
  need(cudaGetDeviceProperties(&prop, 0));
  int driver = 0, runtime = 0;
  need(cudaDriverGetVersion(&driver));
  need(cudaRuntimeGetVersion(&runtime));
  fmt::print("{}, {} SMs, driver {}, runtime {}, medians of {} rounds\n", prop.name,
             prop.multiProcessorCount, driver, runtime, options.rounds);
  Table table(options);
  for (auto [rows, cols] : options.shapes) {
    bench_cast(table, options, "cast+transpose", CastOp::cast_bf16, false, rows, cols);
    bench_cast(table, options, "cast+transpose+dbias", CastOp::cast_bf16, true, rows, cols);
    bench_cast(table, options, "cast+transpose+dbias+dgelu", CastOp::dgelu, true, rows, cols);
    bench_cast(table, options, "gelu+cast+transpose", CastOp::gelu, false, rows, cols);
    bench_cast(table, options, "swiglu+cast+transpose", CastOp::swiglu, false, rows, cols);
    bench_cast(table, options, "dswiglu+cast+transpose+dbias", CastOp::dswiglu, true, rows, cols);
    if (cols <= kWidestNorm) {
      bench_norm(table, options, NormKind::layer, true, rows, cols);
      bench_norm(table, options, NormKind::layer, false, rows, cols);
      bench_norm(table, options, NormKind::rms, true, rows, cols);
    }
    bench_optimizer(table, rows, cols);
  }
  table.write_json();
  return 0;
}
