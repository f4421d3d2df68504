#include "bench/tile_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ptxbench::bench {
namespace {

size_t occurrences(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(TileMap, OneCellPerTileWhereItFits) {
  TileMap map(40, 50);  // 3 x 4 tiles, ragged
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) map.add(r, c, 0.5, false);
  map.add(1, 2, 20, false);
  map.add(2, 3, INFINITY, true);
  EXPECT_EQ(map.text(), (std::vector<std::string>{"....", "..x.", "...?"}));
  const std::string svg = map.svg("C of <a & b>");
  EXPECT_EQ(occurrences(svg, "<title>"), 12u);
  EXPECT_NE(svg.find("rows 16..31, columns 32..47: error 20 of what is allowed"),
            std::string::npos);
  EXPECT_NE(svg.find("rows 32..39, columns 48..49: not written"), std::string::npos);
  EXPECT_NE(svg.find("C of &lt;a &amp; b&gt;"), std::string::npos);
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

// One bad tile among thousands stays visible, wherever it is; wrong outweighs unwritten.
TEST(TileMap, LargeMatricesShowTheWorst) {
  constexpr int64_t kRows = 500, kColumns = 1700;  // tiles
  for (auto [row, column] : {std::pair<int64_t, int64_t>{0, 0}, {499, 1699}, {251, 1000}}) {
    TileMap map(kRows * 16, kColumns * 16);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) map.add(r, c, 0.1, false);
    map.add(row, column, 3, false);
    size_t marks = 0;
    for (const std::string& line : map.text()) {
      EXPECT_EQ(line.size(), 48u);
      marks += occurrences(line, "x");
    }
    EXPECT_EQ(map.text().size(), 16u);
    EXPECT_EQ(marks, 1u);
    EXPECT_EQ(occurrences(map.svg(""), "error 3 of"), 1u);
    map.add(row, column, INFINITY, true);
    EXPECT_EQ(map.text()[static_cast<size_t>(row * 64 / kRows * 16 / 64)].find('?'),
              std::string::npos);
  }
}

TEST(TileMap, NothingComparedIsNoPicture) {
  const TileMap map;
  EXPECT_TRUE(map.text().empty());
  const std::string svg = map.svg("nothing was compared (timeout)");
  EXPECT_EQ(occurrences(svg, "<title>"), 0u);
  EXPECT_NE(svg.find("nothing was compared"), std::string::npos);
}

}  // namespace
}  // namespace ptxbench::bench
