// mma.sync: registers to emu/mma.h.

#include "emu/executor.h"
#include "emu/ops.h"

namespace ptxbench::emu::ops {

void mma(RegisterView& v, const MicroOp& op, uint32_t) {
  Executor& e = *warp_of(v).exec;
  const MmaSite& site = e.kernel().mmas[op.extra];
  MmaOperands o;
  for (size_t r = 0; r < site.a.size(); r++) o.a[r] = source<uint32_t>(v, site.a[r]);
  for (size_t r = 0; r < site.b.size(); r++) o.b[r] = source<uint32_t>(v, site.b[r]);
  for (size_t r = 0; r < site.c.size(); r++) o.c[r] = source<uint32_t>(v, site.c[r]);
  for (size_t r = 0; r < site.d.size(); r++) o.d[r] = destination<uint32_t>(v, site.d[r]);
  emu::mma(site.form, o, e.launch().options->tensor);
}

}  // namespace ptxbench::emu::ops
