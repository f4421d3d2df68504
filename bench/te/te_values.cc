// te_values DIR: runs the engine's operations on seeded inputs and writes every operand and result
// as raw bytes, with a list `values.tsv` (case, array, dtype, rows, columns, file), for
// compare_values.py, which computes the same in PyTorch and compares.
#include <filesystem>
#include <fstream>

#include "harness.h"
#include "numeric/float_formats.h"
#include "te/kernels/cross_entropy.h"
#include "te/kernels/embedding.h"
#include "te/kernels/fused_cast.h"
#include "te/kernels/norm_backward.h"
#include "te/kernels/norm_forward.h"
#include "te/kernels/optimizer.h"
#include "te/kernels/rope.h"

namespace ptxbench::te::bench {
namespace {

class Writer {
 public:
  explicit Writer(std::filesystem::path dir) : dir_(std::move(dir)) {
    std::filesystem::create_directories(dir_);
    list_.open(dir_ / "values.tsv");
  }
  void begin(const std::string& name) { case_ = name; }
  void add(const char* array, const char* dtype, int64_t rows, int64_t cols, size_t size,
           const void* device) {
    std::vector<char> bytes(rows * cols * size);
    need(cudaMemcpy(bytes.data(), device, bytes.size(), cudaMemcpyDeviceToHost));
    const std::string file = fmt::format("{}.{}.bin", case_, array);
    std::ofstream(dir_ / file, std::ios::binary).write(bytes.data(), bytes.size());
    list_ << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", case_, array, dtype, rows, cols, file);
    if (!list_) die("cannot write to " + dir_.string());
  }
  void bf16(const char* array, int64_t rows, int64_t cols, const void* device) {
    add(array, "bf16", rows, cols, 2, device);
  }
  void f32(const char* array, int64_t rows, int64_t cols, const void* device) {
    add(array, "f32", rows, cols, 4, device);
  }
  void i32(const char* array, int64_t rows, int64_t cols, const void* device) {
    add(array, "i32", rows, cols, 4, device);
  }
  void fp8(const char* array, Fp8Format format, int64_t rows, int64_t cols, const void* device) {
    add(array, format == Fp8Format::e4m3 ? "e4m3" : "e5m2", rows, cols, 1, device);
  }

 private:
  std::filesystem::path dir_;
  std::ofstream list_;
  std::string case_;
};

DeviceBuffer zeros(int64_t bytes) { return need(DeviceBuffer::zeroed(bytes)); }
DeviceBuffer normals(int64_t count, uint64_t seed) {
  std::vector<uint16_t> v(count);
  numeric::Random({seed, 7}).fill_normal(0, numeric::DType::bfloat16, v.data(), v.size());
  DeviceBuffer b = zeros(count * 2);
  need(b.upload(v.data(), count * 2));
  return b;
}
DeviceBuffer floats(int64_t count, uint64_t seed, float factor) {
  std::vector<float> v(count);
  numeric::Random({seed, 8}).fill_uniform(0, v);
  for (float& x : v) x *= factor;
  DeviceBuffer b = zeros(count * 4);
  need(b.upload(v.data(), count * 4));
  return b;
}
DeviceBuffer integers(int64_t count, int32_t below) {
  std::vector<int32_t> v(count);
  const numeric::Random random({9, 9});
  for (int64_t i = 0; i < count; ++i) v[i] = static_cast<int32_t>(random.below(i, below));
  DeviceBuffer b = zeros(count * 4);
  need(b.upload(v.data(), count * 4));
  return b;
}

void casts(Writer& w, int64_t rows, int64_t cols) {
  const std::pair<CastOp, const char*> ops[] = {{CastOp::cast_bf16, "cast"},
                                                {CastOp::gelu, "gelu"},
                                                {CastOp::swiglu, "swiglu"},
                                                {CastOp::dgelu, "dgelu"},
                                                {CastOp::dswiglu, "dswiglu"}};
  for (auto [op, name] : ops)
    for (Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
      const int64_t in_cols = cols * (is_gated(op) ? 2 : 1);
      const int64_t out_cols = cols * (op == CastOp::dswiglu ? 2 : 1);
      DeviceBuffer x = normals(rows * in_cols, 1), grad = normals(rows * cols, 2),
                   data = zeros(rows * out_cols), transpose = zeros(rows * out_cols),
                   small = zeros(64), dbias = zeros(out_cols * 4);
      const size_t bytes = fused_cast_workspace(op, rows, cols);
      DeviceBuffer workspace = zeros(static_cast<int64_t>(bytes));
      const float scale = 23;
      need(small.upload(&scale, 4));
      float* f = small.as<float>();
      FusedCast c;
      c.op = op, c.format = format, c.rows = rows, c.cols = cols, c.in = x.as<void>();
      c.grad = is_backward(op) ? grad.as<void>() : nullptr;
      c.out = {data.as<uint8_t>(), transpose.as<uint8_t>(), f, f + 4, f + 8};
      const bool bias = !(op == CastOp::gelu || op == CastOp::swiglu);
      if (bias) {
        c.dbias = dbias.as<float>();
        c.workspace = workspace.as<void>(), c.workspace_bytes = bytes;
      }
      need(fused_cast(c, nullptr));
      w.begin(fmt::format("{}-{}-{}x{}", name, format == Fp8Format::e4m3 ? "e4m3" : "e5m2", rows,
                          cols));
      w.bf16("x", rows, in_cols, c.in);
      if (is_backward(op)) w.bf16("grad", rows, cols, c.grad);
      w.f32("scale", 1, 1, f), w.f32("scale_inv", 1, 1, f + 4), w.f32("amax", 1, 1, f + 8);
      w.fp8("data", format, rows, out_cols, c.out.data);
      w.fp8("transpose", format, out_cols, rows, c.out.transpose);
      if (bias) w.f32("dbias", 1, out_cols, c.dbias);
    }
}

void norms(Writer& w, int64_t rows, int64_t cols) {
  for (NormKind kind : {NormKind::layer, NormKind::rms}) {
    const bool layer = kind == NormKind::layer;
    DeviceBuffer x = normals(rows * cols, 3), gamma = normals(cols, 4), beta = normals(cols, 5),
                 dy = normals(rows * cols, 6), residual = normals(rows * cols, 7),
                 y = zeros(rows * cols * 2), data = zeros(rows * cols),
                 transpose = zeros(rows * cols), small = zeros(64), mean = zeros(rows * 4),
                 rstd = zeros(rows * 4), dx = zeros(rows * cols * 2), dgamma = zeros(cols * 4),
                 dbeta = zeros(cols * 4);
    const float scale = 19;
    need(small.upload(&scale, 4));
    float* f = small.as<float>();
    NormForward c;
    c.kind = kind, c.rows = rows, c.cols = cols, c.x = x.as<void>(), c.gamma = gamma.as<void>();
    if (layer) c.beta = beta.as<void>(), c.mean = mean.as<float>();
    c.rstd = rstd.as<float>(), c.y = y.as<void>();
    c.out = {data.as<uint8_t>(), transpose.as<uint8_t>(), f, f + 4, f + 8};
    need(norm_forward(c, nullptr));
    NormBackward b;
    b.kind = kind, b.rows = rows, b.cols = cols, b.dy = dy.as<void>(), b.x = c.x;
    b.gamma = c.gamma, b.mean = c.mean, b.rstd = c.rstd, b.residual = residual.as<void>();
    b.dx = dx.as<void>(), b.dgamma = dgamma.as<float>();
    if (layer) b.dbeta = dbeta.as<float>();
    const size_t bytes = norm_backward_workspace(cols, need(multiprocessors()));
    DeviceBuffer workspace = zeros(static_cast<int64_t>(bytes));
    b.workspace = workspace.as<void>(), b.workspace_bytes = bytes;
    need(norm_backward(b, nullptr));
    w.begin(fmt::format("{}-{}x{}", layer ? "layernorm" : "rmsnorm", rows, cols));
    w.bf16("x", rows, cols, c.x), w.bf16("gamma", 1, cols, c.gamma);
    w.bf16("dy", rows, cols, b.dy), w.bf16("residual", rows, cols, b.residual);
    w.f32("scale", 1, 1, f), w.f32("amax", 1, 1, f + 8), w.f32("rstd", 1, rows, c.rstd);
    w.bf16("y", rows, cols, c.y), w.fp8("data", Fp8Format::e4m3, rows, cols, c.out.data);
    w.fp8("transpose", Fp8Format::e4m3, cols, rows, c.out.transpose);
    w.bf16("dx", rows, cols, b.dx), w.f32("dgamma", 1, cols, b.dgamma);
    if (!layer) continue;
    w.bf16("beta", 1, cols, c.beta), w.f32("mean", 1, rows, c.mean);
    w.f32("dbeta", 1, cols, b.dbeta);
  }
}

void model_ops(Writer& w) {
  const int64_t tokens = 96, heads = 6, dim = 64, cols = heads * dim, entries = 1031;
  for (bool interleaved : {false, true}) {
    DeviceBuffer x = normals(tokens * cols, 8), y = zeros(tokens * cols * 2),
                 cosine = floats(tokens * dim / 2, 1, 1), sine = floats(tokens * dim / 2, 2, 1);
    Rope c;
    c.tokens = tokens, c.heads = heads, c.dim = c.rotary = dim, c.x = x.as<void>();
    c.y = y.as<void>(), c.x_stride = c.y_stride = cols, c.interleaved = interleaved;
    c.cos = cosine.as<float>(), c.sin = sine.as<float>(), c.positions = c.sequence = tokens;
    need(rope(c, nullptr));
    w.begin(interleaved ? "rope-interleaved" : "rope-halves");
    w.bf16("x", tokens, cols, c.x), w.bf16("y", tokens, cols, c.y);
    w.f32("cos", tokens, dim / 2, c.cos), w.f32("sin", tokens, dim / 2, c.sin);
  }
  {
    DeviceBuffer logits = normals(tokens * entries, 9), targets = integers(tokens, entries),
                 loss = zeros(tokens * 4);
    CrossEntropy c;
    c.rows = tokens, c.vocabulary = c.stride = entries, c.logits = logits.as<void>();
    c.targets = targets.as<int32_t>(), c.loss = loss.as<float>();
    c.grad_scale = 1.0f / tokens;
    w.begin("cross-entropy");
    w.bf16("logits", tokens, entries, c.logits);
    need(cross_entropy(c, nullptr));
    w.i32("targets", 1, tokens, c.targets), w.f32("loss", 1, tokens, c.loss);
    w.bf16("dlogits", tokens, entries, c.logits);
  }
  {
    DeviceBuffer table = normals(entries * cols, 10), positions = normals(32 * cols, 11),
                 index = integers(tokens, 40), y = zeros(tokens * cols * 2),
                 dy = normals(tokens * cols, 12), dtable = zeros(entries * cols * 4);
    Embedding c;
    c.tokens = tokens, c.cols = cols, c.entries = entries, c.index = index.as<int32_t>();
    c.table = table.as<void>(), c.positions = positions.as<void>(), c.sequence = 32;
    c.y = y.as<void>();
    need(embedding(c, nullptr));
    EmbeddingBackward b;
    b.tokens = tokens, b.cols = cols, b.entries = entries, b.index = c.index;
    b.dy = dy.as<void>(), b.dtable = dtable.as<float>();
    need(embedding_backward(b, nullptr));
    w.begin("embedding");
    w.bf16("table", entries, cols, c.table), w.bf16("positions", 32, cols, c.positions);
    w.i32("index", 1, tokens, c.index), w.bf16("y", tokens, cols, c.y);
    w.bf16("dy", tokens, cols, b.dy), w.f32("dtable", entries, cols, b.dtable);
  }
  {
    const int64_t n = 100'003;
    DeviceBuffer master = floats(n, 3, 1), m = zeros(n * 4), v = zeros(n * 4), param = zeros(n * 2),
                 norm = zeros(64);
    w.begin("adamw");
    w.f32("start", 1, n, master.as<float>());
    OptimizerTensor t;
    DeviceBuffer grad = normals(n, 13);
    t.count = n, t.grad = grad.as<void>(), t.m = m.as<float>(), t.v = v.as<float>();
    t.param = param.as<uint16_t>(), t.master = master.as<float>();
    OptimizerTensors all = need(OptimizerTensors::create({&t, 1}, GradType::bf16));
    need(all.grad_norm(1, norm.as<float>(), norm.as<float>() + 1, nullptr));
    for (int step = 1; step <= 4; ++step)
      need(all.adamw({.lr = 0.01f, .weight_decay = 0.1f, .step = step}, norm.as<float>() + 1,
                     nullptr, nullptr));
    w.bf16("grad", 1, n, t.grad), w.f32("norm", 1, 2, norm.as<float>());
    w.f32("master", 1, n, t.master), w.bf16("param", 1, n, t.param);
    w.f32("m", 1, n, t.m), w.f32("v", 1, n, t.v);
  }
}

// More elements than 31 bits count: the ends of the copies, element by element. Wants 9 GB.
void more_than_2_31() {
  size_t free = 0, total = 0;
  need(cudaMemGetInfo(&free, &total));
  if (free < 20'000'000'000) {
    fmt::print("more than 2^31 elements: not tried, {} bytes free\n", free);
    return;
  }
  const int64_t rows = (int64_t{1} << 17) + 16, cols = (int64_t{1} << 14) + 8;
  DeviceBuffer x = random_buffer(rows * cols * 2), data = zeros(rows * cols),
               transpose = zeros(rows * cols), small = zeros(64), dbias = zeros(cols * 4);
  const size_t bytes = fused_cast_workspace(CastOp::cast_bf16, rows, cols);
  DeviceBuffer workspace = zeros(static_cast<int64_t>(bytes));
  const float scale = 23;
  need(small.upload(&scale, 4));
  FusedCast c;
  c.rows = rows, c.cols = cols, c.in = x.as<void>();
  c.out = {data.as<uint8_t>(), transpose.as<uint8_t>(), small.as<float>(), nullptr, nullptr};
  c.dbias = dbias.as<float>(), c.workspace = workspace.as<void>(), c.workspace_bytes = bytes;
  need(fused_cast(c, nullptr));
  std::vector<uint16_t> in(cols);
  std::vector<uint8_t> got(cols), column(rows);
  int64_t compared = 0;
  for (int64_t r : {int64_t{0}, rows / 2, rows - 2, rows - 1}) {
    need(cudaMemcpy(in.data(), x.as<uint16_t>() + r * cols, cols * 2, cudaMemcpyDeviceToHost));
    need(cudaMemcpy(got.data(), data.as<uint8_t>() + r * cols, cols, cudaMemcpyDeviceToHost));
    for (int64_t k = 0; k < cols; ++k, ++compared)
      if (got[k] != numeric::e4m3_from_float(numeric::bf16_to_float(in[k]) * scale))
        die(fmt::format("more than 2^31 elements: data[{}][{}] is wrong", r, k));
  }
  for (int64_t k : {int64_t{0}, cols - 1}) {
    need(cudaMemcpy(column.data(), transpose.as<uint8_t>() + k * rows, rows,
                    cudaMemcpyDeviceToHost));
    for (int64_t r = rows - 1; r >= 0; r -= 4099, ++compared) {
      uint16_t v = 0;
      need(cudaMemcpy(&v, x.as<uint16_t>() + r * cols + k, 2, cudaMemcpyDeviceToHost));
      if (column[r] != numeric::e4m3_from_float(numeric::bf16_to_float(v) * scale))
        die(fmt::format("more than 2^31 elements: transpose[{}][{}] is wrong", k, r));
    }
  }
  fmt::print("{} x {}: more than 2^31 elements, {} bytes compared, all right\n", rows, cols,
             compared);
}

}  // namespace
}  // namespace ptxbench::te::bench

int main(int argc, char** argv) {
  using namespace ptxbench::te::bench;
  if (argc != 2) {
    fmt::print(stderr, "usage: te_values DIR\n");
    return 2;
  }
  Writer w(argv[1]);
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{17, 33}, {272, 520}, {2048, 1024}}) {
    casts(w, rows, cols);
    norms(w, rows, cols);
  }
  model_ops(w);
  more_than_2_31();
  return 0;
}
