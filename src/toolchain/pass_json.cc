// What the cache keeps of a pass beside its products.

#include "toolchain/passes.h"

namespace ptxbench::toolchain {
namespace {

using Json = nlohmann::json;

Json diagnostic_json(const Diagnostic& d) {
  return {static_cast<int>(d.severity),
          d.tool,
          d.file,
          d.line,
          d.column,
          d.code,
          d.text,
          d.ptx_line,
          d.hint};
}

Json kernel_json(const KernelResources& k) {
  return {k.name, k.registers, k.barriers, k.stack, k.spill_stores, k.spill_loads, k.static_shared};
}

Diagnostic diagnostic_of(const Json& j) {
  return {static_cast<Diagnostic::Severity>(j.at(0).get<int>() & 3),
          j.at(1).get<std::string>(),
          j.at(2).get<std::string>(),
          j.at(3).get<int>(),
          j.at(4).get<int>(),
          j.at(5).get<std::string>(),
          j.at(6).get<std::string>(),
          j.at(7).get<int>(),
          j.at(8).get<std::string>()};
}

KernelResources kernel_of(const Json& j) {
  return {j.at(0).get<std::string>(), j.at(1).get<int>(),      j.at(2).get<int>(),
          j.at(3).get<uint64_t>(),    j.at(4).get<uint64_t>(), j.at(5).get<uint64_t>(),
          j.at(6).get<uint64_t>()};
}

}  // namespace

Json to_json(const PassOutput& output) {
  Json diagnostics = Json::array(), kernels = Json::array();
  for (const Diagnostic& d : output.diagnostics) diagnostics.push_back(diagnostic_json(d));
  for (const KernelResources& k : output.kernels) kernels.push_back(kernel_json(k));
  return {{"failure_reason", output.failure_reason},
          {"published_headers", output.published_headers},
          {"diagnostics", diagnostics},
          {"kernels", kernels}};
}

bool from_json(const Json& json, PassOutput* output) {
  // The library's accessors throw; what they throw ends here.
  try {
    output->failure_reason = json.at("failure_reason").get<std::string>();
    output->published_headers = json.at("published_headers").get<bool>();
    for (const Json& d : json.at("diagnostics")) output->diagnostics.push_back(diagnostic_of(d));
    for (const Json& k : json.at("kernels")) output->kernels.push_back(kernel_of(k));
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace ptxbench::toolchain
