// The AST back to text.

#include <fmt/format.h>

#include <iterator>
#include <unordered_map>

#include "ptx/instruction_table.h"
#include "ptx/parser.h"

namespace ptxbench::ptx {
namespace {

class Printer {
 public:
  Printer(const Module& module, const Function* function) : module_(module), function_(function) {}
  std::string take() { return std::move(out_); }

  void module();
  void instruction(const Instruction& i);

 private:
  template <class... T>
  void put(fmt::format_string<T...> format, T&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(args)...);
  }
  void top_level(const TopLevel& item);
  void variable(const Variable& v, bool with_init);
  void declarator(const Variable& v);
  void linkage(Linkage l);
  void init(const Variable& v, size_t depth, size_t* next);
  void init_element(const Variable& v, const InitElement& e);
  void function_head(const Function& f);
  void directives(const PerformanceDirectives& d);
  void abi_preserve(const AbiPreserve& preserve, char before);
  void params(const std::vector<Variable>& list);
  void body();
  void statement(const Statement& s);
  void register_decl(const RegisterDecl& decl);
  void loc(uint32_t index);
  void operand(const Operand& o);
  void elements(const Operand& o, char open, char close);
  void call(const Instruction& i);
  const std::string& variable_name(const Operand& o) const;
  void offset(int64_t value);
  void selector(const Operand& operand);
  void special(const Operand& o);
  void sections();

  const Module& module_;
  const Function* function_;
  std::string out_;
};

void Printer::linkage(Linkage l) {
  static constexpr std::string_view kText[] = {"", ".visible ", ".extern ", ".weak ", ".common "};
  put("{}", kText[static_cast<size_t>(l)]);
}

uint32_t natural_align(const Variable& v) {
  uint32_t bytes = static_cast<uint32_t>(std::max(1, bits(v.type) / 8)) * v.vector;
  return std::bit_ceil(bytes);
}

// Space, alignment, type, name and array sizes.
void Printer::declarator(const Variable& v) {
  put(".{} ", name(v.space));
  if (v.is_managed) put(".attribute(.managed) ");
  if (v.align != natural_align(v)) put(".align {} ", v.align);
  if (v.vector > 1) put(".v{} ", v.vector);
  put(".{} ", name(v.type));
  if (v.ptr) {
    put(".ptr ");
    if (v.ptr_space != Space::generic) put(".{} ", name(v.ptr_space));
    if (v.ptr_align) put(".align {} ", v.ptr_align);
  }
  put("{}", v.name);
  for (uint64_t dim : v.dims) {
    if (dim) {
      put("[{}]", dim);
    } else {
      put("[]");
    }
  }
}

void Printer::init_element(const Variable& v, const InitElement& e) {
  if (!e.is_symbol) {
    int width = bits(v.type);
    if (v.type == Type::f32) {
      put("0f{:08X}", e.value);
    } else if (v.type == Type::f64) {
      put("0d{:016X}", e.value);
    } else if (is_signed(v.type) && width < 64 && (e.value >> (width - 1)) & 1) {
      put("{}", static_cast<int64_t>(e.value | ~uint64_t{0} << width));
    } else {
      put("{}", is_signed(v.type) ? fmt::to_string(static_cast<int64_t>(e.value))
                                  : fmt::to_string(e.value));
    }
    return;
  }
  if (e.mask_bytes) {
    uint64_t ones = e.mask_bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * e.mask_bytes)) - 1;
    put("0x{:X}(", ones << e.mask_shift);
  }
  const std::string& symbol =
      e.symbol_is_function ? module_.functions[e.symbol].name : module_.variables[e.symbol].name;
  if (e.generic) {
    put("generic({})", symbol);
  } else {
    put("{}", symbol);
  }
  if (e.addend) offset(e.addend);
  if (e.mask_bytes) put(")");
}

// One brace level per dimension.
void Printer::init(const Variable& v, size_t depth, size_t* next) {
  if (depth + 1 < v.dims.size()) {
    uint64_t rows = v.dims[depth] ? v.dims[depth] : ~uint64_t{0};
    put("{{");
    for (uint64_t i = 0; i < rows && *next < v.init.size(); ++i) {
      if (i) put(", ");
      init(v, depth + 1, next);
    }
    put("}}");
    return;
  }
  uint64_t count = v.dims.empty() ? v.vector : v.dims.back() * v.vector;
  if (v.dims.size() < 2) count = ~uint64_t{0};
  put("{{");
  for (uint64_t i = 0; i < count && *next < v.init.size(); ++i) {
    if (i) put(", ");
    init_element(v, v.init[(*next)++]);
  }
  put("}}");
}

void Printer::variable(const Variable& v, bool with_init) {
  linkage(with_init ? v.linkage : Linkage::extern_);
  declarator(v);
  if (with_init && !v.init.empty()) {
    put(" = ");
    size_t next = 0;
    if (v.dims.empty() && v.vector == 1) {
      init_element(v, v.init[0]);
    } else {
      init(v, 0, &next);
    }
  }
  put(";\n");
}

void Printer::params(const std::vector<Variable>& list) {
  put("(");
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) put(", ");
    declarator(list[i]);
  }
  put(")");
}

void Printer::abi_preserve(const AbiPreserve& preserve, char before) {
  if (preserve.data) put("{}.abi_preserve {}", before, *preserve.data);
  if (preserve.control) put("{}.abi_preserve_control {}", before, *preserve.control);
}

void Printer::directives(const PerformanceDirectives& d) {
  auto list = [&](std::string_view word, const std::vector<uint32_t>& values) {
    if (!values.empty()) put("{} {}\n", word, fmt::join(values, ", "));
  };
  auto number = [&](std::string_view word, uint32_t value) {
    if (value) put("{} {}\n", word, value);
  };
  if (d.noreturn) put(".noreturn\n");
  list(".maxntid", d.maxntid);
  list(".reqntid", d.reqntid);
  number(".minnctapersm", d.minnctapersm);
  number(".maxnreg", d.maxnreg);
  if (d.explicitcluster) put(".explicitcluster\n");
  list(".reqnctapercluster", d.reqnctapercluster);
  number(".maxclusterrank", d.maxclusterrank);
  if (d.blocksareclusters) put(".blocksareclusters\n");
  for (const std::string& pragma : d.pragmas) put(".pragma \"{}\";\n", pragma);
  abi_preserve(d.abi_preserve, '\n');
  if (d.abi_preserve.given()) put("\n");
}

void Printer::function_head(const Function& f) {
  linkage(f.linkage);
  put("{}", f.is_entry ? ".entry " : ".func ");
  if (!f.returns.empty()) {
    params(f.returns);
    put(" ");
  }
  put("{}", f.name);
  params(f.params);
  put("\n");
  directives(f.directives);
}

void Printer::register_decl(const RegisterDecl& decl) {
  const Register& r = function_->registers[decl.first];
  put(".reg ");
  if (r.vector > 1) put(".v{} ", r.vector);
  put(".{} ", name(r.type));
  if (decl.range) {
    put("{}<{}>;\n", std::string_view(r.name).substr(0, r.name.size() - 1), decl.count);
  } else {
    put("{};\n", r.name);
  }
}

void Printer::loc(uint32_t index) {
  const SourceLine& l = module_.locations[index];
  put(".loc {} {} {}", l.file, l.line, l.column);
  if (l.function_name != kNone) put(", function_name {}", module_.debug_labels[l.function_name]);
  if (l.inlined_at != kNone) {
    const SourceLine& site = module_.locations[l.inlined_at];
    put(", inlined_at {} {} {}", site.file, site.line, site.column);
  }
  put("\n");
}

const std::string& Printer::variable_name(const Operand& o) const {
  if (o.is_param) return function_->params[o.index].name;
  if (o.is_return) return function_->returns[o.index].name;
  return o.is_local ? function_->variables[o.index].name : module_.variables[o.index].name;
}

void Printer::offset(int64_t value) {
  if (value) put("+{}", value);  // "+-16": ptxas takes no "-16" here
}

void Printer::selector(const Operand& operand) {
  uint8_t selector = operand.selector;
  if (selector > 10) {  // parts of a SIMD video operand, an octal digit each behind a leading one
    std::string digits;
    for (uint64_t value = operand.value; value > 1; value >>= 3)
      digits.insert(digits.begin(), static_cast<char>('0' + (value & 7)));
    put(".{}{}", selector == 11 ? "b" : "h", digits);
    return;
  }
  static constexpr std::string_view kText[] = {"",    ".x",  ".y",  ".z",  ".w", ".b0",
                                               ".b1", ".b2", ".b3", ".h0", ".h1"};
  put("{}", kText[selector]);
}

void Printer::special(const Operand& o) {
  Special s = static_cast<Special>(o.index);
  put("{}", name(s));
  if (s == Special::envreg || s == Special::pm) {
    put("{}", o.component);
  } else if (components(s) > 1) {
    put(".{}", "xyzw"[o.component]);
  }
}

void Printer::elements(const Operand& o, char open, char close) {
  put("{}", open);
  for (size_t i = 0; i < o.elements.size(); ++i) {
    if (i) put(", ");
    operand(o.elements[i]);
  }
  put("{}", close);
}

void Printer::operand(const Operand& o) {
  using Kind = Operand::Kind;
  if (o.negated) {
    bool predicate = function_->registers[o.index].type == Type::pred;
    put("{}", predicate ? "!" : "-");
  }
  switch (o.kind) {
    case Kind::reg:
      put("{}", function_->registers[o.index].name);
      selector(o);
      break;
    case Kind::special:
      special(o);
      break;
    case Kind::integer:
      put("{}", static_cast<int64_t>(o.value));
      break;
    case Kind::floating:
      if (o.is_f32) {
        put("0f{:08X}", o.value);
      } else {
        put("0d{:016X}", o.value);
      }
      break;
    case Kind::variable:
      put("{}", variable_name(o));
      offset(o.offset);
      break;
    case Kind::label:
    case Kind::string:
      put("{}", function_->labels[o.index].name);
      break;
    case Kind::function:
      put("{}", module_.functions[o.index].name);
      break;
    case Kind::address:
      put("[");
      if (o.base == Operand::Base::none) {
        put("{}", o.offset);
      } else {
        put("{}",
            o.base == Operand::Base::reg ? function_->registers[o.index].name : variable_name(o));
        selector(o);
        offset(o.offset);
      }
      for (const Operand& e : o.elements) {
        put(", ");
        operand(e);
      }
      put("]");
      break;
    case Kind::vector:
      elements(o, '{', '}');
      break;
    case Kind::sink:
      put("_");
      break;
    case Kind::pair:
      operand(o.elements[0]);
      put("|");
      operand(o.elements[1]);
      break;
    case Kind::list:
      elements(o, '(', ')');
      break;
  }
}

void Printer::call(const Instruction& i) {
  if (!i.operands[0].elements.empty()) {
    operand(i.operands[0]);
    put(", ");
  }
  operand(i.operands[1]);
  for (size_t k = 2; k < i.operands.size(); ++k) {
    put(", ");
    operand(i.operands[k]);
  }
}

void Printer::instruction(const Instruction& i) {
  if (i.guard != kNone)
    put("@{}{} ", i.guard_negated ? "!" : "", function_->registers[i.guard].name);
  put("{}", mnemonic(i));
  if (!i.operands.empty()) put(" ");
  if (i.op == Op::call) {
    call(i);
  } else {
    for (size_t k = 0; k < i.operands.size(); ++k) {
      if (k) put(", ");
      operand(i.operands[k]);
      bool address = i.operands[k].kind == Operand::Kind::address;
      if (address && i.mods.has(Mod::unified)) put(".unified");
    }
  }
  put(";");
}

void Printer::statement(const Statement& s) {
  auto label = [&](uint32_t index) -> const std::string& { return function_->labels[index].name; };
  if (auto* i = std::get_if<Instruction>(&s)) {
    put("\t");
    instruction(*i);
    put("\n");
  } else if (auto* mark = std::get_if<LabelMark>(&s)) {
    put("{}:\n", label(mark->label));
  } else if (std::holds_alternative<ScopeBegin>(s)) {
    put("{{\n");
  } else if (std::holds_alternative<ScopeEnd>(s)) {
    put("}}\n");
  } else if (auto* reg = std::get_if<RegisterDecl>(&s)) {
    register_decl(*reg);
  } else if (auto* v = std::get_if<VariableDecl>(&s)) {
    variable(function_->variables[v->variable], true);
  } else if (auto* pragma = std::get_if<Pragma>(&s)) {
    put(".pragma \"{}\";\n", pragma->text);
  } else if (auto* l = std::get_if<LocMark>(&s)) {
    loc(l->loc);
  } else if (auto* branches = std::get_if<BranchTargets>(&s)) {
    put("{}: .branchtargets", label(branches->label));
    for (size_t k = 0; k < branches->targets.size(); ++k)
      put("{} {}", k ? "," : "", label(branches->targets[k]));
    put(";\n");
  } else if (auto* calls = std::get_if<CallTargets>(&s)) {
    put("{}: .calltargets", label(calls->label));
    for (size_t k = 0; k < calls->functions.size(); ++k)
      put("{} {}", k ? "," : "", module_.functions[calls->functions[k]].name);
    put(";\n");
  } else if (auto* mark = std::get_if<CallPrototype>(&s)) {
    const Prototype& prototype = function_->prototypes[mark->prototype];
    put("{}: .callprototype ", label(mark->label));
    if (!prototype.returns.empty()) params(prototype.returns);
    put(" _ ");
    params(prototype.params);
    put("{}", prototype.noreturn ? " .noreturn" : "");
    abi_preserve(prototype.abi_preserve, ' ');
    put(";\n");
  }
}

void Printer::body() {
  put("{{\n");
  for (const Statement& s : function_->body) statement(s);
  put("}}\n\n");
}

void Printer::sections() {
  for (const DebugSection& section : module_.sections)
    put(".section {}\n{}\n", section.name, section.text);
}

void Printer::top_level(const TopLevel& item) {
  switch (item.kind) {
    case TopLevel::Kind::variable:
      break;  // see module()
    case TopLevel::Kind::declaration:
      function_head(module_.functions[item.index]);
      put(";\n\n");
      break;
    case TopLevel::Kind::function:
      function_ = &module_.functions[item.index];
      function_head(*function_);
      body();
      break;
    case TopLevel::Kind::alias: {
      const Alias& alias = module_.aliases[item.index];
      put(".alias {}, {};\n", module_.functions[alias.name].name,
          module_.functions[alias.target].name);
      break;
    }
    case TopLevel::Kind::pragma:
      put(".pragma \"{}\";\n", module_.pragmas[item.index]);
      break;
    case TopLevel::Kind::loc:
      loc(item.index);
      break;
  }
}

void Printer::module() {
  put(".version {}.{}\n.target {}", module_.version_major, module_.version_minor, module_.target);
  for (const std::string& option : module_.target_options) put(", {}", option);
  put("\n.address_size {}\n\n", module_.address_size);
  // A variable that is declared several times is defined by the last one.
  std::unordered_map<uint32_t, size_t> last;
  for (size_t i = 0; i < module_.order.size(); ++i)
    if (module_.order[i].kind == TopLevel::Kind::variable) last[module_.order[i].index] = i;
  for (size_t i = 0; i < module_.order.size(); ++i) {
    const TopLevel& item = module_.order[i];
    if (item.kind == TopLevel::Kind::variable) {
      variable(module_.variables[item.index], last[item.index] == i);
    } else {
      top_level(item);
    }
  }
  for (size_t i = 0; i < module_.files.size(); ++i)
    if (!module_.files[i].empty()) put(".file {} \"{}\"\n", i, module_.files[i]);
  sections();
}

// Words in the table's order, for instructions that were made, not parsed.
void append_words(const Modifiers& mods, std::string* out) {
  for (size_t m = 0; m < mods.flags.size(); ++m) {
    bool elsewhere =
        (static_cast<Mod>(m) == Mod::m8n8 && mods.shape.m) || static_cast<Mod>(m) == Mod::unified;
    if (mods.flags[m] && !elsewhere) out->append(".").append(name(static_cast<Mod>(m)));
  }
  if (mods.shape.m) out->append(fmt::format(".m{}n{}", mods.shape.m, mods.shape.n));
  if (mods.shape.k) out->append(fmt::format("k{}", mods.shape.k));
  for (Space s : mods.spaces) out->append(".").append(name(s));
  for (Type t : mods.types) out->append(".").append(name(t));
}

}  // namespace

std::string mnemonic(const Instruction& i) {
  std::string out(name(i.op));
  size_t opcode = out.size();
  if (i.mods->spelled == 0) {
    append_words(i.mods, &out);
  } else {
    using Kind = Modifiers::Word::Kind;
    for (size_t w = 0; w < i.mods->spelled; ++w) {
      const Modifiers::Word& word = i.mods->spelling[w];
      if (word.kind == Kind::shape) {
        Modifiers only;
        only.shape = i.mods->shape;
        append_words(only, &out);
      } else {
        out.append(".").append(word.kind == Kind::mod    ? name(static_cast<Mod>(word.value))
                               : word.kind == Kind::type ? name(static_cast<Type>(word.value))
                                                         : name(static_cast<Space>(word.value)));
      }
    }
  }
  // tcgen05.wait::ld and tcgen05.fence::before_thread_sync join their first word by colons
  if ((i.op == Op::tcgen05_wait || i.op == Op::tcgen05_fence) && out.size() > opcode)
    out.replace(opcode, 1, "::");
  return out;
}

std::string print(const Instruction& instruction, const Function& function, const Module& module) {
  Printer printer(module, &function);
  printer.instruction(instruction);
  return printer.take();
}

std::string print(const Module& module) {
  Printer printer(module, nullptr);
  printer.module();
  return printer.take();
}

}  // namespace ptxbench::ptx
