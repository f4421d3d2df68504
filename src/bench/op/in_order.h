#pragma once
// Parts of a reference computed in parallel and handed on in order, a few at a time so that memory
// stays bounded.

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {

// compute(part, threads) -> Result<R>; deliver(part, R). Error: one of compute's.
template <class R>
Result<void> in_order(int64_t parts, int threads,
                      const std::function<Result<R>(int64_t, int)>& compute,
                      const std::function<void(int64_t, const R&)>& deliver) {
  const int64_t chunk = std::max(1, threads);
  std::mutex mutex;
  Result<void> failure;
  for (int64_t first = 0; first < parts; first += chunk) {
    const int64_t count = std::min(chunk, parts - first);
    std::vector<R> results(static_cast<size_t>(count));
    const int each = static_cast<int>(std::max<int64_t>(1, threads / count));
    parallel_for(count, threads, [&](int64_t i) {
      auto computed = compute(first + i, each);
      const std::lock_guard lock(mutex);
      if (computed.ok())
        results[static_cast<size_t>(i)] = computed.take();
      else
        failure = computed.error();
    });
    PB_RETURN_IF_ERROR(failure);
    for (int64_t i = 0; i < count; ++i) deliver(first + i, results[static_cast<size_t>(i)]);
  }
  return {};
}

}  // namespace ptxbench::bench
