#pragma once
// A picture of which 16x16 tiles of a matrix are wrong, as text and as SVG. Large matrices are
// drawn coarser: a cell shows the worst of its tiles.

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::bench {

constexpr int64_t kTile = 16;  // side of the tiles whose worst is reported

class TileMap {
 public:
  TileMap() = default;
  TileMap(int64_t rows, int64_t columns);  // of the matrix, in elements

  // `severity`: error of the tile over what is allowed; above 1 is wrong.
  void add(int64_t tile_row, int64_t tile_column, double severity, bool unwritten);

  bool empty() const { return cells_.empty(); }
  // At most 16 lines of at most 48 characters: '.' right, 'x' wrong, '?' wrong for being unwritten.
  std::vector<std::string> text() const;
  // A document of at most 64x128 cells; colour by severity. `title` is shown above.
  std::string svg(const std::string& title) const;

 private:
  struct Cell {
    float severity = 0;
    bool unwritten = false;
    bool wrong() const { return !(severity <= 1); }
  };
  const Cell& cell(int64_t row, int64_t column) const;

  int64_t rows_ = 0, columns_ = 0, tile_rows_ = 0, tile_columns_ = 0;
  int64_t map_rows_ = 0, map_columns_ = 0;
  std::vector<Cell> cells_;
};

}  // namespace ptxbench::bench
