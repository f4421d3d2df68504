#pragma once
// A row of an output of attention as what it is: a weighted sum of the rows of another matrix. The
// faults differ in the weights.

#include <map>
#include <memory>
#include <vector>

#include "bench/pattern/attention.h"

namespace ptxbench::bench::pattern {

using Values = std::vector<double>;

// The heads from which a row's inputs are read.
struct Sources {
  int64_t q = 0, k = 0, v = 0;  // dO, O and L go with Q
  bool operator==(const Sources&) const = default;
};

// `others`: the keys of a query (O, LSE, dQ) or the queries of a key (dK, dV).
struct Line {
  int64_t head = 0, row = 0;
  bool of_key = false;
  Values dots;                           // of each other: q.k, neither scaled nor masked
  Values dps;                            // backward: dO.v
  Values lse, delta;                     // backward: of the query, or of each query
  std::shared_ptr<const Values> summed;  // [s,d]: V, K, Q or dO
  Values written;                        // d elements, LSE one
};

class Lines {
 public:
  explicit Lines(const AttentionView& view) : view_(view) {}
  const AttentionView& view() const { return view_; }
  Line make(int64_t head, int64_t row, const Sources& sources) const;
  Line make(int64_t head, int64_t row) const { return make(head, row, {head, head, head}); }
  // q.k of a query with all keys of its head.
  Values dots_of_query(int64_t head, int64_t row) const;

 private:
  std::shared_ptr<const Values> matrix(size_t input, int64_t head, int64_t columns) const;
  const AttentionView& view_;
  mutable std::map<std::pair<size_t, int64_t>, std::shared_ptr<const Values>> matrices_;
};

// How a faulty kernel's weights differ from the right ones.
struct Variant {
  double exponent = 1;                 // of scale * q.k
  double lse = 1, delta = 1;           // factors of these
  double factor = 1;                   // of the result
  bool masked = true;                  // if the task is
  int64_t shift = 0;                   // the mask's, in keys
  int64_t begin = 0, end = INT64_MAX;  // others that take part
  int64_t whole_tiles = 0;  // others in the last, perhaps partial, tile of so many are left out
  int64_t padding = 0;      // keys of zeros past the end that count
  bool undivided = false;   // not divided by the sum of the weights
};

struct Prediction {
  Values values, noise;  // variance of honest rounding
  double lse = 0;
  bool overflows = false;  // a weight is beyond fp32, so the row is infinite or NaN
};
Prediction predict(const AttentionView& view, const Line& line, const Variant& variant);

// Others that count for a row under the variant: [first, last).
std::pair<int64_t, int64_t> others_of(const AttentionView& view, const Line& line,
                                      const Variant& variant);

// Whether the row was written as predicted.
bool fits(const AttentionView& view, const Line& line, const Prediction& prediction);

}  // namespace ptxbench::bench::pattern
