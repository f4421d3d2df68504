// The recording reader against truncated and mutated files, and the merge against recordings made
// by hand.
#include "cudart/recording.h"

#include <gtest/gtest.h>

#include <random>

#include "cudart/merge.h"

namespace ptxbench::cudart {
namespace {

class File {
 public:
  File() {
    wire::Writer hello;
    hello.put(wire::kRecordingMagic);
    hello.put(wire::kVersion);
    add(wire::Kind::hello, hello);
  }
  File& add(wire::Kind kind, const wire::Writer& payload) {
    const auto size = static_cast<uint32_t>(payload.bytes().size());
    text += static_cast<char>(kind);
    text.append(reinterpret_cast<const char*>(&size), 4);
    text.append(payload.bytes().begin(), payload.bytes().end());
    return *this;
  }
  File& buffer(uint64_t address, uint64_t bytes) {
    wire::Writer w;
    w.put(wire::BufferKind::argument);
    w.put(count++);
    w.put_string("x");
    w.put(address);
    w.put(bytes);
    return add(wire::Kind::buffer, w);
  }
  File& upload(uint64_t dst, const std::vector<uint8_t>& bytes) {
    wire::Writer w;
    w.put(dst);
    w.put_bytes(bytes.data(), bytes.size());
    return add(wire::Kind::upload, w);
  }
  File& launch(const std::vector<uint8_t>& params) {
    wire::Writer w;
    w.put_string("k");
    for (int i = 0; i < 9; ++i) w.put(uint32_t{1});
    for (int i = 0; i < 3; ++i) w.put(uint8_t{0});
    for (int i = 0; i < 3; ++i) w.put(uint32_t{0});
    w.put_bytes(params.data(), params.size());
    return add(wire::Kind::launch, w);
  }
  File& finish() {
    wire::Writer w;
    w.put(wire::Finish::returned);
    w.put_string("");
    w.put_string("");
    return add(wire::Kind::finished, w);
  }
  std::string text;
  uint32_t count = 0;
};

std::vector<uint8_t> words(std::initializer_list<uint64_t> values) {
  std::vector<uint8_t> out;
  for (uint64_t v : values)
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<uint8_t>(v >> (8 * i)));
  return out;
}

File sample(uint64_t base, uint64_t word) {
  File f;
  f.buffer(base, 4096).buffer(base + (1 << 20), 64);
  f.upload(base + 64, words({1, word, 3}));
  f.launch(words({base + 4096})).finish();
  return f;
}

RecordOutcome merged(uint64_t word_a, uint64_t word_b) {
  RecordRequest request;
  request.ptx = ".version 9.0";
  request.arguments = {{"x", "float32", {1024}, false, {}}, {"y", "float32", {16}, true, {}}};
  KernelTable table;
  table.kernels.push_back({.name = "k", .params = {{0, 8}}, .param_bytes = 8});
  table.read_bytes["k"] = std::vector<bool>(8, true);
  const auto a = parse_recording(sample(kBaseA, word_a).text),
             b = parse_recording(sample(kBaseB, word_b).text);
  EXPECT_TRUE(a.ok() && b.ok());
  return merge(*a, *b, request, table);
}

TEST(Merge, EqualWordsAreDataEvenIfTheyLookLikeAddresses) {
  const RecordOutcome outcome = merged(kBaseA + 16, kBaseA + 16);
  ASSERT_TRUE(outcome.ok) << outcome.message;
  const auto& upload = std::get<plan::CopyHostToDevice>(outcome.plan.steps[0]);
  EXPECT_EQ(upload.dst, (plan::BufferRef{0, 64}));
  EXPECT_TRUE(upload.data.pointers.empty());
  EXPECT_EQ(upload.data.bytes, words({1, kBaseA + 16, 3}));
}

TEST(Merge, OnePastTheEndIsStillTheBuffer) {
  const RecordOutcome outcome = merged(kBaseA + (1 << 20) + 64, kBaseB + (1 << 20) + 64);
  ASSERT_TRUE(outcome.ok) << outcome.message;
  const auto& upload = std::get<plan::CopyHostToDevice>(outcome.plan.steps[0]);
  EXPECT_EQ(upload.data.pointers, (std::vector<plan::PointerPatch>{{8, {1, 64}}}));
  const auto& launch = std::get<plan::Launch>(outcome.plan.steps[1]);
  EXPECT_EQ(launch.params.pointers, (std::vector<plan::PointerPatch>{{0, {0, 4096}}}));
}

TEST(Merge, TheRightDistanceOutsideEveryBufferIsAnError) {
  const RecordOutcome outcome = merged(kBaseA + 4097, kBaseB + 4097);
  EXPECT_EQ(outcome.reason, "host-nondeterministic");
  EXPECT_NE(outcome.message.find("outside every buffer"), std::string::npos) << outcome.message;
}

TEST(Merge, AnyOtherDistanceIsAnError) {
  EXPECT_EQ(merged(kBaseA, kBaseB + 1).reason, "host-nondeterministic");
  EXPECT_EQ(merged(kBaseA >> 4, kBaseB >> 4).reason, "host-nondeterministic");
  EXPECT_EQ(merged(2 * kBaseA, 2 * kBaseB).reason, "host-nondeterministic");
  EXPECT_EQ(merged(0, 1).reason, "host-nondeterministic");
  EXPECT_EQ(merged(kBaseA & 0xffffffff, kBaseB & 0xffffffff).reason, "host-nondeterministic");
}

TEST(Recording, EndsAnywhere) {
  const std::string whole = sample(kBaseA, 2).text;
  ASSERT_TRUE(parse_recording(whole)->finished);
  for (size_t n = 0; n < whole.size(); ++n) {
    const auto part = parse_recording(whole.substr(0, n));
    ASSERT_TRUE(part.ok()) << n;
    EXPECT_FALSE(part->finished) << n;
  }
}

TEST(Recording, GarbageIsRefused) {
  EXPECT_FALSE(parse_recording(std::string(64, 'x') + std::string(64, '\0')).ok() &&
               parse_recording(std::string(64, '\0')).ok());
  std::string wrong = sample(kBaseA, 2).text;
  wrong[5] ^= 1;  // the magic
  EXPECT_EQ(parse_recording(wrong).error().kind, "bad-recording");
  EXPECT_EQ(parse_recording(sample(kBaseA, 2).finish().text).error().kind, "bad-recording");
  File overlapping;
  overlapping.buffer(kBaseA, 4096).buffer(kBaseA + 100, 64);
  EXPECT_EQ(parse_recording(overlapping.text).error().kind, "bad-recording");
}

TEST(Recording, MutationsNeverCrash) {
  std::mt19937_64 random(7);
  const std::string whole = sample(kBaseA, kBaseA + 8).text;
  const Recording other = parse_recording(sample(kBaseB, kBaseB + 8).text).take();
  RecordRequest request;
  request.arguments = {{"x", "float32", {1024}, false, {}}, {"y", "float32", {16}, true, {}}};
  KernelTable table;
  table.kernels.push_back({.name = "k", .params = {{0, 8}}, .param_bytes = 8});
  table.read_bytes["k"] = std::vector<bool>(8, true);
  int parsed = 0, accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = static_cast<char>(random() % 2 ? 0xff : 0);
          break;
        default:
          text.erase(at, random() % 9);
          text += std::string(random() % 9, '\1');
      }
    }
    const auto recording = parse_recording(text);
    if (!recording.ok()) continue;
    ++parsed;
    accepted += merge(*recording, other, request, table).ok;
  }
  EXPECT_GT(parsed, 100);
  EXPECT_LT(accepted, parsed);
}

}  // namespace
}  // namespace ptxbench::cudart
