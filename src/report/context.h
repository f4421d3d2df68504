#pragma once
// Results seen against something else: tokens spent, release dates, the sizes of a task.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/rates.h"

namespace ptxbench::report {

// Release dates as days since 1970-01-01.
struct ReleaseDates {
  std::map<std::string, int> models;
  std::map<std::string, int> ptx;  // by architecture family: "hopper", "blackwell"
  struct Library {
    std::string name;
    int day = 0;
  };
  std::map<std::string, Library> attention;  // FlashAttention's version for the family
};

// CSV with the columns kind (model, ptx, attention), name, arch, date (YYYY-MM-DD), note. Dates
// that no calendar has are errors ("csv") with their line.
Result<ReleaseDates> parse_release_dates(std::string_view csv, const std::string& name);
void merge(ReleaseDates& into, const ReleaseDates& more);
const ReleaseDates& known_release_dates();  // those that come with the program
std::string date_text(int day);             // YYYY-MM-DD

// Tokens against performance, per model. Reasoning tokens where the turns have them, else output.
Table tokens_table(const Dataset& data);
// Tokens of one turn by the same choice; -1: not known.
int64_t tokens_of(const Turn& turn);

// Rates and best speed-ups at 8 turns with the model's age at its release against the PTX version
// of the architecture and, for attention, its FlashAttention. Models without a date: in `undated`.
Table dates_table(const Dataset& data, const std::vector<Rates>& rates, const ReleaseDates& dates,
                  std::vector<std::string>* undated = nullptr);

// "mha_bwd_d128_causal" belongs to "mha_bwd": parts with digits and "causal" are variants.
std::string family_of(const std::string& definition);
// How far rates and speed-ups hold across the variants and sizes of a family, per model.
Table sizes_table(const Dataset& data, const std::vector<Rates>& rates);

}  // namespace ptxbench::report
