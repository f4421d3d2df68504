#include "store/labels.h"

#include <algorithm>

namespace ptxbench::store {

bool known_label(std::string_view label) {
  return std::find(kLabels.begin(), kLabels.end(), label) != kLabels.end();
}

std::string_view required_tag(std::string_view arch) {
  if (arch == "hopper" || arch.starts_with("sm_90")) return "H";
  if (arch == "blackwell" || arch.starts_with("sm_100") || arch.starts_with("sm_103")) return "B";
  return "";
}

bool has_tag(std::string_view tags, std::string_view wanted) {
  while (!wanted.empty() && !tags.empty()) {
    const size_t comma = std::min(tags.find(','), tags.size());
    std::string_view tag = tags.substr(0, comma);
    while (tag.starts_with(' ')) tag.remove_prefix(1);
    while (tag.ends_with(' ')) tag.remove_suffix(1);
    if (tag == wanted) return true;
    tags.remove_prefix(std::min(comma + 1, tags.size()));
  }
  return false;
}

}  // namespace ptxbench::store
