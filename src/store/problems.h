#pragma once
// Collects what is odd in one source: equal problems are counted, their first places kept.

#include <string>
#include <vector>

#include "store/record.h"

namespace ptxbench::store {

class Problems {
 public:
  explicit Problems(std::string source) : source_(std::move(source)) {}

  // `line` counts from 1; 0: the source as a whole.
  void add(const std::string& kind, const std::string& detail, size_t line = 0, uint64_t count = 1);
  const std::vector<Problem>& list() const { return problems_; }
  const std::string& source() const { return source_; }

 private:
  std::string source_;
  std::vector<Problem> problems_;
  std::vector<int> places_;  // how many lines each problem names so far
  std::map<std::pair<std::string, std::string>, size_t> index_;
};

// Replaces bytes that are no UTF-8 and control characters other than tab and newline by U+FFFD;
// returns whether it had to.
bool make_printable(std::string& text);

}  // namespace ptxbench::store
