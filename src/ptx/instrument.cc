#include "ptx/instrument.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/control_flow.h"
#include "ptx/parser.h"
#include "ptx/source_map.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

// Registers of the counting code, in the order of kDeclarations.
enum Scratch : uint32_t { kLeader, kGuard, kMask, kBelow, kCount, kBase, kWide, kScratchCount };
constexpr const char* kDeclarations =
    ".reg .pred leader, guard; .reg .b32 mask, below, count; .reg .b64 base, wide;\n";

// `mask` is the lanes that count, `leader` their lowest.
constexpr const char* kUnguarded =
    "activemask.b32 mask; mov.u32 below, %lanemask_lt; and.b32 below, below, mask; "
    "setp.eq.u32 leader, below, 0;";
constexpr const char* kGuarded =
    "activemask.b32 mask; vote.sync.ballot.b32 mask, guard, mask; mov.u32 below, %lanemask_lt; "
    "and.b32 below, below, mask; setp.eq.and.u32 leader, below, 0, guard;";
constexpr const char* kAdd =
    "popc.b32 count, mask; cvt.u64.u32 wide, count; ld.const.u64 base, [counters]; "
    "@leader red.global.add.u64 [base], 1; @leader red.global.add.u64 [base+8], wide;";

// The counting code as the parser makes it, over the scratch registers.
Result<std::vector<Instruction>> counting_code(const char* select) {
  PB_ASSIGN_OR_RETURN(
      Module module,
      parse(fmt::format(".version 6.2\n.target sm_70\n.address_size 64\n.const .u64 counters;\n"
                        ".func count() {{ {} {} {} }}\n",
                        kDeclarations, select, kAdd),
            "counting code"));
  std::vector<Instruction> code;
  for (const Statement& statement : module.functions.at(0).body)
    if (const auto* i = std::get_if<Instruction>(&statement)) code.push_back(*i);
  return code;
}

bool matches(const std::string& family, const std::string& pattern) {
  if (pattern.size() > 2 && pattern.ends_with(".*"))
    return family.starts_with(pattern.substr(0, pattern.size() - 1)) ||
           family == pattern.substr(0, pattern.size() - 2);
  return family == pattern;
}

// Whether some opcode could give a family that the pattern means.
bool is_known(const std::string& pattern) {
  const std::string stem =
      pattern.ends_with(".*") ? pattern.substr(0, pattern.size() - 2) : pattern;
  for (size_t i = 0; i < kOpCount; ++i) {
    const std::string_view op = name(static_cast<Op>(i));
    const auto below = [](std::string_view text, std::string_view head) {
      return text.starts_with(head) && text.size() > head.size() && text[head.size()] == '.';
    };
    if (stem == op || below(stem, op) || (stem != pattern && below(op, stem))) return true;
  }
  return false;
}

// A group of instructions that one counter counts.
struct Group {
  uint32_t before = 0;            // instruction number that the counting code precedes
  std::vector<uint32_t> counted;  // instruction numbers
  uint32_t guard = kNone;
  bool guard_negated = false;
};

class Rewriter {
 public:
  Rewriter(const Module& module, const std::vector<std::string>& families, Instrumentation* out)
      : module_(module), families_(families), out_(*out) {}

  Result<void> run() {
    std::vector<std::vector<Group>> groups;
    for (const Function& function : module_.functions) {
      flows_.emplace_back(function, &module_);
      groups.push_back(find_groups(flows_.back()));
      number_sites(function, flows_.back(), groups.back());
    }
    if (out_.counters == 0) return {};
    PB_ASSIGN_OR_RETURN(unguarded_, counting_code(kUnguarded));
    PB_ASSIGN_OR_RETURN(guarded_, counting_code(kGuarded));
    Module module = module_;
    add_symbol(module);
    uint32_t counter = 0;
    for (size_t f = 0; f < module.functions.size(); ++f)
      if (!groups[f].empty()) counter = rewrite(module.functions[f], f, groups[f], counter);
    out_.ptx = print(module);
    return {};
  }

 private:
  bool counts(const Instruction& i) const {
    const std::string name = family(i);
    return std::any_of(families_.begin(), families_.end(),
                       [&](const std::string& pattern) { return matches(name, pattern); });
  }

  std::vector<Group> find_groups(const ControlFlow& flow) const {
    std::vector<Group> groups;
    for (const BasicBlock& block : flow.blocks()) {
      Group shared;
      uint32_t fence = kNone;
      bool has_wgmma = false;
      auto flush = [&] {
        if (!shared.counted.empty()) groups.push_back(shared);
        shared = {}, fence = kNone, has_wgmma = false;
      };
      for (uint32_t n = block.first; n <= block.last; ++n) {
        const Instruction& i = *flow.instructions()[n];
        if (i.op == Op::call) flush();
        if (i.op == Op::wgmma_fence && !has_wgmma) fence = n;
        if (!counts(i)) continue;
        if (i.guard != kNone) {
          groups.push_back({n, {n}, i.guard, i.guard_negated});
          continue;
        }
        if (shared.counted.empty()) shared.before = n;
        const bool wgmma = i.op == Op::wgmma_mma_async || i.op == Op::wgmma_mma_async_sp;
        if (wgmma && !has_wgmma && fence != kNone) shared.before = std::min(shared.before, fence);
        has_wgmma |= wgmma;
        shared.counted.push_back(n);
      }
      flush();
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.before < b.before; });
    return groups;
  }

  void number_sites(const Function& function, const ControlFlow& flow,
                    const std::vector<Group>& groups) {
    std::vector<CounterSite> sites;
    for (const Group& group : groups) {
      for (uint32_t n : group.counted) {
        const Instruction& i = *flow.instructions()[n];
        sites.push_back(
            {out_.counters, function.name, family(i), i.line, to_string(source_chain(module_, i))});
      }
      ++out_.counters;
    }
    std::stable_sort(sites.begin(), sites.end(),
                     [](const CounterSite& a, const CounterSite& b) { return a.line < b.line; });
    out_.sites.insert(out_.sites.end(), sites.begin(), sites.end());
  }

  // A name that nothing in the module has.
  static std::string free_name(std::string name, const auto& taken) {
    while (taken(name)) name += '_';
    return name;
  }

  void add_symbol(Module& module) {
    out_.symbol = free_name("ptxbench_counters", [&](const std::string& name) {
      return module.find_variable(name) != nullptr || module.find_function(name) != nullptr;
    });
    Variable variable;
    variable.name = out_.symbol;
    variable.space = Space::const_;
    variable.type = Type::u64;
    variable.align = 8;
    variable.size = 8;
    variable.linkage = Linkage::visible;
    symbol_ = static_cast<uint32_t>(module.variables.size());
    module.variables.push_back(std::move(variable));
    module.order.insert(module.order.begin(), TopLevel{TopLevel::Kind::variable, symbol_});
  }

  // Declares the scratch registers; returns the index of the first.
  static uint32_t add_registers(Function& function) {
    static constexpr Type kTypes[kScratchCount] = {Type::pred, Type::pred, Type::b32, Type::b32,
                                                   Type::b32,  Type::b64,  Type::b64};
    const std::string prefix = free_name("%ptxbench", [&](const std::string& name) {
      return std::any_of(function.registers.begin(), function.registers.end(),
                         [&](const Register& r) { return r.name.starts_with(name); });
    });
    const auto first = static_cast<uint32_t>(function.registers.size());
    for (uint32_t i = 0; i < kScratchCount; ++i)
      function.registers.push_back({prefix + std::to_string(i), kTypes[i], 1});
    return first;
  }

  void relocate(Operand& o, uint32_t first, const Group& group, uint32_t counter) const {
    const bool reg = o.kind == Operand::Kind::reg ||
                     (o.kind == Operand::Kind::address && o.base == Operand::Base::reg);
    if (o.kind == Operand::Kind::address) {
      if (reg) o.offset += int64_t{16} * counter;
      if (o.base == Operand::Base::variable) o.index = symbol_;
    }
    if (!reg) return;
    if (o.index == kGuard) {
      o.index = group.guard;
      o.negated = group.guard_negated;
    } else {
      o.index += first;
    }
  }

  void emit(std::vector<Statement>& body, const Group& group, uint32_t first,
            uint32_t counter) const {
    for (Instruction i : group.guard == kNone ? unguarded_ : guarded_) {
      if (i.guard != kNone) i.guard += first;
      for (Operand& o : i.operands) relocate(o, first, group, counter);
      body.push_back(std::move(i));
    }
  }

  uint32_t rewrite(Function& function, size_t index, const std::vector<Group>& groups,
                   uint32_t counter) const {
    const ControlFlow& flow = flows_[index];
    const uint32_t first = add_registers(function);
    std::vector<Statement> body;
    for (uint32_t i = 0; i < kScratchCount; ++i) body.push_back(RegisterDecl{first + i, 1, false});
    std::vector<uint32_t> moved(function.body.size());
    size_t next = 0;
    for (uint32_t s = 0; s < function.body.size(); ++s) {
      for (; next < groups.size() && flow.statement_of(groups[next].before) == s; ++next)
        emit(body, groups[next], first, counter++);
      moved[s] = static_cast<uint32_t>(body.size());
      body.push_back(function.body[s]);
    }
    for (Label& label : function.labels)
      if (label.statement < moved.size()) label.statement = moved[label.statement];
    function.body = std::move(body);
    return counter;
  }

  const Module& module_;
  const std::vector<std::string>& families_;
  Instrumentation& out_;
  std::vector<ControlFlow> flows_;
  std::vector<Instruction> unguarded_, guarded_;
  uint32_t symbol_ = 0;
};

}  // namespace

const std::vector<std::string>& default_families() {
  static const std::vector<std::string> families = {"wgmma.mma_async",
                                                    "wgmma.mma_async.sp",
                                                    "cp.async.bulk.load",
                                                    "cp.async.bulk.store",
                                                    "cp.async.bulk.prefetch",
                                                    "cp.async.bulk.tensor.load",
                                                    "cp.async.bulk.tensor.store",
                                                    "cp.async.bulk.prefetch.tensor",
                                                    "cp.reduce.async.bulk",
                                                    "cp.reduce.async.bulk.tensor",
                                                    "mma",
                                                    "ldmatrix",
                                                    "stmatrix",
                                                    "tcgen05.*"};
  return families;
}

Result<Instrumentation> instrument(const Module& module, std::vector<std::string> families) {
  if (families.empty()) families = default_families();
  for (const std::string& pattern : families)
    if (!is_known(pattern)) return Error{"usage", "no instruction family is called " + pattern};
  if (module.address_size != 64 || module.version_major * 10 + module.version_minor < 62)
    return Error{"unsupported", "counting instructions needs 64-bit PTX of version 6.2 or later"};
  Instrumentation out;
  PB_RETURN_IF_ERROR(Rewriter(module, families, &out).run());
  return out;
}

Result<std::map<std::string, ExecutedCount>> decode_counters(const Instrumentation& instrumentation,
                                                             std::span<const uint64_t> words) {
  if (words.size() != size_t{2} * instrumentation.counters)
    return Error{"usage", fmt::format("{} words for {} counters of two words each", words.size(),
                                      instrumentation.counters)};
  std::map<std::string, ExecutedCount> families;
  for (const CounterSite& site : instrumentation.sites) {
    ExecutedCount& count = families[site.family];
    ++count.sites;
    count.warps += words[size_t{2} * site.counter];
    count.threads += words[size_t{2} * site.counter + 1];
  }
  return families;
}

}  // namespace ptxbench::ptx
