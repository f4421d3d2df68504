#pragma once
// How a video instruction is spelled, packed into MicroOp::imm: vadd, vset, vmad, ... with the
// parts of their operands, second operation, merging or masks (PTX ISA, "Video Instructions").

#include <cstdint>

#include "emu/micro_op.h"

namespace ptxbench::emu::scalar {

enum class VideoSecond : uint8_t { none, add, min, max };

struct VideoForm {
  bool d_signed = false, a_signed = false, b_signed = false;
  bool saturate = false, wrap = false, plus_one = false;
  bool negate_a = false, negate_b = false, negate_c = false;
  bool merge = false;  // scalar: the rest of the destination comes from c
  VideoSecond second = VideoSecond::none;
  uint8_t shift = 0;     // of vmad: 0, 7, 15
  uint8_t outcomes = 0;  // of vset: Outcome bits
  // Scalar: 0 the whole register, 1..4 a byte, 5, 6 a half. SIMD: three bits for each lane, lane 0
  // lowest, which part of {b, a} it reads.
  uint16_t a_part = 0, b_part = 0;
  uint8_t d_part = 0;  // scalar: as above; SIMD: lanes that are written, as a mask

  constexpr uint64_t pack() const {
    uint64_t bits = 0;
    int at = 0;
    const auto put = [&](uint64_t value, int width) { bits |= value << at, at += width; };
    for (bool flag : {d_signed, a_signed, b_signed, saturate, wrap, plus_one, negate_a, negate_b,
                      negate_c, merge})
      put(flag, 1);
    put(static_cast<uint64_t>(second), 2);
    put(shift, 4), put(outcomes, 4), put(a_part, 12), put(b_part, 12), put(d_part, 4);
    return bits;
  }
  [[gnu::always_inline]] static inline VideoForm unpack(uint64_t bits) {
    VideoForm f;
    int at = 0;
    const auto take = [&](int width) __attribute__((always_inline)) {
      const uint64_t value = bits >> at & ((uint64_t{1} << width) - 1);
      at += width;
      return value;
    };
    f.d_signed = take(1) != 0, f.a_signed = take(1) != 0, f.b_signed = take(1) != 0;
    f.saturate = take(1) != 0, f.wrap = take(1) != 0, f.plus_one = take(1) != 0;
    f.negate_a = take(1) != 0, f.negate_b = take(1) != 0, f.negate_c = take(1) != 0;
    f.merge = take(1) != 0;
    f.second = static_cast<VideoSecond>(take(2));
    f.shift = static_cast<uint8_t>(take(4)), f.outcomes = static_cast<uint8_t>(take(4));
    f.a_part = static_cast<uint16_t>(take(12)), f.b_part = static_cast<uint16_t>(take(12));
    f.d_part = static_cast<uint8_t>(take(4));
    return f;
  }
};

// The handler's operands are d, a, b and, where the instruction has it, c.
struct VideoInstruction {
  VideoForm form;
  int sources = 0;  // 0: no video instruction
};
VideoInstruction video_instruction(const ptx::Instruction& instruction);

// Whether what ptxas 13.0 puts in the place of this spelling does what the ISA says. Where it does
// not (recorded in tests/data/hw, group forms: unsigned saturation, unsigned min and max of more
// than 32 bits, merging into .h1, most of vmad's mixed types), there is no right answer to give.
bool video_agrees(const ptx::Instruction& instruction, const VideoForm& form);

}  // namespace ptxbench::emu::scalar
