// Clocks as the candidate's host code sees them. Both recordings run in the same second, so code
// that depends on the time would slip through the comparison; one of the processes is told another
// time. These definitions come before the C library's in the search order.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart {
uint64_t clock_skew_s = 0;
}

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const long status = syscall(SYS_clock_gettime, clock, out);
  if (status == 0 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID)
    out->tv_sec += static_cast<time_t>(ptxbench::cudart::clock_skew_s);
  return static_cast<int>(status);
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

}  // extern "C"
