#pragma once
// The run store: one SQLite file (write-ahead log) with runs, trajectories, turns, documents and
// what was odd about them. Every add() outside a batch is one transaction on disk: a writer may be
// killed at any point, and a turn that was acknowledged is there, once.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/record.h"

namespace ptxbench::store {

constexpr int kSchemaVersion = 1;

enum class Added {
  fresh,     // stored
  same,      // was there already, with the same contents
  conflict,  // was there with other contents, which stay
};

struct RunSummary {
  std::string name;
  uint64_t trajectories = 0, turns = 0, correct = 0, documents = 0;
};

class Store {
 public:
  // Kinds: "not-found", "not-a-store" (no SQLite file, or of another program), "version",
  // "corrupt", "io", "busy".
  static Result<Store> open(const std::filesystem::path& path);  // made where there is none
  static Result<Store> open_existing(const std::filesystem::path& path);  // and read only
  static Result<Store> in_memory();
  // Whether the file begins as an SQLite database does.
  static bool looks_like_store(const std::filesystem::path& path);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Between begin_batch() and commit_batch() nothing is on disk yet; a batch not committed is
  // undone when the store is closed.
  Result<void> begin_batch();
  Result<void> commit_batch();

  Result<void> add_run(const std::string& name);  // a run may exist before its first turn
  Result<Added> add(const TurnRecord& record);
  // Replaces what is noted about the source.
  Result<void> note_problems(const std::string& source, const std::vector<Problem>& problems);

  // Turns ordered by model, arch, definition, workload, run, prompt, trajectory, turn; documents
  // left out. The callback may return an error, which ends the walk.
  Result<void> each_turn(const std::function<Result<void>(const TurnRecord&)>& visit) const;
  // The whole structure checked; error "corrupt".
  Result<void> check() const;
  Result<std::optional<std::string>> document(const TrajectoryKey& trajectory, int turn,
                                              const std::string& kind) const;
  Result<std::vector<TrajectoryKey>> trajectories_with_documents() const;
  // All documents, in the same order; of one turn by kind.
  Result<void> each_document(
      const std::function<Result<void>(const TrajectoryKey&, int turn, const std::string& kind,
                                       const std::string& text)>& visit) const;
  Result<std::vector<Problem>> problems() const;
  Result<std::vector<RunSummary>> runs() const;

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ptxbench::store
