#include "te/kernels/block_cast.h"

#include <fmt/format.h>

#include "te/kernels/block_cast_launch.h"
#include "te/kernels/launch.h"

namespace ptxbench::te {

Result<void> block_cast(const BlockCast& c, cudaStream_t stream) {
  constexpr const char* kName = "block cast";
  PB_RETURN_IF_ERROR(check_shape(kName, c.rows, c.cols));
  PB_RETURN_IF_ERROR(check_operand(kName, "in", c.in, 2));
  PB_RETURN_IF_ERROR(validate(c.recipe));
  if (c.data == nullptr && c.transpose == nullptr)
    return Error{"usage", fmt::format("{}: neither data nor transpose is asked for", kName)};
  if (c.data != nullptr) PB_RETURN_IF_ERROR(check_operand(kName, "scale_inv", c.scale_inv, 4));
  if (c.transpose != nullptr)
    PB_RETURN_IF_ERROR(check_operand(kName, "transpose_scale_inv", c.transpose_scale_inv, 4));
  device::BlockCastArgs a;
  a.in = static_cast<const uint16_t*>(c.in);
  a.data = c.data, a.transpose = c.transpose;
  a.scale_inv = c.scale_inv, a.transpose_scale_inv = c.transpose_scale_inv;
  a.rows = c.rows, a.cols = c.cols;
  const int64_t down = (c.rows + kScaleBlock - 1) / kScaleBlock,
                across = (c.cols + kScaleBlock - 1) / kScaleBlock;
  if (down * across > 0x7fffffff)
    return Error{"usage",
                 fmt::format("{}: {} x {} is more than one grid holds", kName, c.rows, c.cols)};
  a.tile_rows = static_cast<uint32_t>(down), a.tile_cols = static_cast<uint32_t>(across);
  a.epsilon = c.recipe.amax_epsilon, a.power_of_two = c.recipe.power_of_two_scales;
  a.square = c.square;
  a.vector = c.cols % 8 == 0 && aligned(c.in, 16) && aligned(c.data, 8) &&
             (c.transpose == nullptr || (c.rows % 16 == 0 && aligned(c.transpose, 16)));
  return launched(kName, device::launch_block_cast(a, stream));
}

}  // namespace ptxbench::te
