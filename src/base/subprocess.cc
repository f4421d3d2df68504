#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/interrupt.h"
#include "base/stopwatch.h"

namespace ptxbench {

namespace fs = std::filesystem;

namespace {

struct Fd {
  int fd = -1;
  ~Fd() { reset(); }
  void reset() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

struct Pipe {
  Fd read_end, write_end;
};

bool open_pipe(Pipe& pipe) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  pipe.read_end.fd = fds[0];
  pipe.write_end.fd = fds[1];
  return true;
}

// Everything the child needs, laid out before fork: between fork and exec only async-signal-safe
// calls are allowed, since another thread may hold the allocator's lock.
struct Prepared {
  std::string program;
  std::vector<char*> argv, envp;
  std::vector<std::string> environment;
  std::string directory;
  std::vector<int> inherit;  // sorted
  pid_t parent = 0;
  bool die_with_parent = true;
};

// The child's failure, sent to the parent over a close-on-exec pipe.
struct Failure {
  int code = 0;
  bool directory = false;
};

[[noreturn]] void fail_in_child(int report, bool directory) {
  Failure failure{errno, directory};
  [[maybe_unused]] ssize_t n = write(report, &failure, sizeof failure);
  _exit(127);
}

void close_except(const std::vector<int>& keep, int report) {
  unsigned next = 3;
  auto close_to = [&](unsigned end) {  // [next, end)
    if (next < end) syscall(SYS_close_range, next, end - 1, 0);
    next = std::max(next, end + 1);
  };
  size_t i = 0;
  bool reported = false;
  while (i < keep.size() || !reported) {
    bool take_report = !reported && (i == keep.size() || report < keep[i]);
    int fd = take_report ? report : keep[i++];
    if (take_report) reported = true;
    if (fd >= 3) close_to(static_cast<unsigned>(fd));
  }
  syscall(SYS_close_range, next, ~0u, 0);
}

[[noreturn]] void exec_child(const Prepared& p, int in, int out, int err, int report) {
  setpgid(0, 0);
  if (p.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p.parent) _exit(127);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) fail_in_child(report, false);
  close_except(p.inherit, report);
  for (int fd : p.inherit) fcntl(fd, F_SETFD, 0);
  if (!p.directory.empty() && chdir(p.directory.c_str()) != 0) fail_in_child(report, true);
  execve(p.program.c_str(), p.argv.data(), p.envp.data());
  fail_in_child(report, false);
}

void keep_up_to(std::string& text, const char* data, size_t size, uint64_t limit, bool& truncated) {
  size_t room = text.size() < limit ? static_cast<size_t>(limit - text.size()) : 0;
  if (size > room) truncated = true;
  text.append(data, std::min(size, room));
}

// The parent's side: feeds stdin, collects output, watches the clock.
class Conversation {
 public:
  Conversation(const ProcessSpec& spec, pid_t child, Fd& in, Fd& out, Fd& err,
               ProcessResult& result)
      : spec_(spec), child_(child), in_(in), out_(out), err_(err), result_(result) {
    for (Fd* fd : {&in_, &out_, &err_})
      if (fd->fd >= 0) fcntl(fd->fd, F_SETFL, O_NONBLOCK);
  }

  void run() {
    bool ended = false;
    while (!ended || out_.fd >= 0 || err_.fd >= 0) {
      if (!ended && (ended = has_ended())) {
        kill(-child_, SIGKILL);  // what it left in the background; its pipes close with it
        grace_.restart();
      }
      if (!ended && spec_.wall_s > 0 && watch_.seconds() > spec_.wall_s) {
        result_.timed_out = true;
        kill(-child_, SIGKILL);
      }
      // A descendant that left the group may hold the pipes open: give up on its output.
      if (ended && grace_.seconds() > 0.5) break;
      step(ended);
    }
    result_.wall_ms = watch_.ms();
  }

 private:
  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, child_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child_;
  }

  void step(bool ended) {
    pollfd fds[3] = {{in_.fd, POLLOUT, 0}, {out_.fd, POLLIN, 0}, {err_.fd, POLLIN, 0}};
    // The child's end shows as end-of-file on its pipes; the short wait is for the rare rest (pipes
    // closed early, or held open by others).
    bool quiet = out_.fd < 0 && err_.fd < 0;
    double left_ms = spec_.wall_s > 0 ? spec_.wall_s * 1e3 - watch_.ms() : 50;
    int wait_ms = quiet || ended ? 1 : static_cast<int>(std::clamp(std::ceil(left_ms), 1.0, 20.0));
    if (poll(fds, 3, wait_ms) <= 0) return;
    if (fds[0].revents) feed();
    if (fds[1].revents) collect(out_, result_.out);
    if (fds[2].revents) collect(err_, result_.err);
  }

  void feed() {
    ssize_t n = write(in_.fd, spec_.stdin_text.data() + fed_, spec_.stdin_text.size() - fed_);
    if (n > 0) fed_ += n;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || fed_ == spec_.stdin_text.size())
      in_.reset();
  }

  void collect(Fd& from, std::string& text) {
    char buffer[65536];
    ssize_t n = read(from.fd, buffer, sizeof buffer);
    if (n > 0) keep_up_to(text, buffer, n, spec_.output_bytes, result_.output_truncated);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) from.reset();
  }

  const ProcessSpec& spec_;
  pid_t child_;
  Fd &in_, &out_, &err_;
  ProcessResult& result_;
  size_t fed_ = 0;
  Stopwatch watch_, grace_;
};

// A child whose stdin closes early must not kill us: SIGPIPE is blocked in this thread meanwhile.
class PipeSignalBlock {
 public:
  PipeSignalBlock() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~PipeSignalBlock() {
    timespec zero{};
    if (!sigismember(&old_, SIGPIPE))
      while (sigtimedwait(&pipe_, nullptr, &zero) > 0) {
      }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t pipe_, old_;
};

Result<Prepared> prepare(const ProcessSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty()) return Error{"usage", "empty command line"};
  Prepared p;
  PB_ASSIGN_OR_RETURN(fs::path program, find_program(spec.argv[0]));
  p.program = program.string();
  for (const std::string& arg : spec.argv) p.argv.push_back(const_cast<char*>(arg.c_str()));
  p.argv.push_back(nullptr);
  if (spec.environment) {
    for (const auto& [name, value] : *spec.environment) p.environment.push_back(name + "=" + value);
    for (std::string& entry : p.environment) p.envp.push_back(entry.data());
  } else {
    for (char** entry = environ; *entry; ++entry) p.envp.push_back(*entry);
  }
  p.envp.push_back(nullptr);
  p.directory = spec.working_directory.string();
  p.inherit = spec.inherit_fds;
  std::sort(p.inherit.begin(), p.inherit.end());
  p.parent = getpid();
  p.die_with_parent = spec.die_with_parent;
  return p;
}

// Waits until exec has happened or failed.
Result<void> await_exec(Pipe& report, pid_t child, const ProcessSpec& spec) {
  report.write_end.reset();
  Failure failure;
  ssize_t n;
  do n = read(report.read_end.fd, &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n != sizeof failure) return {};
  waitpid(child, nullptr, 0);
  std::string what =
      failure.directory ? "enter " + spec.working_directory.string() : "run " + spec.argv[0];
  return Error{"io", fmt::format("cannot {}: {}", what, strerror(failure.code))};
}

}  // namespace

Result<fs::path> find_program(const std::string& name) {
  auto usable = [](const fs::path& path) {
    std::error_code code;
    return fs::is_regular_file(path, code) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (usable(name)) return fs::path(name);
    return Error{"not-found", fmt::format("no program at {}", name)};
  }
  const char* value = getenv("PATH");
  std::string_view rest = value ? value : "/usr/local/bin:/usr/bin:/bin";
  while (!name.empty()) {
    size_t colon = rest.find(':');
    std::string_view folder = rest.substr(0, colon);
    fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    if (usable(path)) return path;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return Error{"not-found", fmt::format("no program {} on PATH", name)};
}

Result<ProcessResult> run_process(const ProcessSpec& spec) {
  PB_ASSIGN_OR_RETURN(Prepared prepared, prepare(spec));
  Pipe in, out, err, report;
  Fd null{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  bool feeds = !spec.stdin_text.empty();
  if ((feeds && !open_pipe(in)) || !open_pipe(out) || !open_pipe(err) || !open_pipe(report) ||
      null.fd < 0)
    return Error{"io", fmt::format("cannot open pipes: {}", strerror(errno))};

  if (interrupted()) return Error{"interrupted", "interrupted by a signal"};
  PipeSignalBlock block;
  pid_t child = fork();
  if (child < 0) return Error{"io", fmt::format("cannot fork: {}", strerror(errno))};
  if (child == 0)
    exec_child(prepared, feeds ? in.read_end.fd : null.fd, out.write_end.fd, err.write_end.fd,
               report.write_end.fd);
  setpgid(child, child);  // whoever comes first; fails harmlessly after exec
  in.read_end.reset();
  out.write_end.reset();
  err.write_end.reset();
  PB_RETURN_IF_ERROR(await_exec(report, child, spec));

  ProcessResult result;
  Conversation(spec, child, in.write_end, out.read_end, err.read_end, result).run();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace ptxbench
