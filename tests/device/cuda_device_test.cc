// The GPU executor against this project's emulated driver: what the worker does with plans, buffers
// and faults. Times mean nothing there; whether a card agrees shows bench/hardware/eval_all.sh.
#include "device/cuda_device.h"

#include <gtest/gtest.h>

#include "../../bench/hardware/gemm_bits.h"
#include "device/recorded.h"

namespace ptxbench::device {
namespace {

using Bytes = std::vector<uint8_t>;

CudaOptions emulated() {
  CudaOptions options;
  options.worker.driver = std::string(PTXBENCH_BUILD_DIR) + "/lib/emulate/libcuda.so.1";
  options.launch_s = 60;
  return options;
}

std::unique_ptr<CudaDevice> open_device(CudaOptions options = emulated()) {
  auto device = CudaDevice::open(std::move(options));
  EXPECT_TRUE(device.ok()) << device.error().to_string();
  return device.ok() ? device.take() : nullptr;
}

Bytes bytes_of(const std::vector<uint16_t>& words) {
  Bytes bytes(words.size() * 2);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::vector<Bytes> gemm_arguments(int m, int n, int k) {
  auto size = [](int x, int y) { return static_cast<size_t>(x) * static_cast<size_t>(y); };
  return {bytes_of(bits::matrix(size(m, k), 1)), bytes_of(bits::matrix(size(n, k), 2)),
          Bytes(size(m, n) * 2, 0x81)};
}

Result<RunResult> replay(Device& device, const plan::LaunchPlan& plan, std::vector<Bytes>& data,
                         double seconds = 60) {
  std::vector<Binding> bindings;
  for (size_t i = 0; i < data.size(); ++i)
    bindings.push_back({data[i], i + 1 < data.size(), i + 1 < data.size()});
  RunOptions options;
  options.wall_budget_s = seconds;
  return device.replay(plan, bindings, options);
}

// A plan of one kernel `k` with arguments x (read-only) and y, 256 words each, one CTA.
plan::LaunchPlan small_plan(const std::string& body, const std::string& variables = "") {
  plan::LaunchPlan plan;
  plan.arch = "sm_90a";
  plan.device_profile = "h200";
  plan.definition = "test";
  for (uint32_t i = 0; i < 2; ++i) {
    plan::Buffer b;
    b.name = i == 0 ? "x" : "y";
    b.argument = i;
    b.size = 1024;
    plan.buffers.push_back(b);
  }
  plan::Module module;
  module.hash = "m";
  module.ptx = fmt::format(
      ".version 8.0\n.target sm_90a\n.address_size 64\n{}\n"
      ".visible .entry k(.param .u64 px, .param .u64 py)\n{{\n"
      ".reg .b64 %x, %y, %o; .reg .b32 %t, %v, %w; .reg .pred %p;\n"
      "ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %t, %tid.x;\n"
      "mul.wide.u32 %o, %t, 4; add.u64 %x, %x, %o; add.u64 %y, %y, %o;\n{}\nret;\n}}\n",
      variables, body);
  plan.modules.push_back(module);
  plan::Launch launch;
  launch.kernel = "k";
  launch.block.x = 256;
  launch.params.bytes.resize(16);
  launch.params.pointers = {{0, {0, 0}}, {8, {1, 0}}};
  plan.steps.push_back(launch);
  return plan;
}

std::vector<Bytes> small_arguments() {
  Bytes x(1024);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(7 * i);
  return {x, Bytes(1024, 0xaa)};
}

const Finding* find(const RunResult& run, const std::string& kind) {
  for (const Finding& f : run.findings)
    if (f.kind == kind) return &f;
  return nullptr;
}

TEST(CudaDevice, ExpertGemmGivesTheEmulatorsBitsAndCounts) {
  auto plan = record_gemm("kernels/sm_90a/gemm_bf16.cu", 93, 128, 256);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  auto expected = gemm_arguments(93, 128, 256), actual = expected;
  auto ledger = replay(*make_emu_device("h200"), *plan, expected);
  ASSERT_TRUE(ledger.ok());
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->name().substr(0, 15), "cuda-emulated:0");
  auto run = replay(*device, *plan, actual);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->status, RunStatus::completed) << run->message;
  EXPECT_TRUE(run->findings.empty()) << run->findings[0].message;
  EXPECT_TRUE(actual[2] == expected[2]);
  EXPECT_EQ(device->differing_maps(), 0u);
  size_t matched = 0;
  for (const FamilyCount& counted : run->families) {
    for (const FamilyCount& f : ledger->families) {
      if (f.family != counted.family) continue;
      ++matched;
      EXPECT_EQ(counted.warps, f.warps) << f.family;
      EXPECT_EQ(counted.threads, f.threads) << f.family;
      EXPECT_EQ(counted.static_count, f.static_count) << f.family;
      EXPECT_EQ(counted.tensor_flop, f.tensor_flop) << f.family;
    }
  }
  EXPECT_EQ(matched, run->families.size());
  EXPECT_GE(matched, 3u);
  ASSERT_EQ(run->kernels.size(), 1u);
  EXPECT_EQ(run->kernels[0].tensor_flop_by_type, ledger->kernels[0].tensor_flop_by_type);
}

TEST(CudaDevice, WritesOutsideABufferAreFound) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  // One word behind y's 256, within the guard zone.
  auto run = replay(*device,
                    small_plan("ld.global.u32 %v, [%x]; st.global.u32 [%y], %v;\n"
                               "setp.eq.u32 %p, %t, 255; @%p st.global.u32 [%y+4], 12345678;"),
                    data);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  // The emulated driver stops at the store; a card writes into the zone. Both are one finding.
  const Finding* f = find(*run, "out-of-bounds");
  ASSERT_NE(f, nullptr) << run->message;
  EXPECT_EQ(f->hazard, HazardClass::fatal);
}

TEST(CudaDevice, ChecksOfGuardsInputsAndStateBecomeFindings) {
  cuda::Checked checked;
  checked.guards.push_back({"argument 1", 1024, 4});
  checked.changed_inputs.push_back(0);
  checked.state.push_back({"counter", 8});
  const auto findings = findings_of(checked, small_plan("", ""));
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].kind, "out-of-bounds");
  EXPECT_EQ(findings[0].message, "4 bytes outside y were written, the first at offset 1024");
  EXPECT_EQ(findings[1].kind, "write-to-input");
  EXPECT_EQ(findings[1].message, "the replay writes to x, an input");
  EXPECT_EQ(findings[2].kind, "state-changed");
  EXPECT_EQ(findings[2].hazard, HazardClass::advice);
}

TEST(CudaDevice, AWrittenInputIsAFinding) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  auto run = replay(*device, small_plan("st.global.u32 [%x], %t; st.global.u32 [%y], %t;"), data);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->status, RunStatus::completed) << run->message;
  EXPECT_NE(find(*run, "write-to-input"), nullptr);
  EXPECT_TRUE(data[0] == small_arguments()[0]);  // the caller's inputs stay
}

// The second replay must find the variable as it was loaded, and the change is reported.
TEST(CudaDevice, ModuleVariablesStartAsLoadedInEveryReplay) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  auto run = replay(*device,
                    small_plan("ld.global.u32 %v, [count]; add.u32 %w, %v, 1; bar.sync 0;\n"
                               "st.global.u32 [count], %w; st.global.u32 [%y], %v;",
                               ".visible .global .align 4 .u32 count = 41;"),
                    data);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->status, RunStatus::completed) << run->message;
  EXPECT_NE(find(*run, "state-changed"), nullptr);
  EXPECT_EQ(find(*run, "outputs-differ"), nullptr);
  EXPECT_EQ(data[1][0], 41);
}

TEST(CudaDevice, AFaultIsTheCandidatesAndTheNextReplayRuns) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  auto run = replay(*device, small_plan("st.global.u32 [%o], %t;"), data);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_EQ(run->status, RunStatus::fault);
  ASSERT_FALSE(run->findings.empty());
  EXPECT_TRUE(data[1] == small_arguments()[1]);
  run = replay(*device, small_plan("ld.global.u32 %v, [%x]; st.global.u32 [%y], %v;"), data);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_EQ(run->status, RunStatus::completed) << run->message;
  EXPECT_TRUE(data[1] == data[0]);
}

TEST(CudaDevice, AHangEndsAtTheTimeLimit) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  auto run = replay(*device,
                    small_plan("again: ld.volatile.global.u32 %v, [%x];\n"
                               "setp.ne.u32 %p, %v, 1; @%p bra again;"),
                    data, 2);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_EQ(run->status, RunStatus::wall_budget);
  EXPECT_EQ(run->message, "the kernels did not end within 2 s");
}

TEST(CudaDevice, PtxThatDoesNotAssembleIsRefused) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  plan::LaunchPlan plan = small_plan("");
  std::get<plan::Launch>(plan.steps[0]).kernel = "another";
  auto run = replay(*device, plan, data);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_EQ(run->status, RunStatus::fault);
  ASSERT_FALSE(run->findings.empty());
  EXPECT_EQ(run->findings[0].kind, "launch-refused");
}

TEST(CudaDevice, WhatIsMissingIsOneClearLine) {
  CudaOptions options;
  options.worker.driver = "/nowhere/libcuda.so.1";
  auto device = CudaDevice::open(options);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, "no-driver");
  EXPECT_EQ(device.error().message.find('\n'), std::string::npos);

  options = emulated();
  options.worker.device = 7;
  device = CudaDevice::open(options);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, "no-device");
  EXPECT_EQ(device.error().message, "no GPU 7: this machine has 1");

  options.worker.program = "/nowhere/ptxbench-gpu";
  device = CudaDevice::open(options);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, "not-found");
}

TEST(CudaDevice, RefusesPlansOfAnotherArchitectureAndGhosts) {
  auto device = open_device();
  ASSERT_NE(device, nullptr);
  auto data = small_arguments();
  std::vector<Binding> bindings = {{data[0], true, true}, {data[1], false, false}};
  RunOptions options;
  options.ghost = plan::Ghost::matrix;
  auto run = device->replay(small_plan(""), bindings, options);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().kind, "unsupported");
}

TEST(CudaWire, DamagedMessagesAreErrors) {
  const auto message = cuda::pack(cuda::Failure{700, "run", "a fault", 3});
  for (size_t size = 0; size < message.size(); ++size)
    EXPECT_FALSE(cuda::unpack<cuda::Failure>(message.data(), size).ok()) << size;
  auto same = cuda::unpack<cuda::Failure>(message.data(), message.size());
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->what, "a fault");
  EXPECT_EQ(same->step, 3);
}

}  // namespace
}  // namespace ptxbench::device
