// Operands that TMA wrote to shared memory in one layout and the tensor core reads in another. A
// tile is modelled as TMA writes it: rows of `pitch` bytes one after another, 16-byte chunks
// permuted by the swizzle. The reader's side is the descriptor's own arithmetic (emu). What a wrong
// pair reads is another element of the same tile, so the product can be computed and compared.
#include <fmt/format.h>

#include <algorithm>

#include "bench/pattern/samples.h"
#include "emu/tensor_core.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFewest = 8;
constexpr int kElementBytes = 2, kMmaK = 16;

// How a tile lies in shared memory. Swizzle in bytes, 0: none.
struct Written {
  int swizzle, pitch;
  int box() const { return pitch / kElementBytes; }  // columns of K side by side
};

struct Read {
  std::string text;
  emu::MatrixDescriptor descriptor;
  bool mn_major = false;
  bool advance = true;  // whether each step of 16 moves along the row
};

// Which element of the operand the reader gets for (row of the instruction's tile, column of the
// box); -1 for what lies outside the tile.
class Map {
 public:
  Map(const Written& written, const Read& read, int rows) : box_(written.box()), rows_(rows) {
    table_.resize(static_cast<size_t>(rows * box_));
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < box_; ++i) {
        emu::MatrixDescriptor d = read.descriptor;
        if (read.advance) d.start = static_cast<uint32_t>(i / kMmaK * kMmaK * kElementBytes);
        const uint32_t address =
            emu::element_address(d, read.mn_major, kElementBytes, row, i % kMmaK);
        table_[static_cast<size_t>(row * box_ + i)] = inverse(written, address);
      }
  }
  bool is_identity() const {
    for (size_t i = 0; i < table_.size(); ++i)
      if (table_[i] != static_cast<int>(i)) return false;
    return true;
  }
  // (row, k) of the matrix; row -1 outside.
  std::pair<int64_t, int64_t> at(int64_t row, int64_t k) const {
    const int source = table_[static_cast<size_t>(row % rows_ * box_ + k % box_)];
    if (source < 0) return {-1, 0};
    return {row / rows_ * rows_ + source / box_, k / box_ * box_ + source % box_};
  }

 private:
  int inverse(const Written& written, uint32_t address) const {
    const uint32_t mask =
        written.swizzle == 0 ? 0 : static_cast<uint32_t>(written.swizzle) / 16 - 1;
    const uint32_t plain = address ^ ((address >> 7 & mask) << 4);
    const uint32_t pitch = static_cast<uint32_t>(written.pitch);
    const uint32_t row = plain / pitch;
    if (row >= static_cast<uint32_t>(rows_)) return -1;
    return static_cast<int>(row) * box_ + static_cast<int>(plain % pitch) / kElementBytes;
  }

  int box_, rows_;
  std::vector<int> table_;
};

std::string mode_text(int swizzle) {
  return swizzle == 0 ? std::string("no swizzle") : fmt::format("the {}-byte swizzle", swizzle);
}

emu::MatrixDescriptor descriptor(int swizzle, int leading, int stride) {
  emu::MatrixDescriptor d;
  d.swizzle = static_cast<uint32_t>(swizzle);
  d.leading = static_cast<uint32_t>(leading);
  d.stride = static_cast<uint32_t>(stride);
  return d;
}

// Wrong readers of a tile, the most usual mistakes first.
std::vector<Read> wrong_readers(const Written& w) {
  const int group = 8 * w.pitch;  // bytes from one group of eight rows to the next
  std::vector<Read> reads;
  const std::string written = "written with " + mode_text(w.swizzle);
  reads.push_back({written + ", LBO and SBO exchanged", descriptor(w.swizzle, group, 16)});
  for (int swizzle : {128, 64, 32, 0}) {
    if (swizzle == w.swizzle) continue;
    for (int leading : {16, 128, group})
      if (leading == 16 || swizzle == 0)
        reads.push_back({fmt::format("{}, read with {}", written, mode_text(swizzle)),
                         descriptor(swizzle, leading, group)});
  }
  for (int stride : {w.pitch, 2 * w.pitch, 4 * w.pitch, 16 * w.pitch})
    reads.push_back({fmt::format("{}, SBO {} instead of {} bytes", written, stride, group),
                     descriptor(w.swizzle, 16, stride)});
  Read stuck{written + ", the descriptor not advanced along K inside the swizzled row",
             descriptor(w.swizzle, 16, group)};
  stuck.advance = false;
  reads.push_back(stuck);
  Read trans{written + " K-major, read MN-major (transpose bit)", descriptor(w.swizzle, 16, group)};
  trans.mn_major = true;
  reads.push_back(trans);
  return reads;
}

// TMA fills what lies outside the matrix with zeros, and a permuted read can reach it.
double product(const Samples& samples, const Sample& s, const Map* a, const Map* b, int64_t box) {
  const GemmView& g = samples.gemm();
  const int64_t end = (g.k + box - 1) / box * box;
  double sum = 0;
  for (int64_t i = 0; i < end; ++i) {
    const auto [row, at_a] = a ? a->at(s.row, i) : std::pair(s.row, i);
    const auto [column, at_b] = b ? b->at(s.column, i) : std::pair(s.column, i);
    if (row < 0 || column < 0) return kNan;
    if (row < g.m && column < g.n && at_a < g.k && at_b < g.k)
      sum += samples.a(row, at_a) * samples.b(column, at_b);
  }
  return sum;
}

}  // namespace

Explanation explain_swizzle(const Samples& samples) {
  if (samples.wrong().size() < kFewest) return {};
  constexpr int kRowsA = 64;  // wgmma's M
  for (const Written& w : {Written{128, 128}, {64, 64}, {32, 32}, {0, 128}})
    for (const Read& read : wrong_readers(w)) {
      const Map a(w, read, kRowsA);
      if (a.is_identity()) continue;
      for (int rows_b : {256, 128, 64}) {
        const Map b(w, read, rows_b);
        for (int which : {3, 1, 2}) {
          if (which == 1 && rows_b != 256) continue;
          const auto fit = samples.fits([&](const Sample& s) {
            return product(samples, s, which & 1 ? &a : nullptr, which & 2 ? &b : nullptr, w.box());
          });
          if (!fit) continue;
          const char* operand = which == 1 ? "A" : which == 2 ? "B" : "A and B";
          return {"swizzle", fmt::format("{} in shared memory {}", operand, read.text), *fit};
        }
      }
    }
  return {};
}

}  // namespace ptxbench::bench::pattern
