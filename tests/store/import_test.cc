// Sources of every kind, good and bad: nothing is dropped without being counted.
#include "store/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "store/compress.h"
#include "store/csv.h"

namespace ptxbench::store {
namespace {

constexpr const char* kHeader =
    "model,arch,definition,workload,run,trajectory_id,turn,correctness,speedup,arch_tag\n";

std::string row(const std::string& trajectory, const std::string& turn,
                const std::string& label = "Correct", const std::string& speedup = "0.5") {
  return "m,hopper,gemm,w,r," + trajectory + "," + turn + "," + label + "," + speedup +
         ",\"A, H\"\n";
}

std::map<std::string, uint64_t> kinds(const ImportSummary& summary) {
  std::map<std::string, uint64_t> counts;
  for (const Problem& p : summary.problems) counts[p.kind] += p.count;
  return counts;
}

class Import : public ::testing::Test {
 protected:
  ImportSummary csv(const std::string& text) {
    auto summary = import_csv(store_, text, "turns.csv");
    EXPECT_TRUE(summary.ok()) << summary.error().message;
    // Every row is a turn or rejected; every turn is fresh, the same or in conflict.
    EXPECT_EQ(summary->read, summary->fresh + summary->same + summary->conflicts);
    return summary.take();
  }
  std::vector<TurnRecord> turns() {
    std::vector<TurnRecord> list;
    EXPECT_TRUE(store_
                    .each_turn([&](const TurnRecord& r) -> Result<void> {
                      list.push_back(r);
                      return {};
                    })
                    .ok());
    return list;
  }
  std::string verdict(const std::string& more = "") const {
    const std::string source = "__global__ void k() {}\n";
    return R"({"version": 1, "level": 2, "reason": "deadlock", "label": "Kernel Execution Timeout",
      "tag": "H", "definition": "gemm", "workload": "smoke", "arch": "sm_90a",
      "axes": {"M": 200, "N": 1024}, "performance": null,
      "evidence": {"families": {"wgmma.mma_async": {"static": 4, "warps": 8, "threads": 256}}},
      "candidate": {"name": "x.cu", "hash": ")" +
           hash_hex(std::string_view(source)) + R"(", "source": "__global__ void k() {}\n"})" +
           more + "}";
  }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    EXPECT_TRUE(write_file_atomically(path, std::string_view(text)).ok());
    return path;
  }
  TempDir folder_ = TempDir::create("import").take();
  Store store_ = Store::in_memory().take();
};

TEST(Csv, ReadsWhatRfc4180Says) {
  CsvReader reader(
      "\xef\xbb\xbf"
      "a,\"b \"\"x\"\", c\"\r\n\r\n\"two\nlines\",\n,");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT(fields, ::testing::ElementsAre("a", "b \"x\", c"));
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT(fields, ::testing::ElementsAre("two\nlines", ""));
  EXPECT_EQ(reader.line(), 3u);
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT(fields, ::testing::ElementsAre("", ""));
  EXPECT_EQ(reader.line(), 5u);
  EXPECT_FALSE(reader.next(fields));
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

TEST_F(Import, IsIdempotent) {
  const std::string text = kHeader + row("t0", "0") + row("t0", "1", "Runtime error", "0.0");
  EXPECT_EQ(csv(text).fresh, 2u);
  const ImportSummary again = csv(text);
  EXPECT_EQ(again.fresh, 0u);
  EXPECT_EQ(again.same, 2u);
  EXPECT_TRUE(again.problems.empty());
  EXPECT_EQ(turns().size(), 2u);
}

TEST_F(Import, MissingColumnsAreNamed) {
  auto refused = import_csv(store_, "model,turn\nm,0\n", "turns.csv");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().to_string(),
            "turns.csv:1: not a per-turn table: no column definition, trajectory_id, correctness");
  EXPECT_FALSE(import_csv(store_, "", "turns.csv").ok());
  EXPECT_FALSE(import_csv(store_, "turn,turn,definition,trajectory_id,correctness\n", "x").ok());
}

TEST_F(Import, EveryOddRowIsCounted) {
  const ImportSummary s =
      csv(kHeader + row("t0", "0") + row("t0", "-1") + row("t0", "one") + row("t0", "1.5") +
          row("t0", "1", "Almost") + row("t0", "2", "Correct", "nan") +
          row("t0", "3", "Correct", "-1") + row("t0", "4", "Correct", "inf") +
          row("t0", "5", "Correct", "fast") + "too,few\n" + row("", "0") + row("t0", "0") +
          row("t0", "1", "Correct") +
          row("t\xff\xfe"
              "1",
              "0") +
          "\"never closed");
  EXPECT_EQ(s.rejected, 6u);  // three odd turns, two ragged rows, one without a trajectory
  EXPECT_EQ(s.fresh, 7u);
  EXPECT_EQ(s.same, 1u);
  EXPECT_EQ(s.conflicts, 1u);
  const std::map<std::string, uint64_t> expected = {
      {"odd-turn", 3},   {"odd-label", 1},      {"odd-speedup", 4},
      {"ragged-row", 2}, {"no-identity", 1},    {"duplicate-turn", 1},
      {"not-utf8", 1},   {"unclosed-quote", 1}, {"conflicting-duplicate", 1}};
  EXPECT_EQ(kinds(s), expected);
  for (const TurnRecord& r : turns()) {
    EXPECT_TRUE(!r.turn.speedup || *r.turn.speedup == 0.5);
    if (r.turn.index == 1) {
      EXPECT_EQ(r.turn.label, "Almost");
    }
  }
  // The same is noted in the store, for whoever reads it later.
  EXPECT_EQ(store_.problems().take().size(), s.problems.size());
}

TEST_F(Import, ManyDifferentProblemsStayFew) {
  std::string text = kHeader;
  for (int i = 0; i < 5000; ++i)
    text += row("t" + std::to_string(i), "0", "label" + std::to_string(i));
  const ImportSummary s = csv(text);
  EXPECT_LE(s.problems.size(), 202u);
  EXPECT_EQ(kinds(s)["odd-label"], 5000u);
}

TEST_F(Import, AVerdictIsATurn) {
  auto s = import_verdict(store_, verdict(), "x.json", {"run", "x", 0});
  ASSERT_TRUE(s.ok()) << s.error().message;
  EXPECT_TRUE(s->problems.empty());
  const auto list = turns();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].turn.level, 2);
  EXPECT_EQ(list[0].turn.reason, "deadlock");
  EXPECT_FALSE(list[0].turn.speedup);
  EXPECT_EQ(list[0].workload_name, "M=200 N=1024");
  EXPECT_EQ(list[0].turn.families.at("wgmma.mma_async").threads, 256u);
  EXPECT_EQ(store_.document(list[0].trajectory, 0, "source").take(), "__global__ void k() {}\n");
  const std::string kept = store_.document(list[0].trajectory, 0, "verdict").take().value();
  EXPECT_EQ(kept.find("__global__"), std::string::npos);  // the source once, not twice
}

TEST_F(Import, AVerdictMayNameItsTrajectory) {
  auto s =
      import_verdict(store_, verdict(R"(, "trajectory": {"run": "R", "model": "M", "prompt": "P",
                                  "id": "T", "turn": 6, "tokens": {"input": 10, "reasoning": 20,
                                  "source": "usage"}})"),
                     "x.json", {"run", "x", 0});
  ASSERT_TRUE(s.ok()) << s.error().message;
  const TurnRecord r = turns()[0];
  EXPECT_EQ(r.trajectory, (TrajectoryKey{"R", "M", "sm_90a", "gemm", "smoke", "P", "T"}));
  EXPECT_EQ(r.turn.index, 6);
  EXPECT_EQ(r.turn.input_tokens, 10);
  EXPECT_EQ(r.turn.reasoning_tokens, 20);
  EXPECT_FALSE(r.turn.output_tokens);
}

TEST_F(Import, BadVerdictsAreRefused) {
  const auto error = [&](const std::string& text) {
    auto result = import_verdict(store_, text, "x.json", {"run", "x", 0});
    return result.ok() ? std::string("accepted") : result.error().kind;
  };
  EXPECT_EQ(error("{"), "json");
  EXPECT_EQ(error("[]"), "json-type");
  EXPECT_EQ(error("{}"), "json-type");
  EXPECT_EQ(error(R"({"level": 9, "label": "Correct", "definition": "d"})"), "json-type");
  EXPECT_EQ(error(R"({"level": 1, "label": 3, "definition": "d"})"), "json-type");
  EXPECT_EQ(error(R"({"level": 1, "label": "Correct"})"), "json-type");
  EXPECT_EQ(error(R"({"version": 2, "level": 1, "label": "Correct", "definition": "d"})"),
            "version");
  auto infrastructure = import_verdict(
      store_, R"({"infrastructure": {"kind": "io", "message": "m"}})", "x.json", {"run", "x", 0});
  ASSERT_TRUE(infrastructure.ok());
  EXPECT_EQ(infrastructure->rejected, 1u);
  EXPECT_EQ(kinds(*infrastructure)["infrastructure"], 1u);
  auto wrong = import_verdict(store_,
                              R"({"level": 0, "label": "Odd", "definition": "d", "performance":
                               {"speedup": "nan"}, "candidate": {"hash": "0", "source": "s"}})",
                              "x.json", {"run", "x", 0});
  ASSERT_TRUE(wrong.ok()) << wrong.error().message;
  EXPECT_THAT(kinds(*wrong), ::testing::UnorderedElementsAre(::testing::Pair("odd-label", 1),
                                                             ::testing::Pair("odd-speedup", 1),
                                                             ::testing::Pair("wrong-source", 1)));
}

TEST(Place, FollowsFileNames) {
  const auto place = [](const char* path) {
    const VerdictPlace p = place_of(path, "run");
    return p.trajectory + "#" + std::to_string(p.turn);
  };
  EXPECT_EQ(place("exp_000/turn_3.json"), "exp_000#3");
  EXPECT_EQ(place("a/b/7.json"), "a/b#7");
  EXPECT_EQ(place("turn2.json"), "run#2");
  EXPECT_EQ(place("exp_000-turn-4.json"), "exp_000#4");
  EXPECT_EQ(place("a/verdict.json"), "a/verdict#0");
  EXPECT_EQ(place("gemm_v2.json"), "gemm_v2#0");  // no turn number, a name
}

TEST_F(Import, AFolderOfVerdicts) {
  write("runs/a/turn_0.json", verdict());
  write("runs/a/turn_1.json", verdict(R"(, "notes": ["another"])"));
  write("runs/b.json", verdict());
  write("runs/broken.json", "{\"level\": ");
  write("runs/notes.txt", "not looked at");
  auto s = import_source(store_, folder_.path() / "runs");
  ASSERT_TRUE(s.ok()) << s.error().message;
  EXPECT_EQ(s->read, 3u);
  EXPECT_EQ(s->rejected, 1u);
  EXPECT_EQ(kinds(*s)["not-a-verdict"], 1u);
  const auto list = turns();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].trajectory.run, "runs");
  EXPECT_EQ(list[1].turn.index, 1);
  EXPECT_EQ(import_source(store_, folder_.path() / "runs")->same, 3u);
  std::filesystem::create_directory(folder_.path() / "empty");
  EXPECT_EQ(import_source(store_, folder_.path() / "empty").error().kind, "usage");
  EXPECT_EQ(import_source(store_, folder_.path() / "nowhere").error().kind, "not-found");
}

TEST_F(Import, StoresAndGzippedTables) {
  const std::string text = kHeader + row("t0", "0") + row("t0", "1", "Odd");
  const auto packed = write("turns.csv.gz", gzip_pack(text));
  EXPECT_EQ(import_source(store_, packed)->fresh, 2u);
  EXPECT_FALSE(import_source(store_, write("half.csv.gz", gzip_pack(text).substr(0, 60))).ok());
  const auto path = folder_.path() / "runs.db";
  {
    Store file = Store::open(path).take();
    ASSERT_TRUE(import_source(file, packed).ok());
    ASSERT_TRUE(import_verdict(file, verdict(), "x.json", {"run", "x", 0}).ok());
    ASSERT_TRUE(file.add_run("empty one").ok());
  }
  Store second = Store::in_memory().take();
  auto s = import_source(second, path);
  ASSERT_TRUE(s.ok()) << s.error().message;
  EXPECT_EQ(s->fresh, 3u);
  // What was odd about the first import comes along; so does the source.
  EXPECT_EQ(kinds(*s)["odd-label"], 1u);
  EXPECT_EQ(kinds(*s)["empty-run"], 1u);
  EXPECT_TRUE(second.document({"run", "", "sm_90a", "gemm", "smoke", "", "x"}, 0, "source").take());
}

}  // namespace
}  // namespace ptxbench::store
