#include "store/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "base/json.h"
#include "store/compress.h"
#include "store/schema.h"

namespace ptxbench::store {
namespace {

constexpr int kBusyMs = 30'000;  // another writer's transaction is milliseconds long
constexpr int kRetryMs = 10;

std::string families_text(const std::map<std::string, FamilyCount>& families) {
  if (families.empty()) return "";
  Json json = Json::object();
  for (const auto& [family, count] : families)
    json[family] = {count.sites, count.warps, count.threads};
  return dump_json(json, -1);
}

Result<std::map<std::string, FamilyCount>> parse_families(const std::string& text) {
  std::map<std::string, FamilyCount> families;
  if (text.empty()) return families;
  PB_ASSIGN_OR_RETURN(const Json json, parse_json(text, "the store's instruction counts"));
  for (const auto& [family, counts] : json.items()) {
    if (!counts.is_array() || counts.size() != 3 || !counts[0].is_number_unsigned() ||
        !counts[1].is_number_unsigned() || !counts[2].is_number_unsigned())
      return Error{"corrupt", "instruction counts are not three numbers"};
    families[family] = {counts[0], counts[1], counts[2]};
  }
  return families;
}

std::optional<int64_t> optional_integer(SQLite::Column column) {
  return column.isNull() ? std::nullopt : std::optional(column.getInt64());
}

template <class T>
void bind_optional(SQLite::Statement& statement, int at, const std::optional<T>& value) {
  if (value)
    statement.bind(at, *value);
  else
    statement.bind(at);
}

void bind_key(SQLite::Statement& statement, int at, const TrajectoryKey& key) {
  for (const std::string* part :
       {&key.model, &key.arch, &key.definition, &key.workload, &key.prompt, &key.name})
    statement.bindNoCopy(at++, *part);
}

Turn read_turn(SQLite::Statement& row, int at) {
  Turn turn;
  turn.index = row.getColumn(at).getInt();
  turn.label = row.getColumn(at + 1).getString();
  if (!row.getColumn(at + 2).isNull()) turn.level = row.getColumn(at + 2).getInt();
  turn.reason = row.getColumn(at + 3).getString();
  if (!row.getColumn(at + 4).isNull()) turn.speedup = row.getColumn(at + 4).getDouble();
  turn.tag = row.getColumn(at + 5).getString();
  turn.input_tokens = optional_integer(row.getColumn(at + 6));
  turn.output_tokens = optional_integer(row.getColumn(at + 7));
  turn.reasoning_tokens = optional_integer(row.getColumn(at + 8));
  turn.token_source = row.getColumn(at + 9).getString();
  return turn;
}

constexpr const char* kTurnColumns =
    "t.turn, t.label, t.level, t.reason, t.speedup, t.tag, t.input_tokens, t.output_tokens, "
    "t.reasoning_tokens, t.token_source, t.families";

TrajectoryKey read_key(SQLite::Statement& row, int at) {
  return {row.getColumn(at).getString(),     row.getColumn(at + 1).getString(),
          row.getColumn(at + 2).getString(), row.getColumn(at + 3).getString(),
          row.getColumn(at + 4).getString(), row.getColumn(at + 5).getString(),
          row.getColumn(at + 6).getString()};
}

constexpr const char* kKeyColumns =
    "r.name, j.model, j.arch, j.definition, j.workload, j.prompt, j.name";
// Groups stay together; models come first because people compare them.
constexpr const char* kKeyOrder =
    "j.model, j.arch, j.definition, j.workload, r.name, j.prompt, j.name, j.id";

}  // namespace

struct Store::State {
  State(const std::string& file, int flags) : path(file), db(file, flags, kBusyMs) {}

  std::string path;
  SQLite::Database db;
  std::unique_ptr<SQLite::Transaction> batch;
  std::map<TrajectoryKey, int64_t> trajectories;  // ids known to this process
  std::optional<SQLite::Statement> insert_turn, insert_document;

  Error error(const SQLite::Exception& e) const {
    const int code = e.getErrorCode();
    const char* kind = code == SQLITE_CORRUPT  ? "corrupt"
                       : code == SQLITE_NOTADB ? "not-a-store"
                       : code == SQLITE_BUSY   ? "busy"
                                               : "io";
    return Error{kind, fmt::format("run store {}: {}", path, e.what())};
  }

  // Nothing that SQLite throws leaves this room.
  template <class F>
  auto guarded(F work) -> decltype(work()) {
    try {
      return work();
    } catch (const SQLite::Exception& e) {
      return error(e);
    }
  }

  void prepare_schema() {
    db.exec("PRAGMA foreign_keys = ON");
    if (db.tableExists("turns")) return;
    // Two processes may both find an empty file; the second one waits and finds the tables.
    db.exec("BEGIN IMMEDIATE");
    if (!db.tableExists("turns")) {
      db.exec(kSchema);
      db.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
      db.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
    }
    db.exec("COMMIT");
  }

  Result<void> check_identity() {
    const int application = db.execAndGet("PRAGMA application_id").getInt();
    const int version = db.execAndGet("PRAGMA user_version").getInt();
    if (application != kApplicationId)
      return Error{"not-a-store", fmt::format("{} is an SQLite file of another program", path)};
    if (version != kSchemaVersion)
      return Error{"version", fmt::format("{} is a run store of version {}; this program reads {}",
                                          path, version, kSchemaVersion)};
    return {};
  }

  int64_t run_id(const std::string& name) {
    SQLite::Statement insert(db, "INSERT OR IGNORE INTO runs(name) VALUES(?)");
    insert.bind(1, name);
    insert.exec();
    SQLite::Statement find(db, "SELECT id FROM runs WHERE name = ?");
    find.bind(1, name);
    find.executeStep();
    return find.getColumn(0).getInt64();
  }

  std::optional<int64_t> find_trajectory(const TrajectoryKey& key) {
    SQLite::Statement find(db,
                           "SELECT j.id FROM trajectories j JOIN runs r ON r.id = j.run WHERE "
                           "r.name = ? AND j.model = ? AND j.arch = ? AND j.definition = ? AND "
                           "j.workload = ? AND j.prompt = ? AND j.name = ?");
    find.bind(1, key.run);
    bind_key(find, 2, key);
    if (!find.executeStep()) return std::nullopt;
    return find.getColumn(0).getInt64();
  }

  int64_t trajectory_id(const TurnRecord& record) {
    const TrajectoryKey& key = record.trajectory;
    if (auto known = trajectories.find(key); known != trajectories.end()) return known->second;
    SQLite::Statement insert(
        db,
        "INSERT OR IGNORE INTO trajectories(run, model, arch, definition, workload, prompt, name, "
        "workload_name) VALUES(?,?,?,?,?,?,?,?)");
    insert.bind(1, run_id(key.run));
    bind_key(insert, 2, key);
    insert.bindNoCopy(8, record.workload_name);
    insert.exec();
    return *find_trajectory(key);
  }

  bool insert_new_turn(int64_t trajectory, const Turn& turn) {
    if (!insert_turn)
      insert_turn.emplace(db, "INSERT OR IGNORE INTO turns VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
    SQLite::Statement& s = *insert_turn;
    const std::string families = families_text(turn.families);
    s.reset();
    s.bind(1, trajectory);
    s.bind(2, turn.index);
    s.bindNoCopy(3, turn.label);
    bind_optional(s, 4, turn.level);
    s.bindNoCopy(5, turn.reason);
    bind_optional(s, 6, turn.speedup);
    s.bindNoCopy(7, turn.tag);
    bind_optional(s, 8, turn.input_tokens);
    bind_optional(s, 9, turn.output_tokens);
    bind_optional(s, 10, turn.reasoning_tokens);
    s.bindNoCopy(11, turn.token_source);
    s.bindNoCopy(12, families);
    return s.exec() == 1;
  }

  // Whether the document was stored or is there with the same text.
  bool put_document(int64_t trajectory, int turn, const std::string& kind,
                    const std::string& text) {
    const std::string hash = hash_hex(text);
    if (!insert_document)
      insert_document.emplace(db, "INSERT OR IGNORE INTO documents VALUES(?,?,?,?,?,?)");
    const std::string packed = zstd_pack(text);
    SQLite::Statement& s = *insert_document;
    s.reset();
    s.bind(1, trajectory);
    s.bind(2, turn);
    s.bindNoCopy(3, kind);
    s.bindNoCopy(4, hash);
    s.bind(5, static_cast<int64_t>(text.size()));
    s.bindNoCopy(6, packed.data(), static_cast<int>(packed.size()));
    if (s.exec() == 1) return true;
    SQLite::Statement find(
        db, "SELECT hash FROM documents WHERE trajectory = ? AND turn = ? AND kind = ?");
    find.bind(1, trajectory);
    find.bind(2, turn);
    find.bind(3, kind);
    return find.executeStep() && find.getColumn(0).getString() == hash;
  }

  Result<Added> compare_stored(int64_t trajectory, const Turn& turn) {
    SQLite::Statement find(db, fmt::format("SELECT {} FROM turns t WHERE trajectory = ? AND "
                                           "turn = ?",
                                           kTurnColumns));
    find.bind(1, trajectory);
    find.bind(2, turn.index);
    if (!find.executeStep()) return Error{"corrupt", fmt::format("{}: a turn vanished", path)};
    Turn stored = read_turn(find, 0);
    PB_ASSIGN_OR_RETURN(stored.families, parse_families(find.getColumn(10).getString()));
    return stored == turn ? Added::same : Added::conflict;
  }

  // Inside a transaction. Documents that come later than their turn (a source found beside an
  // already imported verdict) are added to it.
  Result<Added> add(const TurnRecord& record, int64_t& trajectory) {
    trajectory = trajectory_id(record);
    Added added = Added::fresh;
    if (!insert_new_turn(trajectory, record.turn)) {
      PB_ASSIGN_OR_RETURN(added, compare_stored(trajectory, record.turn));
      if (added == Added::conflict) return added;
    }
    for (const auto& [kind, text] : record.documents)
      if (!put_document(trajectory, record.turn.index, kind, text)) added = Added::conflict;
    return added;
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

bool Store::looks_like_store(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[16] = {};
  return file.read(magic, 16) && std::string_view(magic, 15) == "SQLite format 3";
}

Result<Store> Store::open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::file_size(path, ignored) > 0 && !ignored && !looks_like_store(path))
    return Error{"not-a-store", fmt::format("{} is no run store", path.string())};
  for (int waited_ms = 0;; waited_ms += kRetryMs) {
    try {
      auto state =
          std::make_unique<State>(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      state->db.exec("PRAGMA journal_mode = WAL");
      state->db.exec("PRAGMA synchronous = FULL");  // an acknowledged turn survives a power cut too
      state->prepare_schema();
      PB_RETURN_IF_ERROR(state->check_identity());
      return Store(std::move(state));
    } catch (const SQLite::Exception& e) {
      // While another process turns a new file into a write-ahead one, SQLite does not wait.
      if (e.getErrorCode() != SQLITE_BUSY || waited_ms >= kBusyMs)
        return Error{e.getErrorCode() == SQLITE_CORRUPT ? "corrupt" : "io",
                     fmt::format("run store {}: {}", path.string(), e.what())};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMs));
  }
}

Result<Store> Store::open_existing(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    return Error{"not-found", fmt::format("{} does not exist", path.string())};
  if (!looks_like_store(path))
    return Error{"not-a-store", fmt::format("{} is no run store", path.string())};
  try {
    auto state = std::make_unique<State>(path.string(), SQLite::OPEN_READONLY);
    PB_RETURN_IF_ERROR(state->check_identity());
    return Store(std::move(state));
  } catch (const SQLite::Exception& e) {
    return Error{e.getErrorCode() == SQLITE_CORRUPT ? "corrupt" : "io",
                 fmt::format("run store {}: {}", path.string(), e.what())};
  }
}

Result<Store> Store::in_memory() {
  try {
    auto state = std::make_unique<State>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    state->prepare_schema();
    return Store(std::move(state));
  } catch (const SQLite::Exception& e) {
    return Error{"io", e.what()};
  }
}

Result<void> Store::begin_batch() {
  return state_->guarded([&]() -> Result<void> {
    state_->batch =
        std::make_unique<SQLite::Transaction>(state_->db, SQLite::TransactionBehavior::IMMEDIATE);
    return {};
  });
}

Result<void> Store::commit_batch() {
  return state_->guarded([&]() -> Result<void> {
    if (state_->batch) state_->batch->commit();
    state_->batch.reset();
    return {};
  });
}

Result<void> Store::add_run(const std::string& name) {
  return state_->guarded([&]() -> Result<void> {
    state_->run_id(name);
    return {};
  });
}

Result<Added> Store::add(const TurnRecord& record) {
  return state_->guarded([&]() -> Result<Added> {
    std::unique_ptr<SQLite::Transaction> own;
    if (!state_->batch)
      own =
          std::make_unique<SQLite::Transaction>(state_->db, SQLite::TransactionBehavior::IMMEDIATE);
    int64_t trajectory = 0;
    auto added = state_->add(record, trajectory);
    if (own && added.ok()) own->commit();
    // Only now is the id certain to stay.
    if (added.ok()) state_->trajectories.emplace(record.trajectory, trajectory);
    return added;
  });
}

Result<void> Store::note_problems(const std::string& source, const std::vector<Problem>& problems) {
  return state_->guarded([&]() -> Result<void> {
    SQLite::Statement clear(state_->db, "DELETE FROM problems WHERE source = ?");
    clear.bind(1, source);
    clear.exec();
    SQLite::Statement insert(state_->db, "INSERT OR REPLACE INTO problems VALUES(?,?,?,?,?)");
    for (const Problem& p : problems) {
      insert.reset();
      insert.bind(1, p.source);
      insert.bind(2, p.kind);
      insert.bind(3, p.detail);
      insert.bind(4, static_cast<int64_t>(p.count));
      insert.bind(5, p.places);
      insert.exec();
    }
    return {};
  });
}

Result<void> Store::each_turn(const std::function<Result<void>(const TurnRecord&)>& visit) const {
  return state_->guarded([&]() -> Result<void> {
    SQLite::Statement row(
        state_->db,
        fmt::format("SELECT {}, {}, j.workload_name, j.id FROM turns t JOIN trajectories j ON "
                    "j.id = t.trajectory JOIN runs r ON r.id = j.run ORDER BY {}, t.turn",
                    kTurnColumns, kKeyColumns, kKeyOrder));
    TurnRecord record;
    int64_t trajectory = -1;
    while (row.executeStep()) {
      record.turn = read_turn(row, 0);
      PB_ASSIGN_OR_RETURN(record.turn.families, parse_families(row.getColumn(10).getString()));
      if (const int64_t id = row.getColumn(19).getInt64(); id != trajectory) {
        trajectory = id;
        record.trajectory = read_key(row, 11);
        record.workload_name = row.getColumn(18).getString();
      }
      PB_RETURN_IF_ERROR(visit(record));
    }
    return {};
  });
}

Result<void> Store::check() const {
  return state_->guarded([&]() -> Result<void> {
    const std::string verdict = state_->db.execAndGet("PRAGMA quick_check(1)").getString();
    if (verdict != "ok")
      return Error{"corrupt", fmt::format("run store {}: {}", state_->path, verdict)};
    return {};
  });
}

Result<std::optional<std::string>> Store::document(const TrajectoryKey& trajectory, int turn,
                                                   const std::string& kind) const {
  std::optional<std::string> found;
  PB_RETURN_IF_ERROR(state_->guarded([&]() -> Result<void> {
    const auto id = state_->find_trajectory(trajectory);
    if (!id) return {};
    SQLite::Statement row(state_->db,
                          "SELECT hash, size, zstd FROM documents WHERE trajectory = ? AND turn = "
                          "? AND kind = ?");
    row.bind(1, *id);
    row.bind(2, turn);
    row.bind(3, kind);
    if (!row.executeStep()) return {};
    PB_ASSIGN_OR_RETURN(found, zstd_unpack(row.getColumn(2).getString(),
                                           static_cast<uint64_t>(row.getColumn(1).getInt64())));
    if (hash_hex(*found) != row.getColumn(0).getString())
      return Error{"corrupt", fmt::format("run store {}: a document changed", state_->path)};
    return {};
  }));
  return found;
}

Result<std::vector<TrajectoryKey>> Store::trajectories_with_documents() const {
  std::vector<TrajectoryKey> keys;
  PB_RETURN_IF_ERROR(state_->guarded([&]() -> Result<void> {
    SQLite::Statement row(
        state_->db,
        fmt::format("SELECT {} FROM trajectories j JOIN runs r ON r.id = j.run WHERE j.id IN "
                    "(SELECT trajectory FROM documents) ORDER BY {}",
                    kKeyColumns, kKeyOrder));
    while (row.executeStep()) keys.push_back(read_key(row, 0));
    return {};
  }));
  return keys;
}

Result<void> Store::each_document(
    const std::function<Result<void>(const TrajectoryKey&, int, const std::string&,
                                     const std::string&)>& visit) const {
  return state_->guarded([&]() -> Result<void> {
    SQLite::Statement row(
        state_->db,
        fmt::format("SELECT {}, d.turn, d.kind, d.hash, d.size, d.zstd FROM documents d JOIN "
                    "trajectories j ON j.id = d.trajectory JOIN runs r ON r.id = j.run ORDER BY "
                    "{}, d.turn, d.kind",
                    kKeyColumns, kKeyOrder));
    while (row.executeStep()) {
      PB_ASSIGN_OR_RETURN(const std::string text,
                          zstd_unpack(row.getColumn(11).getString(),
                                      static_cast<uint64_t>(row.getColumn(10).getInt64())));
      if (hash_hex(text) != row.getColumn(9).getString())
        return Error{"corrupt", fmt::format("run store {}: a document changed", state_->path)};
      PB_RETURN_IF_ERROR(
          visit(read_key(row, 0), row.getColumn(7).getInt(), row.getColumn(8).getString(), text));
    }
    return {};
  });
}

Result<std::vector<Problem>> Store::problems() const {
  std::vector<Problem> problems;
  PB_RETURN_IF_ERROR(state_->guarded([&]() -> Result<void> {
    SQLite::Statement row(state_->db,
                          "SELECT kind, source, detail, count, places FROM problems ORDER BY "
                          "source, kind, detail");
    while (row.executeStep())
      problems.push_back(
          {row.getColumn(0).getString(), row.getColumn(1).getString(), row.getColumn(2).getString(),
           static_cast<uint64_t>(row.getColumn(3).getInt64()), row.getColumn(4).getString()});
    return {};
  }));
  return problems;
}

Result<std::vector<RunSummary>> Store::runs() const {
  std::vector<RunSummary> runs;
  PB_RETURN_IF_ERROR(state_->guarded([&]() -> Result<void> {
    SQLite::Statement row(
        state_->db,
        "SELECT r.name, count(DISTINCT j.id), count(t.turn), count(CASE t.label WHEN 'Correct' "
        "THEN 1 END), (SELECT count(*) FROM documents d JOIN trajectories k ON k.id = "
        "d.trajectory WHERE k.run = r.id) FROM runs r LEFT JOIN trajectories j ON j.run = r.id "
        "LEFT JOIN turns t ON t.trajectory = j.id GROUP BY r.id ORDER BY r.name");
    while (row.executeStep()) {
      const auto number = [&](int i) { return static_cast<uint64_t>(row.getColumn(i).getInt64()); };
      runs.push_back({row.getColumn(0).getString(), number(1), number(2), number(3), number(4)});
    }
    return {};
  }));
  return runs;
}

}  // namespace ptxbench::store
