#pragma once
// What a worker runs: a launch plan, or a library's routine for the same tensors.

#include <functional>
#include <memory>
#include <span>

#include "device/cuda/wire.h"
#include "device/cuda/worker/memory.h"

namespace ptxbench::device::cuda {

class Program {
 public:
  virtual ~Program() = default;
  // Before the launches of one replay: what an earlier replay left in memory that is not an
  // argument goes away.
  virtual Result<void> restore() = 0;
  // Enqueues everything on the context's stream. `arguments[i]` is the address of argument i.
  virtual Failure enqueue(std::span<const CUdeviceptr> arguments) = 0;
  // After a replay: guard zones of its own buffers, module variables left changed.
  virtual Result<void> check(Checked& checked) = 0;
};

struct LoadedProgram {
  std::unique_ptr<Program> program;  // null where `loaded.failure` is set
  Loaded loaded;
};
Result<LoadedProgram> load_plan(const Context& context, const LoadPlan& request);

// A routine of a library. It offers several ways to do its work; tune() keeps the fastest.
class LibraryProgram : public Program {
 public:
  // Errors "unsupported" (unknown routine, a size that the library does not do), "no-library",
  // "infrastructure".
  static Result<std::unique_ptr<LibraryProgram>> create(const Context& context,
                                                        const LoadLibrary& request);
  Result<void> restore() override { return {}; }
  Result<void> check(Checked&) override { return {}; }
  virtual std::string description() const = 0;
  // Brings arguments into the layout that the library wants, enqueued ahead of what is timed.
  virtual Failure arrange(std::span<const CUdeviceptr>) { return {}; }
  // Times what is offered on these arguments. `before` runs ahead of each measurement (eviction of
  // L2).
  Result<void> tune(const Context& context, std::span<const CUdeviceptr> arguments,
                    const std::function<Result<void>()>& before);

 protected:
  size_t offered_ = 0, chosen_ = 0;  // enqueue() takes the chosen one
};

// By library; each in a file of its own.
Result<std::unique_ptr<LibraryProgram>> create_cublaslt(const Context& context,
                                                        const LoadLibrary& request);
Result<std::unique_ptr<LibraryProgram>> create_cudnn(const Context& context,
                                                     const LoadLibrary& request);

Failure failure(const Driver& driver, const char* stage, CUresult code, int step = -1);

}  // namespace ptxbench::device::cuda
