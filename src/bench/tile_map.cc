#include "bench/tile_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ptxbench::bench {
namespace {

constexpr int64_t kMaxRows = 64, kMaxColumns = 128;
constexpr int64_t kTextRows = 16, kTextColumns = 48;
constexpr int kCell = 10, kMargin = 48, kHeader = 64;  // pixels

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  }
  return result;
}

// Green within the bound; from yellow (just above) to dark red (a thousand times and more); grey
// for what was never written.
std::string colour(double severity, bool unwritten) {
  if (severity <= 1)
    return fmt::format("hsl(130,45%,{}%)", static_cast<int>(90 - 25 * std::max(severity, 0.0)));
  if (unwritten) return "#9a9a9a";
  const double decades = std::isfinite(severity) ? std::min(std::log10(severity), 3.0) : 3.0;
  return fmt::format("hsl({},85%,{}%)", static_cast<int>(50 - 50 * decades / 3),
                     static_cast<int>(58 - 24 * decades / 3));
}

// The range of elements that cell `index` of `cells` covers.
std::pair<int64_t, int64_t> extent(int64_t index, int64_t cells, int64_t tiles, int64_t elements) {
  // The smallest tile t with t * cells / tiles == index.
  auto first_tile = [&](int64_t i) { return (i * tiles + cells - 1) / cells; };
  return {first_tile(index) * kTile, std::min(elements, first_tile(index + 1) * kTile) - 1};
}

}  // namespace

TileMap::TileMap(int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      tile_rows_((rows + kTile - 1) / kTile),
      tile_columns_((columns + kTile - 1) / kTile),
      map_rows_(std::min(tile_rows_, kMaxRows)),
      map_columns_(std::min(tile_columns_, kMaxColumns)),
      cells_(static_cast<size_t>(map_rows_ * map_columns_)) {}

const TileMap::Cell& TileMap::cell(int64_t row, int64_t column) const {
  return cells_[static_cast<size_t>(row * map_columns_ + column)];
}

void TileMap::add(int64_t tile_row, int64_t tile_column, double severity, bool unwritten) {
  const int64_t row = tile_row * map_rows_ / tile_rows_;
  const int64_t column = tile_column * map_columns_ / tile_columns_;
  Cell& cell = cells_[static_cast<size_t>(row * map_columns_ + column)];
  // Wrong values say more than missing ones: a cell is unwritten only if all its bad tiles are.
  const bool wrong = !(severity <= 1);
  if (wrong) cell.unwritten = cell.wrong() ? cell.unwritten && unwritten : unwritten;
  if (!(severity <= static_cast<double>(cell.severity)))
    cell.severity = static_cast<float>(severity);
}

std::vector<std::string> TileMap::text() const {
  const int64_t rows = std::min(map_rows_, kTextRows),
                columns = std::min(map_columns_, kTextColumns);
  std::vector<std::string> lines(static_cast<size_t>(rows),
                                 std::string(static_cast<size_t>(columns), '.'));
  for (int64_t r = 0; r < map_rows_; ++r)
    for (int64_t c = 0; c < map_columns_; ++c) {
      if (!cell(r, c).wrong()) continue;
      char& mark = lines[static_cast<size_t>(r * rows / map_rows_)]
                        [static_cast<size_t>(c * columns / map_columns_)];
      if (mark != 'x') mark = cell(r, c).unwritten ? '?' : 'x';
    }
  return lines;
}

std::string TileMap::svg(const std::string& title) const {
  const int64_t width = std::max<int64_t>(map_columns_ * kCell + 2 * kMargin, 560);
  const int64_t height = map_rows_ * kCell + kHeader + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"20\" font-size=\"13\">{3}</text>\n",
      width, height, kMargin, escaped(title));
  if (empty()) return svg + "</svg>\n";
  svg += fmt::format(
      "<text x=\"{}\" y=\"38\">{} x {} elements; a cell is {} x {} tiles of 16 x 16 or less. "
      "Green: "
      "within the bound; yellow to red: above it; grey: not written</text>\n",
      kMargin, rows_, columns_, (tile_rows_ + map_rows_ - 1) / map_rows_,
      (tile_columns_ + map_columns_ - 1) / map_columns_);
  svg += fmt::format("<text x=\"{}\" y=\"{}\">0</text>\n", kMargin, kHeader - 6);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">column {}</text>\n",
                     kMargin + map_columns_ * kCell, kHeader - 6, columns_ - 1);
  svg += fmt::format("<text x=\"4\" y=\"{}\">row {}</text>\n", kHeader + map_rows_ * kCell + 12,
                     rows_ - 1);
  for (int64_t r = 0; r < map_rows_; ++r)
    for (int64_t c = 0; c < map_columns_; ++c) {
      const Cell& at = cell(r, c);
      const auto [top, bottom] = extent(r, map_rows_, tile_rows_, rows_);
      const auto [left, right] = extent(c, map_columns_, tile_columns_, columns_);
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>rows {}..{}, "
          "columns {}..{}: {}</title></rect>\n",
          kMargin + c * kCell, kHeader + r * kCell, kCell - 1, kCell - 1,
          colour(static_cast<double>(at.severity), at.unwritten), top, bottom, left, right,
          at.unwritten ? "not written"
                       : fmt::format("error {:.3g} of what is allowed", at.severity));
    }
  return svg + "</svg>\n";
}

}  // namespace ptxbench::bench
