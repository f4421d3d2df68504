#pragma once
// The state of delayed scaling, for all tensors of one direction together: scale[n] and
// amax_history[length][n], fp32 (row = time, column = tensor). Row 0 collects the amax of the step
// under way, by maximum; rows 1..length-1 are the past, oldest first. Row 0 is contiguous, so the
// maximum over all ranks is one all-reduce on it.
//
// scale_inv is no part of it: it belongs to the quantised tensor and is written by the cast, so
// that a weight kept under an old scale stays decodable.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "te/fp8/recipe.h"

namespace ptxbench::te {

struct ScalingState {
  uint32_t tensors = 0;
  uint32_t history_len = 0;
  std::vector<float> scale;       // [tensors], 1 at the start
  std::vector<float> history;     // [history_len][tensors], 0 at the start
  std::vector<float> scaled_max;  // [tensors], fp8_max * 2^-margin
  AmaxAlgorithm algorithm = AmaxAlgorithm::max;

  bool operator==(const ScalingState&) const = default;
  std::span<float> current_amax() { return {history.data(), tensors}; }
};

// Column i has formats[i]. Error "usage": invalid recipe.
Result<ScalingState> make_state(const DelayedScaling& recipe, std::span<const Fp8Format> formats);

// One step for all tensors, on the CPU (the kernel: kernels/scale_update.h). `reduced`: the maxima
// over all ranks, empty for none; a zero there means "not reduced" and row 0 counts. A tensor whose
// amax is zero did not run: its column stays as it is, without a roll.
void update(ScalingState& state, std::span<const float> reduced = {});

// A checkpoint: magic, version, sizes, then scale, history and scaled_max; little-endian, with a
// checksum. Size depends on (tensors, history_len) alone.
std::string serialize(const ScalingState& state);
// Errors "format": not a checkpoint, an unknown version, wrong length or checksum.
Result<ScalingState> deserialize(std::string_view bytes);
// A window of another length: the newest samples are kept, missing ones are zero. Row 0 stays.
void resize_history(ScalingState& state, uint32_t history_len);

}  // namespace ptxbench::te
