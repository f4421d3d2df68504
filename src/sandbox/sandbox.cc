#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sandbox/bubblewrap.h"
#include "sandbox/cgroup.h"
#include "sandbox/child.h"
#include "sandbox/own_user.h"
#include "sandbox/seccomp_filter.h"

namespace ptxbench::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr int kSeccompFd = 8;

// Removes a file descriptor's number from the caller's worries.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// bubblewrap reports {"child-pid": N} before the command starts and {"exit-code": N} after it
// ended, the latter only if the command was really executed.
std::optional<int64_t> status_field(const std::string& status, const char* name) {
  size_t begin = 0;
  while (begin < status.size()) {
    const size_t end = std::min(status.find('\n', begin), status.size());
    const auto line = nlohmann::json::parse(status.begin() + static_cast<ptrdiff_t>(begin),
                                            status.begin() + static_cast<ptrdiff_t>(end), nullptr,
                                            /*allow_exceptions=*/false);
    if (line.is_object() && line.contains(name) && line[name].is_number_integer())
      return line[name].get<int64_t>();
    begin = end + 1;
  }
  return std::nullopt;
}

// Killing the namespace's first process ends every process in it before bubblewrap itself returns.
void kill_namespace(pid_t bubblewrap, const std::string& status) {
  const auto init = status_field(status, "child-pid");
  if (!init || *init <= 1 || kill(static_cast<pid_t>(*init), SIGKILL) != 0)
    kill(bubblewrap, SIGKILL);
}

// bubblewrap returns when the command does; what the command left running ends a moment later, with
// the namespace's first process. Waits for that, so that nothing outlives run(). The number cannot
// have been given to another process yet: numbers are handed out in a circle.
void wait_for_namespace(const std::string& status) {
  const auto init = status_field(status, "child-pid");
  if (!init || *init <= 1) return;
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(*init), 0)));
  if (process.get() < 0) return;  // gone already
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  struct pollfd ended = {process.get(), POLLIN, 0};
  poll(&ended, 1, 5000);
}

std::vector<std::pair<int, uint64_t>> limits_of(const Command& command) {
  // Processor time: the wall budget on every core is the most that can be used honestly.
  const auto cpu = static_cast<uint64_t>(command.wall_s * 64) + 2;
  return {{RLIMIT_CORE, 0},
          {RLIMIT_AS, command.memory_bytes},
          {RLIMIT_FSIZE, command.file_bytes},
          {RLIMIT_NOFILE, 1024},
          {RLIMIT_CPU, cpu}};
}

std::string find_program(const Command& command) {
  const std::string& name = command.argv[0];
  if (name.find('/') != std::string::npos) return name;
  std::string path = "/usr/bin:/bin";
  for (const auto& [key, value] : command.environment)
    if (key == "PATH") path = value;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = path.substr(begin, end - begin) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return name;
}

Result<void> check(const Command& command) {
  if (command.argv.empty()) return Error{"usage", "sandbox: empty command line"};
  if (access(find_program(command).c_str(), X_OK) != 0)
    return Error{"usage", "sandbox: no such program: " + command.argv[0]};
  for (const auto* paths : {&command.read_only, &command.writable}) {
    for (const fs::path& path : *paths) {
      std::error_code error;
      if (!path.is_absolute() || !fs::exists(path, error))
        return Error{"usage", fmt::format("sandbox: no such path: {}", path.string())};
    }
  }
  return {};
}

void set_exit(int exit_code, Outcome& outcome) {
  if (exit_code > 128 && exit_code <= 128 + 64) {
    outcome.signal = exit_code - 128;
  } else {
    outcome.exit_code = exit_code;
  }
}

Outcome outcome_of(ChildResult& child) {
  Outcome outcome;
  outcome.timed_out = child.timed_out;
  outcome.output_truncated = child.output_truncated;
  outcome.out = std::move(child.out);
  outcome.err = std::move(child.err);
  outcome.wall_ms = child.wall_ms;
  return outcome;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// bubblewrap ended without having run the command.
Error not_started(const ChildResult& child) {
  const std::string line = first_line(child.err);
  const std::string exec_prefix = "bwrap: execvp ";
  if (line.rfind(exec_prefix, 0) == 0)
    return Error{"usage", "sandbox: cannot run " + line.substr(exec_prefix.size())};
  return Error{"no-sandbox", "bubblewrap failed: " + (line.empty() ? "without a message" : line)};
}

// Whether a command of root may have a user id of its own on this machine.
bool own_user_works();

// The command's user id, if it gets one: its folders are then that user's.
std::optional<uint32_t> user_for(const Command& command) {
  if (!own_user_works() || !readable_by_others(command)) return std::nullopt;
  const auto uid = draw_user_id();
  return uid && give_writable_folders(command, *uid) ? uid : std::nullopt;
}

Result<Outcome> run_isolated(const Command& command, std::optional<uint32_t> uid) {
  PB_ASSIGN_OR_RETURN(const std::string bubblewrap, find_bubblewrap());
  PB_ASSIGN_OR_RETURN(const std::string program, seccomp_program());
  const Fd filter(memfd_create("seccomp", MFD_CLOEXEC));
  if (filter.get() < 0 || pwrite(filter.get(), program.data(), program.size(), 0) !=
                              static_cast<ssize_t>(program.size()))
    return Error{"io", std::string("cannot write the system call filter: ") + strerror(errno)};
  const bool root = geteuid() == 0;
  std::optional<ControlGroups> groups;
  // bubblewrap itself is two processes of the group.
  if (root) groups.emplace(command.processes + 2, command.total_memory_bytes);
  ChildSpec spec;
  const Identity identity{uid, uid || !root};
  spec.argv = bubblewrap_command(command, bubblewrap, kSeccompFd, kStatusFd, identity);
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.stdin_text = command.stdin_text;
  spec.wall_s = command.wall_s;
  spec.output_bytes = command.output_bytes;
  spec.limits = limits_of(command);
  spec.inherit = {{filter.get(), kSeccompFd}};
  if (groups) spec.cgroup_fds = groups->join_fds();
  spec.first_to_go = true;
  spec.status_pipe = true;
  spec.kill_all = kill_namespace;
  PB_ASSIGN_OR_RETURN(ChildResult child, run_child(spec));
  wait_for_namespace(child.status);
  const auto exit_code = status_field(child.status, "exit-code");
  if (!child.timed_out && !exit_code) {
    if (!child.started)
      return Error{"no-sandbox", std::string("cannot run bwrap: ") + strerror(child.exec_errno)};
    // The namespace's first process may be killed from outside, by the kernel for want of memory.
    if (!status_field(child.status, "child-pid") || WIFEXITED(child.wait_status))
      return not_started(child);
  }
  Outcome outcome = outcome_of(child);
  if (exit_code) {
    set_exit(static_cast<int>(*exit_code), outcome);
  } else if (WIFSIGNALED(child.wait_status)) {
    outcome.signal = WTERMSIG(child.wait_status);
  }
  return outcome;
}

Result<Outcome> run_trusted(const Command& command) {
  ChildSpec spec;
  spec.argv = command.argv;
  spec.argv[0] = find_program(command);
  for (const auto& [name, value] : command.environment)
    spec.environment.push_back(name + "=" + value);
  spec.working_directory = command.working_directory.string();
  spec.stdin_text = command.stdin_text;
  spec.wall_s = command.wall_s;
  spec.output_bytes = command.output_bytes;
  spec.limits = limits_of(command);
  PB_ASSIGN_OR_RETURN(ChildResult child, run_child(spec));
  if (!child.started)
    return Error{"usage", fmt::format("sandbox: cannot run {}: {}", command.argv[0],
                                      strerror(child.exec_errno))};
  Outcome outcome = outcome_of(child);
  outcome.isolated = false;
  if (WIFSIGNALED(child.wait_status)) {
    outcome.signal = WTERMSIG(child.wait_status);
  } else {
    outcome.exit_code = WEXITSTATUS(child.wait_status);
  }
  return outcome;
}

Result<void> probe(std::optional<uint32_t> uid) {
  Command command;
  command.argv = {"/usr/bin/true"};
  command.wall_s = 10;
  PB_ASSIGN_OR_RETURN(const Outcome outcome, run_isolated(command, uid));
  if (outcome.timed_out || outcome.signal != 0 || outcome.exit_code != 0)
    return Error{"no-sandbox",
                 "an empty command failed under bubblewrap: " + first_line(outcome.err)};
  return {};
}

bool own_user_works() {
  static const bool works = [] {
    const auto uid = draw_user_id();
    return uid && probe(uid).ok();
  }();
  return works;
}

}  // namespace

std::string process_limit() {
  if (geteuid() != 0) return "RLIMIT_NPROC";
  if (own_user_works()) return "own user id";
  return ControlGroups(1, uint64_t{1} << 30).join_fds().empty() ? "wall time only"
                                                                : "control group";
}

Result<void> available() {
  static const Result<void> result = own_user_works() ? Result<void>() : probe(std::nullopt);
  return result;
}

Result<Outcome> run(const Command& command) {
  PB_RETURN_IF_ERROR(check(command));
  if (const Result<void> isolation = available(); !isolation.ok()) {
    if (command.trust) return run_trusted(command);
    return isolation.error();
  }
  return run_isolated(command, user_for(command));
}

Result<std::string> read_untrusted_file(const fs::path& path, uint64_t max_bytes) {
  const auto refuse = [&](const std::string& why) {
    return Error{"io", fmt::format("{}: {}", path.filename().string(), why)};
  };
  const Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return refuse(errno == ELOOP ? "is a symbolic link" : strerror(errno));
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return refuse(strerror(errno));
  if (!S_ISREG(info.st_mode)) return refuse("is not a regular file");
  if (static_cast<uint64_t>(info.st_size) > max_bytes)
    return refuse(fmt::format("has {} bytes, more than {}", info.st_size, max_bytes));
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace ptxbench::sandbox
