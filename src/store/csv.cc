#include "store/csv.h"

#include <algorithm>

namespace ptxbench::store {

CsvReader::CsvReader(std::string_view text) : text_(text) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
}

// Reads one field; true if another one follows on the same record.
bool CsvReader::read_field(std::string& field) {
  field.clear();
  if (at_ < text_.size() && text_[at_] == '"') {
    for (++at_;;) {
      const size_t quote = text_.find('"', at_);
      if (quote == text_.npos) {
        unterminated_ = true;
        field.append(text_.substr(at_));
        at_ = text_.size();
        return false;
      }
      field.append(text_.substr(at_, quote - at_));
      at_ = quote + 1;
      if (at_ >= text_.size() || text_[at_] != '"') break;
      field += '"';
      ++at_;
    }
    next_line_ += static_cast<size_t>(std::count(field.begin(), field.end(), '\n'));
  }
  const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
  field.append(text_.substr(at_, end - at_));
  at_ = end;
  if (at_ < text_.size() && text_[at_] == ',') return ++at_, true;
  if (!field.empty() && field.back() == '\r') field.pop_back();
  if (at_ < text_.size()) ++at_, ++next_line_;
  return false;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (at_ < text_.size()) {
    line_ = next_line_;
    size_t count = 0;
    bool more = true;
    while (more) {
      if (fields.size() == count) fields.emplace_back();
      more = read_field(fields[count++]);
    }
    fields.resize(count);
    if (count > 1 || !fields[0].empty()) return true;
  }
  return false;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace ptxbench::store
