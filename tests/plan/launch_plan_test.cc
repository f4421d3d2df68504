#include "plan/launch_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"

namespace ptxbench::plan {
namespace {

TensorMap sample_map() {
  TensorMap map;
  map.args.type = MapType::bf16;
  map.args.rank = 2;
  map.args.dims = {5120, 256};
  map.args.strides = {10240};
  map.args.box = {64, 128};
  map.args.element_strides = {1, 1};
  map.args.swizzle = MapSwizzle::b128;
  map.address = {0, 512};
  return map;
}

Launch sample_launch() {
  Launch l;
  l.kernel = "_Z4gemm";
  l.grid = {132, 1, 1};
  l.block = {384, 1, 1};
  l.cluster = {2, 1, 1};
  l.explicit_cluster = true;
  l.dynamic_shared_bytes = l.max_dynamic_shared_bytes = 200'000;
  l.params.bytes.assign(400, 7);
  l.params.tensor_maps = {{0, 0}};
  l.params.pointers = {{128, {1, 16}}, {136, {2, 0}}};
  l.stream = 3;
  return l;
}

LaunchPlan sample_plan() {
  LaunchPlan p;
  p.arch = "sm_90a";
  p.device_profile = "h200";
  p.definition = "gemm_n7168_k5120";
  p.axes = {{"M", 256}, {"N", -1}};
  p.buffers = {{"A", BufferRole::argument, 0, 0, 256 * 10240 + 512},
               {"scratch0", BufferRole::scratch, 0, 0, 4096},
               {"table", BufferRole::symbol, 0, 0, 64}};
  p.modules = {{"0123", ".version 9.0\n.target sm_90a\n", {1, 2, 3}}};
  p.tensor_maps = {sample_map()};
  Blob table;
  table.bytes.assign(64, 1);
  table.pointers = {{8, {0, 0}}};
  p.steps = {sample_launch(), Memset{{1, 0}, 0xff, 4, 4096}, CopyHostToDevice{{2, 0}, table},
             CopyDeviceToDevice{{1, 0}, {0, 0}, 4096}, Free{1}};
  return p;
}

// A file whose body was tampered with but whose checksum is right, as an attacker would write it.
std::vector<uint8_t> with_right_hash(std::vector<uint8_t> file) {
  std::span<const uint8_t> body(file.data() + 20, file.size() - 20 - 32);
  std::string hash = hash_hex(body);
  std::memcpy(file.data() + file.size() - 32, hash.data(), 32);
  return file;
}

TEST(LaunchPlan, RoundTrip) {
  LaunchPlan plan = sample_plan();
  TensorMap columns = sample_map();
  columns.args.rank = 4;
  columns.args.dims = {64, 16, 16, 2};
  columns.args.strides = {128, 2048, 32768};
  columns.args.box = {64, 1, 1, 1};
  columns.args.element_strides = {1, 1, 1, 1};
  columns.args.im2col = true;
  columns.args.pixels = 32;
  columns.args.lower = {-1, -1}, columns.args.upper = {-1, -1};
  columns.address = {0, 0};
  plan.tensor_maps.push_back(columns);
  auto bytes = serialize(plan);
  auto back = deserialize(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(*back == plan);
  EXPECT_EQ(serialize(*back), bytes);
  EXPECT_TRUE(validate(*back).ok());
  auto empty = deserialize(serialize(LaunchPlan{}));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(*empty == LaunchPlan{});
}

// tests/data/plan/format1.plan is sample_plan() as the program wrote it when format 1 was the
// newest.
TEST(LaunchPlan, ReadsFilesOfFormat1) {
  auto file =
      read_file(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tests/data/plan/format1.plan");
  ASSERT_TRUE(file.ok());
  auto plan = deserialize({file->begin(), file->end()});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(*plan == sample_plan());
}

TEST(LaunchPlan, EveryTruncationIsRefused) {
  auto bytes = serialize(sample_plan());
  for (size_t n = 0; n < bytes.size(); ++n) {
    auto r = deserialize({bytes.begin(), bytes.begin() + n});
    ASSERT_FALSE(r.ok()) << n;
    ASSERT_EQ(r.error().kind, "bad-plan");
  }
  bytes.push_back(0);
  EXPECT_FALSE(deserialize(bytes).ok());
}

TEST(LaunchPlan, TruncatedBodiesWithARightChecksumAreRefused) {
  auto whole = serialize(sample_plan());
  for (uint64_t body = 0; body < whole.size() - 52; ++body) {
    std::vector<uint8_t> file(whole.begin(), whole.begin() + 20 + body);
    std::memcpy(file.data() + 12, &body, 8);
    file.resize(file.size() + 32);
    ASSERT_FALSE(deserialize(with_right_hash(file)).ok()) << body;
  }
}

TEST(LaunchPlan, DamageIsNoticed) {
  auto bytes = serialize(sample_plan());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= 1 << (bit % 8);
    ASSERT_FALSE(deserialize(damaged).ok()) << bit;
  }
}

// Whatever gets through the reader must be usable: validate, write and fill it without a fault.
TEST(LaunchPlan, HostileBodiesNeverCrash) {
  auto bytes = serialize(sample_plan());
  uint64_t state = 1;
  auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  size_t read = 0, valid = 0;
  auto feed = [&](std::vector<uint8_t> file) {
    auto r = deserialize(with_right_hash(std::move(file)));
    if (!r.ok()) return;
    ++read;
    EXPECT_TRUE(deserialize(serialize(*r)).ok());
    std::vector<uint64_t> addresses(r->buffers.size(), 0x7f0000000000);
    for (const Step& step : r->steps)
      if (auto* launch = std::get_if<Launch>(&step))
        (void)materialize(launch->params, *r, addresses).ok();
    if (validate(*r).ok()) ++valid;
  };
  for (size_t bit = 20 * 8; bit < (bytes.size() - 32) * 8; ++bit) {
    auto file = bytes;
    file[bit / 8] ^= 1 << (bit % 8);
    feed(file);
  }
  for (int i = 0; i < 20'000; ++i) {
    auto file = bytes;
    for (uint64_t flips = 1 + next() % 8; flips > 0; --flips)
      file[20 + next() % (file.size() - 52)] = static_cast<uint8_t>(next() % 3 ? next() : 0xff);
    feed(file);
  }
  EXPECT_GT(read, 1000u);  // the fuzz got past the reader, and past validate
  EXPECT_GT(valid, 100u);
}

TEST(LaunchPlan, OtherVersionsAreNamed) {
  auto bytes = serialize(sample_plan());
  bytes[8] = 9;
  auto r = deserialize(bytes);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().message.find("version 9"), std::string::npos);
}

// Each change must be refused with a message containing the text.
void expect_refused(const std::function<void(LaunchPlan&)>& change, const std::string& text) {
  LaunchPlan plan = sample_plan();
  change(plan);
  auto r = validate(plan);
  ASSERT_FALSE(r.ok()) << text;
  EXPECT_EQ(r.error().kind, "bad-plan");
  EXPECT_NE(r.error().message.find(text), std::string::npos) << r.error().message;
}

Launch& first_launch(LaunchPlan& p) { return std::get<Launch>(p.steps[0]); }

TEST(LaunchPlan, ValidateNamesWhatIsWrong) {
  EXPECT_TRUE(validate(sample_plan()).ok()) << validate(sample_plan()).error().message;
  expect_refused([](LaunchPlan& p) { p.arch = ""; }, "architecture");
  expect_refused([](LaunchPlan& p) { p.buffers[0].size = uint64_t{1} << 50; }, "buffer A");
  expect_refused([](LaunchPlan& p) { p.buffers[2].module = 4; }, "module 4");
  expect_refused([](LaunchPlan& p) { p.modules[0] = {}; }, "without any code");
  expect_refused([](LaunchPlan& p) { p.tensor_maps[0].address.buffer = 9; }, "buffer 9");
  expect_refused([](LaunchPlan& p) { p.tensor_maps[0].args.rank = 77; }, "rank 77");
  expect_refused([](LaunchPlan& p) { p.tensor_maps[0].address.offset = 8; }, "aligned");
  expect_refused([](LaunchPlan& p) { first_launch(p).module = 1; }, "module 1");
  expect_refused([](LaunchPlan& p) { first_launch(p).kernel = ""; }, "no kernel");
  expect_refused([](LaunchPlan& p) { first_launch(p).grid.y = 0; }, "empty grid");
  expect_refused([](LaunchPlan& p) { first_launch(p).grid.z = 65536; }, "grid");
  expect_refused([](LaunchPlan& p) { first_launch(p).block = {1024, 2, 1}; }, "1024 threads");
  expect_refused([](LaunchPlan& p) { first_launch(p).cluster = {32, 1, 1}; }, "cluster");
  expect_refused([](LaunchPlan& p) { first_launch(p).cluster = {5, 1, 1}; }, "no multiple");
  expect_refused([](LaunchPlan& p) { first_launch(p).max_dynamic_shared_bytes = 0; },
                 "cudaFuncSetAttribute");
  expect_refused([](LaunchPlan& p) { first_launch(p).max_dynamic_shared_bytes = 232449; },
                 "232448");
  expect_refused([](LaunchPlan& p) { first_launch(p).params.bytes.resize(32765); }, "parameters");
  expect_refused([](LaunchPlan& p) { first_launch(p).params.pointers[0].at = 393; }, "outside");
  expect_refused([](LaunchPlan& p) { first_launch(p).params.pointers[0].at = ~uint64_t{0}; },
                 "outside");
  expect_refused([](LaunchPlan& p) { first_launch(p).params.pointers[0].at = 120; }, "overlap");
  expect_refused([](LaunchPlan& p) { first_launch(p).params.tensor_maps[0].map = 1; },
                 "tensor map 1");
  expect_refused([](LaunchPlan& p) { std::get<Memset>(p.steps[1]).bytes = 4100; }, "scratch0");
  expect_refused([](LaunchPlan& p) { std::get<Memset>(p.steps[1]).bytes = 3; }, "elements of 4");
  expect_refused([](LaunchPlan& p) { std::get<Memset>(p.steps[1]).element_size = 3; }, "3 bytes");
  expect_refused([](LaunchPlan& p) { std::get<CopyHostToDevice>(p.steps[2]).dst.offset = 1; },
                 "table");
  expect_refused([](LaunchPlan& p) { std::get<CopyDeviceToDevice>(p.steps[3]).src.offset = ~0ull; },
                 "device copy");
}

TEST(LaunchPlan, CheckLaunchIsTheCandidatesFault) {
  Launch l = sample_launch();
  EXPECT_TRUE(check_launch(l).ok());
  l.dynamic_shared_bytes = 200'001;
  ASSERT_FALSE(check_launch(l).ok());
  EXPECT_EQ(check_launch(l).error().kind, "launch-refused");
}

TEST(LaunchPlan, MaterializeFillsEveryHole) {
  LaunchPlan plan = sample_plan();
  const Blob& blob = first_launch(plan).params;
  std::vector<uint64_t> addresses{0x7f0000000000, 0x7f1100000000, 0x7f2200000000};
  auto bytes = materialize(blob, plan, addresses);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  ASSERT_EQ(bytes->size(), 400u);
  uint64_t pointers[2];
  std::memcpy(pointers, bytes->data() + 128, 16);
  EXPECT_EQ(pointers[0], 0x7f1100000010u);
  EXPECT_EQ(pointers[1], 0x7f2200000000u);
  auto map = decode(bytes->data());
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->global_address, 0x7f0000000200u);
  EXPECT_EQ(map->dims[0], 5120u);
  EXPECT_EQ((*bytes)[144], 7);
  EXPECT_EQ((*bytes)[399], 7);
  EXPECT_FALSE(materialize(blob, plan, {1, 2}).ok());
}

}  // namespace
}  // namespace ptxbench::plan
