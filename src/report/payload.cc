#include "report/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/json.h"
#include "store/compress.h"

namespace ptxbench::report {
namespace {

using TrajectoryIds = std::map<store::TrajectoryKey, uint32_t>;

// ---- columns -----------------------------------------------------------------------------------

template <class F>
std::string column(size_t count, F append) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) {
    if (i) text += ',';
    append(text, i);
  }
  return text + "]";
}

void append_number(std::string& text, double value) {
  if (std::isnan(value))
    text += "null";
  else
    fmt::format_to(std::back_inserter(text), "{:.6g}", value);
}

std::string turn_columns(const Dataset& data) {
  const std::vector<Turn>& turns = data.turns;
  const auto integers = [&](auto value) {
    return column(turns.size(), [&](std::string& text, size_t i) {
      fmt::format_to(std::back_inserter(text), "{}", value(turns[i]));
    });
  };
  return fmt::format(
      R"({{"index":{},"label":{},"level":{},"tag":{},"reason":{},"tokens":{},"speedup":{}}})",
      integers([](const Turn& t) { return t.index; }),
      integers([](const Turn& t) { return t.label; }),
      integers([](const Turn& t) { return static_cast<int>(t.level); }),
      integers([](const Turn& t) { return t.tag; }),
      integers([](const Turn& t) { return t.reason; }),
      integers([](const Turn& t) { return tokens_of(t); }),
      column(turns.size(),
             [&](std::string& text, size_t i) { append_number(text, turns[i].speedup); }));
}

Json groups_json(const Dataset& data, const Analysis& analysis) {
  Json groups = Json::array();
  for (size_t i = 0; i < data.groups.size(); ++i) {
    const Group& g = data.groups[i];
    const GroupProgress& p = analysis.progress[i];
    Json rates = Json::array(), levels = Json::array(), steps = Json::array(),
         repairs = Json::array();
    for (const Rates& r : std::span(&analysis.rates[i * kTurnLimits.size()], kTurnLimits.size()))
      rates.push_back({r.correct, r.correct_with_arch,
                       std::isnan(r.best_speedup) ? Json(nullptr) : Json(r.best_speedup)});
    for (const auto& turn : p.levels) levels.push_back(turn);
    for (const auto& [step, count] : p.transitions)
      steps.push_back({std::get<0>(step), std::get<1>(step), std::get<2>(step), count});
    for (const auto& [label, r] : p.repairs)
      repairs.push_back({label, r.failed, r.repaired, r.advanced, r.repeated, r.later});
    groups.push_back({{"run", g.run},
                      {"model", g.model},
                      {"arch", g.arch},
                      {"definition", g.definition},
                      {"workload", g.workload},
                      {"task", g.task()},
                      {"prompt", g.prompt},
                      {"first", g.first},
                      {"count", g.count},
                      {"rates", rates},
                      {"levels", levels},
                      {"steps", steps},
                      {"repairs", repairs}});
  }
  return groups;
}

// ---- sources -----------------------------------------------------------------------------------

// Best first: highest level reached, then speed, then fewer turns.
std::vector<uint32_t> ranked(const Dataset& data, const Group& group,
                             const std::vector<bool>& documented) {
  struct Score {
    uint32_t trajectory;
    int level;
    double speedup;
  };
  std::vector<Score> scores;
  for (uint32_t t = group.first; t < group.first + group.count; ++t) {
    if (!documented[t]) continue;
    Score score{t, -1, 0};
    for (uint32_t i = 0; i < data.trajectories[t].count; ++i) {
      const Turn& turn = data.turns[data.trajectories[t].first + i];
      if (turn.level != other) score.level = std::max(score.level, static_cast<int>(turn.level));
      if (turn.correct && turn.speedup > score.speedup) score.speedup = turn.speedup;
    }
    scores.push_back(score);
  }
  std::stable_sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    return a.level != b.level ? a.level > b.level : a.speedup > b.speedup;
  });
  std::vector<uint32_t> order;
  for (const Score& score : scores) order.push_back(score.trajectory);
  return order;
}

std::vector<bool> chosen(const Dataset& data, const std::vector<bool>& documented, int per_group) {
  std::vector<bool> choice(data.trajectories.size());
  for (const Group& group : data.groups) {
    const std::vector<uint32_t> order = ranked(data, group, documented);
    const size_t wanted = std::min(order.size(), static_cast<size_t>(std::max(per_group, 0)));
    const size_t best = (wanted + 1) / 2;
    for (size_t i = 0; i < best; ++i) choice[order[i]] = true;
    for (size_t i = 0; i < wanted - best; ++i) choice[order[order.size() - 1 - i]] = true;
  }
  return choice;
}

TrajectoryIds trajectory_ids(const Dataset& data) {
  TrajectoryIds ids;
  for (uint32_t i = 0; i < data.trajectories.size(); ++i) {
    const Group& g = data.group_of(data.trajectories[i]);
    ids[{g.run, g.model, g.arch, g.definition, g.workload, g.prompt, data.trajectories[i].name}] =
        i;
  }
  return ids;
}

// trajectory -> packed JSON {turn: {kind: text or, for the verdict, the document}}.
Result<Json> documents_json(const store::Store& store, const Dataset& data,
                            const HtmlOptions& options, uint64_t& left_out) {
  const TrajectoryIds ids = trajectory_ids(data);
  std::vector<bool> documented(data.trajectories.size());
  PB_ASSIGN_OR_RETURN(const auto with_documents, store.trajectories_with_documents());
  for (const store::TrajectoryKey& key : with_documents)
    if (const auto found = ids.find(key); found != ids.end()) documented[found->second] = true;
  const std::vector<bool> choice = chosen(data, documented, options.sources_per_group);
  Json packed = Json::object();
  uint64_t bytes = 0;
  for (const auto& [key, id] : ids) {
    if (!documented[id]) continue;
    if (!choice[id] || bytes > options.sources_bytes) {
      ++left_out;
      continue;
    }
    Json turns = Json::object();
    for (uint32_t i = 0; i < data.trajectories[id].count; ++i) {
      const int turn = data.turns[data.trajectories[id].first + i].index;
      Json& documents = turns[std::to_string(turn)] = Json::object();
      PB_ASSIGN_OR_RETURN(const auto source, store.document(key, turn, "source"));
      if (source) documents["source"] = *source;
      PB_ASSIGN_OR_RETURN(const auto verdict, store.document(key, turn, "verdict"));
      if (!verdict) continue;
      auto parsed = parse_json(*verdict);
      if (parsed.ok()) documents["verdict"] = parsed.take();
    }
    const std::string text = base64(store::gzip_pack(dump_json(turns, -1)));
    bytes += text.size();
    packed[std::to_string(id)] = text;
  }
  return packed;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

void escape_markup(std::string& text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  }
  text = std::move(escaped);
}

}  // namespace

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t j) -> uint32_t {
      return j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0;
    };
    const uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int digit = 0; digit < 4; ++digit)
      text += i + static_cast<size_t>(digit) > bytes.size()
                  ? '='
                  : kDigits[word >> (18 - 6 * digit) & 63];
  }
  return text;
}

Result<std::string> payload(const store::Store& store, const Dataset& data,
                            const Analysis& analysis, const HtmlOptions& options) {
  uint64_t left_out = 0;
  PB_ASSIGN_OR_RETURN(const Json documents, documents_json(store, data, options, left_out));
  Json tables = Json::object();
  // The page makes the others from the groups' counts.
  for (const char* name :
       {"models", "statistics", "repairs", "tokens", "sizes", "dates", "comparisons", "problems"})
    tables[name] = to_json(analysis.table(name));
  Json names = Json::array(), counts = Json::array();
  for (const Trajectory& t : data.trajectories) {
    names.push_back(t.name);
    counts.push_back(t.count);
  }
  const Json rest = {{"title", options.title},
                     {"made", today()},
                     {"levels", kLevelNames},
                     {"limits", kTurnLimits},
                     {"labels", data.labels.list()},
                     {"tags", data.tags.list()},
                     {"reasons", data.reasons.list()},
                     {"groups", groups_json(data, analysis)},
                     {"trajectories", {{"name", names}, {"turns", counts}}},
                     {"tables", tables},
                     {"documents", documents},
                     {"documentsLeftOut", left_out}};
  std::string text = dump_json(rest, -1);
  text.pop_back();  // the closing brace
  text += ",\"turns\":" + turn_columns(data) + "}";
  escape_markup(text);
  return text;
}

}  // namespace ptxbench::report
