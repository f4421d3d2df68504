#pragma once
// Which tensors are cast to which format, and where their scales come from.
//
//   DelayedScaling  the scale of step t comes from the amaxes of earlier steps: one pass over the
//                   data, state between steps (fp8/state.h)
//   CurrentScaling  the scale comes from the tensor itself: an amax pass before the cast, no state
//   BlockScaling    one scale per 1x128 strip (activations, gradients) or 128x128 block (weights)

#include <string>
#include <variant>

#include "base/result.h"
#include "te/fp8/format.h"

namespace ptxbench::te {

// hybrid: e4m3 forward, e5m2 backward. e5m2 in both directions does not train and is not offered.
enum class FormatChoice : uint8_t { hybrid, e4m3 };
enum class AmaxAlgorithm : uint8_t { max, most_recent };
enum class Direction : uint8_t { forward, backward };

struct DelayedScaling {
  int margin = 0;  // scales are 2^margin smaller than they could be; 0..30
  FormatChoice format = FormatChoice::hybrid;
  int amax_history_len = 1024;  // samples in the window, the current one included; 1..65536
  AmaxAlgorithm amax_algorithm = AmaxAlgorithm::max;
  bool reduce_amax = true;  // maximum over all ranks
};

struct CurrentScaling {
  FormatChoice format = FormatChoice::hybrid;
  bool power_of_two_scales = false;
  float amax_epsilon = 0;  // >= 0, finite
};

struct BlockScaling {  // e4m3 in both directions
  bool power_of_two_scales = true;
  float amax_epsilon = 0;
};
inline constexpr int kScaleBlock = 128;  // side of a block, length of a strip

using Recipe = std::variant<DelayedScaling, CurrentScaling, BlockScaling>;

// Error "usage": names the field and its range.
Result<void> validate(const Recipe& recipe);
Fp8Format format_of(const Recipe& recipe, Direction direction);
// One line for logs: "delayed scaling, hybrid, margin 0, history 1024, max".
std::string describe(const Recipe& recipe);

}  // namespace ptxbench::te
