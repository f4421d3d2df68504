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

// `tune_on` are addresses of arguments on which algorithms are timed against each other.
class LibraryProgram : public Program {
 public:
  // Errors "unsupported" (unknown routine), "no-library", "infrastructure".
  static Result<std::unique_ptr<LibraryProgram>> create(const Context& context,
                                                        const LoadLibrary& request);
  virtual std::string description() const = 0;
  // Times the algorithms that the library offers and keeps the fastest. `before` runs ahead of
  // each measurement (eviction of L2).
  virtual Result<std::string> tune(std::span<const CUdeviceptr> arguments,
                                   const std::function<Result<void>()>& before) = 0;
};

Failure failure(const Driver& driver, const char* stage, CUresult code, int step = -1);

}  // namespace ptxbench::device::cuda
