// Hostile host code, around the C library by bare system calls: it is contained, the verdict comes
// out all the same, and nothing is left outside. One candidate; the size of M chooses the attack,
// so that it is compiled once.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

constexpr char kSource[] = R"cuda(
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <cuda_bf16.h>
#include <dlfcn.h>
using tvm::ffi::TensorView;

static long call(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
static long open_file(const char* path, long flags) { return call(2, (long)path, flags, 0644); }

// A bit for each thing that should have been refused and was not.
static unsigned long probes() {
  unsigned long open = 0;
  int bit = 0;
  auto note = [&](bool succeeded) { open |= (unsigned long)succeeded << bit++; };
  note(open_file("OUTSIDE/written", 0101) >= 0);       //  0 a file elsewhere
  note(open_file("/etc/passwd", 0) >= 0);              //  1
  note(open_file("/proc/self/environ", 0) >= 0);       //  2
  note(open_file("/proc/1/status", 0) >= 0);           //  3
  note(open_file("/sys/kernel", 0) >= 0);              //  4
  note(open_file("/dev/mem", 0) >= 0);                 //  5
  note(open_file("/dev/nvidiactl", 2) >= 0);           //  6
  note(open_file("/usr/bin/x", 0101) >= 0);            //  7
  note(open_file("/x", 0101) >= 0);                    //  8
  note(call(41, 2, 1, 0) >= 0);                        //  9 socket(AF_INET, SOCK_STREAM)
  note(call(41, 10, 2, 0) >= 0);                       // 10 socket(AF_INET6, SOCK_DGRAM)
  note(call(41, 16, 3, 0) >= 0);                       // 11 socket(AF_NETLINK)
  note(call(101, 0) >= 0);                             // 12 ptrace(TRACEME)
  note(call(101, 16, call(110)) >= 0);                 // 13 ptrace(ATTACH, parent)
  note(call(310, 1, 0, 0, 0, 0, 0) >= 0);              // 14 process_vm_readv(init)
  note(call(272, 0x10000000) >= 0);                    // 15 unshare(CLONE_NEWUSER)
  note(call(165, (long)"x", (long)"/tmp", (long)"tmpfs") >= 0);  // 16 mount
  note(call(161, (long)"/tmp") >= 0);                  // 17 chroot
  note(call(105, 0) >= 0);                             // 18 setuid(0)
  note(call(321, 0) >= 0);                             // 19 bpf
  note(call(425, 4, 0) >= 0);                          // 20 io_uring_setup
  note(call(133, (long)"/tmp/n", 020644, 0x103) >= 0); // 21 mknod
  note(call(169, 0xfee1dead, 672274793, 0) >= 0);      // 22 reboot(CAD off)
  note(call(62, 1, 9) >= 0 && call(62, 1, 0) < 0);     // 23 kill(init)
  note(open_file("SECRET", 0) >= 0);                   // 24 a file of the evaluator's own
  call(88, (long)"SECRET", (long)"/tmp/link");         //    through a link
  note(open_file("/tmp/link", 0) >= 0);                // 25
  return open;
}

__global__ void fill(__nv_bfloat16* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = __float2bfloat16(0.f);
}

static long early = open_file("OUTSIDE/constructor", 0101);  // before run() is ever called

void run(TensorView a, TensorView b, TensorView c) {
  switch (c.size(0)) {
    case 1: {
      const unsigned long open = probes() | (unsigned long)(early >= 0) << 40;
      TVM_FFI_THROW(RuntimeError) << "succeeded:" << open << ".";
      break;
    }
    case 2:  // fork bomb: every process forks until nobody can
      for (int i = 0; i < 8; ++i)
        if (call(57) == 0) {
          for (int j = 0; j < 1000; ++j)
            if (call(57) < 0) call(35, (long)(const long[2]){0, 1000000}, 0);
          for (;;) call(34);
        }
      break;
    case 3: {  // 64 MiB of output
      static char text[1 << 16];
      for (int i = 0; i < 1024; ++i) call(1, 1 + i % 2, (long)text, sizeof text);
      break;
    }
    case 4:  // memory until there is none, touched
      for (int i = 0; i < 100000; ++i) {
        const long p = call(9, 0, 64 << 20, 3, 0x22, -1, 0);
        if (p < 0) break;
        for (long at = 0; at < 64 << 20; at += 4096) ((volatile char*)p)[at] = 1;
      }
      break;
    case 5:  // everybody in reach
      call(62, -1, 15);
      call(62, call(110), 9);
      break;
    case 6: {  // a file as large as it gets
      const long fd = open_file("/tmp/huge", 0101);
      static char text[1 << 20];
      for (int i = 0; i < 4096 && call(1, fd, (long)text, sizeof text) > 0; ++i) {}
      break;
    }
    case 7:  // a child that outlives the function
      if (call(57) == 0) {
        call(112);
        for (;;) call(34);
      }
      break;
    case 8:  // the process ends without returning
      call(231, 0);
    case 9:  // a library of the machine, which would run its constructors here
      if (void* library = dlopen("OUTSIDE.so", RTLD_NOW))
        TVM_FFI_THROW(RuntimeError) << "loaded " << library;
      if (!dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD))
        TVM_FFI_THROW(RuntimeError) << "the runtime itself is gone";
      break;
    case 10: {  // threads that never end, by a name that no symbol table shows
      using Create = int (*)(unsigned long*, const void*, void* (*)(void*), void*);
      const auto create = (Create)dlsym(RTLD_DEFAULT, "pthread_create");
      int started = 0;
      for (int i = 0; create && i < 4; ++i) {
        unsigned long thread;
        started += create(&thread, nullptr, [](void*) -> void* {
          for (;;) call(24);
        }, nullptr) == 0;
      }
      if (started != 4) TVM_FFI_THROW(RuntimeError) << "started " << started;
      break;
    }
    case 11:  // no processor time, and no end
      for (;;) call(35, (long)(const long[2]){3600, 0}, 0);
    case 12: {  // whatever the evaluator's caller had open
      static char text[64];
      for (int fd = 3; fd < 1024; ++fd)
        if (call(17, fd, (long)text, 6, 0) == 6 && __builtin_memcmp(text, "secret", 6) == 0)
          TVM_FFI_THROW(RuntimeError) << "read from descriptor " << fd;
      break;
    }
    case 13:  // and whatever pipe or socket leads out of here
      for (int fd = 3; fd < 1024; ++fd) {
        static char status[256];
        if (call(5, fd, (long)status) < 0) continue;
        const unsigned kind = *(unsigned*)(status + 24) & 0170000;
        if (kind == 0010000 || kind == 0140000)
          TVM_FFI_THROW(RuntimeError) << "descriptor " << fd << " is a pipe";
      }
      break;
  }
  fill<<<16, 256>>>((__nv_bfloat16*)c.data_ptr(), c.size(0) * c.size(1));
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
)cuda";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class Attack : public ::testing::Test {
 protected:
  Attack() : folder_(TempDir::create("attack").take()) {
    fs::create_directory(folder_.path() / "tmp");
    std::ofstream(folder_.path() / "secret") << "secret";
    std::string source = replaced(kSource, "OUTSIDE", "/tmp/ptxbench-attack-outside");
    source = replaced(source, "SECRET", "/tmp/ptxbench-attack-secret");
    std::ofstream(folder_.path() / "attack.cu") << source;
    fs::create_directory("/tmp/ptxbench-attack-outside");
    fs::permissions("/tmp/ptxbench-attack-outside", fs::perms::all);
    std::ofstream("/tmp/ptxbench-attack-secret") << "secret";
  }
  ~Attack() override {
    fs::remove_all("/tmp/ptxbench-attack-outside");
    fs::remove("/tmp/ptxbench-attack-secret");
    fs::remove("/tmp/ptxbench-attack-outside.so");
  }

  // Processes that name this test's folder, wherever they hang.
  std::set<std::string> processes() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto line_read = read_file(entry.path() / "cmdline");  // not if it ends meanwhile
      const std::string line = line_read.ok() ? line_read.value() : "";
      if (line.find(folder_.path().string()) != std::string::npos) found.insert(line);
    }
    return found;
  }
  size_t groups() const {
    size_t count = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/fs/cgroup/pids", error))
      count +=
          entry.path().filename().string().rfind("ptxbench-" + std::to_string(pid_) + "-", 0) == 0;
    return count;
  }

  // The verdict of the candidate with M = attack, after everything outside was looked at.
  Json verdict(int attack) {
    const std::string json = (folder_.path() / "v.json").string();
    ProcessSpec spec;
    spec.argv = {"/bin/sh",
                 "-c",
                 "echo $$; exec \"$0\" \"$@\"",
                 std::string(PTXBENCH_BUILD_DIR) + "/bin/ptxbench",
                 "eval",
                 (folder_.path() / "attack.cu").string(),
                 "--task",
                 "gemm_n7168_k5120",
                 "--axes",
                 "M=" + std::to_string(attack) + ",N=64,K=64",
                 "--quiet",
                 "--json",
                 json};
    std::vector<std::pair<std::string, std::string>> environment = {
        {"TMPDIR", (folder_.path() / "tmp").string()}};
    for (const char* name : {"PATH", "HOME", "PTXBENCH_CACHE", "XDG_CACHE_HOME", "CUDA_HOME",
                             "PTXBENCH_CUDA_HOME", "PTXBENCH_TVM_FFI_HOME"})
      if (const char* value = std::getenv(name)) environment.emplace_back(name, value);
    spec.environment = environment;
    spec.wall_s = 120;
    spec.inherit_fds = inherited_;
    auto result = run_process(spec);
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result->signal, 0);
    EXPECT_FALSE(result->timed_out);
    EXPECT_EQ(result->exit_code, 1) << result->out << result->err;
    pid_ = std::atoi(result->out.c_str());
    EXPECT_EQ(processes(), std::set<std::string>());
    EXPECT_EQ(groups(), 0u);
    EXPECT_TRUE(fs::is_empty(folder_.path() / "tmp"));
    EXPECT_TRUE(fs::is_empty("/tmp/ptxbench-attack-outside"));
    for (const char* name : {"/x", "/usr/bin/x", "/tmp/link", "/tmp/huge", "/tmp/n"})
      EXPECT_FALSE(fs::exists(fs::symlink_status(name))) << name;
    auto text = read_file(json);
    return text.ok() ? parse_json(*text).take() : Json::object();
  }
  std::string reason(int attack) { return verdict(attack).value("reason", "none"); }

  TempDir folder_;
  std::vector<int> inherited_;  // open in ptxbench from the start
  int pid_ = 0;
};

TEST_F(Attack, NothingIsWithinReach) {
  const Json v = verdict(1);
  EXPECT_EQ(v.value("reason", ""), "host-exception") << dump_json(v).substr(0, 2000);
  EXPECT_NE(v.value("message", "").find("succeeded:0."), std::string::npos) << v["message"];
}
TEST_F(Attack, ForkBomb) { EXPECT_EQ(reason(2), "numerics"); }
TEST_F(Attack, EndlessOutput) { EXPECT_EQ(reason(3), "numerics"); }
// Contained either way: refused at once, or slow to touch on a busy machine.
TEST_F(Attack, HugeAllocations) {
  EXPECT_THAT(reason(4), testing::AnyOf("numerics", "timeout", "host-crash"));
}
TEST_F(Attack, KillsEverybody) { EXPECT_EQ(reason(5), "numerics"); }
TEST_F(Attack, HugeFile) { EXPECT_EQ(reason(6), "host-crash"); }  // SIGXFSZ
TEST_F(Attack, ChildStaysBehind) { EXPECT_EQ(reason(7), "numerics"); }
TEST_F(Attack, ProcessEndsEarly) { EXPECT_EQ(reason(8), "host-crash"); }

// A library that loads here, but not there.
TEST_F(Attack, LoadsALibrary) {
  Dl_info info = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(static_cast<double (*)(double)>(std::cos)), &info), 0);
  fs::copy_file(info.dli_fname, "/tmp/ptxbench-attack-outside.so",
                fs::copy_options::overwrite_existing);
  void* library = dlopen("/tmp/ptxbench-attack-outside.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  dlclose(library);
  EXPECT_EQ(reason(9), "numerics");
}
TEST_F(Attack, HostThreads) { EXPECT_EQ(reason(10), "numerics"); }
TEST_F(Attack, SleepsForever) { EXPECT_EQ(reason(11), "timeout"); }
TEST_F(Attack, InheritedDescriptors) {
  const int file = open("/tmp/ptxbench-attack-secret", O_RDONLY);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  inherited_ = {file, ends[0], ends[1]};
  EXPECT_EQ(reason(12), "numerics");
  EXPECT_EQ(reason(13), "numerics");
  for (int fd : inherited_) close(fd);
}

}  // namespace
}  // namespace ptxbench
