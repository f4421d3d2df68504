#include "report/table.h"

#include <fmt/format.h>

#include <cmath>

#include "store/csv.h"

namespace ptxbench::report {
namespace {

// Columns on a terminal that UTF-8 text takes, near enough: code points, not bytes.
size_t width(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::string exact(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return store::csv_field(*text);
  if (const auto* count = std::get_if<int64_t>(&cell)) return fmt::format("{}", *count);
  if (const auto* value = std::get_if<double>(&cell)) return fmt::format("{}", *value);
  return "";
}

}  // namespace

Cell number(double value) { return std::isnan(value) ? Cell() : Cell(value); }

Cell known(bool is_known, int64_t value) {
  if (is_known) return value;
  return {};
}

std::string to_csv(const Table& table) {
  std::string text;
  const auto line = [&](const auto& items, auto field) {
    for (size_t i = 0; i < items.size(); ++i) text += (i ? "," : "") + field(items[i]);
    text += "\n";
  };
  line(table.columns, [](const Column& column) { return store::csv_field(column.name); });
  for (const auto& row : table.rows) line(row, exact);
  return text;
}

std::string cell_text(const Cell& cell, Column::Kind kind) {
  if (const auto* text = std::get_if<std::string>(&cell)) return text->empty() ? "-" : *text;
  if (const auto* count = std::get_if<int64_t>(&cell)) return fmt::format("{}", *count);
  const auto* value = std::get_if<double>(&cell);
  if (!value) return "-";
  if (kind == Column::Kind::ratio) return fmt::format("{:.1f} %", 100 * *value);
  return fmt::format("{:.4g}", *value);
}

std::string to_text(const Table& table, size_t limit) {
  const size_t columns = table.columns.size(), rows = std::min(limit, table.rows.size());
  std::vector<size_t> widths(columns);
  for (size_t c = 0; c < columns; ++c) widths[c] = width(table.columns[c].header);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      widths[c] = std::max(widths[c], width(cell_text(table.rows[r][c], table.columns[c].kind)));
  std::string text = table.title + "\n";
  const auto line = [&](auto field) {
    std::string row = " ";
    for (size_t c = 0; c < columns; ++c) {
      const std::string cell = field(c), gap(widths[c] - width(cell), ' ');
      const bool left = table.columns[c].kind == Column::Kind::text;
      row += " " + (left ? cell + gap : gap + cell);
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  };
  line([&](size_t c) { return table.columns[c].header; });
  for (size_t r = 0; r < rows; ++r)
    line([&](size_t c) { return cell_text(table.rows[r][c], table.columns[c].kind); });
  if (rows < table.rows.size())
    text +=
        fmt::format("  ... and {} more rows (--csv DIR writes all)\n", table.rows.size() - rows);
  if (table.rows.empty()) text += "  nothing\n";
  return text;
}

nlohmann::json to_json(const Table& table) {
  static constexpr const char* kKinds[] = {"text", "count", "ratio", "number"};
  nlohmann::json columns = nlohmann::json::array(), rows = nlohmann::json::array();
  for (const Column& column : table.columns)
    columns.push_back({{"name", column.name},
                       {"header", column.header},
                       {"kind", kKinds[static_cast<int>(column.kind)]}});
  for (const auto& row : table.rows) {
    nlohmann::json cells = nlohmann::json::array();
    for (const Cell& cell : row) {
      if (const auto* text = std::get_if<std::string>(&cell))
        cells.push_back(*text);
      else if (const auto* count = std::get_if<int64_t>(&cell))
        cells.push_back(*count);
      else if (const auto* value = std::get_if<double>(&cell))
        cells.push_back(*value);
      else
        cells.push_back(nullptr);
    }
    rows.push_back(std::move(cells));
  }
  return {{"name", table.name},
          {"title", table.title},
          {"note", table.note},
          {"columns", columns},
          {"rows", rows}};
}

}  // namespace ptxbench::report
