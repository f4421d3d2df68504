#pragma once
// Where this binary's source tree, build tree and private Python environment are. Build-time
// defaults (generated header ptxbench/build_config.h), each overridable by an environment variable.

#include <filesystem>

namespace ptxbench {

std::filesystem::path source_dir();  // $PTXBENCH_SOURCE_DIR
std::filesystem::path build_dir();   // $PTXBENCH_BUILD_DIR; programs in bin/, libraries in lib/
std::filesystem::path venv_dir();    // $PTXBENCH_VENV_DIR; default <source>/.venv

}  // namespace ptxbench
