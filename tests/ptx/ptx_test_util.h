#pragma once
#include <fstream>
#include <sstream>
#include <string>

#include "ptx/parser.h"

namespace ptxbench::ptx {

inline std::string header(std::string_view target = "sm_90a", std::string_view version = "9.0") {
  return ".version " + std::string(version) + "\n.target " + std::string(target) +
         "\n.address_size 64\n";
}

// A kernel around some statements; the statements begin in line 7.
inline std::string kernel(std::string_view body, std::string_view target = "sm_90a") {
  return header(target) +
         ".visible .entry k(.param .u64 p, .param .align 8 .b8 q[24]) {\n"
         ".reg .pred %p<4>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .f32 %f<130>;\n"
         ".reg .b64 %rd<20>; .reg .f64 %fd<4>; .reg .b128 %rq<2>;\n" +
         std::string(body) + "\n}\n";
}

inline Module parse_ok(std::string_view text) {
  auto module = parse(text, "t.ptx");
  EXPECT_TRUE(module.ok()) << module.error().to_string() << "\n" << text;
  return module.ok() ? module.take() : Module();
}

inline std::vector<Instruction> instructions(const Function& f) {
  std::vector<Instruction> out;
  for (const Statement& s : f.body)
    if (auto* i = std::get_if<Instruction>(&s)) out.push_back(*i);
  return out;
}

// The only instruction of a kernel.
inline Instruction one(std::string_view text, std::string_view target = "sm_90a") {
  Module m = parse_ok(kernel(text, target));
  std::vector<Instruction> list;
  if (!m.functions.empty()) list = instructions(m.functions[0]);
  EXPECT_EQ(list.size(), 1u);
  if (!list.empty()) return list[0];
  Instruction failed;
  failed.operands.resize(16);  // so that the test goes on to its end
  return failed;
}

inline void strip_positions(std::vector<Variable>* list) {
  for (Variable& v : *list) v.line = 0;
}

inline void strip_positions(Module* m) {
  strip_positions(&m->variables);
  for (Function& f : m->functions) {
    f.line = 0;
    strip_positions(&f.params);
    strip_positions(&f.returns);
    strip_positions(&f.variables);
    for (Statement& s : f.body)
      if (auto* i = std::get_if<Instruction>(&s)) i->line = i->column = 0;
    for (Prototype& p : f.prototypes) {
      strip_positions(&p.params);
      strip_positions(&p.returns);
    }
  }
}

inline std::string read_corpus(const std::string& name) {
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/ptx/corpus/" + name + ".ptx", std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

inline const std::vector<std::string>& corpus() {
  static const std::vector<std::string> names = {
      "blackwell", "calls",     "calls_rdc", "hopper",  "lines_debug", "lines_lineinfo",
      "math",      "math_sm80", "memory",    "numbers", "templates",   "warps"};
  return names;
}

}  // namespace ptxbench::ptx
