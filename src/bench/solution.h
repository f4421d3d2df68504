#pragma once
// FlashInfer Trace: a `solution` document as a candidate.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "bench/extract.h"

namespace ptxbench::bench {

// {name, definition, spec{language, entry_point "FILE::FUNCTION", destination_passing_style,
// binding}, sources[{path, content}]}. The language must be cuda, bound through TVM-FFI in
// destination-passing style: "unsupported" otherwise. Anything malformed is "usage". The entry
// point's file is what gets compiled; the others are there for #include.
Result<Extraction> extract_solution(const Json& document, const std::string& file);

}  // namespace ptxbench::bench
