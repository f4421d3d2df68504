#include "base/build_config.h"

#include <cstdlib>

#include "ptxbench/build_config.h"

namespace ptxbench {

namespace {

std::filesystem::path from_environment(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value && *value ? value : fallback;
}

}  // namespace

std::filesystem::path source_dir() {
  return from_environment("PTXBENCH_SOURCE_DIR", PTXBENCH_CONFIG_SOURCE_DIR);
}

std::filesystem::path build_dir() {
  return from_environment("PTXBENCH_BUILD_DIR", PTXBENCH_CONFIG_BUILD_DIR);
}

std::filesystem::path venv_dir() {
  return from_environment("PTXBENCH_VENV_DIR", PTXBENCH_CONFIG_VENV_DIR);
}

}  // namespace ptxbench
