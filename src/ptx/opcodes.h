#pragma once
// Vocabulary of PTX instructions: opcodes, types, state spaces and modifiers as enumerations,
// generated from the lists in opcodes.def / modifiers.def / types.def so that the words stand in
// one place.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench::ptx {

// One entry per opcode word before the first modifier that selects another behaviour: "add", "ld",
// "mbarrier.try_wait", "cp.async.bulk.tensor", "wgmma.mma_async", "barrier.cluster.arrive", ...
// (dots become underscores in the enumerator; reserved words get a trailing underscore).
enum class Op : uint16_t {
#define PTX_OP(name, text) name,
#include "ptx/opcodes.def"
#undef PTX_OP
};

enum class Type : uint8_t {
  none,
#define PTX_TYPE(name, text, bits) name,
#include "ptx/types.def"
#undef PTX_TYPE
};

enum class Space : uint8_t {
  generic,  // no space given
  reg,
  sreg,
  const_,
  global,
  local,
  param,
  param_entry,
  param_func,
  shared,
  shared_cta,
  shared_cluster,
  tex,
};

enum class Linkage : uint8_t { none, visible, extern_, weak, common };

// Every modifier that is neither a type, nor a state space, nor a matrix shape: ".sync" is
// Mod::sync,
// ".L2::cache_hint" Mod::L2_cache_hint, ".mbarrier::complete_tx::bytes"
// Mod::mbarrier_complete_tx_bytes,
// ".2d" Mod::dim2d, ".v4" Mod::v4, ".x4" Mod::x4, ".128x256b" -> see modifiers.def.
enum class Mod : uint16_t {
#define PTX_MOD(name, text) name,
#include "ptx/modifiers.def"
#undef PTX_MOD
  count_,
};

enum class Special : uint8_t {
#define PTX_SREG(name, text, type, components) name,
#include "ptx/sregs.def"
#undef PTX_SREG
};

// A set of modifiers.
class ModSet {
 public:
  static constexpr size_t kSize = static_cast<size_t>(Mod::count_);
  static constexpr size_t size() { return kSize; }
  bool operator[](size_t m) const { return words_[m / 64] >> (m % 64) & 1; }
  bool has(Mod m) const { return (*this)[static_cast<size_t>(m)]; }
  void set(size_t m) { words_[m / 64] |= uint64_t{1} << (m % 64); }
  bool any() const {
    uint64_t all = 0;
    for (uint64_t word : words_) all |= word;
    return all != 0;
  }
  bool none() const { return !any(); }
  bool several() const {  // more than one
    uint64_t before = 0, twice = 0;
    for (uint64_t word : words_) {
      twice |= (word & (word - 1)) | (before && word);
      before |= word;
    }
    return twice != 0;
  }
  size_t count() const {
    size_t n = 0;
    for (uint64_t word : words_) n += static_cast<size_t>(std::popcount(word));
    return n;
  }
  ModSet operator&(const ModSet& o) const {
    return with(o, [](uint64_t a, uint64_t b) { return a & b; });
  }
  ModSet operator-(const ModSet& o) const {
    return with(o, [](uint64_t a, uint64_t b) { return a & ~b; });
  }
  ModSet& operator|=(const ModSet& o) {
    return *this = with(o, [](uint64_t a, uint64_t b) { return a | b; });
  }
  bool operator==(const ModSet&) const = default;

 private:
  ModSet with(const ModSet& o, auto&& f) const {
    ModSet out;
    for (size_t w = 0; w < words_.size(); ++w) out.words_[w] = f(words_[w], o.words_[w]);
    return out;
  }
  std::array<uint64_t, (kSize + 63) / 64> words_{};
};

struct MatrixShape {
  uint16_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};

// The modifiers of one instruction. Flags are a set (their order in the text is free); types and
// state spaces keep the order of the text, because it carries meaning (cvt.D.S,
// cp.async.bulk.DST.SRC).
struct Modifiers {
  ModSet flags;
  std::vector<Type> types;
  std::vector<Space> spaces;
  MatrixShape shape;  // .m64n256k16, .m8n8 (then Mod::m8n8 is set too), .m16n8k16
  // The words as they were written, for the printer; clear spelled when you change anything above.
  struct Word {
    enum class Kind : uint8_t { mod, type, space, shape } kind{};
    uint16_t value = 0;  // Mod, Type, Space
    bool operator==(const Word&) const = default;
  };
  static constexpr size_t kMaxWords = 20;
  std::array<Word, kMaxWords> spelling{};
  uint8_t spelled = 0;
  bool has(Mod m) const { return flags.has(m); }
  Type type(size_t i = 0) const { return i < types.size() ? types[i] : Type::none; }
  Space space(size_t i = 0) const { return i < spaces.size() ? spaces[i] : Space::generic; }
  void set(Mod m) { flags.set(static_cast<size_t>(m)); }
  bool operator==(const Modifiers&) const = default;
};

// Modifiers as instructions hold them: those that were written alike share one copy, which the
// last of them frees. Reads like the Modifiers themselves; edit() gives a copy of one's own.
class SharedModifiers {
 public:
  SharedModifiers() = default;
  explicit SharedModifiers(Modifiers mods) : block_(new Block{std::move(mods)}) {}
  SharedModifiers(const SharedModifiers& other) : block_(other.block_) {
    if (block_) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  SharedModifiers(SharedModifiers&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)) {}
  SharedModifiers& operator=(SharedModifiers other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedModifiers() {
    if (block_ && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
  }

  const Modifiers& operator*() const { return block_ ? block_->mods : none(); }
  const Modifiers* operator->() const { return &**this; }
  operator const Modifiers&() const { return **this; }
  bool has(Mod m) const { return block_ && block_->mods.has(m); }
  Type type(size_t i = 0) const { return (**this).type(i); }
  Space space(size_t i = 0) const { return (**this).space(i); }
  Modifiers& edit();
  // Equal words, wherever they stand.
  friend bool operator==(const SharedModifiers& a, const SharedModifiers& b) {
    return a.block_ == b.block_ || *a == *b;
  }

 private:
  struct Block {
    Modifiers mods;
    std::atomic<uint32_t> owners{1};
  };
  static const Modifiers& none();
  Block* block_ = nullptr;
};

// Words that belong to the opcode's own text (the "sync" of shfl.sync) are not flags.
std::string_view name(Op op);            // "mbarrier.try_wait"
std::string_view name(Type type);        // "bf16x2"
std::string_view name(Space space);      // "shared::cluster"; "" for generic
std::string_view name(Mod mod);          // "L2::cache_hint"
std::string_view name(Special special);  // "%tid"
Type type_of(Special special);
int components(Special special);  // 3 for %tid, 1 for %laneid
constexpr size_t kOpCount = 0
#define PTX_OP(name, text) +1
#include "ptx/opcodes.def"
#undef PTX_OP
    ;
int bits(Type type);  // 32 for f32, f16x2, ...; 1 for pred
bool is_float(Type type);
bool is_signed(Type type);

}  // namespace ptxbench::ptx
