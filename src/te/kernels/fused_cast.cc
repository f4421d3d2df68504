#include "te/kernels/fused_cast.h"

#include <fmt/format.h>

#include <algorithm>

#include "te/kernels/fused_cast_launch.h"
#include "te/kernels/launch.h"

namespace ptxbench::te {
namespace {

constexpr const char* kName = "fused cast";
constexpr int64_t kSmallestTile = 64;

struct Sides {
  int64_t rows, cols;
};
Sides sides(CastTile tile) {
  switch (tile) {
    case CastTile::t64x64:
      return {64, 64};
    case CastTile::t64x128:
      return {64, 128};
    case CastTile::t128x128:
      return {128, 128};
    case CastTile::t64x256:
      return {64, 256};
  }
  return {64, 64};
}
int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool fits_vectors(const FusedCast& c) {
  if (c.cols % 8 != 0 || c.rows % 8 != 0) return false;
  if (c.out.transpose != nullptr && (c.rows % 16 != 0 || !aligned(c.out.transpose, 16)))
    return false;
  return aligned(c.in, 16) && aligned(c.grad, 16) && aligned(c.out.data, 8);
}

// The workspace: counters first, then the partial sums.
int64_t counter_bytes(int64_t cols) {
  return divide_up(divide_up(cols, kSmallestTile) * int64_t{sizeof(unsigned)}, 16) * 16;
}

Result<void> check(const FusedCast& c) {
  PB_RETURN_IF_ERROR(check_shape(kName, c.rows, c.cols));
  const size_t element = c.op == CastOp::cast_f32 ? 4 : 2;
  PB_RETURN_IF_ERROR(check_operand(kName, "in", c.in, element));
  if (is_backward(c.op)) PB_RETURN_IF_ERROR(check_operand(kName, "grad", c.grad, 2));
  if (c.out.data == nullptr && c.out.transpose == nullptr)
    return Error{"usage", fmt::format("{}: neither data nor transpose is asked for", kName)};
  if (c.dbias == nullptr) return {};
  const size_t needed = fused_cast_workspace(c.op, c.rows, c.cols);
  if (c.workspace == nullptr || c.workspace_bytes < needed || !aligned(c.workspace, 16))
    return Error{"usage",
                 fmt::format("{}: dbias needs {} bytes of 16-byte aligned workspace, not {}", kName,
                             needed, c.workspace_bytes)};
  return {};
}

}  // namespace

std::string FusedCastPlan::describe() const {
  const Sides s = sides(tile);
  return fmt::format(
      "{}x{} tiles, {} down x {} across{}, {}, {} first", s.rows, s.cols, tile_rows, tile_cols,
      runs < tile_rows ? fmt::format(", {} CTAs a column", runs) : std::string(),
      vector ? "16-byte accesses" : "element by element", down_first ? "down" : "across");
}

FusedCastPlan cut(const FusedCast& c, CastTile tile) {
  const Sides s = sides(tile);
  FusedCastPlan plan;
  plan.tile = tile;
  plan.tile_rows = static_cast<uint32_t>(divide_up(c.rows, s.rows));
  plan.tile_cols = static_cast<uint32_t>(divide_up(c.cols, s.cols));
  plan.runs = plan.tile_rows;
  return plan;
}

uint32_t balanced_runs(const FusedCastPlan& plan, int64_t ctas) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ctas / plan.tile_cols, 1, plan.tile_rows));
}

FusedCastPlan plan_fused_cast(const FusedCast& c, int sms) {
  const bool vector = fits_vectors(c);
  // Large tiles write whole cache lines of both copies; they need enough CTAs to go around twice.
  const bool large = vector && divide_up(c.rows, 128) * divide_up(c.cols, 128) >= 2 * int64_t{sms};
  // The sums of a column want long runs: as many CTAs as run at once.
  FusedCastPlan plan = cut(c, large ? CastTile::t64x256 : CastTile::t64x64);
  plan.vector = vector;
  if (c.dbias != nullptr) plan.runs = balanced_runs(plan, large ? 2 * sms : 8 * sms);
  return plan;
}

size_t fused_cast_workspace(CastOp op, int64_t rows, int64_t cols) {
  const int64_t out_cols = cols * (op == CastOp::dswiglu ? 2 : 1);
  return static_cast<size_t>(counter_bytes(cols) + divide_up(rows, kSmallestTile) * out_cols * 4);
}

Result<void> fused_cast(const FusedCast& c, cudaStream_t stream) {
  PB_ASSIGN_OR_RETURN(const int sms, multiprocessors());
  return fused_cast(c, plan_fused_cast(c, sms), stream);
}

Result<void> fused_cast(const FusedCast& c, const FusedCastPlan& plan, cudaStream_t stream) {
  PB_RETURN_IF_ERROR(check(c));
  if (int64_t{plan.tile_rows} * plan.tile_cols > 0x7fffffff)
    return Error{"usage",
                 fmt::format("{}: {} x {} is more than one grid holds", kName, c.rows, c.cols)};
  device::FusedCastArgs args;
  args.op = c.op, args.format = c.format, args.tile = plan.tile, args.vector = plan.vector;
  args.in = c.in, args.grad = c.grad, args.out = c.out;
  args.rows = c.rows, args.cols = c.cols;
  args.tile_cols = plan.tile_cols;
  args.runs = c.dbias != nullptr ? plan.runs : plan.tile_rows;
  args.down_first = plan.down_first;
  args.dbias = c.dbias, args.noop = c.noop;
  if (c.dbias != nullptr) {
    args.counters = static_cast<unsigned*>(c.workspace);
    args.partial =
        reinterpret_cast<float*>(static_cast<uint8_t*>(c.workspace) + counter_bytes(c.cols));
  }
  const auto launch = is_backward(c.op) ? device::launch_activation_backward
                      : c.op == CastOp::gelu || c.op == CastOp::swiglu ? device::launch_activation
                                                                       : device::launch_cast;
  return launched(kName, launch(args, stream));
}

}  // namespace ptxbench::te
