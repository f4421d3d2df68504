// Records small host programs (tests/cudart/programs) in the real sandbox and looks at the plans.
#include "cudart/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/files.h"
#include "base/temp_dir.h"
#include "sandbox/sandbox.h"

namespace ptxbench::cudart {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint64_t kOutBytes = 64 * 4, kInBytes = 32 * 64 * 4;

RecordRequest request(const std::string& entry) {
  RecordRequest r;
  r.host_library = fs::path(PTXBENCH_BUILD_DIR) / "tests/cudart/cudart_test_programs.so";
  r.ptx = read_file(fs::path(PTXBENCH_SOURCE_DIR) / "tests/cudart/programs/kernels.ptx").take();
  r.entry_point = entry;
  r.definition = "test";
  r.axes = {{"M", 32}};
  const int32_t lengths[] = {11, 22, 5, 44};
  const auto* raw = reinterpret_cast<const uint8_t*>(lengths);
  r.arguments = {{"a", "float32", {32, 64}, false, {}},
                 {"idx", "int32", {4}, false, {raw, raw + sizeof lengths}},
                 {"out", "float32", {64}, true, {}}};
  return r;
}

RecordOutcome recorded(const RecordRequest& r) {
  auto outcome = record(r);
  EXPECT_TRUE(outcome.ok()) << (outcome.ok()
                                    ? ""
                                    : outcome.error().kind + ": " + outcome.error().message);
  return outcome.ok() ? outcome.take() : RecordOutcome{};
}

plan::LaunchPlan good(const std::string& entry) {
  RecordOutcome outcome = recorded(request(entry));
  EXPECT_TRUE(outcome.ok) << entry << ": " << outcome.reason << ": " << outcome.message;
  return outcome.plan;
}

template <class T>
T step(const plan::LaunchPlan& plan, size_t index) {
  const T* found = index < plan.steps.size() ? std::get_if<T>(&plan.steps[index]) : nullptr;
  EXPECT_NE(found, nullptr) << "step " << index << " of " << plan.steps.size();
  return found ? *found : T{};
}

uint32_t word(const plan::Blob& blob, size_t at) {
  uint32_t value = 0;
  if (at + 4 <= blob.bytes.size()) std::memcpy(&value, &blob.bytes[at], 4);
  return value;
}

// Files that a program wrote, and what record() left in its temporary folder.
std::vector<fs::path> leftovers(const fs::path& temporary) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(temporary)) found.push_back(entry.path());
  for (const char* place : {"/tmp", "/var/tmp", "/", "/etc", "."})
    if (fs::exists(fs::path(place) / "ptxbench-test-escape")) found.push_back(place);
  return found;
}

// Processes of this build's host program that work in `temporary`, and children of the test
// programs.
int stragglers(const fs::path& temporary) {
  const std::string child =
      std::string(PTXBENCH_BUILD_DIR) + "/tests/cudart/cudart_test_programs.so:straggler";
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto text_read = read_file(entry.path() / "cmdline");  // not if it ends meanwhile
    const std::string text = text_read.ok() ? text_read.value() : "";
    count += text.find(child) != std::string::npos || text.find(temporary) != std::string::npos;
  }
  return count;
}

class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto sandbox = sandbox::available(); !sandbox.ok()) FAIL() << sandbox.error().message;
    temporary_ = TempDir::create("record-test").take();
    setenv("TMPDIR", temporary_->path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    if (!temporary_) return;
    EXPECT_THAT(leftovers(temporary_->path()), ::testing::IsEmpty());
    EXPECT_EQ(stragglers(temporary_->path()), 0);
  }
  std::optional<TempDir> temporary_;
};

TEST_F(Recorded, AngleBracketLaunch) {
  const auto plan = good("angle_brackets");
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto launch = step<plan::Launch>(plan, 0);
  EXPECT_EQ(launch.kernel, "vec");
  EXPECT_EQ(launch.grid, (plan::Dim3{3, 2, 1}));
  EXPECT_EQ(launch.block, (plan::Dim3{128, 1, 1}));
  EXPECT_FALSE(launch.explicit_cluster);
  EXPECT_EQ(launch.stream, 1u);
  EXPECT_EQ(launch.params.bytes.size(), 20u);
  EXPECT_EQ(word(launch.params, 16), 7u);
  EXPECT_EQ(launch.params.pointers, (std::vector<plan::PointerPatch>{{0, {2, 0}}, {8, {0, 64}}}));
  ASSERT_EQ(plan.buffers.size(), 3u);  // unused symbols are no buffers
  EXPECT_EQ(plan.buffers[0].size, kInBytes);
  EXPECT_EQ(plan.buffers[2].name, "out");
  EXPECT_EQ(plan.buffers[2].argument, 2u);
  ASSERT_EQ(plan.modules.size(), 1u);
  EXPECT_EQ(plan.arch, "sm_90a");
  EXPECT_EQ(plan.axes.at(0).second, 32);
}

TEST_F(Recorded, TwoRecordingsOfOneProgramGiveOnePlan) {
  EXPECT_EQ(good("tables"), good("tables"));
}

TEST_F(Recorded, LaunchAttributes) {
  const auto launch = step<plan::Launch>(good("cluster"), 0);
  EXPECT_TRUE(launch.explicit_cluster);
  EXPECT_TRUE(launch.programmatic_stream_serialization);
  EXPECT_FALSE(launch.cooperative);
  EXPECT_EQ(launch.cluster, (plan::Dim3{4, 1, 1}));
  EXPECT_EQ(launch.dynamic_shared_bytes, 200000u);
  EXPECT_EQ(launch.max_dynamic_shared_bytes, 200000u);
}

TEST_F(Recorded, CompiledClusterIsKept) {
  const auto launch = step<plan::Launch>(good("compiled_cluster"), 0);
  EXPECT_TRUE(launch.explicit_cluster);
  EXPECT_EQ(launch.cluster, (plan::Dim3{2, 1, 1}));
}

TEST_F(Recorded, TensorMapByEntryPoint) {
  const auto plan = good("map_by_entry_point");
  ASSERT_EQ(plan.tensor_maps.size(), 1u);
  const auto& map = plan.tensor_maps[0];
  EXPECT_EQ(map.address, (plan::BufferRef{0, 512}));
  EXPECT_EQ(map.args.type, plan::MapType::f32);
  EXPECT_EQ(map.args.rank, 2u);
  EXPECT_EQ(map.args.dims[1], 30u);
  EXPECT_EQ(map.args.strides[0], 256u);
  EXPECT_EQ(map.args.box[0], 32u);
  EXPECT_EQ(map.args.swizzle, plan::MapSwizzle::b128);
  const auto launch = step<plan::Launch>(plan, 0);
  EXPECT_EQ(launch.params.tensor_maps, (std::vector<plan::TensorMapPatch>{{0, 0}}));
  EXPECT_EQ(launch.params.pointers, (std::vector<plan::PointerPatch>{{128, {2, 0}}}));
}

TEST_F(Recorded, CachedTensorMapIsFoundInEveryLaunch) {
  const auto plan = good("map_direct_cached");
  EXPECT_EQ(plan.tensor_maps.size(), 1u);
  for (size_t i : {0, 1}) EXPECT_EQ(step<plan::Launch>(plan, i).params.tensor_maps.size(), 1u);
}

TEST_F(Recorded, PaddingMayHoldAnything) {
  const auto launch = step<plan::Launch>(good("padding"), 0);
  EXPECT_EQ(word(launch.params, 0), 5u);
  EXPECT_EQ(word(launch.params, 4), 0u);
  EXPECT_EQ(word(launch.params, 16), 0x90abcdefu);
  EXPECT_EQ(launch.params.pointers, (std::vector<plan::PointerPatch>{{8, {2, 0}}}));
}

TEST_F(Recorded, TablesInScratchAndSymbols) {
  const auto plan = good("tables");
  ASSERT_EQ(plan.steps.size(), 6u);
  EXPECT_EQ(plan.steps.back().index(), 4u);  // the scratch memory is freed
  const auto find = [&](const std::string& name) {
    for (uint32_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].name == name) return i;
    return ~0u;
  };
  const uint32_t scratch = find("scratch0"), symbol = find("table");
  ASSERT_LT(scratch, plan.buffers.size());
  ASSERT_LT(symbol, plan.buffers.size());
  EXPECT_EQ(plan.buffers[scratch].role, plan::BufferRole::scratch);
  EXPECT_EQ(plan.buffers[symbol].role, plan::BufferRole::symbol);
  EXPECT_EQ(find("scale"), ~0u);

  const auto memset = step<plan::Memset>(plan, 0);
  EXPECT_EQ(memset.dst, (plan::BufferRef{scratch, 0}));
  EXPECT_EQ(memset.value, 0xffu);
  EXPECT_EQ(memset.bytes, 65536u);
  const auto upload = step<plan::CopyHostToDevice>(plan, 1);
  EXPECT_EQ(upload.data.tensor_maps, (std::vector<plan::TensorMapPatch>{{0, 0}}));
  EXPECT_EQ(word(upload.data, 128), 42u);
  EXPECT_EQ(upload.data.pointers,
            (std::vector<plan::PointerPatch>{
                {132, {scratch, 4096}}, {144, {2, 0}}, {152, {2, kOutBytes}}}));
  const auto to_symbol = step<plan::CopyHostToDevice>(plan, 2);
  EXPECT_EQ(to_symbol.dst, (plan::BufferRef{symbol, 256}));
  EXPECT_EQ(to_symbol.data, upload.data);
  const auto copy = step<plan::CopyDeviceToDevice>(plan, 3);
  EXPECT_EQ(copy.dst, (plan::BufferRef{scratch, 1024}));
  EXPECT_EQ(copy.src, (plan::BufferRef{symbol, 0}));
  EXPECT_EQ(copy.bytes, 512u);
}

TEST_F(Recorded, IntegerInputsCanBeReadBeforeTheFirstLaunch) {
  const auto launch = step<plan::Launch>(good("reads_integers"), 0);
  EXPECT_EQ(launch.grid.x, 5u);
  EXPECT_EQ(word(launch.params, 16), 44u);
}

TEST_F(Recorded, HostCodeSeesTheTargetDevice) {
  auto launch = step<plan::Launch>(good("queries"), 0);
  EXPECT_EQ(launch.grid.x, 132u);
  EXPECT_EQ(launch.block.x, 16u);             // 2048 threads an SM, 128 a block
  EXPECT_EQ(word(launch.params, 16), 1056u);  // 132 SMs, 16 blocks each, pairs
  RecordRequest small = request("queries");
  small.sm_count = 4;
  EXPECT_EQ(step<plan::Launch>(recorded(small).plan, 0).grid.x, 4u);
}

TEST_F(Recorded, StagingMemoryAndPools) {
  const auto plan = good("staging");
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(std::get<plan::Free>(plan.steps[2]).buffer,
            std::get<plan::CopyHostToDevice>(plan.steps[0]).dst.buffer);
  const auto upload = step<plan::CopyHostToDevice>(plan, 0);
  EXPECT_EQ(upload.data.bytes.size(), 64u);
  EXPECT_EQ(word(upload.data, 60), 225u);
}

TEST_F(Recorded, ProcessIsReproducible) {
  good("own_addresses");
  const auto upload = step<plan::CopyHostToDevice>(good("leftovers"), 0);
  ASSERT_EQ(upload.data.pointers.size(), 64u);
  EXPECT_EQ(upload.data.pointers[63], (plan::PointerPatch{63 * 16 + 8, {0, 63}}));
}

struct BadCase {
  const char *entry, *reason, *text;
};
void PrintTo(const BadCase& c, std::ostream* out) { *out << c.entry; }

class Refused : public Recorded, public ::testing::WithParamInterface<BadCase> {};

TEST_P(Refused, SaysWhy) {
  RecordRequest r = request(GetParam().entry);
  // A loaded machine may be slow to start a process; only programs that never end wait for this.
  if (std::string(GetParam().reason) == "host-timeout") r.timeout_s = 2;
  const RecordOutcome outcome = recorded(r);
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.reason, GetParam().reason) << outcome.message;
  EXPECT_THAT(outcome.message, HasSubstr(GetParam().text));
  EXPECT_EQ(outcome.message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Refused,
    ::testing::Values(
        BadCase{"missing", "entry-point-missing", "__tvm_ffi_missing"},
        BadCase{"no_launch", "no-launch", "without launching"},
        BadCase{"three_arguments_only", "wrong-arguments", "Expected 2 but got 3"},
        BadCase{"reports_error", "host-exception", "ValueError: M must be a multiple"},
        BadCase{"throws", "host-crash", "thrown past the boundary"},
        BadCase{"endless", "host-timeout", "within 2 s"},
        BadCase{"exits", "host-crash", "exit status 0"},
        BadCase{"quick_exits", "host-crash", "exit status 7"},
        BadCase{"crashes", "host-crash", "signal 11"},
        BadCase{"touches_device_memory", "host-crash", "argument out directly"},
        BadCase{"random_value", "host-nondeterministic", "parameter 2"},
        BadCase{"time_value", "host-nondeterministic", "parameter 2"},
        BadCase{"chrono_seed", "host-nondeterministic", "parameter 2"},
        BadCase{"packs_address", "host-nondeterministic", "parameter 2"},
        BadCase{"grid_from_address", "host-nondeterministic", "grid"},
        BadCase{"pointer_past_buffers", "host-nondeterministic", "outside every buffer"},
        BadCase{"zero_grid", "launch-refused", "cudaErrorInvalidConfiguration"},
        BadCase{"zero_grid_ignored", "launch-refused", "cudaErrorInvalidConfiguration"},
        BadCase{"block_too_large", "launch-refused", "more than 1024 threads"},
        BadCase{"above_launch_bounds", "launch-refused", "__launch_bounds__"},
        BadCase{"shared_without_attribute", "launch-refused",
                "cudaFuncAttributeMaxDynamicSharedMemorySize"},
        BadCase{"attribute_too_large", "launch-refused", "at most 231424"},
        BadCase{"unknown_kernel", "launch-refused", "cudaErrorInvalidDeviceFunction"},
        BadCase{"odd_grid_for_pairs", "launch-refused", "not a multiple of cluster 2x1x1"},
        BadCase{"large_cluster", "launch-refused", "NonPortableClusterSizeAllowed"},
        BadCase{"cooperative_too_large", "launch-refused", "cudaErrorCooperativeLaunchTooLarge"},
        BadCase{"map_misaligned", "launch-refused", "cuTensorMapEncodeTiled"},
        BadCase{"map_edited", "unsupported-runtime-call", "changed by the host"},
        BadCase{"reads_result", "result-readback", "argument out"},
        BadCase{"reads_integers_late", "result-readback", "argument idx"},
        BadCase{"uses_graphs", "unsupported-runtime-call", "cudaGraphCreate"},
        BadCase{"memset_too_long", "launch-refused", "past the end"},
        BadCase{"copy_past_end", "launch-refused", "past the end"},
        BadCase{"zero_copy", "unsupported-runtime-call", "page-locked host memory"},
        BadCase{"allocates_too_much", "launch-refused", "cudaErrorMemoryAllocation"},
        BadCase{"frees_twice", "launch-refused", "not a live allocation"},
        BadCase{"forks_forever", "host-timeout", "within 2 s"}),
    [](const auto& info) { return std::string(info.param.entry); });

// TearDown looks for files and processes.
TEST_F(Recorded, FilesStayInTheSandbox) { EXPECT_EQ(good("writes_files").steps.size(), 1u); }
TEST_F(Recorded, ChildrenEndWithTheRecording) {
  const RecordOutcome outcome = recorded(request("leaves_children"));
  EXPECT_TRUE(outcome.ok) << outcome.message;
}
TEST_F(Recorded, FloodOfOutputIsCut) { EXPECT_EQ(good("floods_output").steps.size(), 1u); }

TEST_F(Recorded, CodeForAnotherArchitectureIsRefused) {
  RecordRequest r = request("angle_brackets");
  r.device_profile = "b200";
  const RecordOutcome outcome = recorded(r);
  EXPECT_EQ(outcome.reason, "launch-refused");
  EXPECT_THAT(outcome.message, HasSubstr("cudaErrorNoKernelImageForDevice"));
}

TEST_F(Recorded, LibraryThatIsNone) {
  RecordRequest r = request("angle_brackets");
  r.host_library = fs::path(PTXBENCH_SOURCE_DIR) / "tests/cudart/programs/kernels.ptx";
  const RecordOutcome outcome = recorded(r);
  EXPECT_EQ(outcome.reason, "host-crash");
  EXPECT_THAT(outcome.message, HasSubstr("cannot be loaded"));
}

// As a host library looks that was linked with a static runtime: device code, no libcudart needed.
TEST(Record, StaticRuntimeIsNamed) {
  RecordRequest r = request("angle_brackets");
  r.host_library = fs::path(PTXBENCH_BUILD_DIR) / "tests/cudart/cudart_test_static.so";
  const RecordOutcome outcome = recorded(r);
  EXPECT_EQ(outcome.reason, "unsupported-runtime-call");
  EXPECT_THAT(outcome.message, HasSubstr("-cudart shared"));
}

TEST(Record, HarnessErrorsAreErrors) {
  RecordRequest r = request("angle_brackets");
  r.arguments[0].dtype = "float7";
  EXPECT_EQ(record(r).error().kind, "usage");
  r = request("angle_brackets");
  r.arguments[1].host_bytes.pop_back();
  EXPECT_EQ(record(r).error().kind, "usage");
  r = request("angle_brackets");
  r.ptx = "not PTX";
  EXPECT_FALSE(record(r).ok());
  r = request("angle_brackets");
  r.host_library = "/nonexistent/library.so";
  EXPECT_FALSE(record(r).ok());
}

}  // namespace
}  // namespace ptxbench::cudart
