#include "bench/admit/admit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "bench/admission.h"

namespace ptxbench::bench::admit {
namespace {

struct Trial {  // one size on one distribution
  const Form* form = nullptr;
  Distribution distribution{};
  std::vector<std::vector<Correctness>> honest, battery;  // of each entry: its outputs
};

bool shows_cheats(const Battery& battery, Distribution distribution) {
  return !battery.shows_cheats || battery.shows_cheats(distribution);
}

bool is_hidden(const Implementation& i, Distribution distribution) {
  return std::find(i.hidden_on.begin(), i.hidden_on.end(), distribution) != i.hidden_on.end();
}

// What was written is the correctly rounded result itself, and so no cheat on these inputs.
bool is_right_result(const std::vector<Correctness>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const Correctness& c) {
    return c.misround_rate == 0 && c.poisoned + c.class_mismatches == 0;
  });
}

class Admitting {
 public:
  explicit Admitting(const AdmitRequest& request) : request_(request), task_(request.task) {}

  Result<Admission> run() {
    PB_ASSIGN_OR_RETURN(battery_, battery_of(task_.definition));
    result_.task = task_.definition.name;
    result_.seed = to_hex(request_.seed);
    result_.date = request_.date;
    result_.sample = request_.sample;
    result_.not_applicable = battery_.not_applicable;
    for (const TensorSpec& output : task_.definition.outputs)
      result_.outputs.push_back(output.name);
    result_.reduced_how = battery_.reduced_how;
    result_.forms = forms_of(task_, battery_, request_.sample);
    for (const Implementation& i : battery_.cheats)
      if (is_hidden(i, Distribution::mixed))
        result_.failures.push_back(i.name + " cannot be told on the inputs that decide");
    if (battery_.honest.size() < 2)
      result_.failures.push_back("there are fewer than two honest implementations to try");
    PB_ASSIGN_OR_RETURN(result_.digest, task_digest(task_.files));
    for (int d = 0; d < kDistributions; ++d)
      if (!request_.sample || d < 3) {
        const Distribution distribution = static_cast<Distribution>(d);
        result_.distributions.push_back({distribution, shows_cheats(battery_, distribution)});
      }
    PB_RETURN_IF_ERROR(try_all());
    collect_points();
    judge(battery_.honest, &Trial::honest, true, result_.honest);
    judge(battery_.cheats, &Trial::battery, false, result_.battery);
    PB_RETURN_IF_ERROR(try_sensitivity());
    result_.admitted = result_.failures.empty();
    return std::move(result_);
  }

 private:
  Seed seed_of(size_t form) const {
    return {request_.seed.high, request_.seed.low + 2 * static_cast<uint64_t>(form)};
  }

  Result<void> try_one(Trial& trial) const {
    const size_t form = static_cast<size_t>(trial.form - result_.forms.data());
    PB_ASSIGN_OR_RETURN(const Case c, make_case(task_.definition, trial.form->axes, seed_of(form),
                                                trial.distribution));
    PB_RETURN_IF_ERROR(run_all(c, battery_.honest, trial.honest));
    if (shows_cheats(battery_, trial.distribution))
      PB_RETURN_IF_ERROR(run_all(c, battery_.cheats, trial.battery));
    return {};
  }

  static Result<void> run_all(const Case& c, const std::vector<Implementation>& implementations,
                              std::vector<std::vector<Correctness>>& results) {
    for (const Implementation& i : implementations) {
      results.emplace_back();
      if (is_hidden(i, c.distribution)) continue;
      PB_ASSIGN_OR_RETURN(const std::vector<Tensor> written, i.compute(c));
      results.back() = compare(c, written);
    }
    return {};
  }

  Result<void> try_all() {
    for (const Form& form : result_.forms)
      for (const TriedDistribution& tried : result_.distributions) {
        trials_.emplace_back();
        trials_.back().form = &form;
        trials_.back().distribution = tried.distribution;
      }
    std::atomic<size_t> next = 0, done = 0;
    std::mutex mutex;
    Result<void> failure;
    auto work = [&] {
      for (size_t i; (i = next++) < trials_.size();) {
        Result<void> tried = try_one(trials_[i]);
        const std::lock_guard lock(mutex);
        if (!tried.ok()) failure = tried;
        if (request_.progress)
          request_.progress(static_cast<double>(++done) / static_cast<double>(trials_.size()));
      }
    };
    const int threads = request_.threads > 0
                            ? request_.threads
                            : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    return failure;
  }

  // What honest implementations had on a distribution becomes part of its bounds, where these are
  // made of errors measured at a length of the reduction.
  void collect_points() {
    const std::string axis =
        errors_by_length(task_.file_calibration) ? task_.file_calibration.reduction_axis : "";
    for (const Trial& trial : trials_)
      for (const auto& outputs : trial.honest)
        for (const Correctness& c : outputs)
          add_point(axis.empty() ? 0 : axis_value(trial.form->axes, axis), trial, c);
    const auto order = [](const HonestPoint& p) {
      return std::tuple(p.k, p.form, p.distribution, p.output);
    };
    std::stable_sort(result_.points.begin(), result_.points.end(),
                     [&](const auto& x, const auto& y) { return order(x) < order(y); });
    for (const auto& [d, shown] : result_.distributions) {
      std::vector<HonestError> honest;
      for (const HonestPoint& p : result_.points)
        if (p.distribution == d && p.k > 0)
          honest.push_back({p.k, p.rel_frobenius, p.misround, p.tile_misround});
      Calibration& calibration = calibrations_[d] = task_.file_calibration;
      add_honest(honest, calibration);
    }
  }

  void add_point(int64_t k, const Trial& trial, const Correctness& c) {
    const size_t output = output_index(c.output);
    const size_t form = k > 0 ? 0 : static_cast<size_t>(trial.form - result_.forms.data());
    auto at = std::find_if(result_.points.begin(), result_.points.end(), [&](const auto& p) {
      return p.k == k && p.form == form && p.distribution == trial.distribution &&
             p.output == output;
    });
    if (at == result_.points.end()) {
      result_.points.push_back({k, form, trial.distribution, output});
      at = result_.points.end() - 1;
    }
    at->rel_frobenius = std::max(at->rel_frobenius, c.rel_frobenius);
    at->tile_rel_frobenius = std::max(at->tile_rel_frobenius, c.tile_rel_frobenius);
    at->misround = std::max(at->misround, c.misround_rate);
    at->tile_misround = std::max(at->tile_misround, c.tile_misround_rate);
    at->noise_ratio = std::max(at->noise_ratio, c.noise_ratio);
    at->tile_noise_ratio = std::max(at->tile_noise_ratio, c.tile_noise_ratio);
  }

  size_t output_index(const std::string& name) const {
    const std::vector<TensorSpec>& outputs = task_.definition.outputs;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].name == name) return i;
    return 0;
  }

  void judge(const std::vector<Implementation>& implementations,
             std::vector<std::vector<Correctness>> Trial::*of, bool honest,
             std::vector<EntryResult>& results) {
    for (size_t i = 0; i < implementations.size(); ++i) {
      EntryResult entry;
      entry.name = implementations[i].name;
      entry.what = implementations[i].what;
      for (Distribution hidden : implementations[i].hidden_on)
        entry.hidden_on.push_back(name(hidden));
      entry.nearest = honest ? 0 : std::numeric_limits<double>::infinity();
      for (Trial& trial : trials_)
        if (!(trial.*of).empty() && !(trial.*of)[i].empty())
          judge_one(trial, (trial.*of)[i], honest, entry);
      if (entry.runs == entry.as_right)
        result_.failures.push_back(entry.name + (entry.runs == 0
                                                     ? " was never tried"
                                                     : " wrote the right result wherever tried"));
      results.push_back(entry);
    }
  }

  void judge_one(const Trial& trial, std::vector<Correctness>& outputs, bool honest,
                 EntryResult& entry) {
    // Sizes of a task of this kind differ in calibration by their length alone.
    Case sized;
    sized.axes = trial.form->axes;
    decide(sized, calibrations_[trial.distribution], outputs);
    ++entry.runs;
    if (!honest && is_right_result(outputs)) {
      ++entry.as_right;
      return;
    }
    const auto failed = std::find_if(outputs.begin(), outputs.end(),
                                     [](const Correctness& c) { return !c.passed; });
    const bool passed = failed == outputs.end();
    entry.accepted += passed;
    const double d = distance(outputs);
    if (honest ? d > entry.nearest : d < entry.nearest) {
      entry.nearest = d;
      entry.nearest_workload = trial.form->workload;
      entry.nearest_distribution = name(trial.distribution);
    }
    if (passed == honest) return;
    result_.failures.push_back(fmt::format(
        "{} is {} at {} on {} inputs{}", entry.name, honest ? "rejected" : "accepted",
        trial.form->workload, name(trial.distribution), honest ? ": " + failed->why : ""));
  }

  // On the inputs that candidates are judged on.
  Result<void> try_sensitivity() {
    Sensitivity& least = result_.sensitivity;
    int64_t slices = 0;
    for (size_t f = 0; f < result_.forms.size(); ++f) {
      const AxisValues& axes = result_.forms[f].axes;
      const Seed seed = seed_of(f);
      PB_ASSIGN_OR_RETURN(const Case one,
                          make_case(task_.definition, axes, seed, Distribution::mixed));
      PB_ASSIGN_OR_RETURN(const Case other, make_case(task_.definition, axes,
                                                      {~seed.high, seed.low}, Distribution::mixed));
      const Calibration& calibration = calibrations_[Distribution::mixed];
      auto measured = battery_.sensitivity ? battery_.sensitivity(one, other, calibration)
                                           : measure_sensitivity(battery_, one, other, calibration);
      if (!measured.ok()) return measured.error();
      slices += measured->slices;
      if (f == 0 || measured->least < least.least) {
        least = *measured;
        least.workload = result_.forms[f].workload;
      }
    }
    least.slices = slices;
    if (!(least.least > kRequiredMove))
      result_.failures.push_back(
          fmt::format("{} {} moves the result by {:.2f} tolerances only, {} are required",
                      least.input, least.slice, least.least, kRequiredMove));
    return {};
  }

  const AdmitRequest& request_;
  const Task& task_;
  Battery battery_;
  std::map<Distribution, Calibration> calibrations_;
  std::vector<Trial> trials_;
  Admission result_;
};

}  // namespace

Result<Battery> battery_of(const Definition& definition) {
  PB_ASSIGN_OR_RETURN(const Operation* operation, operation_of(definition));
  Battery battery = operation->battery(definition);
  std::vector<Implementation> cheats = general_cheats(definition);
  cheats.insert(cheats.end(), battery.cheats.begin(), battery.cheats.end());
  battery.cheats = std::move(cheats);
  return battery;
}

std::vector<Form> forms_of(const Task& task, const Battery& battery, bool sample) {
  std::vector<Form> forms;
  std::set<AxisValues> seen;
  for (const Workload& workload : task.workloads) {
    auto axes = resolve_axes(task.definition, &workload, {});
    if (!axes.ok()) continue;  // refused by eval, too
    Form form{workload.uuid, *axes, workload.published && battery.reduce};
    if (form.reduced) {
      const std::optional<AxisValues> reduced = battery.reduce(task.definition, *axes);
      if (!reduced) continue;
      form.axes = *reduced;
    }
    if (!seen.insert(form.axes).second) continue;
    if (sample && std::any_of(forms.begin(), forms.end(),
                              [&](const Form& f) { return f.reduced == form.reduced; }))
      continue;
    forms.push_back(std::move(form));
  }
  return forms;
}

Result<Admission> admit(const AdmitRequest& request) { return Admitting(request).run(); }

}  // namespace ptxbench::bench::admit
