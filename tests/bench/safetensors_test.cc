#include "bench/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "base/temp_dir.h"

namespace ptxbench::bench {
namespace {

class SafeTensors : public ::testing::Test {
 protected:
  TempDir folder_ = TempDir::create("safetensors").take();
  std::filesystem::path file_ = folder_.path() / "t.safetensors";

  void write(const std::string& header, const std::string& data) {
    std::string bytes(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    ASSERT_TRUE(write_file_atomically(file_, bytes + header + data).ok());
  }
  std::string why(const std::string& key = "a") {
    const auto read = read_safetensor(file_, key);
    return read.ok() ? "" : read.error().kind + ": " + read.error().message;
  }
};

TEST_F(SafeTensors, RoundTrip) {
  const SafeTensor a{"bfloat16", {2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const SafeTensor b{"int32", {1}, {9, 0, 0, 0}}, empty{"bool", {0, 5}, {}};
  ASSERT_TRUE(write_safetensors(file_, {{"a", a}, {"b", b}, {"none", empty}}).ok());
  for (const auto& [key, tensor] : {std::pair{"a", a}, {"b", b}, {"none", empty}}) {
    const auto read = read_safetensor(file_, key);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->dtype, tensor.dtype);
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_EQ(read->bytes, tensor.bytes);
  }
}

TEST_F(SafeTensors, ReadsWhatOthersWrite) {  // metadata, padding, tensors in any order
  write(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
        R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
        std::string("\0\0\x80\x3f\x07\x08", 6));
  const auto a = read_safetensor(file_, "a");
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_TRUE(a->shape.empty());
  EXPECT_EQ(a->bytes, (std::vector<uint8_t>{0, 0, 0x80, 0x3f}));
  EXPECT_EQ(read_safetensor(file_, "b")->bytes, (std::vector<uint8_t>{7, 8}));
}

TEST_F(SafeTensors, RefusesWhatDoesNotAddUp) {
  EXPECT_NE(why().find("not-found"), std::string::npos);
  const auto tensor = [](const std::string& fields) { return "{\"a\":{" + fields + "}}"; };
  write(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "1234");
  EXPECT_NE(why().find("ends behind the end of the file"), std::string::npos) << why();
  EXPECT_NE(why("c").find("has no tensor \"c\" (it has: a)"), std::string::npos) << why("c");
  for (const char* fields :
       {R"("dtype":"F32","shape":[2],"data_offsets":[0,4])",
        R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])",
        R"("dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,4])",
        R"("dtype":"F7","shape":[1],"data_offsets":[0,4])",
        R"("dtype":"F32","shape":[1],"data_offsets":[4,0])",
        R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", R"("shape":[1])"}) {
    write(tensor(fields), "12345678");
    EXPECT_NE(why().find("bad-safetensors"), std::string::npos) << fields << why();
  }
  for (const std::string& bytes :
       {std::string(), std::string("1234567"), std::string(8, '\xff'), std::string(9, '\0')}) {
    ASSERT_TRUE(write_file_atomically(file_, bytes).ok());
    EXPECT_NE(why().find("bad-safetensors"), std::string::npos) << why();
  }
}

TEST_F(SafeTensors, ExplainsGitLfsPointers) {
  ASSERT_TRUE(
      write_file_atomically(file_, std::string("version https://git-lfs.github.com/spec/v1\n"
                                               "oid sha256:4d7a2146\nsize 123456\n"))
          .ok());
  EXPECT_NE(why().find("lfs-pointer"), std::string::npos);
  EXPECT_NE(why().find("sha256:4d7a2146, 123456 bytes"), std::string::npos) << why();
  EXPECT_NE(why().find("git lfs pull"), std::string::npos) << why();
}

}  // namespace
}  // namespace ptxbench::bench
