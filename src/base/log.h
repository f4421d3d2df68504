#pragma once
// One progress line on stderr, rewritten in place on a terminal and silent elsewhere. For programs
// (src/cli, tools); libraries report progress through callbacks.

#include <string_view>

#include "base/stopwatch.h"

namespace ptxbench {

class ProgressLine {
 public:
  explicit ProgressLine(bool enabled = true);  // also needs stderr to be a terminal
  ~ProgressLine();                             // erases the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view what, double fraction = -1);  // fraction in [0,1], negative: unknown
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
  Stopwatch since_;
};

}  // namespace ptxbench
