#include "te/kernels/embedding.h"

#include <fmt/format.h>

#include "te/kernels/embedding_launch.h"
#include "te/kernels/launch.h"

namespace ptxbench::te {

Result<void> embedding(const Embedding& c, cudaStream_t stream) {
  constexpr const char* kName = "embedding";
  PB_RETURN_IF_ERROR(check_shape(kName, c.tokens, c.cols));
  PB_RETURN_IF_ERROR(check_shape(kName, c.entries, c.cols));
  PB_RETURN_IF_ERROR(check_operand(kName, "index", c.index, 4));
  PB_RETURN_IF_ERROR(check_operand(kName, "table", c.table, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "y", c.y, 2));
  if (c.positions != nullptr && c.sequence < 1)
    return Error{"usage",
                 fmt::format("{}: sequence is {}: it must be at least 1", kName, c.sequence)};
  device::EmbeddingArgs a;
  a.index = c.index, a.table = static_cast<const uint16_t*>(c.table);
  a.positions = static_cast<const uint16_t*>(c.positions), a.y = static_cast<uint16_t*>(c.y);
  a.errors = c.errors, a.tokens = c.tokens, a.cols = c.cols, a.entries = c.entries;
  a.sequence = c.positions != nullptr ? c.sequence : 1;
  a.vector =
      c.cols % 8 == 0 && aligned(c.table, 16) && aligned(c.positions, 16) && aligned(c.y, 16);
  return launched(kName, device::launch_embedding(a, stream));
}

Result<void> embedding_backward(const EmbeddingBackward& c, cudaStream_t stream) {
  constexpr const char* kName = "embedding backward";
  PB_RETURN_IF_ERROR(check_shape(kName, c.tokens, c.cols));
  PB_RETURN_IF_ERROR(check_shape(kName, c.entries, c.cols));
  PB_RETURN_IF_ERROR(check_operand(kName, "dy", c.dy, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "dtable", c.dtable, 4));
  if (c.tokens > 0x7fffffff || c.cols > int64_t{65535} * 2048)
    return Error{"usage",
                 fmt::format("{}: {} x {} is more than one grid holds", kName, c.tokens, c.cols)};
  device::EmbeddingBackwardArgs a;
  a.index = c.index, a.dy = static_cast<const uint16_t*>(c.dy), a.dtable = c.dtable;
  a.tokens = c.tokens, a.cols = c.cols, a.entries = c.entries;
  a.vector = c.cols % 8 == 0 && aligned(c.dy, 16);
  return launched(kName, device::launch_embedding_backward(a, stream));
}

}  // namespace ptxbench::te
