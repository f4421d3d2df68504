// Stream capture: what is issued to a capturing stream becomes nodes of a graph.
#include <algorithm>
#include <set>

#include "cudart/lib/live/backend.h"

namespace ptxbench::cudart::live {
namespace {

enum CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

std::set<const Node*> ancestors(const std::vector<Node*>& from) {
  std::set<const Node*> seen;
  std::vector<const Node*> open(from.begin(), from.end());
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    if (!seen.insert(n).second) continue;
    open.insert(open.end(), n->needs.begin(), n->needs.end());
  }
  return seen;
}

}  // namespace

int LiveBackend::unsafe_in_capture() {
  int status = kSuccess;
  for (const auto& weak : captures_) {
    const auto capture = weak.lock();
    if (!capture || !capture->origin || capture->mode == kRelaxed) continue;
    if (capture->mode == kThreadLocal && capture->thread != std::this_thread::get_id()) continue;
    capture->invalid = true;
    status = refuse(kCaptureUnsupported, "the call is not allowed while a stream is capturing");
  }
  return status;
}

int LiveBackend::begin_capture(const void* handle, int mode, Graph* into,
                               std::vector<Node*> needs) {
  std::lock_guard lock(mutex_);
  Stream* s = stream(handle);
  if (!s) return kInvalidHandle;
  if (mode < kGlobal || mode > kRelaxed) return kInvalidValue;
  if (s == &legacy_) return refuse(kCaptureUnsupported, "the legacy stream cannot capture");
  if (s->capture) return refuse(kIllegalState, "the stream is capturing already");
  auto capture = std::make_shared<Capture>();
  capture->graph = into ? into : create_graph();
  capture->owns_graph = into == nullptr;
  capture->mode = mode;
  capture->id = ++next_id_;
  capture->origin = s;
  capture->streams = {s};
  capture->thread = std::this_thread::get_id();
  s->capture = capture;
  s->frontier = std::move(needs);
  std::erase_if(captures_, [](const auto& weak) { return weak.expired(); });
  captures_.push_back(capture);
  return kSuccess;
}

int LiveBackend::end_capture(const void* handle, Graph** out) {
  std::lock_guard lock(mutex_);
  *out = nullptr;
  Stream* s = stream(handle);
  if (!s) return kInvalidHandle;
  const std::shared_ptr<Capture> capture = s->capture;
  if (!capture) return refuse(kIllegalState, "the stream is not capturing");
  if (capture->origin != s)
    return refuse(kCaptureUnmatched, "a capture ends on the stream that began it");
  if (capture->mode != kRelaxed && capture->thread != std::this_thread::get_id())
    return refuse(kCaptureWrongThread, "a capture ends in the thread that began it");
  int status = capture->invalid ? static_cast<int>(kCaptureInvalidated) : kSuccess;
  const std::set<const Node*> joined = ancestors(s->frontier);
  for (Stream* other : capture->streams) {
    for (const Node* n : other->frontier)
      if (status == kSuccess && joined.count(n) == 0)
        status =
            refuse(kCaptureUnjoined, "a forked stream was not joined before the capture ended");
    other->capture = nullptr;
    if (other != s) other->frontier.clear();
  }
  s->frontier.clear();
  capture->origin = nullptr;
  if (status == kSuccess)
    *out = capture->graph;
  else if (capture->owns_graph)
    destroy_graph(capture->graph);
  return status;
}

}  // namespace ptxbench::cudart::live
