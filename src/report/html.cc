#include "report/html.h"

#include <fmt/format.h>

#include <random>

#include "report/assets.h"
#include "report/payload.h"

namespace ptxbench::report {
namespace {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

// Drawn when the page is written, after everything in it: no candidate can know it.
std::string nonce() {
  std::random_device device;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", device());
  return text;
}

// Text that ends a script element must not occur inside one; in JavaScript "<\/" is "</".
std::string for_script_element(std::string_view text) {
  std::string safe;
  safe.reserve(text.size() + 1024);
  for (size_t at = 0; at < text.size(); ++at) {
    safe += text[at];
    if (text.substr(at, 2) == "</") safe += '\\';
  }
  return safe;
}

// One pass: what is put in is not looked at again.
std::string fill(std::string_view page, const std::map<std::string, std::string>& parts) {
  std::string filled;
  while (!page.empty()) {
    const size_t open = std::min(page.find("{{"), page.size());
    filled += page.substr(0, open);
    page.remove_prefix(open);
    if (page.empty()) break;
    const size_t close = page.find("}}");
    filled += parts.at(std::string(page.substr(2, close - 2)));
    page.remove_prefix(close + 2);
  }
  return filled;
}

}  // namespace

Result<std::string> render_html(const store::Store& store, const Dataset& data,
                                const Analysis& analysis, const HtmlOptions& options) {
  PB_ASSIGN_OR_RETURN(const std::string plotly, assets::plotly());
  PB_ASSIGN_OR_RETURN(std::string json, payload(store, data, analysis, options));
  return fill(assets::page(), {{"nonce", nonce()},
                               {"title", escape_html(options.title)},
                               {"style", std::string(assets::style())},
                               {"data", std::move(json)},
                               {"plotly", for_script_element(plotly)},
                               {"script", std::string(assets::script())}});
}

}  // namespace ptxbench::report
