// The 1,561 element-wise forms that an H200 executed (tests/data/hw): each parses, verifies, and
// reads and writes the registers that its text says.
#include <zstd.h>

#include "ptx/def_use.h"
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

std::string read_file(const std::string& name) {
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/data/hw/" + name, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

std::string decompress(const std::string& packed) {
  auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) size = 64 << 20;
  std::string out(size, '\0');
  size_t got = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  EXPECT_FALSE(ZSTD_isError(got)) << ZSTD_getErrorName(got);
  if (ZSTD_isError(got)) return "";
  out.resize(got);
  return out;
}

std::string register_of(const std::string& array_type, size_t operand) {
  std::string prefix = array_type == "u64" ? "%rd" : array_type == "u16" ? "%rs" : "%r";
  return prefix + std::to_string(operand);
}

// "%0" becomes the register of the first name, ...
std::string substitute(const std::string& text, const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool operand =
        text[i] == '%' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (!operand) {
      out += text[i];
      continue;
    }
    out += names.at(static_cast<size_t>(text[++i] - '0'));
  }
  return out;
}

class RecordedForms : public testing::TestWithParam<std::string> {};

TEST_P(RecordedForms, FitTheTable) {
  nlohmann::json manifest = nlohmann::json::parse(read_file("manifest.json"));
  const nlohmann::json& group = manifest["groups"][GetParam()];
  std::stringstream lines(decompress(read_file(GetParam() + ".jsonl.zst")));
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    nlohmann::json form = nlohmann::json::parse(line);
    std::vector<std::string> names = {register_of(form["out"]["type"], 0)};
    for (const nlohmann::json& input : form["inputs"])
      names.push_back(register_of(group["inputs"][input.get<std::string>()]["type"], names.size()));
    std::string text = substitute(form["ptx"], names);
    auto module = parse(kernel("{" + text + "}"), "t.ptx");
    ASSERT_TRUE(module.ok()) << text << ": " << module.error().to_string();
    auto verified = verify(*module);
    EXPECT_TRUE(verified.ok()) << text << ": " << verified.error().to_string();
    const Function& f = module->functions[0];
    std::map<std::string, int> use;  // 1 read, 2 written
    for (const Instruction& i : instructions(f))
      for_each_register(i, [&](uint32_t r, bool w) { use[f.registers[r].name] |= w ? 2 : 1; });
    for (size_t k = 0; k < names.size(); ++k) {
      if (form["ptx"].get<std::string>().find("%" + std::to_string(k)) != std::string::npos) {
        EXPECT_EQ(use[names[k]], k == 0 ? 2 : 1) << text << " " << names[k];
      }
    }
  }
  EXPECT_EQ(count, group["cases"].get<size_t>());
}

INSTANTIATE_TEST_SUITE_P(H200, RecordedForms, testing::Values("cvt", "exact", "approx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ptxbench::ptx
