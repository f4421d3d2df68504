#include "store/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "store/compress.h"
#include "store/problems.h"

namespace ptxbench::store {
namespace {

constexpr uint64_t kLargestText = uint64_t{2} << 30;
constexpr uint64_t kLargestVerdict = uint64_t{64} << 20;

bool looks_like_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

Result<ImportSummary> import_store(Store& store, const std::filesystem::path& path) {
  PB_ASSIGN_OR_RETURN(const Store source, Store::open_existing(path));
  PB_RETURN_IF_ERROR(source.check());
  ImportSummary summary;
  Problems problems(path.string());
  PB_RETURN_IF_ERROR(store.begin_batch());
  PB_ASSIGN_OR_RETURN(const std::vector<RunSummary> runs, source.runs());
  for (const RunSummary& run : runs) {
    PB_RETURN_IF_ERROR(store.add_run(run.name));
    if (run.turns == 0) problems.add("empty-run", fmt::format("run '{}' has no turns", run.name));
  }
  PB_RETURN_IF_ERROR(source.each_turn([&](const TurnRecord& record) -> Result<void> {
    TurnRecord whole = record;
    for (const char* kind : {"source", "verdict"}) {
      PB_ASSIGN_OR_RETURN(auto text, source.document(record.trajectory, record.turn.index, kind));
      if (text) whole.documents[kind] = std::move(*text);
    }
    PB_ASSIGN_OR_RETURN(const Added added, store.add(whole));
    ++summary.read;
    ++(added == Added::fresh  ? summary.fresh
       : added == Added::same ? summary.same
                              : summary.conflicts);
    if (added == Added::conflict)
      problems.add("conflicting-duplicate",
                   "turns that another source has with different contents: the first stays");
    return {};
  }));
  PB_ASSIGN_OR_RETURN(const std::vector<Problem> noted, source.problems());
  std::map<std::string, std::vector<Problem>> by_source;
  for (const Problem& problem : noted) by_source[problem.source].push_back(problem);
  for (const auto& [name, list] : by_source) {
    PB_RETURN_IF_ERROR(store.note_problems(name, list));
    summary.problems.insert(summary.problems.end(), list.begin(), list.end());
  }
  if (!problems.list().empty()) {
    PB_RETURN_IF_ERROR(store.note_problems(path.string(), problems.list()));
    summary.problems.insert(summary.problems.end(), problems.list().begin(), problems.list().end());
  }
  PB_RETURN_IF_ERROR(store.commit_batch());
  return summary;
}

// All .json files below the folder, in the order of their names.
Result<std::vector<std::filesystem::path>> json_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  auto it = std::filesystem::recursive_directory_iterator(folder, error);
  for (; !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error))
    if (it->path().extension() == ".json" && it->is_regular_file(error))
      files.push_back(it->path());
  if (error) return Error{"io", fmt::format("{}: {}", folder.string(), error.message())};
  std::sort(files.begin(), files.end());
  return files;
}

Result<ImportSummary> import_folder(Store& store, const std::filesystem::path& folder) {
  PB_ASSIGN_OR_RETURN(const auto files, json_files(folder));
  if (files.empty())
    return Error{"usage", fmt::format("{}: a folder without .json files", folder.string())};
  const std::string run =
      std::filesystem::absolute(folder / ".").lexically_normal().parent_path().filename().string();
  ImportSummary summary;
  Problems problems(folder.string());
  std::optional<Error> first;
  PB_RETURN_IF_ERROR(store.begin_batch());
  for (const std::filesystem::path& file : files) {
    auto text = read_file(file, kLargestVerdict);
    auto one = text.ok() ? import_verdict(store, *text, file.string(),
                                          place_of(file.lexically_relative(folder), run))
                         : Result<ImportSummary>(text.error());
    if (one.ok()) {
      summary += *one;
      continue;
    }
    if (!first) first = one.error();
    problems.add("not-a-verdict", one.error().to_string());
    ++summary.rejected;
  }
  if (summary.read == 0 && first) return *first;
  if (!problems.list().empty())
    PB_RETURN_IF_ERROR(store.note_problems(folder.string(), problems.list()));
  summary.problems.insert(summary.problems.end(), problems.list().begin(), problems.list().end());
  PB_RETURN_IF_ERROR(store.commit_batch());
  return summary;
}

}  // namespace

void ImportSummary::operator+=(const ImportSummary& other) {
  read += other.read;
  fresh += other.fresh;
  same += other.same;
  conflicts += other.conflicts;
  rejected += other.rejected;
  problems.insert(problems.end(), other.problems.begin(), other.problems.end());
}

Result<ImportSummary> import_source(Store& store, const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return import_folder(store, path);
  if (Store::looks_like_store(path)) return import_store(store, path);
  PB_ASSIGN_OR_RETURN(std::string text, read_file(path, kLargestText));
  if (looks_gzipped(text)) {
    auto unpacked = gzip_unpack(text, kLargestText);
    if (!unpacked.ok())
      return Error{unpacked.error().kind, path.string() + ": " + unpacked.error().message};
    text = unpacked.take();
  }
  const std::string name = path.string();
  if (looks_like_json(text)) {
    const std::string stem = path.stem().string();
    return import_verdict(store, text, name, {stem, stem, 0});
  }
  return import_csv(store, text, name);
}

}  // namespace ptxbench::store
