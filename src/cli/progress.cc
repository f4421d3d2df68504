#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace ptxbench::cli {

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {
  if (!quiet_ && terminal_) line_ = std::make_unique<ProgressLine>(true);
}

void Progress::show(const std::string& what, double fraction) {
  if (quiet_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (line_) return line_->show(what, fraction);
  if (since_start_.seconds() < next_line_s_) return;
  next_line_s_ = since_start_.seconds() + 10;
  const std::string percent = fraction >= 0 ? fmt::format(" {:.0f} %", 100 * fraction) : "";
  std::fprintf(stderr, "ptxbench: %s%s, %.0f s\n", what.c_str(), percent.c_str(),
               since_start_.seconds());
}

void Progress::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (line_) line_->clear();
}

}  // namespace ptxbench::cli
