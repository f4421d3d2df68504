#pragma once
// A result as a table: one definition for the terminal, for CSV and for HTML.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

namespace ptxbench::report {

// monostate: not defined or not known; an empty field in CSV, "-" for people.
using Cell = std::variant<std::monostate, std::string, int64_t, double>;

Cell number(double value);                 // NaN becomes monostate
Cell known(bool is_known, int64_t value);  // monostate if it is not

struct Column {
  enum class Kind { text, count, ratio, number };  // ratio: a share, shown in per cent
  std::string name;                                // in CSV and JSON
  std::string header;                              // for people
  Kind kind = Kind::text;
};

struct Table {
  std::string name;   // the CSV file's name without ending
  std::string title;  // for people
  std::string note;   // how it is defined, in a sentence or two
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

// Numbers with all their digits (shortest that reads back).
std::string to_csv(const Table& table);

// For people, columns aligned; at most `limit` rows and then a line that says how many follow.
std::string to_text(const Table& table, size_t limit = SIZE_MAX);
std::string cell_text(const Cell& cell, Column::Kind kind);

nlohmann::json to_json(const Table& table);

}  // namespace ptxbench::report
