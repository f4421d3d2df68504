#include "sites.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "ptx/parser.h"
#include "ptx/source_map.h"

namespace ptxbench::mutants {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Op;
using ptx::Operand;

// One instruction and the mutants that are made of it.
class Site {
 public:
  Site(const ptx::Module& m, const ptx::Function& f, const Instruction& i, std::vector<Mutant>* out)
      : module_(m), function_(f), instruction_(i), out_(out) {
    text_ = ptx::print(i, f, m);
    // The kernel's line, not that of the wrapper around the instruction.
    for (const ptx::SourceFrame& frame : ptx::source_chain(m, i)) {
      if (frame.line > 0) file_ = frame.file, line_ = frame.line;
      if (frame.line > 0 && file_.find("/include/") == std::string::npos) break;
    }
  }

  std::string guard() const {
    const size_t end = text_.starts_with("@") ? text_.find(' ') + 1 : 0;
    return text_.substr(0, end);
  }

  void replace(const std::string& what, const char* expected, const std::string& text) {
    out_->push_back({ptx::mnemonic(instruction_) + ": " + what, expected, instruction_.line, text_,
                     text, guard() + "trap;", file_, line_});
  }
  void leave_out(const char* expected) { replace("left out", expected, ""); }

  // The operand's value changed: an immediate in place, a register through another one.
  void add(size_t operand, int64_t delta, const char* what, const char* expected) {
    if (operand >= instruction_.operands.size()) return;
    const Operand& o = instruction_.operands[operand];
    const std::string name =
        fmt::format("{} {} {}", what, delta < 0 ? "-" : "+", delta < 0 ? -delta : delta);
    Instruction changed = instruction_;
    if (o.kind == Operand::Kind::integer) {
      if (static_cast<int64_t>(o.value) + delta < 0) return;
      changed.operands[operand].value = o.value + static_cast<uint64_t>(delta);
      return replace(name, expected, ptx::print(changed, function_, module_));
    }
    if (o.kind != Operand::Kind::reg) return;
    const std::string reg = function_.registers[o.index].name, fresh = "%mutant";
    std::string rest = text_.substr(guard().size());
    const size_t at = rest.rfind(reg);  // counts and sizes come last
    if (at == std::string::npos || std::isalnum(static_cast<unsigned char>(rest[at + reg.size()])))
      return;
    rest.replace(at, reg.size(), fresh);
    replace(name, expected,
            fmt::format("{{ .reg .b32 {}; add.s32 {}, {}, {}; {}{} }}", fresh, fresh, reg, delta,
                        guard(), rest));
  }

  // Compared with < instead of <=, and so on.
  void move_bound() {
    constexpr std::pair<Mod, Mod> kPairs[] = {
        {Mod::lt, Mod::le}, {Mod::le, Mod::lt}, {Mod::gt, Mod::ge}, {Mod::ge, Mod::gt},
        {Mod::lo, Mod::ls}, {Mod::ls, Mod::lo}, {Mod::hi, Mod::hs}, {Mod::hs, Mod::hi}};
    for (const auto& [from, to] : kPairs) {
      if (!instruction_.mods.has(from)) continue;
      const std::string before = "." + std::string(ptx::name(from)) + ".",
                        after = "." + std::string(ptx::name(to)) + ".";
      std::string text = text_;
      const size_t at = text.find(before);
      if (at == std::string::npos) return;
      replace(fmt::format("{} for {}", ptx::name(to), ptx::name(from)), "fatal",
              text.replace(at, before.size(), after));
      // Both comparisons, and a stop where they differ.
      const std::string p = function_.registers[instruction_.operands[0].index].name;
      if (text.find(p) == std::string::npos || !guard().empty()) return;
      text.replace(text.find(p), p.size(), "%other");
      out_->back().probe =
          fmt::format("{{ .reg .pred %other; {} {} xor.pred %other, %other, {}; @%other trap; }}",
                      text_, text, p);
      return;
    }
  }

  // A wait that never waits.
  void never_wait() {
    const std::string p = function_.registers[instruction_.operands[0].index].name;
    replace("left out", "fatal", fmt::format("{}setp.eq.u32 {}, 0, 0;", guard(), p));
  }

 private:
  const ptx::Module& module_;
  const ptx::Function& function_;
  const Instruction& instruction_;
  std::vector<Mutant>* out_;
  std::string text_, file_;
  int line_ = 0;
};

// Predicates that decide whether something is executed.
std::set<uint32_t> guards(const ptx::Function& f) {
  std::set<uint32_t> out;
  for (const ptx::Statement& s : f.body)
    if (const auto* i = std::get_if<Instruction>(&s); i && i->guard != ptx::kNone)
      out.insert(i->guard);
  return out;
}

void enumerate(Site site, const Instruction& i, const std::set<uint32_t>& guards) {
  const size_t n = i.operands.size();
  switch (i.op) {
    case Op::bar:
    case Op::barrier:
      if (i.mods.has(Mod::red)) return;
      site.leave_out(i.mods.has(Mod::arrive) ? "fatal" : "latent");
      if (n > 1) {
        site.add(1, 32, "threads", "fatal");
        site.add(1, -32, "threads", "fatal");
      }
      return;
    case Op::barrier_cluster_arrive:
      return site.leave_out("fatal");
    case Op::barrier_cluster_wait:
      return site.leave_out("latent");
    case Op::mbarrier_init:
      site.leave_out("fatal");
      site.add(1, 1, "count", "fatal");
      site.add(1, -1, "count", "fatal");
      return;
    case Op::mbarrier_arrive:
    case Op::mbarrier_arrive_drop:
      site.leave_out("fatal");
      if (i.mods.has(Mod::expect_tx)) {
        site.add(2, 16, "bytes", "fatal");
        site.add(2, -16, "bytes", "fatal");
      }
      return;
    case Op::mbarrier_expect_tx:
      site.leave_out("fatal");
      site.add(1, 16, "bytes", "fatal");
      site.add(1, -16, "bytes", "fatal");
      return;
    case Op::mbarrier_test_wait:
    case Op::mbarrier_try_wait:
      if (i.operands[0].kind == Operand::Kind::reg) site.never_wait();
      return;
    case Op::cp_async_mbarrier_arrive:
      return site.leave_out("fatal");
    case Op::cp_async_commit_group:
      return site.leave_out("fatal");
    case Op::cp_async_wait_group:
      site.leave_out("fatal");
      return site.add(0, 1, "groups", "fatal");
    case Op::cp_async_wait_all:
      return site.leave_out("fatal");
    case Op::cp_async_bulk_commit_group:
      return site.leave_out("latent");
    case Op::cp_async_bulk_wait_group:
      site.leave_out("latent");
      return site.add(0, 1, "groups", "latent");
    case Op::wgmma_fence:
    case Op::wgmma_commit_group:
      return site.leave_out("repaired");
    case Op::wgmma_wait_group:
      site.leave_out("latent");
      return site.add(0, 1, "groups", "latent");
    case Op::fence:
    case Op::membar:
      return site.leave_out("latent");
    case Op::setp:
      if (i.operands[0].kind == Operand::Kind::reg && guards.count(i.operands[0].index))
        site.move_bound();
      return;
    default:
      return;
  }
}

}  // namespace

std::vector<Mutant> enumerate(const ptx::Module& module) {
  std::vector<Mutant> out;
  for (const ptx::Function& f : module.functions) {
    const std::set<uint32_t> deciding = guards(f);
    for (const ptx::Statement& s : f.body)
      if (const auto* i = std::get_if<Instruction>(&s))
        enumerate(Site(module, f, *i, &out), *i, deciding);
  }
  return out;
}

std::string apply(const std::string& canonical, uint32_t line, const std::string& text) {
  size_t begin = 0;
  for (uint32_t l = 1; l < line; l++) begin = canonical.find('\n', begin) + 1;
  const size_t end = canonical.find('\n', begin);
  return canonical.substr(0, begin) + text + canonical.substr(end);
}

}  // namespace ptxbench::mutants
