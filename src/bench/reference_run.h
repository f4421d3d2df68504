#pragma once
// Running the user's reference.cu (bench/op/user_reference.h).

#include <vector>

#include "base/result.h"
#include "bench/evaluate.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {

// Whether the folder's reference decides: there is one, and this program has no operation that fits
// the definition.
bool uses_user_reference(const Task& task);

// Compiles, records and replays it on the emulator's exact settings; outputs of floating type come
// back as float64. Errors: "bad-task" naming the file and what it did, or the harness's own.
Result<std::vector<Tensor>> run_reference(const Problem& problem, const EvalRequest& request,
                                          const Services& services);

}  // namespace ptxbench::bench
