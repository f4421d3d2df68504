#include "sandbox/bubblewrap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <set>

namespace ptxbench::sandbox {
namespace {

namespace fs = std::filesystem;

void append(std::vector<std::string>& out, std::initializer_list<std::string> words) {
  out.insert(out.end(), words);
}

// /bin, /lib and friends are links into /usr on a merged system and folders elsewhere.
void add_system(std::vector<std::string>& out) {
  append(out, {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64"}) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(name, error);
    if (error || !fs::exists(status)) continue;
    if (!fs::is_symlink(status)) {
      append(out, {"--ro-bind", name, name});
    } else if (const fs::path target = fs::read_symlink(name, error); !error) {
      append(out, {"--symlink", target.string(), name});
    }
  }
  // Without --perms bubblewrap makes parents that only their owner may read.
  append(out, {"--perms", "0755", "--dir", "/etc"});
  for (const char* name :
       {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"})
    append(out, {"--ro-bind-try", name, name});
}

// The folders above what is bound, passable for everybody: bubblewrap's own are its user's alone.
void add_parents(const Command& command, std::vector<std::string>& out) {
  std::set<fs::path> parents;  // sorted: outer folders first
  for (const auto* paths : {&command.read_only, &command.writable})
    for (const fs::path& path : *paths)
      for (fs::path up = path.parent_path(); up.has_relative_path(); up = up.parent_path())
        parents.insert(up);
  for (const fs::path& folder : parents) {
    if (folder == "/tmp" || folder.string().rfind("/usr", 0) == 0) continue;
    append(out, {"--perms", "0755", "--dir", folder.string()});
  }
}

}  // namespace

Result<std::string> find_bubblewrap() {
  for (const char* path : {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}) {
    if (access(path, X_OK) == 0) return std::string(path);
  }
  return Error{"no-sandbox", "bubblewrap (bwrap) is not installed"};
}

std::vector<std::string> bubblewrap_command(const Command& command, const std::string& bubblewrap,
                                            int seccomp_fd, int status_fd,
                                            const Identity& identity) {
  std::vector<std::string> out = {bubblewrap,
                                  "--unshare-pid",
                                  "--unshare-net",
                                  "--unshare-ipc",
                                  "--unshare-uts",
                                  "--unshare-cgroup-try",
                                  "--hostname",
                                  "sandbox",
                                  "--die-with-parent",
                                  "--new-session",
                                  "--clearenv",
                                  "--cap-drop",
                                  "ALL"};
  if (identity.uid) {
    append(out, {"--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"});
  } else {
    append(out, {"--unshare-user", "--uid", "1000", "--gid", "1000"});
  }
  add_system(out);
  append(out, {"--dev", "/dev", "--remount-ro", "/dev"});
  append(out,
         {"--perms", "1777", "--size", fmt::format("{}", command.tmp_bytes), "--tmpfs", "/tmp"});
  add_parents(command, out);
  for (const fs::path& path : command.read_only)
    append(out, {"--ro-bind", path.string(), path.string()});
  for (const fs::path& path : command.writable)
    append(out, {"--bind", path.string(), path.string()});
  // Last: the root itself is a tmpfs without a size limit of ours.
  append(out, {"--remount-ro", "/"});
  for (const auto& [name, value] : command.environment) append(out, {"--setenv", name, value});
  // A folder of the command's own user is closed to bubblewrap once it has dropped its
  // capabilities.
  const std::string directory = command.working_directory.string();
  append(out,
         {"--chdir", identity.uid ? "/" : directory, "--seccomp", fmt::format("{}", seccomp_fd),
          "--json-status-fd", fmt::format("{}", status_fd), "--"});
  // Leaving user 0 clears every capability for good: bubblewrap has set no_new_privs.
  if (identity.uid)
    append(out, {"/usr/bin/setpriv", fmt::format("--reuid={}", *identity.uid),
                 fmt::format("--regid={}", *identity.uid), "--clear-groups", "--inh-caps=-all",
                 "--", "/usr/bin/env", "--chdir=" + directory});
  if (identity.limit_processes)
    append(out, {"/usr/bin/prlimit", fmt::format("--nproc={}", command.processes), "--"});
  out.insert(out.end(), command.argv.begin(), command.argv.end());
  return out;
}

}  // namespace ptxbench::sandbox
