#include "ptx/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/parser.h"
#include "ptx/verifier_impl.h"

namespace ptxbench::ptx {
namespace {

class Verifier {
 public:
  Verifier(const Module& module, std::string_view file)
      : module_(module),
        file_(file),
        target_(parse_target(module.target)),
        version_(module.version_major * 10 + module.version_minor) {}
  Result<void> run();

 private:
  Result<void> function(const Function& f);
  Result<void> arguments(const Instruction& i, const Function& callee);
  Result<void> instruction(const Instruction& i);
  Result<void> requirement(const Instruction& i, const Requirement& needed);
  Result<void> no_form(const Instruction& i, const Context& context);
  bool accepted(const Context& context, const Form& form) const;
  Result<void> call(const Instruction& i);
  Error error(const Instruction& i, std::string message, std::string kind = "ptx-operands") const {
    return {std::move(kind),
            std::move(message),
            {file_, static_cast<int>(i.line), static_cast<int>(i.column)}};
  }

  const Module& module_;
  const Function* function_ = nullptr;
  std::string file_;
  Target target_;
  int version_ = 0;
};

Result<void> Verifier::run() {
  if (target_.sm == 0)
    return Error{"ptx-target", fmt::format("'{}' is no target", module_.target), {file_, 0, 0}};
  if (Complaint bad = check_header(module_, target_, version_))
    return Error{"ptx-target", std::move(*bad), {file_, 0, 0}};
  if (Complaint bad = check_constant_bank(module_))
    return Error{"ptx-operands", std::move(*bad), {file_, 0, 0}};
  for (const Function& f : module_.functions) PB_RETURN_IF_ERROR(function(f));
  return {};
}

Result<void> Verifier::function(const Function& f) {
  constexpr uint32_t kMaxParams = 32764;  // PTX 8.1 and sm_70; 4352 before
  function_ = &f;
  SourceLocation where{file_, static_cast<int>(f.line), 0};
  if (f.is_entry && f.param_bytes > kMaxParams)
    return Error{"ptx-operands",
                 fmt::format("the parameters of '{}' take {} bytes, more than {}", f.name,
                             f.param_bytes, kMaxParams),
                 where};
  bool clusters = !f.directives.reqnctapercluster.empty() || f.directives.explicitcluster ||
                  f.directives.maxclusterrank;
  if (clusters && target_.sm < 90)
    return Error{"ptx-target",
                 fmt::format("'{}' asks for clusters, which need sm_90 or later; the target is {}",
                             f.name, module_.target),
                 where};
  if (Complaint bad = check_abi_preserve(f.directives.abi_preserve, target_, version_))
    return Error{"ptx-target", fmt::format("'{}': {}", f.name, *bad), where};
  for (const Prototype& prototype : f.prototypes)
    if (Complaint bad = check_abi_preserve(prototype.abi_preserve, target_, version_))
      return Error{"ptx-target", fmt::format("a prototype in '{}': {}", f.name, *bad), where};
  for (const Register& r : f.registers)
    if (r.type == Type::b128 && version_ < 83)
      return Error{"ptx-target",
                   fmt::format("register '{}': .b128 needs PTX 8.3; this module's version is {}.{}",
                               r.name, module_.version_major, module_.version_minor),
                   where};
  for (const Statement& s : f.body)
    if (auto* i = std::get_if<Instruction>(&s)) PB_RETURN_IF_ERROR(instruction(*i));
  return {};
}

Result<void> Verifier::instruction(const Instruction& i) {
  if (i.guard != kNone && function_->registers[i.guard].type != Type::pred)
    return error(i, fmt::format("the guard '{}' is no predicate register",
                                function_->registers[i.guard].name));
  Context context{module_, *function_, i, target_, version_};
  const std::vector<Form>& forms = info(i.op).forms;
  if (i.form >= forms.size() || !accepted(context, forms[i.form]))
    PB_RETURN_IF_ERROR(no_form(i, context));
  return i.op == Op::call ? call(i) : Result<void>();
}

bool Verifier::accepted(const Context& context, const Form& form) const {
  Requirement needed = requirement_of(context.instruction, form);
  return satisfies(needed, target_) && version_ >= needed.ptx &&
         !check_operand_types(context, form) && !check_rules(context, form);
}

// The noted form is refused: looks whether another one fits, and says what is wrong if none does.
Result<void> Verifier::no_form(const Instruction& i, const Context& context) {
  const std::vector<Form>& forms = info(i.op).forms;
  for (const Form& form : forms)
    if (modifiers_fit(form, i.mods) && operands_fit(form, i) && accepted(context, form)) return {};
  bool target_has_it = false, modifiers = false;
  const Form *kinds = nullptr, *typed = nullptr;
  Requirement any_form = requirement_of(i, forms.front());
  std::string expected;
  for (const Form& form : forms) {
    target_has_it |= satisfies(form.requirement, target_);
    if (!modifiers_fit(form, i.mods)) continue;
    modifiers = true;
    if (!expected.empty()) expected += "; or ";
    expected += describe(form, i.mods);
    if (!operands_fit(form, i)) continue;
    if (!kinds) kinds = &form;
    if (!typed && !check_operand_types(context, form) && !check_rules(context, form)) typed = &form;
  }
  if (!target_has_it) return requirement(i, any_form);
  if (!modifiers) return error(i, diagnose_modifiers(i));
  if (typed) return requirement(i, requirement_of(i, *typed));
  if (!kinds)
    return error(i,
                 fmt::format("the operands of {} do not fit: it takes {}", mnemonic(i), expected));
  if (Complaint bad = check_operand_types(context, *kinds)) return error(i, std::move(*bad));
  return error(i, *check_rules(context, *kinds));
}

Result<void> Verifier::requirement(const Instruction& i, const Requirement& r) {
  if (!satisfies(r, target_))
    return error(i,
                 fmt::format("{} needs target {}; this module's target is {}{}", mnemonic(i),
                             to_string(r), module_.target, counterpart(i.op, target_)),
                 "ptx-target");
  return error(i,
               fmt::format("{} needs PTX {}.{}; this module's version is {}.{}", mnemonic(i),
                           r.ptx / 10, r.ptx % 10, module_.version_major, module_.version_minor),
               "ptx-target");
}

Result<void> Verifier::call(const Instruction& i) {
  const Operand& target = i.operands[1];
  if (target.kind == Operand::Kind::reg) {
    if (i.operands.size() < 4)
      return error(i, "an indirect call needs a prototype or a list of targets");
    return {};
  }
  const Function& f = module_.functions[target.index];
  auto names_it = [&](const Alias& a) { return a.name == target.index; };
  bool alias = std::any_of(module_.aliases.begin(), module_.aliases.end(), names_it);
  if (f.is_declaration && !alias && f.linkage != Linkage::extern_ && f.linkage != Linkage::weak)
    return error(i, fmt::format("'{}' is called but never defined", f.name));
  if (f.is_entry) return error(i, fmt::format("'{}' is a kernel and cannot be called", f.name));
  size_t results = i.operands[0].elements.size(), arguments = i.operands[2].elements.size();
  if (results != f.returns.size() || arguments != f.params.size())
    return error(i, fmt::format("'{}' takes {} arguments and returns {}, but {} and {} are given",
                                f.name, f.params.size(), f.returns.size(), arguments, results));
  return this->arguments(i, f);
}

// Arguments and results have the size of the parameters.
Result<void> Verifier::arguments(const Instruction& i, const Function& callee) {
  for (bool result : {false, true}) {
    const std::vector<Variable>& formal = result ? callee.returns : callee.params;
    for (size_t k = 0; k < formal.size(); ++k) {
      const Operand& o = i.operands[result ? 0 : 2].elements[k];
      if (o.kind != Operand::Kind::variable || !o.is_local) continue;
      const Variable& v = o.is_param    ? function_->params[o.index]
                          : o.is_return ? function_->returns[o.index]
                                        : function_->variables[o.index];
      if (v.size != formal[k].size)
        return error(i, fmt::format("'{}' has {} bytes, but '{}' of '{}' has {}", v.name, v.size,
                                    formal[k].name, callee.name, formal[k].size));
    }
  }
  return {};
}

}  // namespace

Result<void> verify(const Module& module, std::string_view file_name) {
  return Verifier(module, file_name).run();
}

}  // namespace ptxbench::ptx
