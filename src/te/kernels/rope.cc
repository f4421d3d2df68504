#include "te/kernels/rope.h"

#include <fmt/format.h>

#include "te/kernels/launch.h"
#include "te/kernels/rope_launch.h"

namespace ptxbench::te {

Result<void> rope(const Rope& c, cudaStream_t stream) {
  constexpr const char* kName = "rope";
  PB_RETURN_IF_ERROR(check_shape(kName, c.tokens, c.heads));
  PB_RETURN_IF_ERROR(check_shape(kName, c.tokens * c.heads, c.dim));
  PB_RETURN_IF_ERROR(check_operand(kName, "x", c.x, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "y", c.y, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "cos", c.cos, 4));
  PB_RETURN_IF_ERROR(check_operand(kName, "sin", c.sin, 4));
  if (c.rotary < 2 || c.rotary % 2 != 0 || c.rotary > c.dim)
    return Error{"usage", fmt::format("{}: rotary is {}: it must be even and in 2..{}", kName,
                                      c.rotary, c.dim)};
  if (c.x_stride < c.heads * c.dim || c.y_stride < c.heads * c.dim)
    return Error{"usage", fmt::format("{}: a stride is below the {} elements of a token", kName,
                                      c.heads * c.dim)};
  if (c.positions < 1 || (c.position == nullptr && (c.sequence < 1 || c.sequence > c.positions)))
    return Error{"usage", fmt::format("{}: sequence is {}: it must be in 1..{}", kName, c.sequence,
                                      c.positions)};
  device::RopeArgs a;
  a.x = static_cast<const uint16_t*>(c.x), a.y = static_cast<uint16_t*>(c.y);
  a.cos = c.cos, a.sin = c.sin, a.position = c.position, a.errors = c.errors;
  a.tokens = c.tokens, a.heads = c.heads, a.dim = c.dim, a.rotary = c.rotary;
  a.x_stride = c.x_stride, a.y_stride = c.y_stride;
  a.positions = c.positions, a.sequence = c.position == nullptr ? c.sequence : 1;
  a.interleaved = c.interleaved, a.backward = c.backward;
  a.vector = c.rotary % 16 == 0 && c.dim % 8 == 0 && c.x_stride % 8 == 0 && c.y_stride % 8 == 0 &&
             aligned(c.x, 16) && aligned(c.y, 16);
  return launched(kName, device::launch_rope(a, stream));
}

}  // namespace ptxbench::te
