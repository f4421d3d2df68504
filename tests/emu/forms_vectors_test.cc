// Recorded kernels of group "forms": atomics on edge values (scalar and vector, with and without
// the old value), st.async and red.async between the CTAs of a cluster.
#include <gtest/gtest.h>

#include "emu/hw_vectors.h"
#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

TEST(FormsVectors, Kernels) {
  const hw::Group& g = hw::group("forms");
  int compared = 0;
  for (const hw::Json& c : g.cases("kernel")) {
    const auto input = g.input(c.at("in")).bytes, want = g.array(c.at("out")).bytes;
    PtxRun r;
    r.ptx = c.at("ptx");
    r.buffers = {{"in", {input.begin(), input.end()}, true, true}, output_of("out", want.size())};
    const unsigned ctas = c.at("cluster");
    r.block = {32}, r.grid = {ctas}, r.cluster = {ctas}, r.explicit_cluster = ctas > 1;
    r.go();
    ASSERT_EQ(r.error, "") << r.ptx;
    EXPECT_EQ(r.kinds(), "") << r.ptx;
    EXPECT_EQ(r.result.status, plan::RunStatus::completed) << r.result.message << r.ptx;
    size_t wrong = 0, first = 0;
    for (size_t i = want.size(); i-- > 0;)
      if (r.buffers[1].bytes[i] != want[i]) ++wrong, first = i;
    EXPECT_EQ(wrong, 0u) << "of " << want.size() << " bytes, the first at " << first << ": "
                         << int{r.buffers[1].bytes[first]} << ", not " << int{want[first]} << "\n"
                         << r.ptx;
    ++compared;
  }
  EXPECT_EQ(compared, 172);
}

}  // namespace
}  // namespace ptxbench::emu::test
