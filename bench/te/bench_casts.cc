// Fused casts, current and block scaling.
#include "harness.h"
#include "te/kernels/block_cast.h"
#include "te/kernels/current_scale.h"
#include "te/kernels/fused_cast.h"

namespace ptxbench::te::bench {
namespace {

struct CastBuffers {
  DeviceBuffer in, grad, data, transpose;
};

void bench_cast(Table& table, const Options& options, const char* name, CastOp op, bool bias,
                int64_t rows, int64_t cols) {
  const int64_t in_cols = cols * (is_gated(op) ? 2 : 1),
                out_cols = cols * (op == CastOp::dswiglu ? 2 : 1);
  const int64_t bytes = rows * (in_cols * 2 + (is_backward(op) ? cols * 2 : 0) + 2 * out_cols);
  const int sets = sets_for(bytes);
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
        // One tile a CTA; then as many CTAs as there are with so many of 256 threads a
        // multiprocessor.
        for (int waves : bias ? std::vector<int>{0, 2, 3, 4, 6} : std::vector<int>{0}) {
          const int threads = tile == CastTile::t64x64 ? 64 : tile == CastTile::t64x128 ? 128 : 256;
          if (waves > 0) p.runs = balanced_runs(p, int64_t{waves} * sms * (256 / threads));
          if (p.describe() != chosen.describe()) plans.push_back(p);
        }
      }
  std::vector<Operation> all;
  for (const FusedCastPlan& plan : plans)
    all.push_back({name, plan.describe(), bytes, sets,
                   [&, plan](int set) { need(fused_cast(call_of(set), plan, nullptr)); }});
  table.measure(fmt::format("{}x{}", rows, cols), std::move(all));
}

void bench_recipes(Table& table, int64_t rows, int64_t cols) {
  const int64_t n = rows * cols, scales = (n + 127) / 128 * 4 + 1024;
  const int sets = sets_for(n * 2);
  std::vector<CastBuffers> buffers(sets);
  for (CastBuffers& b : buffers) {
    b.in = random_buffer(n * 2);
    b.data = need(DeviceBuffer::zeroed(n));
    b.transpose = need(DeviceBuffer::zeroed(n));
  }
  DeviceBuffer inv = need(DeviceBuffer::zeroed(scales + rows * 4)),
               inv_t = need(DeviceBuffer::zeroed(scales + cols * 4)),
               small = need(DeviceBuffer::zeroed(64)),
               workspace = need(DeviceBuffer::zeroed(amax_workspace()));
  const std::string shape = fmt::format("{}x{}", rows, cols);
  auto blocks = [&](bool square) {
    return [&, square](int set) {
      BlockCast c;
      c.rows = rows, c.cols = cols, c.square = square, c.in = buffers[set].in.as<void>();
      c.data = buffers[set].data.as<uint8_t>(), c.transpose = buffers[set].transpose.as<uint8_t>();
      c.scale_inv = inv.as<float>(), c.transpose_scale_inv = inv_t.as<float>();
      need(block_cast(c, nullptr));
    };
  };
  table.measure(shape, {{"block cast 1x128+transpose", "", n * 4, sets, blocks(false)},
                        {"block cast 128x128+transpose", "", n * 4, sets, blocks(true)}});
  table.measure(shape, {{"amax and current scale", "", n * 2, sets, [&](int set) {
                           AmaxCall c;
                           c.count = n, c.x = buffers[set].in.as<void>();
                           c.amax = small.as<float>(), c.scale = small.as<float>() + 1;
                           c.workspace = workspace.as<void>(),
                           c.workspace_bytes = workspace.bytes();
                           need(compute_amax(c, nullptr));
                         }}});
}

}  // namespace

void bench_casts(Table& table, const Options& options, int64_t rows, int64_t cols) {
  bench_cast(table, options, "cast+transpose", CastOp::cast_bf16, false, rows, cols);
  bench_cast(table, options, "cast+transpose+dbias", CastOp::cast_bf16, true, rows, cols);
  bench_cast(table, options, "cast+transpose+dbias+dgelu", CastOp::dgelu, true, rows, cols);
  bench_cast(table, options, "gelu+cast+transpose", CastOp::gelu, false, rows, cols);
  bench_cast(table, options, "swiglu+cast+transpose", CastOp::swiglu, false, rows, cols);
  bench_cast(table, options, "dswiglu+cast+transpose+dbias", CastOp::dswiglu, true, rows, cols);
  bench_recipes(table, rows, cols);
}

}  // namespace ptxbench::te::bench
