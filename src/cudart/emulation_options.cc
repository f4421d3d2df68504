#include "cudart/emulation_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "cudart/lib/profiles.h"

namespace ptxbench::cudart {
namespace {

Error unknown(const std::string& name, const std::string& value, const char* choices) {
  return Error{"usage", fmt::format("{} \"{}\" is unknown; choose {}", name, value, choices)};
}

bool number(const std::string& text, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<void> set_emulation_option(EmulationOptions* o, const std::string& name,
                                  const std::string& value) {
  if (name == "profile") {
    if (!find_profile(value.c_str())) return unknown("device profile", value, "h100, h200 or b200");
    o->profile = value;
  } else if (name == "tensor") {
    if (value != "hw" && value != "f32" && value != "fast")
      return unknown("tensor mode", value, "hw, f32 or fast");
    o->tensor = value == "hw"    ? plan::TensorMode::hw
                : value == "f32" ? plan::TensorMode::f32
                                 : plan::TensorMode::fast;
  } else if (name == "async") {
    if (value != "late" && value != "eager") return unknown("async mode", value, "late or eager");
    o->async = value == "late" ? plan::AsyncMode::late : plan::AsyncMode::eager;
  } else if (name == "threads") {
    uint64_t n = 0;
    if (!number(value, &n) || n > 1024) return unknown("number of threads", value, "0 to 1024");
    o->threads = static_cast<int>(n);
  } else if (name == "schedule") {
    uint64_t seed = 0;
    const bool random = value.rfind("random:", 0) == 0 && number(value.substr(7), &seed);
    if (value != "inorder" && !random) return unknown("schedule", value, "inorder or random:SEED");
    o->schedule = value;
  } else if (name == "races") {
    if (value != "on" && value != "off") return unknown("races", value, "on or off");
    o->races = value == "on";
  } else {
    return Error{"usage", "no emulation option named " + name};
  }
  return {};
}

Result<EmulationOptions> read_emulation_environment() {
  EmulationOptions options;
  constexpr std::pair<const char*, const char*> kVariables[] = {
      {"PTXBENCH_EMULATE_PROFILE", "profile"},   {"PTXBENCH_EMULATE_TENSOR", "tensor"},
      {"PTXBENCH_EMULATE_ASYNC", "async"},       {"PTXBENCH_EMULATE_THREADS", "threads"},
      {"PTXBENCH_EMULATE_SCHEDULE", "schedule"}, {"PTXBENCH_EMULATE_RACES", "races"}};
  for (const auto& [variable, name] : kVariables)
    if (const char* value = std::getenv(variable))
      PB_RETURN_IF_ERROR(set_emulation_option(&options, name, value));
  return options;
}

}  // namespace ptxbench::cudart
