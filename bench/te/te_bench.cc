// Achieved bandwidth of the fused kernels against a measured copy of the same number of bytes.
//
//   te_bench [--rounds N] [--shape ROWSxCOLS]... [--only TEXT] [--variants] [--json FILE]
//
// Bytes are the compulsory ones: every operand read once, every result written once. Buffers rotate
// so that nothing is left in L2 from the call before; copy and operation are measured alternately,
// and the medians over the rounds are reported. The copy is the faster of a kernel with 16-byte
// accesses and cudaMemcpyAsync. --variants also measures the plans that the heuristic did not
// choose. Results are not checked here: the tests do that on the same card (run_h200.sh).

#include <cstring>

#include "harness.h"

using namespace ptxbench::te::bench;

namespace {

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&]() -> std::string {
      if (i + 1 >= argc) die(a + " needs a value");
      return argv[++i];
    };
    if (a == "--rounds") {
      o.rounds = std::atoi(value().c_str());
      if (o.rounds < 1) die("--rounds must be at least 1");
    } else if (a == "--shape") {
      long rows = 0, cols = 0;
      const std::string v = value();
      if (std::sscanf(v.c_str(), "%ldx%ld", &rows, &cols) != 2 || rows < 1 || cols < 1)
        die("--shape wants ROWSxCOLS, not " + v);
      o.shapes.push_back({rows, cols});
    } else if (a == "--only") {
      o.only = value();
    } else if (a == "--json") {
      o.json = value();
    } else if (a == "--variants") {
      o.variants = true;
    } else {
      die("unknown argument " + a);
    }
  }
  if (o.shapes.empty()) o.shapes = {{8192, 4096}};
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  cudaDeviceProp prop;
  need(cudaGetDeviceProperties(&prop, 0));
  int driver = 0, runtime = 0;
  need(cudaDriverGetVersion(&driver));
  need(cudaRuntimeGetVersion(&runtime));
  fmt::print("{}, {} SMs, driver {}, runtime {}, medians of {} rounds\n", prop.name,
             prop.multiProcessorCount, driver, runtime, options.rounds);
  Table table(options);
  for (auto [rows, cols] : options.shapes) {
    bench_casts(table, options, rows, cols);
    bench_norms(table, options, rows, cols);
    bench_optimizer(table, rows, cols);
    bench_model_ops(table, rows, cols);
  }
  table.write_json();
  return 0;
}
