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

// .abi_preserve and .abi_preserve_control: of functions and prototypes from PTX 9.0 and sm_80 on.
TEST(Header, RegistersKeptByCallers) {
  auto function = [](const std::string& directives) {
    return ".func (.param .b32 r) f(.param .b32 a) " + directives + "\n{ret;}\n";
  };
  auto prototype = [](const std::string& directives) {
    return ".func f() {\n.reg .b64 %rd<2>;\np: .callprototype _ () " + directives +
           ";\ncall %rd1, (), p;\nret;\n}\n";
  };
  const std::string head = ".version 9.0\n.target sm_80\n.address_size 64\n";
  for (const char* directives : {"", ".abi_preserve 8", ".abi_preserve_control 2",
                                 ".abi_preserve_control 0x2 .abi_preserve 0",
                                 ".abi_preserve 237 .abi_preserve_control 11"}) {
    for (const std::string& text : {function(directives), prototype(directives)}) {
      EXPECT_EQ(complaint(head, text), "") << text;
      Module m = parse_ok(head + text);
      Module again = parse_ok(print(m));
      strip_positions(&m);
      strip_positions(&again);
      EXPECT_EQ(again, m) << text;
    }
  }
  EXPECT_EQ(parse_ok(head + function(".abi_preserve 8")).functions[0].directives.abi_preserve.data,
            8u);
  for (const char* directives :
       {".abi_preserve", ".abi_preserve -1", ".abi_preserve 4+4", ".abi_preserve 1.5",
        ".abi_preserve 238", ".abi_preserve_control 12", ".abi_preserve 4294967296",
        ".abi_preserve 8 .abi_preserve 8", ".abi_preserve 8 .noreturn"})
    for (const std::string& text : {function(directives), prototype(directives)})
      EXPECT_NE(complaint(head, text), "") << text;
  for (const char* older : {".version 8.8\n.target sm_80\n", ".version 9.0\n.target sm_75\n"}) {
    EXPECT_NE(complaint(older, function(".abi_preserve 8")).find("needs PTX 9.0"),
              std::string::npos);
    EXPECT_NE(complaint(older, prototype(".abi_preserve 8")).find("needs PTX 9.0"),
              std::string::npos);
  }
  EXPECT_NE(complaint(head, ".entry k() .abi_preserve 8 {ret;}"), "");
  EXPECT_EQ(complaint(head, ".func f() .abi_preserve 8;\n.func f() .abi_preserve 8 {ret;}"), "");
  EXPECT_NE(complaint(head, ".func f() .abi_preserve 8;\n.func f() .abi_preserve 9 {ret;}"), "");
}

TEST(Header, AStatementBeforeEachSemicolon) {
  for (const char* text : {".entry k() {ret;;}", ".entry k() {;ret;}", ";.entry k() {ret;}",
                           ".entry k() {ret;};", ".global .u32 a;;.entry k() {ret;}"})
    EXPECT_NE(complaint(header(), text).find("found ';'"), std::string::npos) << text;
}

}  // namespace
}  // namespace ptxbench::ptx
