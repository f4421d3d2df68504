#include "ptx/opcodes.h"

namespace ptxbench::ptx {

const Modifiers& SharedModifiers::none() {
  static const Modifiers empty;
  return empty;
}

Modifiers& SharedModifiers::edit() {
  if (!block_ || block_->owners.load(std::memory_order_acquire) > 1)
    *this = SharedModifiers(**this);
  return block_->mods;
}

std::string_view name(Op op) {
  static constexpr std::string_view kNames[] = {
#define PTX_OP(name, text) text,
#include "ptx/opcodes.def"
#undef PTX_OP
  };
  return kNames[static_cast<size_t>(op)];
}

std::string_view name(Type type) {
  static constexpr std::string_view kNames[] = {
      "",
#define PTX_TYPE(name, text, bits) text,
#include "ptx/types.def"
#undef PTX_TYPE
  };
  return kNames[static_cast<size_t>(type)];
}

std::string_view name(Space space) {
  static constexpr std::string_view kNames[] = {
      "",      "reg",          "sreg",        "const",  "global",      "local",
      "param", "param::entry", "param::func", "shared", "shared::cta", "shared::cluster",
      "tex"};
  return kNames[static_cast<size_t>(space)];
}

std::string_view name(Mod mod) {
  static constexpr std::string_view kNames[] = {
#define PTX_MOD(name, text) text,
#include "ptx/modifiers.def"
#undef PTX_MOD
      ""};
  return kNames[static_cast<size_t>(mod)];
}

std::string_view name(Special special) {
  static constexpr std::string_view kNames[] = {
#define PTX_SREG(name, text, type, components) text,
#include "ptx/sregs.def"
#undef PTX_SREG
  };
  return kNames[static_cast<size_t>(special)];
}

Type type_of(Special special) {
  static constexpr Type kTypes[] = {
#define PTX_SREG(name, text, type, components) Type::type,
#include "ptx/sregs.def"
#undef PTX_SREG
  };
  return kTypes[static_cast<size_t>(special)];
}

int components(Special special) {
  static constexpr uint8_t kComponents[] = {
#define PTX_SREG(name, text, type, components) components,
#include "ptx/sregs.def"
#undef PTX_SREG
  };
  return kComponents[static_cast<size_t>(special)];
}

int bits(Type type) {
  static constexpr uint16_t kBits[] = {
      0,
#define PTX_TYPE(name, text, bits) bits,
#include "ptx/types.def"
#undef PTX_TYPE
  };
  return kBits[static_cast<size_t>(type)];
}

bool is_float(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
    case Type::tf32:
    case Type::f32:
    case Type::f32x2:
    case Type::f64:
      return true;
    default:
      return type >= Type::e4m3 && type <= Type::ue4m3;
  }
}

bool is_signed(Type type) {
  switch (type) {
    case Type::s2:
    case Type::s4:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64:
    case Type::s16x2:
    case Type::s8x4:
      return true;
    default:
      return false;
  }
}

}  // namespace ptxbench::ptx
