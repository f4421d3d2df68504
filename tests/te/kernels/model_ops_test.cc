// RoPE, cross-entropy, embedding.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "te/device_array.h"
#include "te/kernels/cross_entropy.h"
#include "te/kernels/embedding.h"
#include "te/kernels/rope.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

// ---- RoPE ----

struct RopeCase {
  int64_t tokens, heads, dim, rotary;
  bool interleaved = false, backward = false, in_place = false, explicit_positions = false;
  size_t shift = 0;
};

void check_rope(const RopeCase& c) {
  SCOPED_TRACE(testing::Message() << c.tokens << " " << c.heads << " " << c.dim << " " << c.rotary
                                  << (c.interleaved ? " interleaved" : " halves") << c.shift);
  const int64_t positions = 64, half = c.rotary / 2, stride = c.heads * c.dim + 8 * c.dim;
  const auto x = test::random_bf16(c.tokens * stride, 51);
  std::vector<float> cosines(positions * half), sines(positions * half);
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / c.rotary);
      cosines[p * half + i] = static_cast<float>(std::cos(angle));
      sines[p * half + i] = static_cast<float>(std::sin(angle));
    }
  std::vector<int32_t> position(c.tokens);
  for (int64_t t = 0; t < c.tokens; ++t)
    position[t] = static_cast<int32_t>(c.explicit_positions ? (t * 37) % positions : t % 16);
  DeviceArray<uint16_t> dx(x, c.shift), dy(c.tokens * stride, 0xee, c.shift);
  DeviceArray<float> dcos(cosines), dsin(sines);
  DeviceArray<int32_t> dposition(position);
  DeviceArray<int> errors(std::vector<int>{0});
  Rope call;
  call.tokens = c.tokens, call.heads = c.heads, call.dim = c.dim, call.rotary = c.rotary;
  call.x = dx.get(), call.y = c.in_place ? dx.get() : dy.get();
  call.x_stride = call.y_stride = stride, call.cos = dcos.get(), call.sin = dsin.get();
  call.positions = positions, call.sequence = 16, call.errors = errors.get();
  if (c.explicit_positions) call.position = dposition.get();
  call.interleaved = c.interleaved, call.backward = c.backward;
  auto done = rope(call, nullptr);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto got = c.in_place ? dx.fetch() : dy.fetch();
  int64_t bad = 0, compared = 0;
  for (int64_t t = 0; t < c.tokens; ++t) {
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t k = 0; k < c.dim; ++k) {
        const int64_t base = t * stride + h * c.dim;
        auto in = [&](int64_t i) { return test::bf16(x[base + i]); };
        double expected = in(k);
        if (k < c.rotary) {
          const int64_t i = c.interleaved ? k / 2 : k % half;
          const bool second = c.interleaved ? k % 2 == 1 : k >= half;
          const double a = in(c.interleaved ? 2 * i : i),
                       b = in(c.interleaved ? 2 * i + 1 : i + half);
          const double cosine = cosines[position[t] * half + i];
          const double sine = sines[position[t] * half + i] * (c.backward ? -1 : 1);
          expected = second ? b * cosine + a * sine : a * cosine - b * sine;
        }
        const double error = std::fabs(test::bf16(got[base + k]) - expected);
        bad += !(error <= std::fabs(expected) / 256 + 1e-6), ++compared;
      }
    // Between the tokens nothing is written.
    for (int64_t k = c.heads * c.dim; k < stride; ++k)
      bad += got[t * stride + k] != (c.in_place ? x[t * stride + k] : 0xeeee);
  }
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(compared, c.tokens * c.heads * c.dim);
  EXPECT_EQ(errors.fetch()[0], 0);
}

TEST(Rope, BothLayoutsForwardAndBackward) {
  for (bool interleaved : {false, true})
    for (bool backward : {false, true}) {
      check_rope({33, 3, 64, 64, interleaved, backward});
      check_rope({5, 2, 128, 32, interleaved, backward, true, true});
      check_rope({7, 1, 20, 10, interleaved, backward, false, true});
      check_rope({7, 2, 64, 64, interleaved, backward, true, false, 1});
    }
}

TEST(Rope, PositionOutsideTheTableIsSeen) {
  DeviceArray<uint16_t> x(test::random_bf16(3 * 16, 5)), y(3 * 16);
  DeviceArray<float> table(std::vector<float>(8 * 8, 0.5f));
  DeviceArray<int32_t> position(std::vector<int32_t>{1, 8, -1});
  DeviceArray<int> errors(std::vector<int>{0});
  Rope call;
  call.tokens = 3, call.heads = 1, call.dim = call.rotary = 16, call.x = x.get(), call.y = y.get();
  call.x_stride = call.y_stride = 16, call.cos = call.sin = table.get(), call.positions = 8;
  call.position = position.get(), call.errors = errors.get();
  ASSERT_TRUE(rope(call, nullptr).ok());
  const auto got = y.fetch();
  for (int i = 0; i < 48; ++i) EXPECT_EQ(std::isnan(test::bf16(got[i])), i >= 16);
  EXPECT_EQ(errors.fetch()[0], 2);
  call.rotary = 15;
  EXPECT_EQ(rope(call, nullptr).error().message,
            "rope: rotary is 15: it must be even and in 2..16");
}

// ---- cross-entropy ----

void check_cross_entropy(int64_t rows, int64_t vocabulary, int64_t stride, size_t shift) {
  SCOPED_TRACE(testing::Message() << rows << "x" << vocabulary << " stride " << stride);
  const auto x = test::random_bf16(rows * stride, 61, 3);
  std::vector<int32_t> targets(rows);
  for (int64_t r = 0; r < rows; ++r)
    targets[r] = r % 5 == 3 ? -100 : static_cast<int32_t>((r * 7919 + 3) % vocabulary);
  DeviceArray<uint16_t> logits(x, shift);
  DeviceArray<int32_t> dtargets(targets);
  DeviceArray<float> loss(rows), factor(std::vector<float>{0.5f});
  CrossEntropy call;
  call.rows = rows, call.vocabulary = vocabulary, call.stride = stride;
  call.logits = logits.get(), call.targets = dtargets.get(), call.loss = loss.get();
  call.grad_scale = 0.25f, call.device_grad_scale = factor.get();
  call.gradient = false;
  ASSERT_TRUE(cross_entropy(call, nullptr).ok());
  EXPECT_EQ(logits.fetch(), x) << "without the gradient the logits stay";
  call.gradient = true;
  ASSERT_TRUE(cross_entropy(call, nullptr).ok());
  const auto losses = loss.fetch();
  const auto got = logits.fetch();
  int64_t bad = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const uint16_t* row = x.data() + r * stride;
    double largest = -1e300, sum = 0;
    for (int64_t k = 0; k < vocabulary; ++k) largest = std::fmax(largest, test::bf16(row[k]));
    for (int64_t k = 0; k < vocabulary; ++k) sum += std::exp(test::bf16(row[k]) - largest);
    const bool ignored = targets[r] == -100;
    const double expected_loss =
        ignored ? 0 : std::log(sum) + largest - test::bf16(row[targets[r]]);
    ASSERT_NEAR(losses[r], expected_loss, 2e-5 * (1 + std::fabs(expected_loss)));
    for (int64_t k = 0; k < stride; ++k) {
      double expected = 0;
      if (!ignored && k < vocabulary)
        expected =
            0.125 * (std::exp(test::bf16(row[k]) - largest) / sum - (k == targets[r] ? 1 : 0));
      const double error = std::fabs(test::bf16(got[r * stride + k]) - expected);
      bad += !(error <= std::fabs(expected) / 200 + (k == targets[r] ? 1e-6 : 1e-30));
    }
  }
  EXPECT_EQ(bad, 0);
}

TEST(CrossEntropy, LossAndGradientInPlace) {
  check_cross_entropy(7, 1, 1, 0);
  check_cross_entropy(9, 33, 33, 0);
  check_cross_entropy(6, 1000, 1024, 0);
  check_cross_entropy(5, 4100, 4101, 1);
  check_cross_entropy(4, 50257, 50257, 0);
  check_cross_entropy(1, 262144, 262144, 0);
}

// The gradient is that of the loss: fp64 differences of the definition at the bf16 logits.
TEST(CrossEntropy, GradientByFiniteDifferences) {
  const auto x = test::random_bf16(40, 62);
  DeviceArray<uint16_t> logits(x);
  DeviceArray<int32_t> target(std::vector<int32_t>{11});
  DeviceArray<float> loss(1);
  CrossEntropy call;
  call.rows = 1, call.vocabulary = call.stride = 40;
  call.logits = logits.get(), call.targets = target.get(), call.loss = loss.get();
  ASSERT_TRUE(cross_entropy(call, nullptr).ok());
  const auto got = logits.fetch();
  for (int k = 0; k < 40; ++k) {
    auto objective = [&](double v) {
      double sum = 0;
      for (int i = 0; i < 40; ++i) sum += std::exp(i == k ? v : test::bf16(x[i]));
      return std::log(sum) - (k == 11 ? v : test::bf16(x[11]));
    };
    const double expected = test::derivative(objective, test::bf16(x[k]));
    EXPECT_NEAR(test::bf16(got[k]), expected, std::fabs(expected) / 200 + 1e-6);
  }
}

TEST(CrossEntropy, OddValuesAndTargets) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<uint16_t> x(4 * 64, numeric::bf16_from_float(1));
  x[0] = numeric::bf16_from_float(-inf);  // a masked logit: probability 0
  x[64 + 5] = numeric::bf16_from_float(NAN);
  DeviceArray<uint16_t> logits(x);
  DeviceArray<int32_t> targets(std::vector<int32_t>{1, 1, 64, -3});
  DeviceArray<float> loss(4);
  DeviceArray<int> errors(std::vector<int>{0});
  CrossEntropy call;
  call.rows = 4, call.vocabulary = call.stride = 64, call.errors = errors.get();
  call.logits = logits.get(), call.targets = targets.get(), call.loss = loss.get();
  ASSERT_TRUE(cross_entropy(call, nullptr).ok());
  const auto losses = loss.fetch();
  EXPECT_NEAR(losses[0], std::log(63.0), 1e-5);
  for (int r = 1; r < 4; ++r) EXPECT_TRUE(std::isnan(losses[r]));
  EXPECT_EQ(errors.fetch()[0], 2);
  const auto got = logits.fetch();
  EXPECT_EQ(test::bf16(got[0]), 0);
  for (int i = 64; i < 256; ++i) EXPECT_TRUE(std::isnan(test::bf16(got[i]))) << i;
  call.stride = 63;
  EXPECT_EQ(cross_entropy(call, nullptr).error().message,
            "cross entropy: stride 63 is below the vocabulary of 64");
}

// ---- embedding ----

TEST(Embedding, ForwardWithAndWithoutPositions) {
  for (auto [tokens, cols] : {std::pair{1, 1}, {33, 20}, {50, 64}, {7, 2600}})
    for (bool with_positions : {false, true})
      for (size_t shift : {0, 1}) {
        const int64_t entries = 19, sequence = 8;
        const auto table = test::random_bf16(entries * cols, 71),
                   more = test::random_bf16(sequence * cols, 72);
        std::vector<int32_t> index(tokens);
        for (int t = 0; t < tokens; ++t) index[t] = t * 5 % entries;
        if (tokens > 3) index[3] = static_cast<int32_t>(entries);
        DeviceArray<uint16_t> dtable(table, shift), dmore(more, shift),
            y(tokens * cols, 0xee, shift);
        DeviceArray<int32_t> dindex(index);
        DeviceArray<int> errors(std::vector<int>{0});
        Embedding call;
        call.tokens = tokens, call.cols = cols, call.entries = entries;
        call.index = dindex.get(), call.table = dtable.get(), call.y = y.get(),
        call.errors = errors.get();
        if (with_positions) call.positions = dmore.get(), call.sequence = sequence;
        ASSERT_TRUE(embedding(call, nullptr).ok());
        const auto got = y.fetch();
        int64_t bad = 0;
        for (int64_t t = 0; t < tokens; ++t)
          for (int64_t k = 0; k < cols; ++k) {
            if (index[t] == entries) {
              bad += !std::isnan(test::bf16(got[t * cols + k]));
              continue;
            }
            const float v =
                numeric::bf16_to_float(table[index[t] * cols + k]) +
                (with_positions ? numeric::bf16_to_float(more[t % sequence * cols + k]) : 0);
            bad += got[t * cols + k] != numeric::bf16_from_float(v);
          }
        EXPECT_EQ(bad, 0) << tokens << "x" << cols;
        EXPECT_EQ(errors.fetch()[0], tokens > 3 ? 1 : 0);
      }
}

TEST(Embedding, GradientAddsOccurrencesInOrder) {
  for (auto [tokens, cols] : {std::pair{1, 1}, {700, 20}, {600, 64}, {9, 2600}})
    for (bool by_position : {false, true}) {
      const int64_t entries = 37;
      const auto dy = test::random_bf16(tokens * cols, 73);
      std::vector<int32_t> index(tokens);
      for (int t = 0; t < tokens; ++t) index[t] = t % 3 == 0 ? 5 : t * 11 % entries;
      if (tokens > 8) index[8] = -1;
      const auto before = test::random_f32(entries * cols, 74);
      DeviceArray<uint16_t> ddy(dy);
      DeviceArray<int32_t> dindex(index);
      DeviceArray<float> dtable(before);
      EmbeddingBackward call;
      call.tokens = tokens, call.cols = cols, call.entries = entries;
      call.index = by_position ? nullptr : dindex.get(), call.dy = ddy.get(),
      call.dtable = dtable.get();
      ASSERT_TRUE(embedding_backward(call, nullptr).ok());
      std::vector<float> sums(entries * cols, 0);  // fp32 and in order: the same bits
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t entry = by_position ? t % entries : index[t];
        for (int64_t k = 0; entry >= 0 && k < cols; ++k)
          sums[entry * cols + k] += numeric::bf16_to_float(dy[t * cols + k]);
      }
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += before[i];
      EXPECT_EQ(dtable.fetch(), sums) << tokens << "x" << cols;
    }
}

TEST(ModelOps, OneLaunchEach) {
  DeviceArray<uint16_t> x(test::random_bf16(64 * 64, 3)), y(64 * 64);
  DeviceArray<float> f(std::vector<float>(64 * 64, 0));
  DeviceArray<int32_t> index(std::vector<int32_t>(64, 1));
  CrossEntropy ce;
  ce.rows = ce.vocabulary = ce.stride = 64, ce.logits = x.get(), ce.targets = index.get(),
  ce.loss = f.get();
  Embedding forward;
  forward.tokens = forward.cols = forward.entries = 64;
  forward.index = index.get(), forward.table = x.get(), forward.y = y.get();
  EmbeddingBackward backward;
  backward.tokens = backward.cols = backward.entries = 64;
  backward.index = index.get(), backward.dy = x.get(), backward.dtable = f.get();
  Rope turn;
  turn.tokens = 64, turn.heads = 1, turn.dim = turn.rotary = 64, turn.x = x.get(), turn.y = y.get();
  turn.x_stride = turn.y_stride = 64, turn.cos = turn.sin = f.get(),
  turn.positions = turn.sequence = 64;
  auto work = [](auto call) {
    return test::work_of([&](cudaStream_t s) { EXPECT_TRUE(call(s).ok()); });
  };
  EXPECT_EQ(work([&](cudaStream_t s) { return cross_entropy(ce, s); }), test::kOneKernel);
  EXPECT_EQ(work([&](cudaStream_t s) { return embedding(forward, s); }), test::kOneKernel);
  EXPECT_EQ(work([&](cudaStream_t s) { return embedding_backward(backward, s); }),
            test::kOneKernel);
  EXPECT_EQ(work([&](cudaStream_t s) { return rope(turn, s); }), test::kOneKernel);
}

}  // namespace
}  // namespace ptxbench::te
