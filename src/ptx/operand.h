#pragma once
// Operands of PTX instructions, small because a module has millions: 24 bytes each, with no room of
// its own for the parts of vectors and lists.

#include <cstdint>
#include <initializer_list>
#include <span>

namespace ptxbench::ptx {

constexpr uint32_t kNone = 0xffffffffu;

struct Operand;

// A row of operands in one piece of memory, as long as needed and no longer. Like a vector that
// does not grow by itself.
class OperandList {
 public:
  OperandList() = default;
  OperandList(std::initializer_list<Operand> operands);
  OperandList(const OperandList& other);
  OperandList(OperandList&& other) noexcept;
  OperandList& operator=(OperandList other) noexcept;
  ~OperandList();

  // Takes the operands' contents.
  static OperandList taken_from(std::span<Operand> operands);
  // Keeps the first ones, adds sinks.
  void resize(size_t size);

  bool empty() const { return first_ == nullptr; }
  size_t size() const;
  Operand* begin() { return first_; }
  Operand* end();
  const Operand* begin() const { return first_; }
  const Operand* end() const;
  Operand& operator[](size_t i);
  const Operand& operator[](size_t i) const;
  const Operand& front() const;
  const Operand& back() const;
  bool operator==(const OperandList& other) const;

 private:
  static Operand* allocate(size_t size);
  Operand* first_ = nullptr;  // their number stands in front of them
};

struct Operand {
  enum class Kind : uint8_t {
    reg,       // index: Function::registers
    special,   // special register; index: Special, component 0..3 = .x.y.z.w (tid, ctaid, ...)
    integer,   // value (two's complement, 64 bits)
    floating,  // value = bits of an f64 (is_f32 false) or of an f32 (0f…, is_f32 true)
    variable,  // address of a variable used as a value (mov.u64 %rd, var); index: see is_local,
               // offset
    label,     // index: Function::labels (bra target)
    function,  // index: Module::functions (call target, or address taken)
    address,   // [base+offset] or [base, {coords}...]; see base*, elements
    vector,    // {a, b, ...}: elements
    sink,      // _
    pair,      // d|p: elements[0], elements[1] (either may be a sink)
    list,      // (a, b, ...) of a call: elements
    string,    // text, e.g. prototype or table name of an indirect call/branch: index into
               // Function::labels
  };
  // Of an address: a register, a variable, or neither (absolute).
  enum class Base : uint8_t { none, reg, variable };

  Kind kind = Kind::sink;
  // !p on a predicate operand; -r on an operand of vmad, the one instruction that negates registers
  bool negated : 1 = false;
  bool is_f32 : 1 = false;
  // A variable's owner: Function::params when is_param, Function::returns when is_return,
  // Function::variables when is_local alone, else Module::variables. is_local is true for the first
  // two.
  bool is_local : 1 = false;
  bool is_param : 1 = false;
  bool is_return : 1 = false;
  Base base : 2 = Base::none;
  uint8_t component = 0;  // of a special register (see sregs.def)
  uint8_t selector = 0;   // of a register: 1..4 = .x .y .z .w of a .v2/.v4 register; 5..8 = .b0 ..
                          // .b3, 9, 10 = .h0 .h1 of a video instruction; 11, 12 = .b and .h with
                          // several digits, which value holds; 0 = whole
  uint32_t index = kNone;
  union {  // no kind has both
    uint64_t value = 0;
    int64_t offset;  // bytes, of address and variable operands
  };
  OperandList elements;  // see Kind; of an address: further comma-separated parts in the brackets
                         // ([tensorMap, {c0, c1}]), each a vector or a register

  bool operator==(const Operand& o) const {
    return kind == o.kind && negated == o.negated && is_f32 == o.is_f32 && is_local == o.is_local &&
           is_param == o.is_param && is_return == o.is_return && base == o.base &&
           component == o.component && selector == o.selector && index == o.index &&
           value == o.value && elements == o.elements;
  }
};
static_assert(sizeof(Operand) == 24);

inline size_t OperandList::size() const {
  return first_ ? reinterpret_cast<const uint64_t*>(first_)[-1] : 0;
}
inline Operand* OperandList::end() { return first_ + size(); }
inline const Operand* OperandList::end() const { return first_ + size(); }
inline Operand& OperandList::operator[](size_t i) { return first_[i]; }
inline const Operand& OperandList::operator[](size_t i) const { return first_[i]; }
inline const Operand& OperandList::front() const { return first_[0]; }
inline const Operand& OperandList::back() const { return first_[size() - 1]; }

}  // namespace ptxbench::ptx
