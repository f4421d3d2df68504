#include <fmt/format.h>

#include <cmath>

#include "base/hash.h"
#include "base/json.h"
#include "store/import.h"
#include "store/labels.h"
#include "store/problems.h"

namespace ptxbench::store {
namespace {

constexpr int64_t kLargestTurn = 100'000;

// What an agent says about the turn: {run, model, prompt, id, turn, tokens{...}}; all optional.
Result<void> read_trajectory(const JsonRef& verdict, TurnRecord& record) {
  if (!verdict.has("trajectory")) return {};
  PB_ASSIGN_OR_RETURN(const JsonRef place, verdict.at("trajectory"));
  TrajectoryKey& key = record.trajectory;
  PB_ASSIGN_OR_RETURN(key.run, place.string_or("run", key.run));
  PB_ASSIGN_OR_RETURN(key.model, place.string_or("model", key.model));
  PB_ASSIGN_OR_RETURN(key.prompt, place.string_or("prompt", key.prompt));
  PB_ASSIGN_OR_RETURN(key.name, place.string_or("id", key.name));
  PB_ASSIGN_OR_RETURN(const int64_t turn, place.integer_or("turn", record.turn.index));
  if (turn < 0 || turn > kLargestTurn) return place.error("turn is no number from 0");
  record.turn.index = static_cast<int>(turn);
  if (!place.has("tokens")) return {};
  PB_ASSIGN_OR_RETURN(const JsonRef tokens, place.at("tokens"));
  const std::pair<const char*, std::optional<int64_t>*> counts[] = {
      {"input", &record.turn.input_tokens},
      {"output", &record.turn.output_tokens},
      {"reasoning", &record.turn.reasoning_tokens}};
  for (const auto& [name, value] : counts) {
    PB_ASSIGN_OR_RETURN(const int64_t count, tokens.integer_or(name, -1));
    if (count >= 0) *value = count;
  }
  PB_ASSIGN_OR_RETURN(record.turn.token_source, tokens.string_or("source", ""));
  return {};
}

Result<void> read_families(const JsonRef& verdict, Turn& turn) {
  if (!verdict.has("evidence")) return {};
  PB_ASSIGN_OR_RETURN(const JsonRef evidence, verdict.at("evidence"));
  if (!evidence.has("families")) return {};
  PB_ASSIGN_OR_RETURN(const JsonRef families, evidence.at("families"));
  PB_ASSIGN_OR_RETURN(const auto members, families.members());
  for (const auto& [family, counts] : members) {
    FamilyCount& count = turn.families[family];
    PB_ASSIGN_OR_RETURN(const int64_t sites, counts.integer_or("static", 0));
    PB_ASSIGN_OR_RETURN(const int64_t warps, counts.integer_or("warps", 0));
    PB_ASSIGN_OR_RETURN(const int64_t threads, counts.integer_or("threads", 0));
    count = {static_cast<uint64_t>(sites), static_cast<uint64_t>(warps),
             static_cast<uint64_t>(threads)};
  }
  return {};
}

void read_speedup(const Json& verdict, Turn& turn, Problems& problems) {
  const auto performance = verdict.find("performance");
  if (performance == verdict.end() || !performance->is_object()) return;
  const auto speedup = performance->find("speedup");
  if (speedup == performance->end() || speedup->is_null()) return;
  if (speedup->is_number() && std::isfinite(speedup->get<double>()) && speedup->get<double>() >= 0)
    turn.speedup = speedup->get<double>();
  else
    problems.add("odd-speedup",
                 fmt::format("speed-up {}: taken as not timed", dump_json(*speedup, -1)));
}

// Sizes for people: "M=200 N=1024 K=832".
std::string axes_text(const Json& verdict) {
  std::string text;
  const auto axes = verdict.find("axes");
  if (axes == verdict.end() || !axes->is_object()) return text;
  for (const auto& [axis, value] : axes->items())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, dump_json(value, -1));
  return text;
}

Result<void> read_documents(Json& verdict, TurnRecord& record, Problems& problems) {
  const auto candidate = verdict.find("candidate");
  if (candidate != verdict.end() && candidate->is_object() && candidate->contains("source")) {
    PB_ASSIGN_OR_RETURN(std::string source,
                        JsonRef((*candidate)["source"], "candidate.source").string());
    const bool matches =
        candidate->contains("hash") && (*candidate)["hash"] == hash_hex(std::string_view(source));
    if (!source.empty() && !matches)
      problems.add("wrong-source", "the candidate's source does not have its hash");
    if (!source.empty()) record.documents["source"] = std::move(source);
    candidate->erase("source");  // once is enough
  }
  record.documents["verdict"] = dump_json(verdict, -1);
  return {};
}

Result<TurnRecord> read_verdict(Json& json, const std::string& name, const VerdictPlace& place,
                                Problems& problems) {
  const JsonRef verdict(json, name);
  TurnRecord record;
  record.trajectory.run = place.run;
  record.trajectory.name = place.trajectory;
  record.turn.index = place.turn;
  PB_ASSIGN_OR_RETURN(const int64_t version, verdict.integer_or("version", 1));
  if (version != 1)
    return Error{"version",
                 fmt::format("{}: a verdict of version {}; this program reads 1", name, version)};
  PB_ASSIGN_OR_RETURN(const JsonRef level, verdict.at("level"));
  PB_ASSIGN_OR_RETURN(const int64_t number, level.integer());
  if (number < 0 || number > 6) return level.error("expected a level from 0 to 6");
  record.turn.level = static_cast<int>(number);
  PB_ASSIGN_OR_RETURN(const JsonRef label, verdict.at("label"));
  PB_ASSIGN_OR_RETURN(record.turn.label, label.string());
  if (!known_label(record.turn.label))
    problems.add("odd-label", fmt::format("label '{}': counted as not correct",
                                          record.turn.label.substr(0, 40)));
  PB_ASSIGN_OR_RETURN(record.turn.reason, verdict.string_or("reason", ""));
  PB_ASSIGN_OR_RETURN(record.turn.tag, verdict.string_or("tag", ""));
  PB_ASSIGN_OR_RETURN(record.trajectory.definition, verdict.string_or("definition", ""));
  PB_ASSIGN_OR_RETURN(record.trajectory.workload, verdict.string_or("workload", ""));
  PB_ASSIGN_OR_RETURN(record.trajectory.arch, verdict.string_or("arch", ""));
  if (record.trajectory.definition.empty()) return verdict.error("a verdict without a definition");
  record.workload_name = axes_text(json);
  if (record.trajectory.workload.empty()) record.trajectory.workload = record.workload_name;
  PB_RETURN_IF_ERROR(read_trajectory(verdict, record));
  PB_RETURN_IF_ERROR(read_families(verdict, record.turn));
  read_speedup(json, record.turn, problems);
  PB_RETURN_IF_ERROR(read_documents(json, record, problems));
  return record;
}

}  // namespace

VerdictPlace place_of(const std::filesystem::path& relative, const std::string& run) {
  const std::string stem = relative.stem().string();
  size_t digits = stem.size();
  while (digits > 0 && stem[digits - 1] >= '0' && stem[digits - 1] <= '9') --digits;
  std::string before = stem.substr(0, digits);
  const auto strip = [&before](std::string_view end) {
    if (before.ends_with(end)) before.resize(before.size() - end.size());
  };
  strip("_");
  strip("-");
  const bool named = before.empty() || before.ends_with("turn");
  if (digits == stem.size() || stem.size() - digits > 5 || !named)
    return {run, (relative.parent_path() / stem).generic_string(), 0};
  strip("turn");
  for (const char* separator : {"_", "-", "."}) strip(separator);
  std::filesystem::path trajectory = relative.parent_path();
  if (!before.empty()) trajectory /= before;
  const int turn = std::stoi(stem.substr(digits));
  return {run, trajectory.empty() ? run : trajectory.generic_string(), turn};
}

Result<ImportSummary> import_verdict(Store& store, std::string_view text, const std::string& name,
                                     const VerdictPlace& place) {
  Problems problems(name);
  ImportSummary summary;
  std::string clean(text);
  if (make_printable(clean)) problems.add("not-utf8", "bytes that are no UTF-8 text, replaced");
  PB_ASSIGN_OR_RETURN(Json json, parse_json(clean, name));
  if (json.is_object() && json.contains("infrastructure")) {
    problems.add("infrastructure", "a failure of the harness, no verdict: not counted");
    summary.rejected = 1;
  } else {
    PB_ASSIGN_OR_RETURN(const TurnRecord record, read_verdict(json, name, place, problems));
    PB_ASSIGN_OR_RETURN(const Added added, store.add(record));
    summary.read = 1;
    (added == Added::fresh  ? summary.fresh
     : added == Added::same ? summary.same
                            : summary.conflicts) = 1;
    if (added == Added::conflict)
      problems.add("conflicting-duplicate",
                   "this turn is there already with different contents, which stay");
  }
  summary.problems = problems.list();
  PB_RETURN_IF_ERROR(store.note_problems(name, summary.problems));
  return summary;
}

}  // namespace ptxbench::store
