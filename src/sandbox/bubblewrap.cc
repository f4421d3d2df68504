#include "sandbox/bubblewrap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

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

}  // namespace

Result<std::string> find_bubblewrap() {
  for (const char* path : {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}) {
    if (access(path, X_OK) == 0) return std::string(path);
  }
  return Error{"no-sandbox", "bubblewrap (bwrap) is not installed"};
}

std::vector<std::string> bubblewrap_command(const Command& command, const std::string& bubblewrap,
                                            int seccomp_fd, int status_fd, bool limit_processes) {
  std::vector<std::string> out = {bubblewrap,
                                  "--unshare-user",
                                  "--unshare-pid",
                                  "--unshare-net",
                                  "--unshare-ipc",
                                  "--unshare-uts",
                                  "--unshare-cgroup-try",
                                  "--uid",
                                  "1000",
                                  "--gid",
                                  "1000",
                                  "--hostname",
                                  "sandbox",
                                  "--cap-drop",
                                  "ALL",
                                  "--die-with-parent",
                                  "--new-session",
                                  "--clearenv"};
  add_system(out);
  append(out, {"--dev", "/dev", "--remount-ro", "/dev"});
  append(out, {"--size", fmt::format("{}", command.tmp_bytes), "--tmpfs", "/tmp"});
  for (const fs::path& path : command.read_only)
    append(out, {"--ro-bind", path.string(), path.string()});
  for (const fs::path& path : command.writable)
    append(out, {"--bind", path.string(), path.string()});
  // Last: the root itself is a tmpfs without a size limit of ours.
  append(out, {"--remount-ro", "/"});
  for (const auto& [name, value] : command.environment) append(out, {"--setenv", name, value});
  append(out,
         {"--chdir", command.working_directory.string(), "--seccomp", fmt::format("{}", seccomp_fd),
          "--json-status-fd", fmt::format("{}", status_fd), "--"});
  if (limit_processes)
    append(out, {"/usr/bin/prlimit", fmt::format("--nproc={}", command.processes), "--"});
  out.insert(out.end(), command.argv.begin(), command.argv.end());
  return out;
}

}  // namespace ptxbench::sandbox
