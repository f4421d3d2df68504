#include "te/fp8/recipe.h"

#include <fmt/format.h>

#include <cmath>

namespace ptxbench::te {
namespace {

const char* name_of(FormatChoice format) {
  return format == FormatChoice::hybrid ? "hybrid" : "e4m3";
}

Result<void> check_epsilon(float epsilon) {
  if (std::isfinite(epsilon) && epsilon >= 0) return {};
  return Error{"usage", fmt::format("amax_epsilon is {}: it must be finite and >= 0", epsilon)};
}

Result<void> check(const DelayedScaling& r) {
  if (r.margin < 0 || r.margin > 30)
    return Error{"usage", fmt::format("margin is {}: it must be in 0..30", r.margin)};
  if (r.amax_history_len < 1 || r.amax_history_len > 65536)
    return Error{"usage",
                 fmt::format("amax_history_len is {}: it must be in 1..65536", r.amax_history_len)};
  return {};
}
Result<void> check(const CurrentScaling& r) { return check_epsilon(r.amax_epsilon); }
Result<void> check(const BlockScaling& r) { return check_epsilon(r.amax_epsilon); }

std::string text(const DelayedScaling& r) {
  return fmt::format("delayed scaling, {}, margin {}, history {}, {}{}", name_of(r.format),
                     r.margin, r.amax_history_len,
                     r.amax_algorithm == AmaxAlgorithm::max ? "max" : "most recent",
                     r.reduce_amax ? ", amax over all ranks" : "");
}
std::string text(const CurrentScaling& r) {
  return fmt::format("current scaling, {}{}, epsilon {}", name_of(r.format),
                     r.power_of_two_scales ? ", powers of two" : "", r.amax_epsilon);
}
std::string text(const BlockScaling& r) {
  return fmt::format("block scaling 1x{0} and {0}x{0}, e4m3{1}, epsilon {2}", kScaleBlock,
                     r.power_of_two_scales ? ", powers of two" : "", r.amax_epsilon);
}

FormatChoice choice(const DelayedScaling& r) { return r.format; }
FormatChoice choice(const CurrentScaling& r) { return r.format; }
FormatChoice choice(const BlockScaling&) { return FormatChoice::e4m3; }

}  // namespace

Result<void> validate(const Recipe& recipe) {
  return std::visit([](const auto& r) { return check(r); }, recipe);
}

Fp8Format format_of(const Recipe& recipe, Direction direction) {
  const FormatChoice c = std::visit([](const auto& r) { return choice(r); }, recipe);
  return c == FormatChoice::hybrid && direction == Direction::backward ? Fp8Format::e5m2
                                                                       : Fp8Format::e4m3;
}

std::string describe(const Recipe& recipe) {
  return std::visit([](const auto& r) { return text(r); }, recipe);
}

}  // namespace ptxbench::te
