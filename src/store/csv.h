#pragma once
// Comma-separated values (RFC 4180): quoted fields with doubled quotes, line ends LF or CRLF, an
// optional byte order mark.

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::store {

class CsvReader {
 public:
  // The text must outlive the reader.
  explicit CsvReader(std::string_view text);

  // The next record that is not an empty line; false at the end. Fields are overwritten in place.
  bool next(std::vector<std::string>& fields);
  size_t line() const { return line_; }                // where the last record began, from 1
  bool unterminated() const { return unterminated_; }  // the last record's quote never closed

 private:
  bool read_field(std::string& field);

  std::string_view text_;
  size_t at_ = 0, line_ = 0, next_line_ = 1;
  bool unterminated_ = false;
};

// Quotes a field where it has to be.
std::string csv_field(std::string_view text);

}  // namespace ptxbench::store
