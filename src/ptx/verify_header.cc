// The head of a module: version, target and options, address size; pragmas outside of bodies.

#include <fmt/format.h>

#include <algorithm>

#include "ptx/verifier_impl.h"

namespace ptxbench::ptx {
namespace {

// The PTX version (x 10) in which the target appeared; 0: there is no such target.
int first_version(const Target& t) {
  struct Row {
    int sm, plain, a, f;
  };
  static constexpr Row kRows[] = {
      {10, 10, 0, 0},    {11, 10, 0, 0},    {12, 12, 0, 0},    {13, 12, 0, 0},    {20, 20, 0, 0},
      {21, 20, 0, 0},    {30, 30, 0, 0},    {32, 40, 0, 0},    {35, 31, 0, 0},    {37, 41, 0, 0},
      {50, 40, 0, 0},    {52, 41, 0, 0},    {53, 42, 0, 0},    {60, 50, 0, 0},    {61, 50, 0, 0},
      {62, 50, 0, 0},    {70, 60, 0, 0},    {72, 61, 0, 0},    {75, 63, 0, 0},    {80, 70, 0, 0},
      {86, 71, 0, 0},    {87, 74, 0, 0},    {88, 90, 0, 0},    {89, 78, 0, 0},    {90, 78, 80, 0},
      {100, 86, 86, 88}, {101, 86, 86, 88}, {103, 88, 88, 88}, {110, 90, 90, 90}, {120, 87, 87, 88},
      {121, 88, 88, 88}};
  for (const Row& row : kRows)
    if (row.sm == t.sm) return t.suffix == 'a' ? row.a : t.suffix == 'f' ? row.f : row.plain;
  return 0;
}

// The releases of PTX up to 9.0: 1.0-1.5, 2.0-2.3, 3.0-3.2, ...
bool is_release(int major, int minor) {
  static constexpr int kLastMinor[] = {-1, 5, 3, 2, 3, 1, 5, 8, 8, 0};
  return major > 0 && major < static_cast<int>(std::size(kLastMinor)) && minor <= kLastMinor[major];
}

Complaint check_options(const Module& module, const Target& target) {
  bool unified = false, independent = false;
  for (const std::string& option : module.target_options) {
    if (option.starts_with("sm_")) {
      if (first_version(parse_target(option)) == 0)
        return fmt::format("'{}' is no known target", option);
    } else if (option == "texmode_unified") {
      unified = true;
    } else if (option == "texmode_independent") {
      independent = true;
    } else if (option == "map_f64_to_f32") {
      if (target.sm >= 13) return "map_f64_to_f32 is for targets before sm_13, which have no .f64";
    } else if (option == "debug") {
      if (module.sections.empty()) return "target option debug needs debug sections";
    } else {
      return fmt::format("'{}' is no option of .target", option);
    }
  }
  if (unified && independent) return "texmode_unified and texmode_independent exclude each other";
  return {};
}

// Pragmas that stand in bodies only; "nounroll" may be said of a kernel and of a module, too.
bool is_of_bodies(std::string_view pragma) {
  return pragma.starts_with("used_bytes_mask") || pragma.starts_with("frequency") ||
         pragma == "enable_smem_spilling";
}

Complaint check_pragmas(const Module& module) {
  for (const std::string& pragma : module.pragmas)
    if (is_of_bodies(pragma)) return fmt::format("pragma \"{}\" must stand in a function", pragma);
  for (const Function& f : module.functions)
    for (const std::string& pragma : f.directives.pragmas)
      if (is_of_bodies(pragma))
        return fmt::format("pragma \"{}\" must stand in the body of '{}'", pragma, f.name);
  return {};
}

}  // namespace

Complaint check_header(const Module& module, const Target& target, int version) {
  if (!is_release(module.version_major, module.version_minor))
    return fmt::format("there is no PTX {}.{}; this verifier knows 1.0 to 9.0",
                       module.version_major, module.version_minor);
  int first = first_version(target);
  if (first == 0) return fmt::format("'{}' is no known target", module.target);
  if (version < first)
    return fmt::format("target {} needs PTX {}.{}; this module's version is {}.{}", module.target,
                       first / 10, first % 10, module.version_major, module.version_minor);
  if (module.address_size == 32)
    return ".address_size 32: since CUDA 12 there is no 32-bit code, only .address_size 64";
  if (Complaint bad = check_options(module, target)) return bad;
  return check_pragmas(module);
}

Complaint check_abi_preserve(const AbiPreserve& preserve, const Target& target, int version) {
  // The greatest that ptxas 13.0 takes for sm_80, sm_90 and sm_100a.
  constexpr uint32_t kMaxData = 237, kMaxControl = 11;
  if (!preserve.given()) return {};
  if (version < 90 || target.sm < 80) return ".abi_preserve needs PTX 9.0 and sm_80 or later";
  if (preserve.data.value_or(0) > kMaxData)
    return fmt::format(".abi_preserve {}: at most {} registers", *preserve.data, kMaxData);
  if (preserve.control.value_or(0) > kMaxControl)
    return fmt::format(".abi_preserve_control {}: at most {} registers", *preserve.control,
                       kMaxControl);
  return {};
}

Complaint check_constant_bank(const Module& module) {
  constexpr uint64_t kConstantBank = 64 << 10;
  uint64_t bytes = 0;
  for (const Variable& v : module.variables)
    if (v.space == Space::const_) bytes += v.size;
  if (bytes > kConstantBank)
    return fmt::format("{} bytes of .const variables, more than {}", bytes, kConstantBank);
  return {};
}

}  // namespace ptxbench::ptx
