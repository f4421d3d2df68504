#include "sandbox/seccomp_filter.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ptxbench::sandbox {
namespace {

// Kernel surface that neither a compiler nor a candidate's host code has any use for.
const char* const kDenied[] = {
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "swapon",
    "swapoff",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "init_module",
    "finit_module",
    "delete_module",
    "unshare",
    "setns",
    "acct",
    "quotactl",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "iopl",
    "ioperm",
    "syslog",
    "sethostname",
    "setdomainname",
    "vhangup",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "lookup_dcookie",
    "nfsservctl",
    "mknod",
    "mknodat",
    "vmsplice",
};

const uint64_t kNamespaceFlags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

// A name this kernel's headers don't know is skipped: the call does not exist here either.
int deny_named_calls(scmp_filter_ctx filter) {
  for (const char* name : kDenied) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) continue;
    if (int rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0); rc != 0) return rc;
  }
  return 0;
}

int deny_by_argument(scmp_filter_ctx filter) {
  const uint32_t refused = SCMP_ACT_ERRNO(EPERM);
  int rc = seccomp_rule_add(filter, refused, SCMP_SYS(socket), 1,
                            SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(AF_UNIX)));
  for (uint64_t flag : kNamespaceFlags) {
    if (rc != 0) return rc;
    rc = seccomp_rule_add(filter, refused, SCMP_SYS(clone), 1,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  // clone3 passes its flags in memory, which a filter cannot read; libc falls back to clone on
  // ENOSYS.
  if (rc == 0) rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  // Pushing characters into a terminal's input.
  if (rc == 0) {
    rc = seccomp_rule_add(filter, refused, SCMP_SYS(ioctl), 1,
                          SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI));
  }
  return rc;
}

Result<std::string> export_program(scmp_filter_ctx filter) {
  const int fd = memfd_create("seccomp", MFD_CLOEXEC);
  if (fd < 0) return Error{"no-sandbox", std::string("memfd_create: ") + strerror(errno)};
  const int rc = seccomp_export_bpf(filter, fd);
  const off_t size = lseek(fd, 0, SEEK_END);
  std::string program(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  const bool read_all = pread(fd, program.data(), program.size(), 0) == size;
  close(fd);
  if (rc != 0 || size <= 0 || !read_all)
    return Error{"no-sandbox", "cannot export the system call filter"};
  return program;
}

Result<std::string> build() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) return Error{"no-sandbox", "libseccomp cannot make a filter"};
  int rc = deny_named_calls(filter);
  if (rc == 0) rc = deny_by_argument(filter);
  Result<std::string> program =
      rc == 0 ? export_program(filter)
              : Result<std::string>(
                    Error{"no-sandbox", std::string("system call filter: ") + strerror(-rc)});
  seccomp_release(filter);
  return program;
}

}  // namespace

Result<std::string> seccomp_program() {
  static const Result<std::string> program = build();
  return program;
}

}  // namespace ptxbench::sandbox
