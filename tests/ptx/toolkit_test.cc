// The CUDA toolkit's own wrappers of PTX instructions (cuda/ptx) as a conformance set: the text in
// each asm statement must parse for its target, verify, and its registers be read and written as
// the constraints say. Skipped where no toolkit is installed.
#include <algorithm>
#include <filesystem>
#include <set>

#include "ptx/def_use.h"
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

namespace fs = std::filesystem;

struct Wrapper {
  std::string text;
  std::vector<std::string> constraints;  // "=l", "+r", "n"
};

// A C string literal that begins at text[*i]; *i ends behind it.
std::string literal(const std::string& text, size_t* i) {
  std::string out;
  for (++*i; *i < text.size() && text[*i] != '"'; ++*i) {
    if (text[*i] != '\\') {
      out += text[*i];
    } else if (++*i < text.size()) {
      out += text[*i] == 'n' ? '\n' : text[*i] == 't' ? '\t' : text[*i];
    }
  }
  ++*i;
  return out;
}

// The asm statement whose "(" is at text[i].
Wrapper read_asm(const std::string& text, size_t i) {
  Wrapper w;
  int section = 0, depth = 0;
  while (i < text.size()) {
    char ch = text[i];
    if (ch == '"') {
      std::string s = literal(text, &i);
      if (section == 0) w.text += s;
      if (section == 1 || section == 2) w.constraints.push_back(s);
      continue;
    }
    if (ch == '(') ++depth;
    if (ch == ')' && --depth == 0) break;
    if (ch == ':' && depth == 1) ++section;
    ++i;
  }
  return w;
}

std::string strip_comments(const std::string& text) {
  std::stringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += line.substr(0, line.find("//")) + "\n";
  return out;
}

std::string operand_name(const std::string& constraint, size_t k) {
  static const std::map<char, std::string> kPrefix = {{'l', "%rd"}, {'r', "%r"},  {'h', "%rs"},
                                                      {'f', "%f"},  {'d', "%fd"}, {'q', "%rq"}};
  auto it = kPrefix.find(constraint.back());
  return it == kPrefix.end() ? "constant" : it->second + std::to_string(k);
}

std::string fill_in(const Wrapper& w) {
  std::string out;
  const std::string text = strip_comments(w.text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
    } else if (text[i + 1] == '%') {
      out += text[i++];
    } else {
      size_t k = 0;
      for (; i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])); ++i)
        k = k * 10 + static_cast<size_t>(text[i + 1] - '0');
      std::string name = operand_name(w.constraints.at(k), k);
      bool small = text.find("tensormap.replace") != std::string::npos ||
                   text.find("st.bulk") != std::string::npos;
      out += name == "constant" ? (small ? "0" : "128") : name;
    }
  }
  return out;
}

void check(const Wrapper& w) {
  std::string text = fill_in(w);
  Module m;
  for (std::string_view target : {"sm_90a", "sm_100a"}) {
    auto module =
        parse(header(target) +
                  ".entry k() {\n.reg .b16 %rs<300>; .reg .b32 %r<300>; .reg .f32 %f<300>;\n"
                  ".reg .b64 %rd<300>; .reg .f64 %fd<300>; .reg .b128 %rq<300>;\n" +
                  text + "\n}\n",
              "t.ptx");
    ASSERT_TRUE(module.ok()) << text << ": " << module.error().to_string();
    m = module.take();
    if (verify(m).ok()) break;
  }
  auto verified = verify(m);
  EXPECT_TRUE(verified.ok()) << text << ": " << verified.error().to_string();
  std::map<std::string, int> use;  // 1 read, 2 written
  const Function& f = m.functions[0];
  for (const Instruction& i : instructions(f))
    for_each_register(i,
                      [&](uint32_t r, bool write) { use[f.registers[r].name] |= write ? 2 : 1; });
  for (size_t k = 0; k < w.constraints.size(); ++k) {
    std::string name = operand_name(w.constraints[k], k);
    int want = w.constraints[k][0] == '=' ? 2 : w.constraints[k][0] == '+' ? 3 : 1;
    if (name != "constant") {
      EXPECT_EQ(use[name], want) << text << " " << name;
    }
  }
}

TEST(Toolkit, WrappersFitTheTable) {
  fs::path folder = "/usr/local/cuda/include/cccl/cuda/__ptx/instructions/generated";
  if (!fs::exists(folder)) GTEST_SKIP() << "no CUDA toolkit here";
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::stringstream bytes;
    bytes << std::ifstream(entry.path()).rdbuf();
    std::string text = bytes.str();
    for (size_t at = text.find("asm"); at != std::string::npos; at = text.find("asm", at + 3)) {
      size_t open = at + 3;
      if (text.compare(open, 9, " volatile") == 0) open += 9;
      while (open < text.size() && text[open] == ' ') ++open;
      if (text[open] != '(') continue;
      Wrapper w = read_asm(text, open);
      if (!w.text.empty() && seen.insert(fill_in(w)).second) check(w);
    }
  }
  EXPECT_GT(seen.size(), 1500u) << "the toolkit's wrappers were not understood";
}

}  // namespace
}  // namespace ptxbench::ptx
