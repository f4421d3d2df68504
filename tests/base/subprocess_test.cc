#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/files.h"
#include "base/stopwatch.h"
#include "base/temp_dir.h"

namespace ptxbench {
namespace {

ProcessSpec shell(std::string script) { return {.argv = {"/bin/sh", "-c", std::move(script)}}; }

TEST(Subprocess, ReportsOutputAndExitCode) {
  auto r = run_process(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->out, "out\n");
  EXPECT_EQ(r->err, "err\n");
  EXPECT_EQ(r->exit_code, 3);
  EXPECT_EQ(r->signal, 0);
  EXPECT_FALSE(r->succeeded());
}

TEST(Subprocess, ReportsSignals) {
  auto r = run_process(shell("kill -SEGV $$"));
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->signal, SIGSEGV);
  EXPECT_FALSE(r->timed_out);
}

TEST(Subprocess, FeedsLargeInputWhileReadingOutput) {
  ProcessSpec spec{.argv = {"cat"}};
  spec.stdin_text = std::string(3'000'000, 'x');
  auto r = run_process(spec);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->out, spec.stdin_text);
  EXPECT_FALSE(r->output_truncated);
}

TEST(Subprocess, InputThatNobodyReadsIsNoProblem) {
  ProcessSpec spec = shell("exec 0<&-; sleep 0.05; echo fine");
  spec.stdin_text = std::string(1'000'000, 'x');
  auto r = run_process(spec);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->out, "fine\n");
}

TEST(Subprocess, CutsOutput) {
  ProcessSpec spec = shell("head -c 100000 /dev/zero; echo done >&2");
  spec.output_bytes = 1000;
  auto r = run_process(spec);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->out.size(), 1000u);
  EXPECT_TRUE(r->output_truncated);
  EXPECT_TRUE(r->succeeded());
  EXPECT_EQ(r->err, "done\n");
}

TEST(Subprocess, TimeoutKillsTheWholeGroup) {
  auto dir = TempDir::create("subprocess");
  ASSERT_TRUE(dir.ok());
  std::string mark = (dir->path() / "mark").string();
  ProcessSpec spec = shell("(sleep 1; touch " + mark + ") & sleep 30");
  spec.wall_s = 0.2;
  Stopwatch watch;
  auto r = run_process(spec);
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->timed_out);
  EXPECT_LT(watch.seconds(), 5);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(Subprocess, BackgroundProcessesDoNotOutliveTheCommand) {
  Stopwatch watch;
  auto r = run_process(shell("sleep 30 & echo $!"));
  ASSERT_TRUE(r.ok());
  EXPECT_LT(watch.seconds(), 5);
  pid_t pid = std::stoi(r->out);
  for (int i = 0; i < 100 && kill(pid, 0) == 0; ++i) {  // init reaps it soon
    auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    if (!stat.ok() || stat->find(") Z") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  EXPECT_TRUE(!stat.ok() || stat->find(") Z") != std::string::npos) << *stat;
}

TEST(Subprocess, EnvironmentAndDirectoryAreThoseGiven) {
  ProcessSpec spec = shell("echo $ONE-$HOME; pwd");
  spec.environment.emplace().emplace_back("ONE", "1");
  spec.working_directory = "/usr";
  auto r = run_process(spec);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->out, "1-\n/usr\n");
}

TEST(Subprocess, InheritsOnlyTheDescriptorsNamed) {
  int fds[2], hidden[2];
  ASSERT_EQ(pipe(fds), 0);
  ASSERT_EQ(pipe(hidden), 0);  // no close-on-exec on purpose
  ProcessSpec spec{.argv = {"/bin/ls", "/proc/self/fd"}};
  spec.inherit_fds = {fds[1]};
  auto r = run_process(spec);
  ASSERT_TRUE(r.ok());
  auto lists = [&](int fd) {
    return ("\n" + r->out).find("\n" + std::to_string(fd) + "\n") != std::string::npos;
  };
  EXPECT_TRUE(lists(fds[1])) << r->out;
  EXPECT_FALSE(lists(hidden[0])) << r->out;
  EXPECT_FALSE(lists(hidden[1])) << r->out;
  for (int fd : {fds[0], fds[1], hidden[0], hidden[1]}) close(fd);
}

TEST(Subprocess, StartFailuresAreErrors) {
  auto missing = run_process({.argv = {"/no/such/program"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, "not-found");
  auto on_path = run_process({.argv = {"no-such-program-here"}});
  ASSERT_FALSE(on_path.ok());
  EXPECT_EQ(on_path.error().kind, "not-found");
  ProcessSpec nowhere = shell("true");
  nowhere.working_directory = "/no/such/folder";
  auto r = run_process(nowhere);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().message.find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(run_process({}).ok());
}

}  // namespace
}  // namespace ptxbench
