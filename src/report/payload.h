#pragma once
// The page's data as JSON text: turns in columns of small numbers, so that 100,000 of them are a
// few megabytes; counts per group, which the page adds up under its filters; finished tables.

#include <string>

#include "base/result.h"
#include "report/html.h"

namespace ptxbench::report {

// JSON in which no '<' occurs, so that it can stand in a script element.
Result<std::string> payload(const store::Store& store, const Dataset& data,
                            const Analysis& analysis, const HtmlOptions& options);

std::string base64(std::string_view bytes);

}  // namespace ptxbench::report
