#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>

#include "store/csv.h"
#include "store/import.h"
#include "store/labels.h"
#include "store/problems.h"

namespace ptxbench::store {
namespace {

constexpr int kLargestTurn = 100'000;

// What a column means to a row. Columns of instruction families are found by their suffix.
class Columns {
 public:
  explicit Columns(const std::vector<std::string>& header) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (!positions_.emplace(header[i], i).second) repeated_.push_back(header[i]);
      const size_t colon = header[i].rfind(':');
      if (colon == std::string::npos || colon == 0) continue;
      const std::string kind = header[i].substr(colon + 1);
      if (kind == "static" || kind == "warps" || kind == "threads")
        families_.push_back({header[i].substr(0, colon), kind, i});
    }
  }

  struct Family {
    std::string name, kind;
    size_t position;
  };
  const std::vector<Family>& families() const { return families_; }
  const std::vector<std::string>& repeated() const { return repeated_; }
  size_t count() const { return positions_.size() + repeated_.size(); }

  // The field's text, "" where the column is missing.
  const std::string& text(const std::vector<std::string>& row, const char* column) const {
    static const std::string kNone;
    const auto found = positions_.find(column);
    return found == positions_.end() ? kNone : row[found->second];
  }
  bool has(const char* column) const { return positions_.contains(column); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, position] : positions_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, size_t, std::less<>> positions_;
  std::vector<Family> families_;
  std::vector<std::string> repeated_;
};

constexpr const char* kRequired[] = {"definition", "trajectory_id", "turn", "correctness"};
constexpr const char* kOptional[] = {"model",
                                     "arch",
                                     "workload",
                                     "workload_name",
                                     "run",
                                     "prompt",
                                     "speedup",
                                     "arch_tag",
                                     "level",
                                     "reason",
                                     "input_tokens",
                                     "output_tokens",
                                     "reasoning_tokens",
                                     "reasoning_token_source"};

template <class T>
bool parse_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string shown(const std::string& text) {
  return fmt::format("'{}'", text.size() > 40 ? text.substr(0, 40) + "..." : text);
}

class CsvImport {
 public:
  CsvImport(Store& store, std::string_view text, const std::string& name)
      : store_(store), reader_(text), problems_(name), name_(name) {}

  Result<ImportSummary> run() {
    std::vector<std::string> row;
    if (!reader_.next(row)) return Error{"csv", "an empty file", {name_}};
    columns_.emplace(row);
    PB_RETURN_IF_ERROR(check_header());
    PB_RETURN_IF_ERROR(store_.begin_batch());
    while (reader_.next(row)) PB_RETURN_IF_ERROR(take(row));
    if (reader_.unterminated())
      problems_.add("unclosed-quote", "the file ends inside a quoted field", reader_.line());
    if (summary_.read + summary_.rejected == 0)
      problems_.add("empty-source", "a header and no rows", 1);
    summary_.problems = problems_.list();
    PB_RETURN_IF_ERROR(store_.note_problems(name_, summary_.problems));
    PB_RETURN_IF_ERROR(store_.commit_batch());
    return summary_;
  }

 private:
  Result<void> check_header() {
    std::string missing;
    for (const char* column : kRequired)
      if (!columns_->has(column)) missing += std::string(missing.empty() ? "" : ", ") + column;
    if (!missing.empty())
      return Error{"csv", fmt::format("not a per-turn table: no column {}", missing), {name_, 1}};
    if (!columns_->repeated().empty())
      return Error{"csv",
                   fmt::format("column {} appears twice", shown(columns_->repeated()[0])),
                   {name_, 1}};
    std::set<std::string> understood(std::begin(kRequired), std::end(kRequired));
    understood.insert(std::begin(kOptional), std::end(kOptional));
    for (const auto& family : columns_->families())
      understood.insert(family.name + ":" + family.kind);
    for (const std::string& column : columns_->names())
      if (!understood.contains(column))
        problems_.add("unknown-column", fmt::format("column {} is not used", shown(column)), 1);
    for (const char* column : kOptional)
      if (!columns_->has(column)) absent_.insert(column);
    for (const char* column : {"model", "arch", "run", "workload", "speedup", "arch_tag"})
      if (absent_.contains(column))
        problems_.add("missing-column", fmt::format("no column {}: taken as empty", column), 1);
    return {};
  }

  void reject(const char* kind, const std::string& why) {
    problems_.add(kind, why, reader_.line());
    ++summary_.rejected;
  }

  Result<void> take(std::vector<std::string>& row) {
    if (row.size() != columns_->count()) {
      reject("ragged-row",
             fmt::format("rows that do not have the header's {} fields", columns_->count()));
      return {};
    }
    for (std::string& field : row)
      if (make_printable(field))
        problems_.add("not-utf8", "bytes that are no UTF-8 text, replaced", reader_.line());
    TurnRecord record;
    if (!identify(row, record)) return {};
    describe(row, record.turn);
    return add(record);
  }

  // Which turn it is; a row that does not say is rejected.
  bool identify(const std::vector<std::string>& row, TurnRecord& record) {
    const auto text = [&](const char* column) { return columns_->text(row, column); };
    record.trajectory = {text("run"),      text("model"),  text("arch"),         text("definition"),
                         text("workload"), text("prompt"), text("trajectory_id")};
    record.workload_name = text("workload_name");
    int& turn = record.turn.index;
    if (record.trajectory.definition.empty() || record.trajectory.name.empty())
      reject("no-identity", "rows without a definition or a trajectory_id");
    else if (!parse_number(text("turn"), turn) || turn < 0 || turn > kLargestTurn)
      reject("odd-turn", fmt::format("turn {} is no number from 0", shown(text("turn"))));
    else
      return true;
    return false;
  }

  void describe(const std::vector<std::string>& row, Turn& turn) {
    const auto text = [&](const char* column) { return columns_->text(row, column); };
    turn.label = text("correctness");
    if (!known_label(turn.label))
      problems_.add("odd-label", fmt::format("label {}: counted as not correct", shown(turn.label)),
                    reader_.line());
    turn.reason = text("reason");
    turn.tag = text("arch_tag");
    turn.token_source = text("reasoning_token_source");
    turn.speedup = speedup(text("speedup"));
    turn.level = integer<int>("level", text("level"), 0, 6);
    turn.input_tokens = integer<int64_t>("input_tokens", text("input_tokens"), 0, INT64_MAX);
    turn.output_tokens = integer<int64_t>("output_tokens", text("output_tokens"), 0, INT64_MAX);
    turn.reasoning_tokens =
        integer<int64_t>("reasoning_tokens", text("reasoning_tokens"), 0, INT64_MAX);
    for (const auto& family : columns_->families()) {
      const auto count =
          integer<int64_t>(family.name + ":" + family.kind, row[family.position], 0, INT64_MAX);
      if (!count) continue;
      FamilyCount& counts = turn.families[family.name];
      (family.kind == "static"  ? counts.sites
       : family.kind == "warps" ? counts.warps
                                : counts.threads) = static_cast<uint64_t>(*count);
    }
  }

  std::optional<double> speedup(const std::string& text) {
    if (text.empty()) return std::nullopt;
    double value = 0;
    if (parse_number(text, value) && std::isfinite(value) && value >= 0) return value;
    problems_.add("odd-speedup", fmt::format("speed-up {}: taken as not timed", shown(text)),
                  reader_.line());
    return std::nullopt;
  }

  template <class T>
  std::optional<T> integer(const std::string& column, const std::string& text, T low, T high) {
    if (text.empty()) return std::nullopt;
    T value = 0;
    if (parse_number(text, value) && value >= low && value <= high) return value;
    problems_.add("odd-number", fmt::format("{} {}: taken as not given", column, shown(text)),
                  reader_.line());
    return std::nullopt;
  }

  Result<void> add(const TurnRecord& record) {
    ++summary_.read;
    const bool repeated = !seen_.insert({record.trajectory, record.turn.index}).second;
    PB_ASSIGN_OR_RETURN(const Added added, store_.add(record));
    if (added == Added::fresh) ++summary_.fresh;
    if (added == Added::same) ++summary_.same;
    if (added == Added::same && repeated)
      problems_.add("duplicate-turn", "turns given more than once, equal: counted once",
                    reader_.line());
    if (added != Added::conflict) return {};
    ++summary_.conflicts;
    problems_.add("conflicting-duplicate",
                  "turns given more than once with different contents: the first stays",
                  reader_.line());
    return {};
  }

  Store& store_;
  CsvReader reader_;
  Problems problems_;
  std::string name_;
  std::optional<Columns> columns_;
  std::set<std::string> absent_;
  std::set<std::pair<TrajectoryKey, int>> seen_;
  ImportSummary summary_;
};

}  // namespace

Result<ImportSummary> import_csv(Store& store, std::string_view text, const std::string& name) {
  return CsvImport(store, text, name).run();
}

}  // namespace ptxbench::store
