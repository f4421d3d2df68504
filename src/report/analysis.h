#pragma once
// Everything that a report says, computed once from the turns.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/compare.h"
#include "report/context.h"
#include "report/dataset.h"
#include "report/progress.h"
#include "report/rates.h"

namespace ptxbench::report {

struct AnalysisOptions {
  // Two runs or models to set side by side, beside all pairs of models.
  std::optional<std::pair<std::string, std::string>> compare;
  ReleaseDates dates = known_release_dates();
};

struct Analysis {
  std::vector<Rates> rates;
  std::vector<GroupProgress> progress;
  std::vector<ModelSummary> models;
  std::vector<Comparison> comparisons;
  // In the order in which people read them: models, rates, statistics, levels, transitions,
  // repairs, tokens, sizes, dates, comparisons, problems.
  std::vector<Table> tables;
  const Table& table(std::string_view name) const;
};

Result<Analysis> analyse(const Dataset& data, const AnalysisOptions& options);

// One row per turn, with every column that importing it again needs.
Table turns_table(const Dataset& data);

}  // namespace ptxbench::report
