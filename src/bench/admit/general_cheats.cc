// What a candidate may leave in its outputs without computing anything: the same for all
// operations.
#include <algorithm>
#include <cmath>

#include "bench/admit/battery.h"
#include "bench/tile_map.h"

namespace ptxbench::bench::admit {
namespace {

using Values = std::vector<double>;
// What is left in output `index` of the case.
using Filling = std::function<Tensor(const Case&, size_t index)>;

Tensor constant(const Case& c, size_t index, double value) {
  return rounded_output(c, index, Values(c.right[index].size(), value));
}

double mean_of(const Values& values) {
  double sum = 0;
  for (double x : values) sum += x;
  return sum / static_cast<double>(std::max<size_t>(values.size(), 1));
}

// The right result of each element replaced by f(matrix, row, column).
template <class F>
Tensor replaced(const Case& c, size_t index, F f) {
  const OutputView& view = c.views[index];
  Values values(c.right[index].size());
  size_t at = 0;
  for (int64_t matrix = 0; matrix < view.matrices; ++matrix)
    for (int64_t row = 0; row < view.rows; ++row)
      for (int64_t column = 0; column < view.columns; ++column)
        values[at++] = f(matrix, row, column);
  return rounded_output(c, index, values);
}

double right_at(const Case& c, size_t index, int64_t matrix, int64_t row, int64_t column) {
  const OutputView& view = c.views[index];
  return c.right[index][static_cast<size_t>((matrix * view.rows + row) * view.columns + column)];
}

Tensor column_mean(const Case& c, size_t index) {
  const OutputView& view = c.views[index];
  Values means(static_cast<size_t>(view.matrices * view.columns));
  for (size_t i = 0; i < c.right[index].size(); ++i) {
    const size_t matrix = i / static_cast<size_t>(view.rows * view.columns);
    means[matrix * static_cast<size_t>(view.columns) + i % static_cast<size_t>(view.columns)] +=
        c.right[index][i] / static_cast<double>(view.rows);
  }
  return replaced(c, index, [&](int64_t matrix, int64_t, int64_t column) {
    return means[static_cast<size_t>(matrix * view.columns + column)];
  });
}

// The right result where keep(row, column) in every matrix, zeros elsewhere.
Filling part(std::function<bool(int64_t row, int64_t column)> keep) {
  return [keep = std::move(keep)](const Case& c, size_t index) {
    return replaced(c, index, [&](int64_t matrix, int64_t row, int64_t column) {
      return keep(row, column) ? right_at(c, index, matrix, row, column) : 0.0;
    });
  };
}

// Its elements, over and over where the output is larger.
Filling copy_of(size_t input) {
  return [input](const Case& c, size_t index) {
    const Values from = to_doubles(c.inputs[input]);
    Values values(c.right[index].size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = from[i % from.size()];
    return rounded_output(c, index, values);
  };
}

struct Entry {
  std::string name, what;
  Filling fill;
};

std::vector<Entry> entries(const Definition& definition) {
  std::vector<Entry> all = {
      {"nothing-written", "the output as it was", [](auto& c, size_t i) { return c.outputs[i]; }},
      {"zeros", "", [](auto& c, size_t i) { return constant(c, i, 0); }},
      {"nan", "", [](auto& c, size_t i) { return constant(c, i, NAN); }},
      {"constant", "1 everywhere", [](auto& c, size_t i) { return constant(c, i, 1); }},
      {"mean", "the mean of the result",
       [](auto& c, size_t i) { return constant(c, i, mean_of(c.right[i])); }},
      {"column-mean", "the mean of each column of each matrix", column_mean},
      {"earlier-result", "the result of other inputs",
       [](auto& c, size_t i) { return c.earlier[i]; }},
      {"first-row-everywhere", "the first row of each matrix",
       [](auto& c, size_t i) {
         return replaced(c, i, [&](int64_t matrix, int64_t, int64_t column) {
           return right_at(c, i, matrix, 0, column);
         });
       }},
      {"first-row-only", "zeros below", part([](int64_t row, int64_t) { return row == 0; })},
      {"half-the-tiles", "every other 16x16 tile",
       part([](int64_t row, int64_t column) { return (row / kTile + column / kTile) % 2 == 0; })},
      {"one-tile-missing", "zeros in the first 16x16 tile of each matrix",
       part([](int64_t row, int64_t column) { return row >= kTile || column >= kTile; })},
  };
  for (size_t i = 0; i < definition.inputs.size(); ++i)
    all.push_back({"copy-of-" + definition.inputs[i].name, "", copy_of(i)});
  return all;
}

}  // namespace

std::vector<Implementation> general_cheats(const Definition& definition) {
  std::vector<Implementation> cheats;
  for (const Entry& entry : entries(definition)) {
    cheats.push_back(
        {entry.name, entry.what, [fill = entry.fill](const Case& c) -> Result<std::vector<Tensor>> {
           std::vector<Tensor> outputs;
           for (size_t i = 0; i < c.right.size(); ++i) outputs.push_back(fill(c, i));
           return outputs;
         }});
    if (definition.outputs.size() < 2) continue;
    for (size_t only = 0; only < definition.outputs.size(); ++only)
      cheats.push_back({entry.name + " in " + definition.outputs[only].name,
                        entry.what.empty() ? "the others right" : entry.what + "; the others right",
                        [fill = entry.fill, only](const Case& c) -> Result<std::vector<Tensor>> {
                          std::vector<Tensor> outputs = right_outputs(c);
                          outputs[only] = fill(c, only);
                          return outputs;
                        }});
  }
  return cheats;
}

}  // namespace ptxbench::bench::admit
