#include "report/assets.h"

#include <fmt/format.h>

#include "base/build_config.h"
#include "base/files.h"

// The files of this room's folder, byte for byte. PTXBENCH_REPORT_DIR is that folder
// (CMakeLists.txt).
#define PB_EMBED_BEGIN(name) ".section .rodata\n.global pb_asset_" #name "\npb_asset_" #name ":\n"
#define PB_EMBED_FILE(file) ".incbin \"" PTXBENCH_REPORT_DIR "/" file "\"\n"
#define PB_EMBED_END(name) ".global pb_asset_" #name "_end\npb_asset_" #name "_end:\n.byte 0\n"

asm(PB_EMBED_BEGIN(dates) PB_EMBED_FILE("release_dates.csv") PB_EMBED_END(dates)
        PB_EMBED_BEGIN(exceptions) PB_EMBED_FILE("published_exceptions.csv")
            PB_EMBED_END(exceptions) PB_EMBED_BEGIN(page) PB_EMBED_FILE("page/page.html")
                PB_EMBED_END(page) PB_EMBED_BEGIN(style) PB_EMBED_FILE("page/style.css")
                    PB_EMBED_END(style) PB_EMBED_BEGIN(script) PB_EMBED_FILE("page/data.js")
                        PB_EMBED_FILE("page/table.js") PB_EMBED_FILE("page/diff.js")
                            PB_EMBED_FILE("page/plots.js") PB_EMBED_FILE("page/trajectory.js")
                                PB_EMBED_FILE("page/app.js") PB_EMBED_END(script) ".text\n");

extern "C" {
extern const char pb_asset_dates[], pb_asset_dates_end[];
extern const char pb_asset_exceptions[], pb_asset_exceptions_end[];
extern const char pb_asset_page[], pb_asset_page_end[];
extern const char pb_asset_style[], pb_asset_style_end[];
extern const char pb_asset_script[], pb_asset_script_end[];
}

namespace ptxbench::report::assets {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view release_dates() { return between(pb_asset_dates, pb_asset_dates_end); }
std::string_view published_exceptions() {
  return between(pb_asset_exceptions, pb_asset_exceptions_end);
}
std::string_view page() { return between(pb_asset_page, pb_asset_page_end); }
std::string_view style() { return between(pb_asset_style, pb_asset_style_end); }
std::string_view script() { return between(pb_asset_script, pb_asset_script_end); }

Result<std::string> plotly() {
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(venv_dir() / "lib", ignored)) {
    const auto file = python.path() / "site-packages/plotly/package_data/plotly.min.js";
    if (std::filesystem::exists(file, ignored)) return read_file(file);
  }
  return Error{"not-found",
               fmt::format("no plotly.min.js in {}: run scripts/setup.sh, or set PTXBENCH_VENV_DIR",
                           venv_dir().string())};
}

}  // namespace ptxbench::report::assets
