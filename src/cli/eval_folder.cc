#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "cli/commands.h"
#include "cli/eval_options.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace ptxbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxCandidates = 100'000;
constexpr uint64_t kMaxVerdict = uint64_t{256} << 20;

struct Row {
  std::string file;
  bool judged = false;
  int level = 0;
  std::string reason, label, message;
  double ms = 0;
};

struct Folder {
  std::vector<fs::path> candidates, skipped;
};

// JSON files are many things: only solutions are candidates (a launch manifest is met as the .ptx
// that it belongs to).
bool is_solution(const fs::path& path) {
  const auto text = read_file(path);
  if (!text.ok()) return false;
  const auto document = parse_json(*text);
  return document.ok() && document->is_object() && document->contains("sources");
}

bool is_candidate(const fs::path& path) {
  const std::string extension = path.extension();
  for (const char* known : {".cu", ".ptx", ".md", ".markdown", ".plan"})
    if (extension == known) return true;
  return extension == ".json" && is_solution(path);
}

Result<Folder> list(const fs::path& path) {
  Folder folder;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool good = it->is_regular_file(ignored) && is_candidate(it->path());
    (good ? folder.candidates : folder.skipped).push_back(it->path());
    if (folder.candidates.size() > kMaxCandidates)
      return Error{"too-large",
                   fmt::format("{}: more than {} candidates", path.string(), kMaxCandidates)};
  }
  if (error) return Error{"io", fmt::format("{}: {}", path.string(), error.message())};
  if (folder.candidates.empty())
    return Error{"usage", path.string() + " holds no candidate (.cu, .ptx, .md, .json, .plan)"};
  std::sort(folder.candidates.begin(), folder.candidates.end());
  std::sort(folder.skipped.begin(), folder.skipped.end());
  return folder;
}

class Batch {
 public:
  Batch(const EvalOptions& options, Folder folder, fs::path work)
      : options_(options),
        folder_(std::move(folder)),
        work_(std::move(work)),
        progress_(options.quiet) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int most = static_cast<int>(folder_.candidates.size());
    jobs_ = std::min(options.jobs > 0 ? options.jobs : cores, most);
    threads_ = options.threads > 0 ? options.threads : std::max(1, cores / jobs_);
  }
  Result<void> open_lines() {
    if (options_.json.empty() || options_.json == "-") return {};
    lines_ = open(options_.json.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (lines_ < 0) return Error{"io", fmt::format("{}: {}", options_.json, std::strerror(errno))};
    return {};
  }

  Result<void> run() {
    std::vector<std::thread> workers;
    for (int i = 0; i < jobs_; ++i) workers.emplace_back([this] { work(); });
    for (std::thread& worker : workers) worker.join();
    hold_if_interrupted();
    progress_.clear();
    return failed_.empty() ? Result<void>() : Error{"io", failed_};
  }

  int exit_code() const {
    bool short_of = false, broken = false;
    for (const auto& [index, row] : rows_) {
      broken |= !row.judged;
      short_of |= row.judged && row.level < options_.require;
    }
    return broken ? kFailure : short_of ? kFellShort : kOk;
  }

  std::string table() {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t width = 9;
    for (const auto& [index, row] : rows_) width = std::max(width, row.file.size());
    width = std::min<size_t>(width, 60);
    std::string text = fmt::format("{:<{}}  level  {:<26}{:<26}{:>8}\n", "candidate", width,
                                   "reason", "label", "s");
    std::map<int, int> levels;
    int broken = 0;
    for (const auto& [index, row] : rows_) {
      if (row.judged) {
        ++levels[row.level];
        text += fmt::format("{:<{}}  {:<7}{:<26}{:<26}{:>8.2f}\n", row.file, width, row.level,
                            row.reason, row.label, row.ms / 1e3);
      } else {
        ++broken;
        text += fmt::format("{:<{}}  -      not judged: {}\n", row.file, width, row.message);
      }
    }
    text += fmt::format("{} of {} candidates", rows_.size(), folder_.candidates.size());
    for (const auto& [level, count] : levels) text += fmt::format("; level {}: {}", level, count);
    if (broken > 0) text += fmt::format("; not judged: {}", broken);
    text += "\n";
    if (!folder_.skipped.empty()) {
      text += fmt::format("no candidates ({}):", folder_.skipped.size());
      for (size_t i = 0; i < std::min<size_t>(folder_.skipped.size(), 10); ++i)
        text += " " + folder_.skipped[i].filename().string();
      text += folder_.skipped.size() > 10 ? " ...\n" : "\n";
    }
    return text;
  }

 private:
  std::vector<std::string> arguments(const fs::path& file, const fs::path& json) const {
    std::vector<std::string> out = {"/proc/self/exe", "eval"};
    if (file.extension() == ".plan") out.emplace_back("--plan");
    out.insert(out.end(), {file.string(), "--json", json.string(), "--quiet", "--threads",
                           std::to_string(threads_)});
    const std::pair<const char*, const std::string&> given[] = {
        {"--task", options_.task},         {"--tasks", options_.tasks_folder},
        {"--workload", options_.workload}, {"--axes", options_.axes},
        {"--arch", options_.arch},         {"--device", options_.device},
        {"--tensor", options_.tensor},     {"--async", options_.async},
        {"--schedule", options_.schedule}, {"--seed", options_.seed},
        {"--races", options_.races}};
    for (const auto& [name, text] : given)
      if (!text.empty()) out.insert(out.end(), {name, text});
    if (options_.timeout_s > 0)
      out.insert(out.end(), {"--timeout", fmt::format("{}", options_.timeout_s)});
    if (options_.trust) out.emplace_back("--trust");
    return out;
  }

  void work() {
    while (!interrupted()) {
      const size_t index = next_++;
      if (index >= folder_.candidates.size()) return;
      const fs::path& file = folder_.candidates[index];
      progress_.show(file.filename().string(),
                     static_cast<double>(index) / static_cast<double>(folder_.candidates.size()));
      const fs::path json = work_ / fmt::format("{}.json", index);
      ProcessSpec spec;
      spec.argv = arguments(file, json);
      auto process = run_process(spec);
      if (interrupted()) return;  // what an ended child leaves behind is no result
      add(index, file, process, json);
      std::error_code error;
      fs::remove(json, error);
    }
  }

  void add(size_t index, const fs::path& file, const Result<ProcessResult>& process,
           const fs::path& json) {
    Row row;
    row.file = file.filename().string();
    Json line = {{"file", row.file}};
    const auto text = read_file(json, kMaxVerdict);
    auto document = text.ok() ? parse_json(*text) : Result<Json>(text.error());
    if (document.ok() && document->contains("level")) {
      const Json& v = *document;
      row.judged = true;
      row.level = v["level"].get<int>();
      row.reason = v["reason"].get<std::string>();
      row.label = v["label"].get<std::string>();
      row.ms = v["total_ms"].is_number() ? v["total_ms"].get<double>() : 0;
      line["verdict"] = document.take();
    } else if (document.ok() && document->contains("infrastructure")) {
      row.message = (*document)["infrastructure"].value("message", "");
      line["infrastructure"] = (*document)["infrastructure"];
    } else {
      row.message = !process.ok()          ? process.error().message
                    : process->signal != 0 ? fmt::format("ended by signal {}", process->signal)
                                           : process->err.substr(0, process->err.find('\n'));
      line["infrastructure"] = {{"kind", "internal"}, {"message", row.message}};
    }
    const std::string bytes = dump_json(line, -1) + "\n";
    const std::lock_guard<std::mutex> lock(mutex_);
    rows_[index] = std::move(row);
    if (options_.json == "-") {
      print(bytes);
    } else if (lines_ >= 0 &&
               write(lines_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      failed_ = fmt::format("{}: {}", options_.json, std::strerror(errno));
    }
  }

  const EvalOptions options_;
  const Folder folder_;
  const fs::path work_;
  Progress progress_;
  int jobs_ = 1, threads_ = 1, lines_ = -1;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::map<size_t, Row> rows_;
  std::string failed_;
};

}  // namespace

int eval_folder(const EvalOptions& options) {
  if (!options.trace.empty() || !options.plan.empty() || !options.tile_map.empty())
    return fail(
        Error{"usage", "--trace, --plan and --tile-map are for one candidate, not for a folder"});
  if (options.task.empty()) return fail(Error{"usage", "--task is required"});
  // What is wrong for all is said once.
  auto suite = bench::TaskSuite::open(options.tasks_folder);
  if (!suite.ok()) return fail(suite.error());
  if (auto task = suite->load(options.task); !task.ok()) return fail(task.error());
  auto folder = list(options.file);
  if (!folder.ok()) return fail(folder.error());
  auto work = TempDir::create("eval");
  if (!work.ok()) return fail(work.error());
  // Never destroyed: until the process ends, a signal's thread may ask for the table.
  Batch* const batch = new Batch(options, folder.take(), work->path());
  if (auto opened = batch->open_lines(); !opened.ok()) return fail(opened.error());
  // Ctrl-C keeps what is done: the lines are in their file, and the table so far is printed.
  if (options.json != "-")
    on_interrupt([batch] {
      const std::string text = batch->table();
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    });
  if (auto ran = batch->run(); !ran.ok()) return fail(ran.error());
  if (options.json != "-") print(batch->table());
  hold_if_interrupted();
  return batch->exit_code();
}

}  // namespace ptxbench::cli
