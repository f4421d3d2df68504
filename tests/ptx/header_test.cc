// Heads of modules, each with the verdict of ptxas 13.0.
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

// Nothing where the module is taken.
std::string complaint(const std::string& head, const std::string& rest = ".entry k() {ret;}") {
  auto module = parse(head + rest, "t.ptx");
  if (!module.ok()) return module.error().message;
  auto verified = verify(*module, "t.ptx");
  return verified.ok() ? "" : verified.error().message;
}

std::string with_options(const std::string& options) {
  return ".version 9.0\n.target sm_90a, " + options + "\n.address_size 64\n";
}

TEST(Header, OnlyReleasesOfPtx) {
  for (const char* version : {"2.3", "3.2", "4.2", "4.3", "5.1", "6.5", "7.8", "8.8", "9.0"})
    EXPECT_EQ(complaint(".version " + std::string(version) + "\n.target sm_20\n"), "") << version;
  for (const char* version :
       {"0.9", "1.6", "2.4", "3.3", "4.4", "5.2", "6.6", "7.9", "8.9", "9.1", "10.0"})
    EXPECT_NE(complaint(".version " + std::string(version) + "\n.target sm_20\n").find("no PTX"),
              std::string::npos)
        << version;
}

TEST(Header, OptionsOfTheTarget) {
  for (const char* options : {"texmode_independent", "texmode_unified", "sm_80"})
    EXPECT_EQ(complaint(with_options(options)), "") << options;
  for (const char* options : {"texmode_unified, texmode_independent", "map_f64_to_f32", "debug",
                              "foo", "texmode_raw", "sm_33"})
    EXPECT_NE(complaint(with_options(options)), "") << options;
  EXPECT_EQ(
      complaint(with_options("debug"), ".entry k() {ret;}\n.section .debug_info {\n.b8 0\n}\n"),
      "");
}

TEST(Header, AddressesHave64Bits) {
  EXPECT_NE(complaint(".version 9.0\n.target sm_80\n.address_size 32\n"), "");
  EXPECT_EQ(complaint(".version 9.0\n.target sm_80\n"), "");
}

TEST(Header, PragmasOfBodies) {
  for (const char* pragma : {"used_bytes_mask 0xff", "frequency 3", "enable_smem_spilling"}) {
    const std::string line = ".pragma \"" + std::string(pragma) + "\";";
    EXPECT_NE(complaint(header(), line + " .entry k() {ret;}"), "");
    EXPECT_NE(complaint(header(), ".entry k() " + line + " {ret;}"), "");
    EXPECT_EQ(complaint(header(), ".entry k() {" + line + " ret;}"), "");
  }
  EXPECT_EQ(complaint(header(), ".entry k() .pragma \"nounroll\"; {ret;}"), "");
}

TEST(Header, AStatementBeforeEachSemicolon) {
  for (const char* text : {".entry k() {ret;;}", ".entry k() {;ret;}", ";.entry k() {ret;}",
                           ".entry k() {ret;};", ".global .u32 a;;.entry k() {ret;}"})
    EXPECT_NE(complaint(header(), text).find("found ';'"), std::string::npos) << text;
}

}  // namespace
}  // namespace ptxbench::ptx
