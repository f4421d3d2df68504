#include "te/kernels/norm_forward.h"

#include <fmt/format.h>

#include <cmath>

#include "te/kernels/launch.h"
#include "te/kernels/norm_launch.h"

namespace ptxbench::te {
namespace {

constexpr const char* kName = "norm forward";
constexpr int64_t kMostCtas = 8;

struct Sides {
  int64_t rows, cols;
};
Sides sides(NormTile tile) {
  switch (tile) {
    case NormTile::t64x256:
      return {64, 256};
    case NormTile::t32x512:
      return {32, 512};
    case NormTile::t32x1024:
      return {32, 1024};
    case NormTile::t16x2048:
      return {16, 2048};
    case NormTile::t16x4096:
      return {16, 4096};
  }
  return {32, 512};
}

bool fits_vectors(const NormForward& c) {
  if (c.cols % 8 != 0 || c.rows % 8 != 0) return false;
  if (c.out.transpose != nullptr && (c.rows % 16 != 0 || !aligned(c.out.transpose, 16)))
    return false;
  return aligned(c.x, 16) && aligned(c.gamma, 16) && aligned(c.beta, 16) && aligned(c.y, 16) &&
         aligned(c.out.data, 8);
}

Result<void> check(const NormForward& c) {
  PB_RETURN_IF_ERROR(check_shape(kName, c.rows, c.cols));
  if (c.cols > kWidestNorm)
    return Error{"usage",
                 fmt::format("{}: {} columns; {} is the most", kName, c.cols, kWidestNorm)};
  PB_RETURN_IF_ERROR(check_operand(kName, "x", c.x, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "gamma", c.gamma, 2));
  if (c.beta != nullptr) PB_RETURN_IF_ERROR(check_operand(kName, "beta", c.beta, 2));
  if (c.y != nullptr) PB_RETURN_IF_ERROR(check_operand(kName, "y", c.y, 2));
  if (c.kind == NormKind::rms && (c.beta != nullptr || c.mean != nullptr))
    return Error{"usage", fmt::format("{}: RMSNorm has neither beta nor mean", kName)};
  if (!(std::isfinite(c.epsilon) && c.epsilon > 0))
    return Error{"usage",
                 fmt::format("{}: epsilon is {}: it must be finite and > 0", kName, c.epsilon)};
  if (c.out.data == nullptr && c.out.transpose == nullptr && c.y == nullptr)
    return Error{"usage", fmt::format("{}: no output is asked for", kName)};
  return {};
}

}  // namespace

std::string NormPlan::describe() const {
  const Sides s = sides(tile);
  return fmt::format("{}x{} tiles, clusters of {}, {} blocks of rows, {}{}", s.rows, s.cols,
                     cluster, row_blocks, vector ? "16-byte accesses" : "element by element",
                     prefetch > 0 ? fmt::format(", {} ahead into L2", prefetch) : "");
}

NormPlan cut(const NormForward& c, NormTile tile) {
  const Sides s = sides(tile);
  NormPlan plan;
  plan.tile = tile;
  plan.cluster = static_cast<uint32_t>((c.cols + s.cols - 1) / s.cols);
  plan.row_blocks = static_cast<uint32_t>((c.rows + s.rows - 1) / s.rows);
  return plan;
}

NormPlan plan_norm_forward(const NormForward& c, int sms) {
  NormTile tile = NormTile::t16x4096;
  for (NormTile t : {NormTile::t16x2048, NormTile::t32x1024, NormTile::t32x512, NormTile::t64x256})
    if (c.cols <= kMostCtas * sides(t).cols) tile = t;
  NormPlan plan = cut(c, tile);
  plan.vector = fits_vectors(c);
  // The clusters that run at once, roughly: farther ahead, and L2 no longer has it when it is
  // wanted.
  const uint32_t ahead = 2 * static_cast<uint32_t>(sms) / plan.cluster;
  if (plan.vector && ahead < plan.row_blocks) plan.prefetch = ahead;
  return plan;
}

Result<void> norm_forward(const NormForward& c, cudaStream_t stream) {
  PB_ASSIGN_OR_RETURN(const int sms, multiprocessors());
  return norm_forward(c, plan_norm_forward(c, sms), stream);
}

Result<void> norm_forward(const NormForward& c, const NormPlan& plan, cudaStream_t stream) {
  PB_RETURN_IF_ERROR(check(c));
  if (int64_t{plan.row_blocks} * plan.cluster > 0x7fffffff)
    return Error{"usage", fmt::format("{}: {} rows are more than one grid holds", kName, c.rows)};
  device::NormForwardArgs args;
  args.x = static_cast<const uint16_t*>(c.x);
  args.gamma = static_cast<const uint16_t*>(c.gamma);
  args.beta = static_cast<const uint16_t*>(c.beta);
  args.y = static_cast<uint16_t*>(c.y);
  args.mean = c.mean, args.rstd = c.rstd, args.out = c.out;
  args.rows = c.rows, args.cols = c.cols;
  args.inverse_cols = 1.0f / static_cast<float>(c.cols);
  args.epsilon = c.epsilon, args.gamma_offset = c.zero_centered_gamma ? 1.0f : 0.0f;
  args.cluster = plan.cluster, args.row_blocks = plan.row_blocks;
  args.prefetch = plan.prefetch;
  args.kind = c.kind, args.tile = plan.tile, args.vector = plan.vector;
  return launched(kName, device::launch_norm_forward(args, stream));
}

}  // namespace ptxbench::te
