#include "toolchain/toolkit.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <set>

#include "base/build_config.h"
#include "base/subprocess.h"
#include "toolchain/compiler.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_program(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

// The program's place in PATH, links resolved; empty if it isn't there.
fs::path in_path(const std::string& name) {
  const std::string path = environment("PATH");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::path(path.substr(begin, end - begin)) / name;
    std::error_code error;
    if (candidate.is_absolute() && is_program(candidate)) return fs::canonical(candidate, error);
    begin = end + 1;
  }
  return {};
}

std::vector<fs::path> homes() {
  std::vector<fs::path> out;
  for (const char* name : {"PTXBENCH_CUDA_HOME", "CUDA_HOME"}) {
    if (const std::string value = environment(name); !value.empty()) out.emplace_back(value);
  }
  if (const fs::path nvcc = in_path("nvcc"); !nvcc.empty())
    out.push_back(nvcc.parent_path().parent_path());
  out.emplace_back("/usr/local/cuda");
  out.push_back(venv_dir() / "cuda");
  return out;
}

// What `program --version` prints; "" if it fails.
std::string version_text(const fs::path& program) {
  ProcessSpec command;
  command.argv = {program.string(), "--version"};
  command.wall_s = 20;
  const auto outcome = run_process(command);
  if (!outcome.ok() || !outcome->succeeded()) return "";
  return outcome->out.empty() ? outcome->err : outcome->out;
}

// NVIDIA's tools say what matters in the last line that is not empty, others in the first.
std::string version_of(const fs::path& program) {
  std::string text = version_text(program);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  const size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

std::string first_version_line(const fs::path& program) {
  const std::string text = version_text(program);
  return text.substr(0, text.find('\n'));
}

Result<Toolkit> locate() {
  for (const fs::path& home : homes()) {
    std::error_code error;
    const fs::path nvcc = home / "bin/nvcc";
    if (!home.is_absolute() || !is_program(nvcc)) continue;
    Toolkit toolkit{home, nvcc, home / "bin/ptxas", version_of(nvcc)};
    if (toolkit.version.empty()) return Error{"no-compiler", nvcc.string() + " does not start"};
    return toolkit;
  }
  return Error{"no-compiler",
               "no CUDA compiler (nvcc) in $PTXBENCH_CUDA_HOME, $CUDA_HOME, PATH, /usr/local/cuda "
               "or the private environment"};
}

}  // namespace

Result<Toolkit> find_toolkit() {
  static const Result<Toolkit> toolkit = locate();
  return toolkit;
}

fs::path find_cuda_library(const Toolkit& toolkit, const std::string& stem) {
  std::vector<fs::path> folders;
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
    folders.push_back(toolkit.home / folder);
    folders.push_back(toolkit.home / folder / "stubs");
  }
  folders.push_back(build_dir() / "lib");
  for (const fs::path& folder : folders) {
    for (const char* suffix : {".so", ".so.13", ".so.1"}) {
      std::error_code error;
      const fs::path path = folder / ("lib" + stem + suffix);
      if (fs::exists(path, error)) return path;
    }
  }
  return {};
}

fs::path find_tvm_ffi() {
  std::error_code error;
  if (const std::string home = environment("PTXBENCH_TVM_FFI_HOME"); !home.empty())
    return fs::exists(fs::path(home) / "include/tvm/ffi/c_api.h", error) ? home : "";
  for (const auto& entry : fs::directory_iterator(venv_dir() / "lib", error)) {
    const fs::path package = entry.path() / "site-packages/tvm_ffi";
    std::error_code ignored;
    if (fs::exists(package / "include/tvm/ffi/c_api.h", ignored)) return package;
  }
  return {};
}

std::vector<fs::path> toolkit_folders(const Toolkit& toolkit) {
  std::set<fs::path> out;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    const std::string text = path.string();
    if (!path.empty() && text.rfind("/usr/", 0) != 0 && fs::exists(path, error)) out.insert(path);
  };
  add(toolkit.home);
  add(fs::canonical(toolkit.home, error));
  // A toolkit made of wheels is a tree of links into the environment's packages.
  const std::string venv = venv_dir().string() + "/";
  if (toolkit.home.string().rfind(venv, 0) == 0) {
    add(venv_dir());
    add(fs::canonical(venv_dir(), error));
  }
  return {out.begin(), out.end()};
}

std::vector<ToolInfo> find_tools() {
  std::vector<ToolInfo> tools;
  const auto toolkit = find_toolkit();
  const fs::path bin = toolkit.ok() ? toolkit->home / "bin" : fs::path();
  const auto add = [&](const std::string& name, const fs::path& path, const std::string& version) {
    const bool found = !path.empty();
    tools.push_back({name, path.string(), found ? version : "", found});
  };
  add("nvcc", toolkit.ok() ? toolkit->nvcc : "", toolkit.ok() ? toolkit->version : "");
  for (const char* name : {"ptxas", "nvdisasm", "cuobjdump"}) {
    fs::path path = bin.empty() || !is_program(bin / name) ? in_path(name) : bin / name;
    if (path.empty() && is_program(venv_dir() / "cuda/bin" / name))
      path = venv_dir() / "cuda/bin" / name;
    add(name, path, path.empty() ? "" : version_of(path));
  }
  const fs::path gxx = in_path("g++");
  add("g++", gxx, gxx.empty() ? "" : first_version_line(gxx));
  const fs::path bwrap = in_path("bwrap");
  add("bwrap", bwrap, bwrap.empty() ? "" : first_version_line(bwrap));
  add("tvm-ffi headers", find_tvm_ffi(), "");
  return tools;
}

}  // namespace ptxbench::toolchain
