#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_config.h"
#include "base/hash.h"
#include "base/temp_dir.h"

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

TEST(TempDir, IsPrivateAndGoesAway) {
  fs::path path;
  {
    auto dir = TempDir::create("unit");
    ASSERT_TRUE(dir.ok());
    path = dir->path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    fs::create_directories(path / "a/b");
    ASSERT_TRUE(write_file_atomically(path / "a/b/c", "x").ok());
    fs::permissions(path / "a/b", fs::perms::owner_read);
    TempDir moved = std::move(*dir);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TempDir, UnusableRootIsAnError) {
  const char* old = getenv("TMPDIR");
  std::string saved = old ? old : "";
  setenv("TMPDIR", "/no/such/folder", 1);
  auto dir = TempDir::create();
  old ? setenv("TMPDIR", saved.c_str(), 1) : unsetenv("TMPDIR");
  ASSERT_FALSE(dir.ok());
  EXPECT_EQ(dir.error().kind, "io");
}

TEST(Files, RoundTripAndReplace) {
  auto dir = TempDir::create("files");
  ASSERT_TRUE(dir.ok());
  fs::path file = dir->path() / "file";
  std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(write_file_atomically(file, bytes).ok());
  EXPECT_EQ(*read_file(file), bytes);
  ASSERT_TRUE(write_file_atomically(file, "").ok());
  EXPECT_EQ(*read_file(file), "");
  EXPECT_EQ(read_bytes(file)->size(), 0u);
  size_t entries = 0;
  for ([[maybe_unused]] auto& e : fs::directory_iterator(file.parent_path())) ++entries;
  EXPECT_EQ(entries, 1u) << "a temporary neighbour stayed";
}

TEST(Files, MissingFolderIsAnErrorAndStaysMissing) {
  auto dir = TempDir::create("files");
  ASSERT_TRUE(dir.ok());
  const fs::path file = dir->path() / "none/x.plan";
  auto written = write_file_atomically(file, "x");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "cannot write " + file.string() + ": no such directory");
  EXPECT_TRUE(fs::is_empty(dir->path()));
}

TEST(Files, SymlinksAndPipesStayWhatTheyAre) {
  auto dir = TempDir::create("files");
  ASSERT_TRUE(dir.ok());
  fs::create_directory(dir->path() / "elsewhere");
  const fs::path target = dir->path() / "elsewhere/target", link = dir->path() / "link";
  fs::create_symlink("elsewhere/target", link);
  ASSERT_TRUE(write_file_atomically(link, "first").ok());  // leads nowhere yet
  EXPECT_EQ(*read_file(target), "first");
  struct stat before, after;
  ASSERT_EQ(stat(target.c_str(), &before), 0);
  ASSERT_TRUE(write_file_atomically(link, "2nd").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*read_file(target), "2nd");
  ASSERT_EQ(stat(target.c_str(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino) << "not replaced atomically";

  const fs::path pipe = dir->path() / "pipe", to_pipe = dir->path() / "to_pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", to_pipe);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  for (const fs::path& path : {pipe, to_pipe}) {
    ASSERT_TRUE(write_file_atomically(path, "through").ok());
    char text[16];
    EXPECT_EQ(read(reader, text, sizeof text), 7);
    EXPECT_TRUE(fs::is_fifo(path));
  }
  close(reader);
  EXPECT_TRUE(fs::is_symlink(to_pipe));
  EXPECT_FALSE(write_file_atomically(dir->path() / "elsewhere", "x").ok());
}

TEST(Files, ErrorsNameTheFileAndKind) {
  auto dir = TempDir::create("files");
  ASSERT_TRUE(dir.ok());
  auto missing = read_file(dir->path() / "missing");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, "not-found");
  EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
  auto folder = read_file(dir->path());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().kind, "not-a-file");
  ASSERT_EQ(mkfifo((dir->path() / "pipe").c_str(), 0600), 0);
  auto pipe = read_file(dir->path() / "pipe");
  ASSERT_FALSE(pipe.ok());
  EXPECT_EQ(pipe.error().kind, "not-a-file");
}

TEST(Files, LimitIsExact) {
  auto dir = TempDir::create("files");
  ASSERT_TRUE(dir.ok());
  fs::path file = dir->path() / "f";
  ASSERT_TRUE(write_file_atomically(file, std::string(1000, 'x')).ok());
  EXPECT_TRUE(read_file(file, 1000).ok());
  auto r = read_file(file, 999);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().kind, "too-large");
  auto proc = read_file("/proc/self/status", 10);  // claims to be empty
  ASSERT_FALSE(proc.ok());
  EXPECT_EQ(proc.error().kind, "too-large");
  EXPECT_GT(read_file("/proc/self/status")->size(), 100u);
}

TEST(Files, TellsTextFromBinary) {
  EXPECT_FALSE(is_probably_binary(""));
  EXPECT_FALSE(
      is_probably_binary("int main() {}\r\n\t// gr\xc3\xbc\xc3\x9f"
                         "e\n"));
  EXPECT_TRUE(
      is_probably_binary(std::string_view("\x7f"
                                          "ELF\2\1\1\0",
                                          8)));
  EXPECT_TRUE(is_probably_binary("\x01\x02\x03\x04"));
}

TEST(Hash, KnownAnswers) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");  // XXH128 of nothing, seed 0
  EXPECT_EQ(Hasher().hex(), hash_hex(""));
  EXPECT_EQ(Hasher().append("ab").append("c").hex(), hash_hex("abc"));
}

TEST(Hash, PartsHaveBoundaries) {
  EXPECT_NE(hash_parts({"ab", "c"}), hash_parts({"a", "bc"}));
  EXPECT_EQ(hash_parts({"ab", "c"}), Hasher().add("ab").add("c").hex());
  std::vector<uint8_t> bytes{'a', 'b'};
  EXPECT_EQ(Hasher().add(std::span<const uint8_t>(bytes)).hex(), hash_parts({"ab"}));
  EXPECT_EQ(hash_hex(std::span<const uint8_t>(bytes)), hash_hex("ab"));
}

TEST(BuildConfig, PointsAtThisTreeAndCanBeOverridden) {
  EXPECT_TRUE(fs::exists(source_dir() / "CMakeLists.txt"));
  EXPECT_TRUE(fs::exists(build_dir() / "CMakeCache.txt"));
  setenv("PTXBENCH_VENV_DIR", "/elsewhere", 1);
  EXPECT_EQ(venv_dir(), "/elsewhere");
  unsetenv("PTXBENCH_VENV_DIR");
  EXPECT_EQ(venv_dir(), source_dir() / ".venv");
}

}  // namespace
}  // namespace ptxbench
