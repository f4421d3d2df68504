#pragma once
// What one instruction-set level offers (level/tables.cc).
#include "emu/scalar/row.h"

namespace ptxbench::emu::scalar {

struct Level {
  const char* name = "";
  Rows rows[16];
  int topics = 0;
  // Integer conversions depend on register widths (in bytes); see level/cvt.h.
  Handler (*cvt_int_to_int)(int to_bytes, int from_bytes, uint16_t extra, bool saturate) = nullptr;
  Handler (*cvt_int_to_float)(ptx::Type to, int from_bytes, uint16_t extra,
                              uint64_t flags) = nullptr;
  Handler (*cvt_float_to_int)(int to_bytes, ptx::Type from, uint16_t extra,
                              uint64_t flags) = nullptr;
  Handler (*video)(ptx::Op op, int sources) = nullptr;  // see level/video.h
};
inline constexpr uint16_t kSignedInteger = 0x80;  // in `extra`, beside a width in bits

namespace level_v2 {
Level tables();
}
namespace level_v3 {
Level tables();
}
namespace level_v4 {
Level tables();
}

// The levels that this CPU can run, best first. Bit-identical results; all are tested.
struct Levels {
  Level level[3];
  int count = 0;
};
const Levels& available_levels();

// As find_scalar, at a given level.
ScalarSpec find(const Level& level, const ptx::Instruction& instruction,
                const std::array<LeafInfo, 8>& leaves, int count);

}  // namespace ptxbench::emu::scalar
