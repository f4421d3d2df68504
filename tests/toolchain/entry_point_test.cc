// Loads host libraries made with the small and with the published TVM-FFI headers and calls them:
// both must answer alike.
#include <dlfcn.h>

#include <fstream>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "toolchain/compiler.h"
#include "toolchain/ffi/tvm/ffi/c_api.h"
#include "toolchain/toolkit.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;
using EntryPoint = int (*)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

const fs::path& work_dir() {
  static TempDir dir = TempDir::create("test-entry").take();
  return dir.path();
}

// What the process that loads a library offers it, and the last error raised.
constexpr char kShim[] =
    "#include <stdio.h>\n"
    "static char text[4096];\n"
    "void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {\n"
    "  snprintf(text, sizeof text, \"%s: %s\", kind, message); }\n"
    "void* TVMFFIEnvGetStream(int type, int id) { return 0; }\n"
    "const char* last_error(void) { return text; }\n";

void* open_shim() {
  const fs::path source = work_dir() / "shim.c", library = work_dir() / "shim.so";
  std::ofstream(source) << kShim;
  ProcessSpec gcc;
  gcc.argv = {"gcc", "-shared", "-fPIC", "-o", library.string(), source.string()};
  const auto built = run_process(gcc);
  EXPECT_TRUE(built.ok() && built->succeeded());
  return dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

void open_runtime() {
  const fs::path cudart = find_cuda_library(*find_toolkit(), "cudart");
  ASSERT_NE(dlopen(cudart.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
}

EntryPoint load(const std::string& extra, bool published) {
  CompileRequest request;
  request.source =
      *read_file(fs::path(PTXBENCH_SOURCE_DIR) / "tests/toolchain/candidates/arguments.cu") + extra;
  request.cache_dir = work_dir() / "cache";
  const auto out = compile(request);
  EXPECT_TRUE(out.ok());
  if (!out.ok()) return nullptr;
  for (const Diagnostic& d : out->diagnostics)
    if (d.severity == Diagnostic::Severity::error) ADD_FAILURE() << d.text;
  EXPECT_EQ(out->published_headers, published);
  void* library = dlopen(out->host_library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return nullptr;
  return reinterpret_cast<EntryPoint>(dlsym(library, "__tvm_ffi_run"));
}

// A 3x5 float32 tensor on the GPU and the other arguments.
struct Call {
  int64_t shape[2] = {3, 5};
  int64_t strides[2] = {5, 1};
  struct {
    TVMFFIObject header = {1, kTVMFFITensor, 0, {nullptr}};
    DLTensor tensor = {};
  } object;
  TVMFFIAny args[5] = {};
  TVMFFIAny result = {};

  Call() {
    object.tensor = {reinterpret_cast<void*>(0x700000000000),
                     {kDLCUDA, 0},
                     2,
                     {kDLFloat, 32, 1},
                     shape,
                     strides,
                     0};
    args[0].type_index = kTVMFFIDLTensorPtr;
    args[0].v_ptr = &object.tensor;
    set_int(1, 0);
    args[2].type_index = kTVMFFIFloat;
    args[2].v_float64 = 2.5;
    args[3].type_index = kTVMFFIBool;
    args[3].v_int64 = 1;
    args[4].type_index = kTVMFFINone;
  }
  void set_int(int i, int64_t value) {
    args[i].type_index = kTVMFFIInt;
    args[i].v_int64 = value;
  }
};

// `error`: the text of the last error, where it can be had.
void check_answers(EntryPoint run, const std::function<std::string()>& error) {
  const auto fails = [&](Call& call, int count, const std::string& text) {
    EXPECT_NE(run(nullptr, call.args, count, &call.result), 0) << text;
    if (error) {
      EXPECT_THAT(error(), testing::HasSubstr(text));
    }
  };
  Call good;
  ASSERT_EQ(run(nullptr, good.args, 5, &good.result), 0) << (error ? error() : "");
  EXPECT_EQ(good.result.type_index, kTVMFFIInt);
  EXPECT_EQ(good.result.v_int64, 15210);
  Call object;  // an owned tensor, an int where a float is wanted, a value in the optional
  object.args[0].type_index = kTVMFFITensor;
  object.args[0].v_obj = &object.object.header;
  object.set_int(2, 3);
  object.set_int(4, 7);
  ASSERT_EQ(run(nullptr, object.args, 5, &object.result), 0) << (error ? error() : "");
  EXPECT_EQ(object.result.v_int64, 15317);
  Call c;
  fails(c, 4, "TypeError: Mismatched number of arguments when calling: `run");
  c.args[0].type_index = kTVMFFIInt;
  fails(c, 5, "TypeError: Mismatched type on argument #0 when calling: `run");
  Call text;
  text.args[1].type_index = kTVMFFIFloat;
  fails(text, 5, "argument #1");
  const std::pair<int, const char*> kThrown[] = {
      {1, "ValueError: n is 1 and a is 2.5"},
      {2, "InternalError: plain exception"},
      {3, "IndexError"},
      {4, "InternalError: Check failed: n != 4 (4 vs. 4)"}};
  for (const auto& [n, expected] : kThrown) {
    Call thrown;
    thrown.set_int(1, n);
    fails(thrown, 5, expected);
  }
  Call wrong_type;
  wrong_type.object.tensor.dtype = {kDLBfloat, 16, 1};
  fails(wrong_type, 5, "float32 only");
  Call strided;
  strided.strides[0] = 10;
  fails(strided, 5, "IsContiguous");
  Call host;
  host.object.tensor.device.device_type = kDLCPU;
  fails(host, 5, "on a GPU only");
}

TEST(EntryPoint, SmallHeaders) {
  ASSERT_NO_FATAL_FAILURE(open_runtime());
  void* shim = open_shim();
  ASSERT_NE(shim, nullptr) << dlerror();
  auto* last_error = reinterpret_cast<const char* (*)()>(dlsym(shim, "last_error"));
  const EntryPoint run = load("", false);
  ASSERT_NE(run, nullptr);
  check_answers(run, [&] { return std::string(last_error()); });
}

TEST(EntryPoint, PublishedHeaders) {
  const fs::path package = find_tvm_ffi();
  ASSERT_FALSE(package.empty()) << "THE PUBLISHED TVM-FFI PACKAGE IS NOT INSTALLED: run the set-up";
  ASSERT_NO_FATAL_FAILURE(open_runtime());
  ASSERT_NE(dlopen((package / "lib/libtvm_ffi.so").c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr)
      << dlerror();
  const EntryPoint run = load("\nstatic tvm::ffi::Any unused_any() { return 1; }\n", true);
  ASSERT_NE(run, nullptr);
  check_answers(run, nullptr);
}

}  // namespace
}  // namespace ptxbench::toolchain
