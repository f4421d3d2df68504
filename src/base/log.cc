#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace ptxbench {

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && isatty(STDERR_FILENO)) {}
ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(std::string_view what, double fraction) {
  // Ten times a second is enough to watch.
  if (!enabled_ || (shown_ && since_.seconds() < 0.1)) return;
  std::string percent = fraction >= 0 ? fmt::format(" {:3.0f} %", 100 * fraction) : "";
  fmt::print(stderr, "\r\033[K{}{}", what.substr(0, 100), percent);
  std::fflush(stderr);
  shown_ = true;
  since_.restart();
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace ptxbench
