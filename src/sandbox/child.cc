#include "sandbox/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/interrupt.h"

namespace ptxbench::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kStatusBytes = 64 << 10;

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  // A socket pair, because writing to one whose reader is gone can be told not to raise a signal.
  bool open_socket() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  void close_read() { close_one(read); }
  void close_write() { close_one(write); }
  ~Pipe() {
    close_read();
    close_write();
  }

 private:
  static void close_one(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

struct Pipes {
  Pipe in, out, err, status, exec;
};

// Everything the child needs, prepared before fork: between fork and exec only async-signal-safe
// calls.
struct Prepared {
  std::vector<char*> argv, environment;
  const char* program;
  const char* directory;
};

void move_fd(int from, int to) {
  if (from == to) {
    fcntl(from, F_SETFD, 0);
  } else {
    dup2(from, to);
  }
}

[[noreturn]] void fail_child(int exec_fd) {
  const int error = errno;
  (void)!write(exec_fd, &error, sizeof error);
  _exit(127);
}

// What this process happens to have open, inherited from whoever started it, ends at exec.
void keep_to_ourselves() {
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  if (syscall(SYS_close_range, 3u, ~0u, kCloseOnExec) == 0) return;
  struct rlimit limit = {};  // kernels before 5.11
  getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  for (int fd = 3; fd < end; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Only a wish where /proc is missing.
void give_way_to_others() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, "1000", 4);
  close(fd);
}

[[noreturn]] void child_main(const ChildSpec& spec, const Prepared& prepared, Pipes& pipes) {
  setsid();
  for (int fd : spec.cgroup_fds)
    if (write(fd, "0", 1) != 1) fail_child(pipes.exec.write);
  if (spec.first_to_go) give_way_to_others();
  // Descriptors are first lifted out of the way, so that no target number is overwritten early.
  constexpr int kLift = 64;
  int lifted[16];
  for (size_t i = 0; i < spec.inherit.size(); ++i)
    lifted[i] = fcntl(spec.inherit[i].first, F_DUPFD_CLOEXEC, kLift);
  const int in = fcntl(pipes.in.read, F_DUPFD_CLOEXEC, kLift);
  const int out = fcntl(pipes.out.write, F_DUPFD_CLOEXEC, kLift);
  const int err = fcntl(pipes.err.write, F_DUPFD_CLOEXEC, kLift);
  const int exec_fd = fcntl(pipes.exec.write, F_DUPFD_CLOEXEC, kLift);
  const int status = spec.status_pipe ? fcntl(pipes.status.write, F_DUPFD_CLOEXEC, kLift) : -1;
  keep_to_ourselves();
  move_fd(in, 0);
  move_fd(out, 1);
  move_fd(err, 2);
  for (size_t i = 0; i < spec.inherit.size(); ++i) move_fd(lifted[i], spec.inherit[i].second);
  if (status >= 0) move_fd(status, kStatusFd);
  for (const auto& [resource, value] : spec.limits) {
    struct rlimit limit = {};
    getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(value, limit.rlim_max);
    if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) fail_child(exec_fd);
  }
  if (prepared.directory != nullptr && chdir(prepared.directory) != 0) fail_child(exec_fd);
  for (int signal = 1; signal < 32; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(prepared.program, prepared.argv.data(), prepared.environment.data());
  fail_child(exec_fd);
}

// Reads what is there into `text`, at most `cap` bytes in all. False at the end of the stream.
bool drain(int fd, std::string& text, uint64_t cap, bool& truncated) {
  char buffer[65536];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  const uint64_t room = cap - std::min<uint64_t>(cap, text.size());
  const size_t kept = static_cast<size_t>(std::min<uint64_t>(room, static_cast<uint64_t>(got)));
  text.append(buffer, kept);
  if (kept < static_cast<size_t>(got)) truncated = true;
  return true;
}

class Supervisor {
 public:
  Supervisor(const ChildSpec& spec, Pipes& pipes, pid_t pid)
      : spec_(spec), pipes_(pipes), pid_(pid), deadline_(start_ + seconds(spec.wall_s)) {}

  ChildResult run() {
    while (open_streams() > 0) {
      const auto now = Clock::now();
      if (now >= deadline_) end();
      // After the kill, a stream may be held open only by something outside our reach: give up
      // soon.
      if (result_.timed_out && now >= deadline_ + std::chrono::seconds(5)) break;
      step(result_.timed_out ? Clock::now() + std::chrono::milliseconds(50) : deadline_);
    }
    reap();
    result_.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    return std::move(result_);
  }

 private:
  static Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::clamp(s, 0.001, 1e7)));
  }
  int open_streams() const {
    return (pipes_.out.read >= 0) + (pipes_.err.read >= 0) + (pipes_.status.read >= 0);
  }

  void end() {
    if (result_.timed_out) return;
    result_.timed_out = true;
    kill_now();
  }
  void kill_now() {
    if (spec_.kill_all) {
      spec_.kill_all(pid_, result_.status);
    } else {
      kill(-pid_, SIGKILL);
    }
  }

  void step(Clock::time_point until) {
    struct pollfd polled[4];
    int count = 0;
    auto add = [&](int fd, short events) {
      if (fd >= 0) polled[count++] = {fd, events, 0};
    };
    add(pipes_.out.read, POLLIN);
    add(pipes_.err.read, POLLIN);
    add(pipes_.status.read, POLLIN);
    add(pipes_.in.write, POLLOUT);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (poll(polled, count, static_cast<int>(std::clamp<int64_t>(left, 0, 60000))) <= 0) return;
    for (int i = 0; i < count; ++i) {
      if (polled[i].revents != 0) serve(polled[i].fd);
    }
  }

  void serve(int fd) {
    if (fd == pipes_.in.write) return feed();
    bool ignored = false;
    if (fd == pipes_.out.read &&
        !drain(fd, result_.out, spec_.output_bytes, result_.output_truncated))
      pipes_.out.close_read();
    else if (fd == pipes_.err.read &&
             !drain(fd, result_.err, spec_.output_bytes, result_.output_truncated))
      pipes_.err.close_read();
    else if (fd == pipes_.status.read && !drain(fd, result_.status, kStatusBytes, ignored))
      pipes_.status.close_read();
  }

  void feed() {
    const std::string& text = spec_.stdin_text;
    if (fed_ < text.size()) {
      const ssize_t put = send(pipes_.in.write, text.data() + fed_, text.size() - fed_,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) fed_ += static_cast<size_t>(put);
      if (put < 0 && errno != EAGAIN && errno != EINTR) fed_ = text.size();
    }
    if (fed_ >= text.size()) pipes_.in.close_write();
  }

  // The streams are closed, but the child may still run: the deadline holds for it too.
  void reap() {
    while (true) {
      const pid_t got = waitpid(pid_, &result_.wait_status, result_.timed_out ? 0 : WNOHANG);
      if (got == pid_ || (got < 0 && errno != EINTR)) return;
      if (got == 0) {
        if (Clock::now() >= deadline_) end();
        struct timespec nap = {0, 500'000};
        nanosleep(&nap, nullptr);
      }
    }
  }

  const ChildSpec& spec_;
  Pipes& pipes_;
  const pid_t pid_;
  const Clock::time_point start_ = Clock::now();
  const Clock::time_point deadline_;
  ChildResult result_;
  size_t fed_ = 0;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<ChildResult> run_child(const ChildSpec& spec) {
  assert(!spec.argv.empty() && spec.inherit.size() <= 16);
  Pipes pipes;
  if (!pipes.in.open_socket() || !pipes.out.open() || !pipes.err.open() || !pipes.exec.open() ||
      (spec.status_pipe && !pipes.status.open()))
    return Error{"io", std::string("cannot make a pipe: ") + strerror(errno)};
  Prepared prepared{pointers(spec.argv), pointers(spec.environment), spec.argv[0].c_str(),
                    spec.working_directory.empty() ? nullptr : spec.working_directory.c_str()};
  if (interrupted()) return Error{"interrupted", "interrupted by a signal"};
  const pid_t pid = fork();
  if (pid < 0) return Error{"io", std::string("cannot start a process: ") + strerror(errno)};
  if (pid == 0) child_main(spec, prepared, pipes);
  pipes.in.close_read();
  pipes.out.close_write();
  pipes.err.close_write();
  pipes.status.close_write();
  pipes.exec.close_write();
  int exec_errno = 0;
  const bool failed = read(pipes.exec.read, &exec_errno, sizeof exec_errno) > 0;
  ChildResult result = Supervisor(spec, pipes, pid).run();
  result.started = !failed;
  result.exec_errno = exec_errno;
  return result;
}

}  // namespace ptxbench::sandbox
