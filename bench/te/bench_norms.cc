// Norms, forward and backward.
#include "harness.h"
#include "te/kernels/norm_backward.h"
#include "te/kernels/norm_forward.h"

namespace ptxbench::te::bench {
namespace {

struct NormBuffers {
  DeviceBuffer in, grad, residual, dx, data, transpose;
};

void bench_norm(Table& table, const Options& options, NormKind kind, bool transposed, int64_t rows,
                int64_t cols) {
  const int64_t bytes = rows * cols * (transposed ? 4 : 3);
  const int sets = sets_for(bytes);
  std::vector<NormBuffers> buffers(sets);
  for (NormBuffers& b : buffers) {
    b.in = random_buffer(rows * cols * 2);
    b.data = need(DeviceBuffer::zeroed(rows * cols));
    b.transpose = need(DeviceBuffer::zeroed(rows * cols));
  }
  DeviceBuffer gamma = random_buffer(cols * 2), stats = need(DeviceBuffer::zeroed(rows * 8)),
               small = need(DeviceBuffer::zeroed(64));
  const float scale = 16;
  need(small.upload(&scale, 4));
  auto call_of = [&](int set) {
    const NormBuffers& b = buffers[set];
    NormForward c;
    c.kind = kind, c.rows = rows, c.cols = cols;
    c.x = b.in.as<void>(), c.gamma = gamma.as<void>();
    if (kind == NormKind::layer) c.beta = gamma.as<void>(), c.mean = stats.as<float>();
    c.rstd = stats.as<float>() + rows;
    c.out = {b.data.as<uint8_t>(), transposed ? b.transpose.as<uint8_t>() : nullptr,
             small.as<float>(), small.as<float>() + 4, small.as<float>() + 8};
    return c;
  };
  const NormPlan chosen = plan_norm_forward(call_of(0), need(multiprocessors()));
  std::vector<NormPlan> plans = {chosen};
  if (options.variants && chosen.vector)
    for (NormTile tile : kNormTiles) {
      NormPlan p = cut(call_of(0), tile);
      p.vector = true;
      for (int waves : {0, 1, 2, 3}) {
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

void bench_backward(Table& table, NormKind kind, int64_t rows, int64_t cols) {
  const int64_t n = rows * cols, bytes = n * 8;  // dy, x, residual, dx
  const int sets = sets_for(bytes), sms = need(multiprocessors());
  std::vector<NormBuffers> buffers(sets);
  for (NormBuffers& b : buffers) {
    b.in = random_buffer(n * 2), b.grad = random_buffer(n * 2), b.residual = random_buffer(n * 2);
    b.dx = need(DeviceBuffer::zeroed(n * 2));
  }
  DeviceBuffer gamma = random_buffer(cols * 2), stats = small_f32_buffer(rows),
               sums = need(DeviceBuffer::zeroed(cols * 8)),
               workspace = need(DeviceBuffer::zeroed(norm_backward_workspace(cols, sms)));
  auto call_of = [&](int set) {
    NormBackward c;
    c.kind = kind, c.rows = rows, c.cols = cols;
    c.dy = buffers[set].grad.as<void>(), c.x = buffers[set].in.as<void>();
    c.residual = buffers[set].residual.as<void>(), c.dx = buffers[set].dx.as<void>();
    c.gamma = gamma.as<void>(), c.rstd = stats.as<float>(), c.dgamma = sums.as<float>();
    if (kind == NormKind::layer) c.mean = stats.as<float>(), c.dbeta = sums.as<float>() + cols;
    c.workspace = workspace.as<void>(), c.workspace_bytes = workspace.bytes();
    return c;
  };
  table.measure(
      fmt::format("{}x{}", rows, cols),
      {{kind == NormKind::layer ? "layernorm backward+residual" : "rmsnorm backward+residual",
        plan_norm_backward(call_of(0), sms).describe(), bytes, sets,
        [&](int set) { need(norm_backward(call_of(set), nullptr)); }}});
}

}  // namespace

void bench_norms(Table& table, const Options& options, int64_t rows, int64_t cols) {
  if (cols > kWidestNorm) return;
  bench_norm(table, options, NormKind::layer, true, rows, cols);
  bench_norm(table, options, NormKind::layer, false, rows, cols);
  bench_norm(table, options, NormKind::rms, true, rows, cols);
  bench_backward(table, NormKind::layer, rows, cols);
  bench_backward(table, NormKind::rms, rows, cols);
}

}  // namespace ptxbench::te::bench
