// The speed report of a candidate that has just been found right, mostly at a small size: the
// estimate is made where its speed matters.
#include "bench/causes/evaluate_speed.h"

#include <algorithm>

#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

// The smallest published workload that fills a GPU, or the largest there is; null: none.
const Workload* representative(const Task& task) {
  constexpr double kEnough = 2e11;  // FLOP: more than 0.2 ms of any GPU here
  const Workload* best = nullptr;
  double best_flop = 0;
  for (const Workload& workload : task.workloads) {
    if (!workload.published) continue;
    auto axes = resolve_axes(task.definition, &workload, {});
    if (!axes.ok()) continue;
    auto flop = task_flop(task.definition, *axes);
    if (!flop.ok()) continue;
    const bool better =
        best == nullptr ||
        (best_flop < kEnough ? *flop > best_flop : *flop >= kEnough && *flop < best_flop);
    if (better) best = &workload, best_flop = *flop;
  }
  return best;
}

}  // namespace

void add_speed_report(const EvalRequest& request, const Services& services,
                      const plan::LaunchPlan& plan, const AssembledKernels& kernels,
                      Verdict& verdict) {
  const auto note = [&](const std::string& why) {
    verdict.notes.push_back("no estimate of its time: " + why);
  };
  const Workload* workload = representative(request.task);
  const bool as_recorded = request.extraction.candidate.kind == Candidate::Kind::plan ||
                           request.published_workload || workload == nullptr;
  Recording recording;
  if (!as_recorded) {
    EvalRequest other = request;
    auto axes = resolve_axes(request.task.definition, workload, {});
    if (!axes.ok()) return note(axes.error().message);
    other.axes = axes.take();
    other.workload = workload->uuid;
    other.sm_count = workload->sm_count;
    other.progress = nullptr;
    auto recorded = compile_and_record(other, services);
    if (!recorded.ok()) return note(recorded.error().message);
    if (recorded->verdict)
      return note("it is not launched at a published size: " + recorded->verdict->message);
    recording = recorded.take();
  }
  auto report = explain_speed(as_recorded ? plan : recording.plan, kernels, request.device_profile);
  if (!report.ok()) return note(report.error().message);
  verdict.estimate = report.take();
}

}  // namespace ptxbench::bench
