// Replays recorded plans of the expert GEMM on the inputs of ../hardware/gemm_bits.h and prints a
// digest of C.
//   for each shape: ptxbench record kernels/sm_90a/gemm_bf16.cu --task gemm_n7168_k5120 --axes
//   M=..,N=..,K=.. -o x.plan gemm_bits x.plan ...

#include "../hardware/gemm_bits.h"

#include <fmt/format.h>

#include "base/files.h"
#include "device/device.h"

namespace {

using namespace ptxbench;

int run(const char* path) {
  auto text = read_file(path);
  if (!text.ok()) return fmt::print(stderr, "{}\n", text.error().to_string()), 2;
  auto plan = plan::deserialize(std::vector<uint8_t>(text->begin(), text->end()));
  if (!plan.ok()) return fmt::print(stderr, "{}\n", plan.error().to_string()), 2;
  bits::Shape s{};
  for (const auto& [axis, value] : plan->axes)
    (axis == "M" ? s.m : axis == "N" ? s.n : s.k) = static_cast<int>(value);
  auto size = [](int x, int y) { return static_cast<size_t>(x) * static_cast<size_t>(y); };
  auto a = bits::matrix(size(s.m, s.k), 1), b = bits::matrix(size(s.n, s.k), 2);
  std::vector<uint16_t> c(size(s.m, s.n), 0xffff);
  auto bind = [](std::vector<uint16_t>& v, bool input) {
    return device::Binding{{reinterpret_cast<uint8_t*>(v.data()), v.size() * 2}, input, input};
  };
  std::vector<device::Binding> arguments{bind(a, true), bind(b, true), bind(c, false)};
  device::RunOptions options;
  options.tensor = device::TensorMode::hw;
  auto result = device::make_emu_device("h200")->replay(*plan, arguments, options);
  if (!result.ok() || result->status != device::RunStatus::completed || !result->findings.empty())
    return fmt::print(stderr, "{}: not completed without findings\n", path), 2;
  fmt::print("M {} N {} K {}: {:016x}\n", s.m, s.n, s.k, bits::digest(c));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int bad = argc < 2 ? 2 : 0;
  for (int i = 1; i < argc; i++) bad |= run(argv[i]);
  return bad;
}
