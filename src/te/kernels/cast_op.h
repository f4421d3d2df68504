#pragma once
// Choices that host code and kernels share.

#include <cstdint>

namespace ptxbench::te {

enum class CastOp : uint8_t { cast_bf16, cast_f32, gelu, swiglu, dgelu, dswiglu };
constexpr bool is_gated(CastOp op) { return op == CastOp::swiglu || op == CastOp::dswiglu; }
constexpr bool is_backward(CastOp op) { return op == CastOp::dgelu || op == CastOp::dswiglu; }

// A CTA's share of a matrix, rows x columns.
enum class CastTile : uint8_t { t64x64, t64x128, t128x128, t64x256 };
inline constexpr CastTile kCastTiles[] = {CastTile::t64x64, CastTile::t64x128, CastTile::t128x128,
                                          CastTile::t64x256};
enum class NormTile : uint8_t { t64x256, t32x512, t32x1024, t16x2048, t16x4096 };
inline constexpr NormTile kNormTiles[] = {NormTile::t64x256, NormTile::t32x512, NormTile::t32x1024,
                                          NormTile::t16x2048, NormTile::t16x4096};

enum class NormKind : uint8_t { layer, rms };

}  // namespace ptxbench::te
