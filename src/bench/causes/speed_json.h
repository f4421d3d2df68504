#pragma once
// A speed report as JSON (docs/verdict.md, field `estimate`) and as the lines that a model gets.

#include <nlohmann/json.hpp>

#include "bench/causes/causes.h"

namespace ptxbench::bench {

nlohmann::json to_json(const SpeedReport& report);

// "- estimated on h200 ...", then the causes, dearest first, at most `causes` of them.
std::string speed_feedback(const SpeedReport& report, size_t causes);

}  // namespace ptxbench::bench
