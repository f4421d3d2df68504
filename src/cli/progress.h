#pragma once
// Tells a waiting user what is going on, on stderr: one rewritten line on a terminal, elsewhere a
// line now and then.

#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/stopwatch.h"

namespace ptxbench::cli {

class Progress {
 public:
  explicit Progress(bool quiet);
  void show(const std::string& what, double fraction);  // from any thread
  void clear();

 private:
  bool quiet_, terminal_;
  std::mutex mutex_;
  std::unique_ptr<ProgressLine> line_;
  Stopwatch since_start_, since_line_;
  double next_line_s_ = 5;  // nothing is said about runs shorter than this
};

}  // namespace ptxbench::cli
