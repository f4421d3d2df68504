#include "emu/scalar/level/tables.h"

#include "emu/scalar/level.h"
#include "emu/scalar/level/cvt.h"
#include "emu/scalar/level/video.h"

#define LEVEL_TEXT2(x) #x
#define LEVEL_TEXT(x) LEVEL_TEXT2(x)

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

Level tables() {
  Level l;
  l.name = LEVEL_TEXT(PTXBENCH_LEVEL) + sizeof("level_") - 1;
  for (Rows (*topic)() : {int_rows, bits_rows, float_rows, compare_rows, select_rows, cvt_rows,
                          half_rows, minmax_rows, carry_rows, warp_rows, approx_rows}) {
    l.rows[l.topics++] = topic();
  }
  l.cvt_int_to_int = cvt_int_to_int;
  l.cvt_int_to_float = cvt_int_to_float;
  l.cvt_float_to_int = cvt_float_to_int;
  l.video = video;
  return l;
}

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
