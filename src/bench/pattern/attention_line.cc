#include "bench/pattern/attention_line.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/op/operation.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr int kOperandBits = 8;          // bf16: of P, dS and results
constexpr double kAllowed = 3;           // times honest rounding, over a row
constexpr double kFloatError = 0x1p-21;  // of fp32 sums whose terms cancel, relative to the terms
constexpr double kLseError = 2e-5;

double dot(const Values& a, int64_t row_a, const Values& b, int64_t row_b, int64_t d) {
  const double *x = &a[static_cast<size_t>(row_a * d)], *y = &b[static_cast<size_t>(row_b * d)];
  double sum = 0;
  for (int64_t c = 0; c < d; ++c) sum += x[c] * y[c];
  return sum;
}

// sum over others of weight * row, with the variance that rounding the weights gives.
void add_rows(const Line& line, int64_t d, int64_t first, const Values& weights,
              const Values& variances, Prediction& p) {
  p.values.assign(static_cast<size_t>(d), 0.0);
  p.noise.assign(static_cast<size_t>(d), 0.0);
  for (size_t t = 0; t < weights.size(); ++t) {
    if (weights[t] == 0 && variances[t] == 0) continue;
    const double* x = line.summed->data() + (static_cast<size_t>(first) + t) * p.values.size();
    for (size_t c = 0; c < p.values.size(); ++c) {
      p.values[c] += weights[t] * x[c];
      p.noise[c] += variances[t] * x[c] * x[c];
    }
  }
}

void finish(double factor, Prediction& p) {
  for (size_t c = 0; c < p.values.size(); ++c) {
    p.values[c] *= factor;
    p.noise[c] =
        factor * factor * p.noise[c] + rounding_variance(kOperandBits) * p.values[c] * p.values[c];
  }
}

Prediction predict_forward(const AttentionView& view, const Line& line, const Variant& variant) {
  const auto [first, last] = others_of(view, line, variant);
  Prediction p;
  Values weights, variances;
  double top = variant.padding > 0 ? 0 : -INFINITY, sum = 0;
  for (int64_t t = first; t < last; ++t)
    weights.push_back(variant.exponent * view.scale * line.dots[static_cast<size_t>(t)]);
  for (double w : weights) top = std::max(top, w);
  for (double& w : weights) sum += w = std::exp(w - top);
  sum += static_cast<double>(variant.padding) * std::exp(-top);
  p.lse = top + std::log(sum);
  if (view.output == AttentionOutput::lse) return p;
  for (double w : weights) variances.push_back(rounding_variance(kOperandBits) * w * w);
  add_rows(line, view.d, first, weights, variances, p);
  finish(variant.factor / (variant.undivided ? 1 : sum), p);
  return p;
}

Prediction predict_backward(const AttentionView& view, const Line& line, const Variant& variant) {
  const auto [first, last] = others_of(view, line, variant);
  Prediction p;
  Values weights, variances;
  const bool probabilities = view.output == AttentionOutput::dv;
  for (int64_t t = first; t < last; ++t) {
    const size_t at = static_cast<size_t>(t), query = line.of_key ? at : 0;
    const double weight =
        std::exp(variant.exponent * view.scale * line.dots[at] - variant.lse * line.lse[query]);
    p.overflows |= !(weight <= static_cast<double>(std::numeric_limits<float>::max()));
    const double delta = variant.delta * line.delta[query];
    const double cancelled =
        probabilities ? 0 : kFloatError * weight * (std::abs(line.dps[at]) + std::abs(delta));
    weights.push_back(probabilities ? weight : weight * (line.dps[at] - delta));
    variances.push_back(rounding_variance(kOperandBits) * weights.back() * weights.back() +
                        cancelled * cancelled);
  }
  add_rows(line, view.d, first, weights, variances, p);
  finish(variant.factor * (probabilities ? 1 : view.scale), p);
  return p;
}

}  // namespace

std::shared_ptr<const Values> Lines::matrix(size_t input, int64_t head, int64_t columns) const {
  auto& matrix = matrices_[{input, head}];
  if (matrix) return matrix;
  const Tensor& tensor = view_.inputs[input];
  auto values = std::make_shared<Values>(static_cast<size_t>(view_.s * columns));
  numeric::load_elements(tensor.type,
                         tensor.bytes.data() + static_cast<size_t>(head) * values->size() *
                                                   numeric::dtype_size(tensor.type),
                         std::span<double>(*values));
  matrix = values;
  return matrix;
}

Values Lines::dots_of_query(int64_t head, int64_t row) const {
  const auto q = matrix(0, head, view_.d), k = matrix(1, head, view_.d);
  Values dots;
  for (int64_t t = 0; t < view_.s; ++t) dots.push_back(dot(*q, row, *k, t, view_.d));
  return dots;
}

Line Lines::make(int64_t head, int64_t row, const Sources& from) const {
  const int64_t d = view_.d;
  Line line;
  line.head = head;
  line.row = row;
  line.of_key = view_.output == AttentionOutput::dk || view_.output == AttentionOutput::dv;
  const auto q = matrix(0, from.q, d), k = matrix(1, from.k, d), v = matrix(2, from.v, d);
  for (int64_t t = 0; t < view_.s; ++t)
    line.dots.push_back(line.of_key ? dot(*q, t, *k, row, d) : dot(*q, row, *k, t, d));
  if (view_.backward()) {
    const auto o = matrix(3, from.q, d), d_o = matrix(4, from.q, d), l = matrix(5, from.q, 1);
    for (int64_t t = 0; t < view_.s; ++t)
      line.dps.push_back(line.of_key ? dot(*d_o, t, *v, row, d) : dot(*d_o, row, *v, t, d));
    for (int64_t t = line.of_key ? 0 : row; t < (line.of_key ? view_.s : row + 1); ++t) {
      line.lse.push_back((*l)[static_cast<size_t>(t)]);
      line.delta.push_back(dot(*o, t, *d_o, t, d));
    }
    line.summed = view_.output == AttentionOutput::dq   ? k
                  : view_.output == AttentionOutput::dk ? q
                                                        : d_o;
  } else {
    line.summed = v;
  }
  const int64_t columns = view_.output == AttentionOutput::lse ? 1 : d;
  line.written.resize(static_cast<size_t>(columns));
  numeric::load_elements(
      view_.written->type,
      view_.written->bytes.data() + static_cast<size_t>((head * view_.s + row) * columns) *
                                        numeric::dtype_size(view_.written->type),
      std::span<double>(line.written));
  return line;
}

std::pair<int64_t, int64_t> others_of(const AttentionView& view, const Line& line,
                                      const Variant& variant) {
  int64_t first = 0, last = view.s;
  if (view.causal && variant.masked && line.of_key)
    first = std::clamp<int64_t>(line.row - variant.shift, 0, view.s);
  if (view.causal && variant.masked && !line.of_key)
    last = std::clamp<int64_t>(line.row + 1 + variant.shift, 0, view.s);
  if (variant.whole_tiles > 0 && last > 0)
    last = (last - 1) / variant.whole_tiles * variant.whole_tiles;
  first = std::max(first, variant.begin);
  last = std::min(last, variant.end);
  return {first, std::max(first, last)};
}

Prediction predict(const AttentionView& view, const Line& line, const Variant& variant) {
  return view.backward() ? predict_backward(view, line, variant)
                         : predict_forward(view, line, variant);
}

bool fits(const AttentionView& view, const Line& line, const Prediction& p) {
  if (view.output == AttentionOutput::lse)
    return std::abs(line.written[0] - p.lse) <= kLseError * (1 + std::abs(p.lse));
  if (p.overflows)
    return std::none_of(line.written.begin(), line.written.end(),
                        [](double x) { return std::isfinite(x); });
  double error = 0, noise = 0;
  for (size_t c = 0; c < line.written.size(); ++c) {
    const double off = line.written[c] - p.values[c];
    error += off * off;
    noise += p.noise[c];
  }
  return error <= kAllowed * kAllowed * noise;  // false for NaN
}

}  // namespace ptxbench::bench::pattern
