#pragma once
// One worker: a context, a program, sets of argument buffers. Answers requests until the socket
// closes.

#include <map>
#include <memory>

#include "device/cuda/worker/program.h"

namespace ptxbench::device::cuda {

class Session {
 public:
  // `arena`: file descriptor of the shared memory.
  static Result<std::unique_ptr<Session>> open(const std::string& driver, int device, int arena);
  ~Session();

  // The answer to one request, packed. Errors are this program's or the machine's.
  Result<std::vector<uint8_t>> answer(const std::vector<uint8_t>& request);

 private:
  struct Argument {
    GuardedBuffer buffer;
    bool read_only = false;
    std::string hash;  // of an input that is not mapped read-only
  };
  using Set = std::map<uint32_t, Argument>;

  Session(Context context, int arena) : context_(std::move(context)), arena_(arena) {}
  Result<void> prepare();
  Result<Loaded> load(const LoadPlan& request);
  Result<Loaded> load(const LoadLibrary& request);
  Result<SetId> set_up(const BufferSetup& request);
  Result<SetId> clone(const Clone& request);
  Result<Compared> compare(const Clone& request);
  Result<Ran> run(const Run& request);
  Result<Checked> check(const SetId& request);
  Result<SetId> download(const Download& request);
  Result<SelfTest> self_test();

  static uint64_t move_of(const Clone& request, uint32_t argument, uint64_t bytes);
  Result<void> guard_input(Argument& argument, std::span<const uint8_t> bytes);
  Result<std::string> hash_of(const GuardedBuffer& buffer);
  Result<uint8_t*> arena(uint64_t at, uint64_t bytes);
  void unmap_arena();
  Result<void> dirty_shared();
  Result<void> evict();
  Result<std::vector<CUdeviceptr>> addresses(uint32_t set);
  Failure launch(CUfunction function, unsigned grid, unsigned block, unsigned shared, void** args);

  Context context_;
  int arena_ = -1;
  uint8_t* mapped_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  bool pinned_ = false;  // the arena is page-locked
  CUmodule builtin_ = nullptr;
  CUfunction empty_ = nullptr, self_test_ = nullptr, dirty_ = nullptr, compare_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  CUdeviceptr scratch_ = 0;  // written to evict L2
  uint64_t scratch_bytes_ = 0;
  int shared_bytes_ = 0;
  std::unique_ptr<Program> program_;
  LibraryProgram* library_ = nullptr;
  bool tuned_ = false;
  std::map<uint32_t, Set> sets_;
};

}  // namespace ptxbench::device::cuda
