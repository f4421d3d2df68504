#include "ptx/fingerprint.h"

#include <random>

#include "ptx/control_flow.h"
#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

void rename_registers(Operand& o, const std::vector<uint32_t>& to) {
  const bool reg = o.kind == Operand::Kind::reg || o.base == Operand::Base::reg;
  if (reg) o.index = to[o.index];
  if (o.kind == Operand::Kind::integer) o.value = o.value * 3 + 1;
  for (Operand& e : o.elements) rename_registers(e, to);
}

// The same kernels under other names: registers shuffled and renamed, labels and functions renamed,
// constants changed, functions in another order.
Module disguise(Module m) {
  std::mt19937 random(7);
  for (Function& f : m.functions) {
    std::vector<uint32_t> to(f.registers.size());
    for (uint32_t r = 0; r < to.size(); ++r) to[r] = r;
    std::shuffle(to.begin(), to.end(), random);
    std::vector<Register> registers(f.registers.size());
    for (uint32_t r = 0; r < to.size(); ++r) {
      registers[to[r]] = f.registers[r];
      registers[to[r]].name = "%x" + std::to_string(to[r]);
    }
    f.registers = registers;
    f.name = "f" + std::to_string(random());
    for (Label& l : f.labels) l.name = "away" + std::to_string(random());
    for (Statement& s : f.body)
      if (auto* i = std::get_if<Instruction>(&s)) {
        if (i->guard != kNone) i->guard = to[i->guard];
        for (Operand& o : i->operands) rename_registers(o, to);
      }
  }
  return m;
}

TEST(Fingerprint, DisguiseDoesNotHide) {
  for (const std::string& name : corpus()) {
    const Module m = parse_ok(read_corpus(name));
    Module other = disguise(m);
    EXPECT_EQ(similarity(fingerprint(m), fingerprint(other)), 1.0) << name;
    EXPECT_GT(fingerprint(m).instructions, 0u);
    // Text in between changes nothing either, nor does the order of the functions.
    std::reverse(other.functions.begin(), other.functions.end());
    EXPECT_EQ(fingerprint(other), fingerprint(m)) << name;
  }
}

TEST(Fingerprint, DifferentKernelsAreFarApart) {
  std::vector<std::pair<std::string, Fingerprint>> kernels;
  for (const char* name : {"hopper", "blackwell", "math", "memory", "warps"}) {
    const Module m = parse_ok(read_corpus(name));
    for (const Function& f : m.functions)
      if (auto print = fingerprint(f, m); print.instructions >= 12)
        kernels.emplace_back(std::string(name) + " " + f.name, print);
  }
  ASSERT_GT(kernels.size(), 8u);
  double most = 0, sum = 0;
  int pairs = 0;
  std::string which;
  for (size_t i = 0; i < kernels.size(); ++i)
    for (size_t j = i + 1; j < kernels.size(); ++j) {
      const double s = similarity(kernels[i].second, kernels[j].second);
      EXPECT_EQ(s, similarity(kernels[j].second, kernels[i].second));
      sum += s, ++pairs;
      if (s > most) most = s, which = kernels[i].first + " / " + kernels[j].first;
    }
  std::printf("%d pairs of different kernels: mean %.3f, most %.3f (%s)\n", pairs, sum / pairs,
              most, which.c_str());
  EXPECT_LT(most, 0.5) << which;
  EXPECT_LT(sum / pairs, 0.1);
}

TEST(Fingerprint, SmallEditsKeepMost) {
  const Module m = parse_ok(read_corpus("hopper"));
  const Function* gemm = nullptr;
  for (const Function& f : m.functions)
    if (f.name.find("gemm") != std::string::npos) gemm = &f;
  ASSERT_TRUE(gemm);
  Function edited = *gemm;
  // Every 25th instruction is doubled.
  std::vector<Statement> body;
  int n = 0;
  for (const Statement& s : edited.body) {
    body.push_back(s);
    if (const auto* i = std::get_if<Instruction>(&s); i && i->op == Op::add && ++n % 5 == 0)
      body.push_back(s);
  }
  ASSERT_GT(body.size(), edited.body.size());
  edited.body = body;
  const double s = similarity(fingerprint(*gemm, m), fingerprint(edited, m));
  std::printf("%zu of %zu statements added: %.3f\n", body.size() - gemm->body.size(),
              gemm->body.size(), s);
  EXPECT_GT(s, 0.6);
  EXPECT_LT(s, 1.0);
}

TEST(Fingerprint, Extremes) {
  const Module empty = parse_ok(header() + ".entry k() { }");
  EXPECT_EQ(similarity(fingerprint(empty), fingerprint(empty)), 0.0);
  const Module a = parse_ok(kernel("add.s32 %r1, %r1, 1; ret;"));
  const Module b = parse_ok(kernel("mul.rn.f32 %f1, %f1, %f2; trap;"));
  EXPECT_EQ(similarity(fingerprint(a), fingerprint(a)), 1.0);
  EXPECT_EQ(similarity(fingerprint(a), fingerprint(b)), 0.0);
}

}  // namespace
}  // namespace ptxbench::ptx
