// Streams and events. Every operation is performed when it is issued, so streams never overlap and
// waiting finds everything done; an event's time is the host's clock while the emulator works.
#include <algorithm>

#include "cudart/lib/live/backend.h"

namespace ptxbench::cudart::live {
namespace {

constexpr unsigned kNonBlocking = 1;
const void* const kLegacy = reinterpret_cast<const void*>(1);
const void* const kPerThread = reinterpret_cast<const void*>(2);

}  // namespace

Stream* LiveBackend::stream(const void* handle) {
  static thread_local Stream* per_thread = new Stream;
  if (!handle || handle == kLegacy) return &legacy_;
  if (handle == kPerThread) return per_thread;
  const auto found = streams_.find(handle);
  return found == streams_.end() ? nullptr : found->second.get();
}

const void* LiveBackend::create_stream() {
  std::lock_guard lock(mutex_);
  auto made = std::make_unique<Stream>();
  made->id = ++next_id_;
  const void* handle = made.get();
  streams_[handle] = std::move(made);
  return handle;
}

int LiveBackend::destroy_stream(const void* handle) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return kInvalidHandle;
  if (auto& capture = found->second->capture) {
    capture->invalid = true;
    auto& all = capture->streams;
    all.erase(std::remove(all.begin(), all.end(), found->second.get()), all.end());
  }
  streams_.erase(found);
  return kSuccess;
}

int LiveBackend::synchronize_stream(const void* handle) {
  std::lock_guard lock(mutex_);
  Stream* s = stream(handle);
  if (!s) return kInvalidHandle;
  if (s->capture) {
    s->capture->invalid = true;
    return refuse(kCaptureUnsupported, "a stream that is capturing cannot be waited for");
  }
  return sticky_;
}

Event* LiveBackend::create_event(unsigned flags) {
  std::lock_guard lock(mutex_);
  auto made = std::make_unique<Event>();
  made->flags = flags;
  Event* handle = made.get();
  events_[handle] = std::move(made);
  return handle;
}

Event* LiveBackend::event(const void* handle) {
  const auto found = events_.find(handle);
  return found == events_.end() ? nullptr : found->second.get();
}

int LiveBackend::destroy_event(const void* handle) {
  std::lock_guard lock(mutex_);
  return events_.erase(handle) ? kSuccess : kInvalidHandle;
}

int LiveBackend::record_event(Event* e, const void* handle) {
  std::lock_guard lock(mutex_);
  Stream* s = stream(handle);
  if (!s || !e) return kInvalidHandle;
  if (sticky_) return sticky_;
  if (s->capture) {
    e->capture = s->capture;
    e->frontier = s->frontier;
    return s->capture->invalid ? kCaptureInvalidated : kSuccess;
  }
  return perform(EventOp{e, false});
}

int LiveBackend::wait_event(const void* handle, Event* e) {
  std::lock_guard lock(mutex_);
  Stream* s = stream(handle);
  if (!s || !e) return kInvalidHandle;
  if (sticky_) return sticky_;
  const bool live_capture = e->capture && e->capture->origin;
  if (!live_capture) {
    if (!s->capture) return kSuccess;
    s->capture->invalid = true;
    return refuse(kCaptureIsolation, "a capturing stream waits for an event outside the capture");
  }
  if (s->capture && s->capture != e->capture) {
    s->capture->invalid = true;
    return refuse(kIllegalState, "a stream waits for an event of another capture");
  }
  if (s == &legacy_)
    return refuse(kCaptureImplicit, "the legacy stream cannot take part in a capture");
  if (!s->capture) {
    s->capture = e->capture;
    s->capture->streams.push_back(s);
    s->frontier.clear();
  }
  for (Node* n : e->frontier)
    if (std::find(s->frontier.begin(), s->frontier.end(), n) == s->frontier.end())
      s->frontier.push_back(n);
  return kSuccess;
}

int LiveBackend::submit(const void* handle, Operation op) {
  std::lock_guard lock(mutex_);
  if (sticky_) return sticky_;
  Stream* s = stream(handle);
  if (!s) return refuse(kInvalidHandle, "the stream does not exist (any more)");
  if (s->capture) {
    if (s->capture->invalid) return kCaptureInvalidated;
    s->frontier = {s->capture->graph->add(std::move(op), s->frontier)};
    return kSuccess;
  }
  if (s == &legacy_)
    for (const auto& weak : captures_)
      if (const auto capture = weak.lock();
          capture && capture->origin && !(capture->origin->flags & kNonBlocking)) {
        capture->invalid = true;
        return refuse(kCaptureImplicit,
                      "work on the legacy stream would depend on a stream that is capturing");
      }
  return perform(op);
}

int LiveBackend::perform(const Operation& op) {
  if (sticky_) return sticky_;
  if (const auto* kernel = std::get_if<KernelOp>(&op)) return execute(*kernel);
  if (const auto* copy = std::get_if<CopyCall>(&op)) return execute(*copy);
  if (const auto* fill = std::get_if<MemsetCall>(&op)) return execute(*fill);
  if (const auto* host = std::get_if<HostOp>(&op)) return execute(*host);
  if (const auto* e = std::get_if<EventOp>(&op)) {
    if (e->wait || !event(e->event)) return kSuccess;
    e->event->recorded = true;
    e->event->at = Clock::now();
    e->event->capture = nullptr;
    e->event->frontier.clear();
    return kSuccess;
  }
  if (const auto* child = std::get_if<ChildOp>(&op)) {
    std::vector<Node*> order;
    if (!child->graph->order(&order)) return kInvalidValue;
    for (const Node* n : order)
      if (n->enabled)
        if (const int status = perform(n->op)) return status;
  }
  return kSuccess;  // empty nodes; memory exists already
}

}  // namespace ptxbench::cudart::live
