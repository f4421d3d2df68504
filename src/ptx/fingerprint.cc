#include "ptx/fingerprint.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "ptx/control_flow.h"
#include "ptx/instruction_table.h"

namespace ptxbench::ptx {
namespace {

using Counts = std::map<uint64_t, uint32_t>;

// FNV-1a over words, finished with a mix so that short inputs spread over all bits.
class Hash {
 public:
  Hash& add(uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) step(word >> (8 * byte) & 0xff);
    return *this;
  }
  Hash& add(std::string_view text) {
    for (char c : text) step(static_cast<unsigned char>(c));
    return add(text.size());
  }
  uint64_t value() const {
    uint64_t x = state_;
    x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33;
    return x;
  }

 private:
  void step(uint64_t byte) { state_ = (state_ ^ byte) * 0x100000001b3ull; }
  uint64_t state_ = 0xcbf29ce484222325ull;
};

bool is_noise(const Instruction& i) {
  if (i.op == Op::mov || i.op == Op::cvta) return true;
  if (i.op != Op::ld && i.op != Op::st) return false;
  const Space space = i.mods.space();
  return space == Space::param || space == Space::param_entry || space == Space::param_func;
}

uint64_t token(const Instruction& i) {
  Hash hash;
  hash.add(family(i)).add(i.guard != kNone);
  // What a matrix instruction multiplies is structure, not detail.
  hash.add(i.mods->shape.m).add(i.mods->shape.n).add(i.mods->shape.k);
  if (i.mods->shape.m != 0)
    for (Type type : i.mods->types) hash.add(static_cast<uint64_t>(type));
  return hash.value();
}

void add_function(const Function& function, const Module& module, Counts& counts,
                  uint32_t& instructions) {
  const ControlFlow flow(function, &module);
  const std::vector<uint32_t> depth = flow.loop_depth();
  std::vector<uint64_t> signature(flow.blocks().size());
  for (uint32_t b : flow.order()) {
    const BasicBlock& block = flow.blocks()[b];
    std::vector<uint64_t> tokens{1};  // 1 and 2 mark the block's ends
    for (uint32_t n = block.first; n <= block.last; ++n)
      if (!is_noise(*flow.instructions()[n])) tokens.push_back(token(*flow.instructions()[n]));
    instructions += static_cast<uint32_t>(tokens.size() - 1);
    tokens.push_back(2);
    Hash whole;
    for (uint64_t t : tokens) whole.add(t);
    signature[b] = whole.add(depth[b]).add(block.successors.size()).value();
    for (size_t i = 0; i + 2 < tokens.size(); ++i)
      ++counts[Hash()
                   .add(3)
                   .add(depth[b])
                   .add(tokens[i])
                   .add(tokens[i + 1])
                   .add(tokens[i + 2])
                   .value()];
  }
  for (uint32_t b : flow.order())
    for (uint32_t s : flow.blocks()[b].successors)
      ++counts[Hash().add(4).add(signature[b]).add(signature[s]).value()];
}

uint32_t weight(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count)); }

}  // namespace

Fingerprint fingerprint(const Function& function, const Module& module) {
  Fingerprint out;
  Counts counts;
  add_function(function, module, counts, out.instructions);
  out.features.assign(counts.begin(), counts.end());
  return out;
}

Fingerprint fingerprint(const Module& module) {
  Fingerprint out;
  Counts counts;
  for (const Function& function : module.functions)
    add_function(function, module, counts, out.instructions);
  out.features.assign(counts.begin(), counts.end());
  return out;
}

double similarity(const Fingerprint& a, const Fingerprint& b) {
  uint64_t both = 0, either = 0;
  auto x = a.features.begin(), y = b.features.begin();
  while (x != a.features.end() || y != b.features.end()) {
    if (y == b.features.end() || (x != a.features.end() && x->first < y->first)) {
      either += weight(x++->second);
    } else if (x == a.features.end() || y->first < x->first) {
      either += weight(y++->second);
    } else {
      both += std::min(weight(x->second), weight(y->second));
      either += std::max(weight(x++->second), weight(y++->second));
    }
  }
  return either == 0 ? 0 : static_cast<double>(both) / static_cast<double>(either);
}

}  // namespace ptxbench::ptx
