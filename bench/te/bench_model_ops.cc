// Optimizer, RoPE, cross-entropy, embedding, scale update.
#include "harness.h"
#include "te/kernels/cross_entropy.h"
#include "te/kernels/embedding.h"
#include "te/kernels/optimizer.h"
#include "te/kernels/rope.h"
#include "te/kernels/scale_update.h"

namespace ptxbench::te::bench {

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

namespace {

DeviceBuffer indices(int64_t count, int32_t below) {
  std::vector<int32_t> v(count);
  const numeric::Random random({5, 6});
  for (int64_t i = 0; i < count; ++i) v[i] = static_cast<int32_t>(random.below(i, below));
  DeviceBuffer b = need(DeviceBuffer::zeroed(count * 4));
  need(b.upload(v.data(), count * 4));
  return b;
}

}  // namespace

void bench_model_ops(Table& table, int64_t rows, int64_t cols) {
  const int64_t n = rows * cols;
  const std::string shape = fmt::format("{}x{}", rows, cols);
  const int sets = sets_for(n * 2);
  std::vector<DeviceBuffer> x(sets), y(sets);
  for (int i = 0; i < sets; ++i)
    x[i] = random_buffer(n * 2), y[i] = need(DeviceBuffer::zeroed(n * 2));
  if (cols % 128 == 0) {
    const int64_t positions = 4096;
    DeviceBuffer angles = small_f32_buffer(positions * 64);
    table.measure(shape, {{"rope, heads of 128", "", n * 4, sets, [&](int set) {
                             Rope c;
                             c.tokens = rows, c.heads = cols / 128, c.dim = c.rotary = 128;
                             c.x = x[set].as<void>(), c.y = y[set].as<void>();
                             c.x_stride = c.y_stride = cols;
                             c.cos = c.sin = angles.as<float>();
                             c.positions = c.sequence = positions;
                             need(rope(c, nullptr));
                           }}});
  }
  const int64_t entries = 50257;
  DeviceBuffer words = random_buffer(entries * cols * 2), index = indices(rows, entries),
               gradient = need(DeviceBuffer::zeroed(entries * cols * 4));
  table.measure(shape, {{"embedding", "", n * 4, sets, [&](int set) {
                           Embedding c;
                           c.tokens = rows, c.cols = cols, c.entries = entries;
                           c.index = index.as<int32_t>(), c.table = words.as<void>();
                           c.y = y[set].as<void>();
                           need(embedding(c, nullptr));
                         }}});
  table.measure(shape, {{"embedding backward", "", n * 10, sets, [&](int set) {
                           EmbeddingBackward c;
                           c.tokens = rows, c.cols = cols, c.entries = entries;
                           c.index = index.as<int32_t>(), c.dy = x[set].as<void>();
                           c.dtable = gradient.as<float>();
                           need(embedding_backward(c, nullptr));
                         }}});
  const int64_t tokens = std::min<int64_t>(rows, 8192);
  DeviceBuffer logits = random_buffer(tokens * entries * 2), targets = indices(tokens, entries),
               loss = need(DeviceBuffer::zeroed(tokens * 4));
  table.measure(fmt::format("{}x{}", tokens, entries),
                {{"cross-entropy with gradient", "", tokens * entries * 4, 1, [&](int) {
                    CrossEntropy c;
                    c.rows = tokens, c.vocabulary = c.stride = entries;
                    c.logits = logits.as<void>(), c.targets = targets.as<int32_t>();
                    c.loss = loss.as<float>();
                    need(cross_entropy(c, nullptr));
                  }}});
  DelayedScaling recipe;
  DeviceScalingState state =
      need(DeviceScalingState::create(need(make_state(recipe, std::vector(288, Fp8Format::e4m3)))));
  const float one = 1;
  for (uint32_t i = 0; i < state.tensors(); ++i)
    need(cudaMemcpy(state.amax(i), &one, 4, cudaMemcpyHostToDevice));
  table.measure("1024x288", {{"scale update, rolls once", "", 1024 * 288 * 8, 1,
                              [&](int) { need(state.update(nullptr, nullptr)); }}});
}

}  // namespace ptxbench::te::bench
