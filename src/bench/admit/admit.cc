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

#include "bench/admission.h"

namespace ptxbench::bench::admit {
namespace {

constexpr int64_t kRows = 64, kColumns = 64;  // of a reduced form
constexpr double kFar = 1e6;                  // infinite in JSON

struct Trial {  // one size on one distribution
  const Form* form = nullptr;
  Distribution distribution{};
  std::vector<Correctness> honest, battery;
};

Correctness compare(const GemmCase& g, const Words& c) {
  Comparator comparator(c, g.m, g.n, g.poison);
  comparator.add_block(0, g.m, g.right, 1);
  return comparator.finish();
}

// How far from the bounds: the worst of the four statistics over its bound.
double distance(const Correctness& c) {
  double worst = c.class_mismatches + c.poisoned > 0 ? kFar : 0;
  for (auto [value, bound] : {std::pair{c.rel_frobenius, c.bound_rel_frobenius},
                              {c.tile_rel_frobenius, c.bound_tile_rel_frobenius},
                              {c.misround_rate, c.bound_misround},
                              {c.tile_misround_rate, c.bound_tile_misround}})
    worst = std::max(worst, std::isfinite(value) ? value / bound : kFar);
  return std::min(worst, kFar);
}

class Admitting {
 public:
  explicit Admitting(const AdmitRequest& request) : request_(request), task_(request.task) {}

  Result<Admission> run() {
    if (task_.definition.op_type != "gemm")
      return Error{"unsupported", fmt::format("{}: op_type '{}' has no battery (known: gemm)",
                                              task_.definition.name, task_.definition.op_type)};
    result_.task = task_.definition.name;
    result_.seed = to_hex(request_.seed);
    result_.date = request_.date;
    result_.sample = request_.sample;
    result_.not_applicable = not_applicable_to_gemm();
    result_.forms = forms_of(task_, request_.sample);
    PB_ASSIGN_OR_RETURN(result_.digest, task_digest(task_.folder));
    for (int d = 0; d < kDistributions; ++d)
      if (!request_.sample || d < 3) result_.distributions.push_back(static_cast<Distribution>(d));
    PB_RETURN_IF_ERROR(try_all());
    collect_points();
    judge(honest_gemms(), &Trial::honest, true, result_.honest);
    judge(null_gemms(), &Trial::battery, false, result_.battery);
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
    PB_ASSIGN_OR_RETURN(GemmCase g, make_case(task_.definition, trial.form->axes, seed_of(form),
                                              trial.distribution));
    for (const Implementation& i : honest_gemms()) trial.honest.push_back(compare(g, i.compute(g)));
    if (shows_cheats(trial.distribution))
      for (const Implementation& i : null_gemms())
        trial.battery.push_back(compare(g, i.compute(g)));
    return {};
  }

  Result<void> try_all() {
    for (const Form& form : result_.forms)
      for (Distribution distribution : result_.distributions) {
        trials_.emplace_back();
        trials_.back().form = &form;
        trials_.back().distribution = distribution;
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

  // What honest implementations had on a distribution becomes part of its bounds.
  void collect_points() {
    for (const Trial& trial : trials_) {
      const int64_t k = axis_value(trial.form->axes, "K");
      auto at = std::find_if(result_.points.begin(), result_.points.end(), [&](const auto& p) {
        return p.k == k && p.distribution == trial.distribution;
      });
      if (at == result_.points.end()) {
        result_.points.push_back({});
        at = result_.points.end() - 1;
        at->k = k;
        at->distribution = trial.distribution;
      }
      for (const Correctness& c : trial.honest) {
        at->rel_frobenius = std::max(at->rel_frobenius, c.rel_frobenius);
        at->tile_rel_frobenius = std::max(at->tile_rel_frobenius, c.tile_rel_frobenius);
        at->misround = std::max(at->misround, c.misround_rate);
        at->tile_misround = std::max(at->tile_misround, c.tile_misround_rate);
      }
    }
    std::sort(result_.points.begin(), result_.points.end(), [](const auto& x, const auto& y) {
      return std::pair(x.k, x.distribution) < std::pair(y.k, y.distribution);
    });
    for (Distribution d : result_.distributions) {
      std::vector<HonestError> honest;
      for (const HonestPoint& p : result_.points)
        if (p.distribution == d)
          honest.push_back({p.k, p.rel_frobenius, p.misround, p.tile_misround});
      Calibration& calibration = calibrations_[d] = task_.file_calibration;
      add_honest(honest, calibration);
    }
  }

  void judge(const std::vector<Implementation>& implementations,
             std::vector<Correctness> Trial::*of, bool honest, std::vector<EntryResult>& results) {
    for (size_t i = 0; i < implementations.size(); ++i) {
      EntryResult entry;
      entry.name = implementations[i].name;
      entry.what = implementations[i].what;
      entry.nearest = honest ? 0 : std::numeric_limits<double>::infinity();
      for (Trial& trial : trials_) {
        if ((trial.*of).empty()) continue;
        judge_one(trial, (trial.*of)[i], honest, entry);
      }
      if (entry.runs == 0) result_.failures.push_back(entry.name + " was never tried");
      results.push_back(entry);
    }
  }

  void judge_one(const Trial& trial, Correctness& c, bool honest, EntryResult& entry) {
    decide(calibrations_[trial.distribution], axis_value(trial.form->axes, "K"), c);
    ++entry.runs;
    entry.accepted += c.passed;
    const double d = distance(c);
    if (honest ? d > entry.nearest : d < entry.nearest) {
      entry.nearest = d;
      entry.nearest_workload = trial.form->workload;
      entry.nearest_distribution = name(trial.distribution);
    }
    if (c.passed == honest) return;
    result_.failures.push_back(fmt::format("{} is {} at {} on {} inputs{}", entry.name,
                                           honest ? "rejected" : "accepted", trial.form->workload,
                                           name(trial.distribution), honest ? ": " + c.why : ""));
  }

  // On the inputs that candidates are judged on.
  Result<void> try_sensitivity() {
    Sensitivity& least = result_.sensitivity;
    int64_t slices = 0;
    for (size_t f = 0; f < result_.forms.size(); ++f) {
      const AxisValues& axes = result_.forms[f].axes;
      const Seed seed = seed_of(f);
      PB_ASSIGN_OR_RETURN(GemmCase g, make_case(task_.definition, axes, seed, Distribution::mixed));
      PB_ASSIGN_OR_RETURN(GemmCase other, make_case(task_.definition, axes, {~seed.high, seed.low},
                                                    Distribution::mixed));
      const Calibration& calibration = calibrations_[Distribution::mixed];
      const double tolerance = calibration.tile_rel_frobenius_factor *
                               honest_error(calibration, axis_value(axes, "K")).rel_frobenius;
      PB_ASSIGN_OR_RETURN(Sensitivity one, measure_sensitivity(g, other, tolerance));
      slices += one.slices;
      if (f == 0 || one.least < least.least) least = one;
    }
    least.slices = slices;
    if (!(least.least > kRequiredMove))
      result_.failures.push_back(
          fmt::format("{}[:, {}..{}] moves the result by {:.2f} tolerances only, {} are required",
                      least.input, least.begin, least.end - 1, least.least, kRequiredMove));
    return {};
  }

  const AdmitRequest& request_;
  const Task& task_;
  std::map<Distribution, Calibration> calibrations_;
  std::vector<Trial> trials_;
  Admission result_;
};

void set_axis(AxisValues& axes, const char* axis, int64_t value) {
  for (auto& [name, current] : axes)
    if (name == axis) current = value;
}

}  // namespace

std::vector<Form> forms_of(const Task& task, bool sample) {
  std::vector<Form> forms;
  std::set<AxisValues> seen;
  for (const Workload& workload : task.workloads) {
    auto axes = resolve_axes(task.definition, &workload, {});
    if (!axes.ok()) continue;  // refused by eval, too
    Form form{workload.uuid, *axes, workload.published};
    if (form.reduced) {
      const int64_t m = axis_value(form.axes, "M"), n = axis_value(form.axes, "N");
      set_axis(form.axes, "M", m < 2 * kRows ? m : kRows + m % kRows);
      set_axis(form.axes, "N", std::min(n, kColumns));
    }
    if (!seen.insert(form.axes).second) continue;
    if (sample && std::any_of(forms.begin(), forms.end(),
                              [&](const Form& f) { return f.reduced == form.reduced; }))
      continue;
    forms.push_back(std::move(form));
  }
  return forms;
}

bool shows_cheats(Distribution distribution) {
  return distribution != Distribution::integers && distribution != Distribution::one_hot;
}

Result<Admission> admit(const AdmitRequest& request) { return Admitting(request).run(); }

}  // namespace ptxbench::bench::admit
