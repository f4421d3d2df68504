#include "emu/hw_vectors.h"

#include <gtest/gtest.h>

namespace ptxbench {
namespace {

// Every array that a case names lies in the blob and every named input exists.
TEST(HwVectors, AllGroupsLoad) {
  const std::map<std::string, size_t> expected = {
      {"cvt", 784},         {"approx", 30},        {"exact", 747},      {"warp", 20},
      {"matrix_warp", 217}, {"wgmma_layout", 198}, {"wgmma_desc", 568}, {"wgmma_numerics", 152},
      {"tma", 484},         {"sync", 32},          {"matrix_more", 760}};
  for (const auto& [name, count] : expected) {
    const hw::Group& g = hw::group(name);
    EXPECT_EQ(g.cases().size(), count) << name;
    size_t arrays = 0;
    for (const hw::Json& c : g.cases())
      for (const auto& [key, value] : c.items()) {
        if (value.is_object() && value.contains("at")) arrays += g.array(value).size() > 0;
        if (key == "inputs") {
          for (const auto& input : value)
            EXPECT_GE(g.input(input.get<std::string>()).size(), g.array(c.at("out")).size());
        }
      }
    EXPECT_GT(arrays, 0u) << name;
  }
}

}  // namespace
}  // namespace ptxbench
