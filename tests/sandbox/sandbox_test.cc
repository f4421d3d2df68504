#include "sandbox/sandbox.h"

#include <dirent.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <fstream>

#include "base/files.h"
#include "base/temp_dir.h"

namespace ptxbench::sandbox {
namespace {

namespace fs = std::filesystem;

Command shell(const std::string& script) {
  Command command;
  command.argv = {"/bin/bash", "-c", script};
  command.environment = {{"PATH", "/usr/bin:/bin"}};
  command.wall_s = 10;
  return command;
}

Outcome must_run(const Command& command) {
  const auto outcome = run(command);
  EXPECT_TRUE(outcome.ok()) << outcome.error().to_string();
  return outcome.ok() ? *outcome : Outcome{};
}

// Processes of this machine whose command line contains `marker`.
int processes_with(const std::string& marker) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::isdigit(static_cast<unsigned char>(name[0])) || name == std::to_string(getpid()))
      continue;
    const auto line_read = read_file(entry.path() / "cmdline");  // not if it ends meanwhile
    const std::string line = line_read.ok() ? line_read.value() : "";
    count += line.find(marker) != std::string::npos;
  }
  return count;
}

// A machine on which nothing can be isolated must be seen to be one: this fails, it does not skip.
TEST(Sandbox, IsAvailableHere) {
  const auto isolation = available();
  ASSERT_TRUE(isolation.ok()) << "NO SANDBOX ON THIS MACHINE: " << isolation.error().to_string();
}

TEST(Sandbox, ReportsOutputAndExitCode) {
  const Outcome outcome = must_run(shell("echo out; echo err >&2; exit 42"));
  EXPECT_EQ(outcome.exit_code, 42);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_TRUE(outcome.isolated);
}

TEST(Sandbox, ReportsTheSignal) {
  EXPECT_EQ(must_run(shell("kill -SEGV $$")).signal, SIGSEGV);
  EXPECT_EQ(must_run(shell("kill -KILL $$")).signal, SIGKILL);
}

TEST(Sandbox, FeedsStandardInput) {
  Command command = shell("wc -c");
  command.stdin_text = std::string(1'000'000, 'x');
  EXPECT_EQ(must_run(command).out, "1000000\n");
  command = shell("exec 0<&-; sleep 0.1; echo done");  // nobody reads: no signal for us
  command.stdin_text = std::string(10'000'000, 'x');
  EXPECT_EQ(must_run(command).out, "done\n");
}

TEST(Sandbox, SaysWhatCannotBeRun) {
  Command command = shell("");
  command.argv = {"no-such-program"};
  const auto outcome = run(command);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, "usage");
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("no-such-program"));
  command = shell("true");
  command.read_only = {"/no/such/folder"};
  EXPECT_EQ(run(command).error().kind, "usage");
  command.argv.clear();
  EXPECT_EQ(run(command).error().kind, "usage");
}

TEST(Sandbox, NetworkIsRefused) {
  const Outcome outcome = must_run(shell(
      "(exec 3<>/dev/tcp/127.0.0.1/80) 2>&1 | grep -om1 'Operation not permitted' | head -1"));
  EXPECT_EQ(outcome.out, "Operation not permitted\n");
}

TEST(Sandbox, WritesOutsideAreRefused) {
  for (const char* place : {"/usr/x", "/x", "/etc/x", "/dev/x", "/dev/shm/x", "/home/x"}) {
    const Outcome outcome = must_run(shell(std::string("echo x > ") + place));
    EXPECT_NE(outcome.exit_code, 0) << place;
    EXPECT_FALSE(fs::exists(place)) << place;
  }
  const Outcome own_tmp =
      must_run(shell("echo x > /tmp/ptxbench-marker && cat /tmp/ptxbench-marker"));
  EXPECT_EQ(own_tmp.out, "x\n");
  EXPECT_FALSE(fs::exists("/tmp/ptxbench-marker"));
}

TEST(Sandbox, OnlyGivenPathsAreThere) {
  auto dir = TempDir::create("sandbox");
  ASSERT_TRUE(dir.ok());
  const fs::path inside = dir->path() / "in";
  fs::create_directory(inside);
  std::ofstream(dir->path() / "secret") << "secret";
  std::ofstream(inside / "given") << "given";
  const std::string script =
      "cat " + (inside / "given").string() + "; cat " + (dir->path() / "secret").string() +
      "; echo x > " + (inside / "new").string() + "; ls /root /var /etc/passwd /proc /sys /run";
  Command command = shell(script);
  command.read_only = {inside};
  const Outcome outcome = must_run(command);
  EXPECT_EQ(outcome.out, "given");
  EXPECT_FALSE(fs::exists(inside / "new"));
  command.read_only.clear();
  command.writable = {inside};
  must_run(command);
  EXPECT_TRUE(fs::exists(inside / "new"));
}

TEST(Sandbox, EnvironmentIsWhatWasGiven) {
  ASSERT_EQ(setenv("PTXBENCH_TEST_SECRET", "hidden", 1), 0);
  Command command = shell("/usr/bin/env");
  command.environment.emplace_back("GIVEN", "yes");
  const Outcome outcome = must_run(command);
  EXPECT_THAT(outcome.out, testing::HasSubstr("GIVEN=yes\n"));
  EXPECT_THAT(outcome.out, testing::Not(testing::HasSubstr("hidden")));
  unsetenv("PTXBENCH_TEST_SECRET");
}

TEST(Sandbox, HostProcessesAreInvisible) {
  const Outcome outcome =
      must_run(shell("ls /proc; kill -0 " + std::to_string(getpid()) + "; echo $$"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("/proc"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("No such process"));
  EXPECT_LT(std::stoi(outcome.out), 10);
}

TEST(Sandbox, NamespacesAndMountsAreRefused) {
  for (const char* script : {"unshare -U true", "unshare -m true", "mount -t tmpfs x /tmp",
                             "unshare -r id", "nsenter -t 1 -m true", "chroot /tmp true"}) {
    EXPECT_NE(must_run(shell(script)).exit_code, 0) << script;
  }
}

TEST(Sandbox, EndlessOutputIsCut) {
  Command command = shell("yes");
  command.output_bytes = 1000;
  command.wall_s = 0.3;
  const Outcome outcome = must_run(command);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_TRUE(outcome.output_truncated);
  EXPECT_EQ(outcome.out.size(), 1000u);
}

TEST(Sandbox, TimeoutLeavesNoProcess) {
  const std::string marker = "86399.25";
  Command command =
      shell("trap '' TERM INT HUP; (setsid sleep " + marker + " &) ; sleep " + marker);
  command.wall_s = 0.3;
  const Outcome outcome = must_run(command);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_LT(outcome.wall_ms, 2000);
  EXPECT_EQ(processes_with(marker), 0);
}

TEST(Sandbox, BackgroundChildrenDieWithTheCommand) {
  const std::string marker = "86399.75";
  Command command = shell("setsid sleep " + marker + " >/dev/null 2>&1 </dev/null & exit 3");
  const Outcome outcome = must_run(command);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(processes_with(marker), 0);
}

TEST(Sandbox, ForkBombIsContained) {
  Command command = shell("bomb() { bomb ptxbench-bomb-marker | bomb & }; bomb; sleep 1; exit 5");
  command.processes = 32;
  command.wall_s = 2;
  const Outcome outcome = must_run(command);
  EXPECT_THAT(outcome.err, testing::HasSubstr("fork"));  // it met the limit
  EXPECT_LT(outcome.wall_ms, 60000);  // a bound on containment, not on speed: machines are busy
  EXPECT_EQ(processes_with("ptxbench-bomb"), 0);
}

// How many processes a command with room for `limit` gets to start.
int started_processes(uint32_t limit) {
  Command command = shell("");
  command.argv = {"/usr/bin/perl", "-e",
                  "for (1..200) { my $p = fork; last unless defined $p;"
                  " if (!$p) { sleep 20; exit } push @kids, $p }"
                  " print scalar @kids, \"\\n\"; kill 9, @kids"};
  command.processes = limit;
  const Outcome outcome = must_run(command);
  return outcome.out.empty() ? -1 : std::stoi(outcome.out);
}

// The number of processes is bounded for everybody, root without control groups included: there
// each command has a user id of its own.
TEST(Sandbox, ProcessesAreCountedWithoutControlGroups) {
  EXPECT_NE(process_limit(), "wall time only");
  EXPECT_LT(started_processes(20), 20);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // a view of the machine without control groups
    if (geteuid() == 0 && (unshare(CLONE_NEWNS) != 0 ||
                           mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                           mount("none", "/sys/fs/cgroup", "tmpfs", 0, nullptr) != 0))
      _exit(100);
    const int started = started_processes(20);
    _exit(started > 0 && started < 20 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "root here may not mount";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Each command is somebody else, and nobody that the machine knows.
TEST(Sandbox, RootRunsCommandsAsStrangers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  auto dir = TempDir::create("sandbox");
  ASSERT_TRUE(dir.ok());
  uid_t owners[2];
  for (uid_t& owner : owners) {
    Command command = shell(
        "id -u; pwd; echo x > made; cat /proc/self/status; setpriv --reuid=0 true && echo root");
    command.writable = {dir->path()};
    command.working_directory = dir->path();
    const Outcome outcome = must_run(command);
    struct stat info = {};
    ASSERT_EQ(stat((dir->path() / "made").c_str(), &info), 0) << outcome.err;
    owner = info.st_uid;
    EXPECT_EQ(outcome.out, std::to_string(owner) + "\n" + dir->path().string() + "\n");
    EXPECT_EQ(getpwuid(owner), nullptr);
    fs::remove(dir->path() / "made");
  }
  EXPECT_NE(owners[0], 0u);
  EXPECT_NE(owners[0], owners[1]);
}

// What a stranger could not read is still shown to the command: it then runs as before, behind a
// user namespace.
TEST(Sandbox, PrivatePathsAreShownAllTheSame) {
  auto dir = TempDir::create("sandbox");
  ASSERT_TRUE(dir.ok());
  std::ofstream(dir->path() / "given") << "given";
  ASSERT_EQ(chmod((dir->path() / "given").c_str(), 0600), 0);
  Command command = shell("cat " + (dir->path() / "given").string());
  command.read_only = {dir->path() / "given"};
  EXPECT_EQ(must_run(command).out, "given");
}

// One process more than fits would be a way around a limit on each.
TEST(Sandbox, MemoryIsLimitedInSum) {
  if (process_limit() != "own user id" || access("/sys/fs/cgroup/memory/cgroup.procs", W_OK) != 0)
    GTEST_SKIP() << "needs control groups for memory";
  Command command = shell(
      "for i in 1 2 3 4 5 6; do (head -c 90000000 /dev/zero | tail -c 80000000 | wc -c) & done;"
      " wait");
  command.memory_bytes = 200 << 20;
  command.total_memory_bytes = 150 << 20;
  const Outcome outcome = must_run(command);
  size_t complete = 0;
  for (size_t at = 0; (at = outcome.out.find("80000000\n", at)) != std::string::npos; ++at)
    ++complete;
  EXPECT_LT(complete, 6u) << outcome.out;
}

TEST(Sandbox, HugeAllocationIsRefused) {
  Command command = shell("head -c 1000000000 /dev/zero | tail -c 900000000 | wc -c");
  command.memory_bytes = 200 << 20;
  const Outcome outcome = must_run(command);
  EXPECT_THAT(outcome.err, testing::HasSubstr("memory"));
  EXPECT_EQ(outcome.out, "0\n");
}

TEST(Sandbox, HugeFilesAreRefused) {
  auto dir = TempDir::create("sandbox");
  ASSERT_TRUE(dir.ok());
  Command command = shell("head -c 10000000 /dev/zero > " + (dir->path() / "big").string());
  command.writable = {dir->path()};
  command.file_bytes = 1 << 20;
  must_run(command);
  EXPECT_LE(fs::file_size(dir->path() / "big"), 1u << 20);
  Command filler = shell("for i in 1 2 3 4 5 6 7 8; do head -c 900000 /dev/zero > /tmp/$i; done");
  filler.file_bytes = 1 << 20;
  filler.tmp_bytes = 2 << 20;
  const Outcome outcome = must_run(filler);
  EXPECT_THAT(outcome.err, testing::HasSubstr("No space left"));
}

TEST(Sandbox, LinksLeftBehindAreNotFollowed) {
  auto dir = TempDir::create("sandbox");
  ASSERT_TRUE(dir.ok());
  std::ofstream(dir->path() / "secret") << "secret";
  const fs::path inside = dir->path() / "in";
  fs::create_directory(inside);
  Command command = shell("cd " + inside.string() +
                          " && ln -s ../secret link && ln /usr/bin/env hard; ln -s / root;"
                          " mkfifo fifo; echo fine > plain; mkdir folder; cat link");
  command.writable = {inside};
  const Outcome outcome = must_run(command);
  EXPECT_EQ(outcome.out, "");
  for (const char* name : {"link", "root", "fifo", "folder", "missing", "hard"}) {
    const auto text = read_untrusted_file(inside / name, 1000);
    ASSERT_FALSE(text.ok()) << name;
    EXPECT_EQ(text.error().kind, "io");
  }
  EXPECT_EQ(*read_untrusted_file(inside / "plain", 1000), "fine\n");
  EXPECT_FALSE(read_untrusted_file(inside / "plain", 4).ok());
}

}  // namespace
}  // namespace ptxbench::sandbox
