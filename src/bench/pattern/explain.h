#pragma once
// Why a GEMM's values are wrong. Every hypothesis is a formula for what the faulty kernel would
// have written; one is named only if it reproduces nearly all of the wrong elements looked at, and
// all of them are tried on real numbers: nothing is inferred from the source.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptxbench::bench {

// a[m,k], b[n,k], c[m,n]: bf16 bits, row-major; c is what the candidate wrote.
struct GemmView {
  std::span<const uint16_t> a, b, c;
  int64_t m = 0, n = 0, k = 0;
};

struct Explanation {
  std::string kind;     // stable slug, "" if nothing fits; docs/verdict.md lists them
  std::string text;     // for people: "the last 32 of K left out"
  double explains = 0;  // share of the wrong elements looked at that the formula reproduces;
                        // 0 where only the places are described
};

// `bad_tiles`: linear indices of the 16x16 tiles known to be wrong, row by row; may be empty.
// Looks at no more than some thousand elements whatever the size.
Explanation explain_gemm(const GemmView& gemm, std::span<const uint64_t> bad_tiles);

}  // namespace ptxbench::bench
