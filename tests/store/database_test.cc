// The run store: what is acknowledged stays, once; what is no store is refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"
#include "base/temp_dir.h"
#include "store/database.h"

namespace ptxbench::store {
namespace {

TurnRecord record(const std::string& trajectory, int turn, const std::string& label = "Correct") {
  TurnRecord r;
  r.trajectory = {"run", "model", "hopper", "gemm_n128_k2048", "w1", "", trajectory};
  r.turn.index = turn;
  r.turn.label = label;
  r.turn.speedup = 0.5;
  r.turn.tag = "A, H";
  r.turn.families["wgmma.mma_async"] = {4, 3328, 106496};
  return r;
}

std::vector<TurnRecord> all(const Store& store) {
  std::vector<TurnRecord> list;
  const auto walked = store.each_turn([&](const TurnRecord& r) -> Result<void> {
    list.push_back(r);
    return {};
  });
  EXPECT_TRUE(walked.ok()) << walked.error().message;
  return list;
}

class StoreFile : public ::testing::Test {
 protected:
  StoreFile() : folder_(TempDir::create("store").take()), path_(folder_.path() / "runs.db") {}
  TempDir folder_;
  std::filesystem::path path_;
};

TEST_F(StoreFile, KeepsTurnsAndDocuments) {
  {
    Store store = Store::open(path_).take();
    TurnRecord r = record("a", 3);
    r.documents = {{"source", std::string(100'000, 'x')}, {"verdict", "{}"}};
    r.turn.reasoning_tokens = 77;
    r.turn.level = 5;
    EXPECT_EQ(store.add(r).take(), Added::fresh);
    EXPECT_TRUE(store.add_run("nothing yet").ok());
  }
  const Store store = Store::open_existing(path_).take();
  const auto turns = all(store);
  ASSERT_EQ(turns.size(), 1u);
  TurnRecord expected = record("a", 3);
  expected.turn.reasoning_tokens = 77;
  expected.turn.level = 5;
  EXPECT_EQ(turns[0].turn, expected.turn);
  EXPECT_EQ(turns[0].trajectory, expected.trajectory);
  EXPECT_EQ(store.document(expected.trajectory, 3, "source").take(), std::string(100'000, 'x'));
  EXPECT_FALSE(store.document(expected.trajectory, 2, "source").take());
  // Compressed: 100 kB of x are no 100 kB on disk.
  EXPECT_LT(std::filesystem::file_size(path_), 90'000u);
  const auto runs = store.runs().take();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].name, "nothing yet");
  EXPECT_EQ(runs[0].turns, 0u);
  EXPECT_EQ(runs[1].turns, 1u);
  EXPECT_EQ(runs[1].documents, 2u);
}

TEST_F(StoreFile, ATurnIsThereOnce) {
  Store store = Store::open(path_).take();
  EXPECT_EQ(store.add(record("a", 0)).take(), Added::fresh);
  EXPECT_EQ(store.add(record("a", 0)).take(), Added::same);
  EXPECT_EQ(store.add(record("a", 0, "Runtime error")).take(), Added::conflict);
  EXPECT_EQ(store.add(record("a", 1, "Runtime error")).take(), Added::fresh);
  ASSERT_EQ(all(store).size(), 2u);
  EXPECT_EQ(all(store)[0].turn.label, "Correct");
}

TEST_F(StoreFile, ABatchIsAllOrNothing) {
  {
    Store store = Store::open(path_).take();
    ASSERT_TRUE(store.begin_batch().ok());
    ASSERT_TRUE(store.add(record("a", 0)).ok());
  }
  EXPECT_EQ(all(Store::open(path_).take()).size(), 0u);
  {
    Store store = Store::open(path_).take();
    ASSERT_TRUE(store.begin_batch().ok());
    ASSERT_TRUE(store.add(record("a", 0)).ok());
    ASSERT_TRUE(store.commit_batch().ok());
  }
  EXPECT_EQ(all(Store::open(path_).take()).size(), 1u);
}

// A writer that acknowledges each turn with a byte and is killed in the midst of it.
size_t killed_writer(const std::filesystem::path& path, int round, useconds_t lives_us) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    auto store = Store::open(path);
    for (int turn = 0; store.ok(); ++turn) {
      TurnRecord r = record("round" + std::to_string(round), turn);
      r.documents["source"] = std::string(5000, static_cast<char>('a' + turn % 26));
      auto added = store->add(r);
      if (!added.ok() || write(pipe_ends[1], "x", 1) != 1) break;
    }
    _exit(3);  // it is killed before it gets here
  }
  close(pipe_ends[1]);
  size_t acknowledged = 0;
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);  // it lives and has written a turn
  ++acknowledged;
  usleep(lives_us);
  kill(child, SIGKILL);
  while (read(pipe_ends[0], &byte, 1) == 1) ++acknowledged;
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return acknowledged;
}

TEST_F(StoreFile, SurvivesKilledWriters) {
  std::vector<size_t> acknowledged;
  for (int round = 0; round < 12; ++round)
    acknowledged.push_back(killed_writer(path_, round, static_cast<useconds_t>(round) * 1700));
  const Store store = Store::open(path_).take();
  ASSERT_TRUE(store.check().ok());
  std::map<std::string, size_t> stored;
  for (const TurnRecord& r : all(store)) {
    // Turns in order, none left out, none twice; each with its whole document.
    EXPECT_EQ(r.turn.index, static_cast<int>(stored[r.trajectory.name]++));
    const auto text = store.document(r.trajectory, r.turn.index, "source").take();
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, std::string(5000, static_cast<char>('a' + r.turn.index % 26)));
  }
  for (int round = 0; round < 12; ++round) {
    // At most the one turn between commit and acknowledgement is more than acknowledged.
    const size_t count = stored["round" + std::to_string(round)];
    EXPECT_GE(count, acknowledged[round]);
    EXPECT_LE(count, acknowledged[round] + 1);
  }
}

TEST_F(StoreFile, TwoWritersAtOnce) {
  const auto writer = [&](const char* name) {
    const pid_t child = fork();
    if (child != 0) return child;
    auto store = Store::open(path_);
    for (int turn = 0; turn < 40; ++turn)
      if (!store.ok() || !store->add(record(name, turn)).ok()) _exit(1);
    _exit(0);
  };
  const pid_t children[] = {writer("a"), writer("b")};
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(all(Store::open(path_).take()).size(), 80u);
}

TEST_F(StoreFile, RefusesWhatIsNoStore) {
  EXPECT_EQ(Store::open_existing(path_).error().kind, "not-found");
  ASSERT_TRUE(write_file_atomically(path_, std::string_view("model,arch\n1,2\n")).ok());
  EXPECT_EQ(Store::open_existing(path_).error().kind, "not-a-store");
  EXPECT_EQ(Store::open(path_).error().kind, "not-a-store");
}

// Damage anywhere in the file is an error with a name, never a crash, and never other turns.
TEST_F(StoreFile, NamesDamage) {
  {
    Store store = Store::open(path_).take();
    for (int t = 0; t < 50; ++t)
      for (int turn = 0; turn < 8; ++turn) {
        TurnRecord r = record("trajectory" + std::to_string(t), turn);
        r.documents["source"] = "source of turn " + std::to_string(turn);
        ASSERT_TRUE(store.add(r).ok());
      }
  }
  const std::string good = read_file(path_).take();
  size_t named = 0;
  for (size_t at = 1024; at < good.size(); at += 4096) {
    std::string damaged = good;
    for (size_t i = 0; i < 600 && at + i < damaged.size(); ++i)
      damaged[at + i] = static_cast<char>(i * 37);
    const auto copy = folder_.path() / "damaged.db";
    ASSERT_TRUE(write_file_atomically(copy, std::string_view(damaged)).ok());
    auto store = Store::open_existing(copy);
    Result<void> checked = store.ok() ? store->check() : Result<void>(store.error());
    if (checked.ok())
      checked = store->each_document([](const TrajectoryKey&, int, const std::string&,
                                        const std::string&) -> Result<void> { return {}; });
    if (checked.ok()) continue;
    ++named;
    EXPECT_TRUE(checked.error().kind == "corrupt" || checked.error().kind == "not-a-store" ||
                checked.error().kind == "io")
        << checked.error().kind;
    EXPECT_NE(checked.error().message.find("damaged.db"), std::string::npos)
        << checked.error().message;
  }
  EXPECT_GT(named, good.size() / 4096 / 2);
  // Half a file.
  const auto half = folder_.path() / "half.db";
  ASSERT_TRUE(write_file_atomically(half, std::string_view(good).substr(0, good.size() / 2)).ok());
  auto store = Store::open_existing(half);
  EXPECT_FALSE(store.ok() && store->check().ok());
}

}  // namespace
}  // namespace ptxbench::store
