#pragma once
// The tables of one instruction-set level, one per topic file.
#include "emu/scalar/row.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

Rows int_rows();
Rows carry_rows();
Rows bits_rows();
Rows float_rows();
Rows half_rows();
Rows minmax_rows();
Rows compare_rows();
Rows select_rows();
Rows cvt_rows();
Rows approx_rows();
Rows warp_rows();

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
