#include "base/interrupt.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/temp_dir.h"

namespace ptxbench {
namespace {

std::atomic<bool> g_interrupted{false};

struct Actions {
  std::mutex mutex;
  std::vector<std::function<void()>> list;
};
// Never destroyed: the signal may come while the process is ending.
Actions& actions() {
  static Actions* const instance = new Actions;
  return *instance;
}

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

// Signals the children (with their process groups) that still run; whether there were any. Orphaned
// grandchildren become children of this process, a subreaper, and are met on the next call.
bool signal_children(int signal) {
  bool any = false;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return false;
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    auto stat = read_file("/proc/" + std::string(entry->d_name) + "/stat", 4096);
    if (!stat.ok()) continue;
    // "pid (name) state parent group ..."; the name may hold anything.
    const size_t after = stat->rfind(')');
    char state = 0;
    int parent = 0, group = 0;
    if (after == std::string::npos ||
        sscanf(stat->c_str() + after + 1, " %c %d %d", &state, &parent, &group) != 3 ||
        parent != getpid() || state == 'Z' || state == 'X')
      continue;
    any = true;
    kill(group == pid ? -pid : pid, signal);
  }
  closedir(processes);
  return any;
}

[[noreturn]] void end(int signal) {
  g_interrupted = true;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Asked first: a child may be this program itself and put away what is its own.
  if (signal_children(SIGTERM))
    for (int round = 0; round < 400 && signal_children(0); ++round) nap();
  // A fork under way may show only later, hence several quiet rounds. Meanwhile the other threads
  // see their children end and put away what is theirs (control groups, folders).
  int quiet = 0;
  for (int round = 0; round < 400 && (quiet < 4 || TempDir::any()); ++round) {
    quiet = signal_children(SIGKILL) ? 0 : quiet + 1;
    if (quiet > 40) break;
    nap();
  }
  {
    const std::lock_guard<std::mutex> lock(actions().mutex);
    for (const auto& act : actions().list) act();
  }
  TempDir::remove_all();
  _exit(128 + signal);
}

}  // namespace

void end_cleanly_on_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  bool any = false;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&watched, signal);
    any = true;
  }
  if (!any) return;
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  std::thread([watched] {
    int signal = 0;
    while (sigwait(&watched, &signal) != 0) {
    }
    end(signal);
  }).detach();
}

void on_interrupt(std::function<void()> act) {
  const std::lock_guard<std::mutex> lock(actions().mutex);
  actions().list.push_back(std::move(act));
}

bool interrupted() { return g_interrupted; }

void hold_if_interrupted() {
  while (interrupted()) nap();
}

}  // namespace ptxbench
