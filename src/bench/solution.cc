#include "bench/solution.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"

namespace ptxbench::bench {
namespace {

namespace fs = std::filesystem;

Error usage(const Error& error) { return Error{"usage", error.to_string()}; }

struct Spec {
  std::string file, function;
};

Result<Spec> parse_spec(const JsonRef& spec) {
  const auto unsupported = [&](const std::string& what) {
    return Error{"unsupported", fmt::format("{}: {}", spec.path(), what)};
  };
  PB_ASSIGN_OR_RETURN(const JsonRef language_ref, spec.at("language"));
  PB_ASSIGN_OR_RETURN(const std::string language, language_ref.string());
  if (language != "cuda")
    return unsupported(fmt::format("language \"{}\" (only cuda)", language.substr(0, 40)));
  PB_ASSIGN_OR_RETURN(const bool destinations, spec.boolean_or("destination_passing_style", true));
  if (!destinations) return unsupported("a function that returns its outputs");
  PB_ASSIGN_OR_RETURN(const std::string binding, spec.string_or("binding", "tvm-ffi"));
  if (binding != "tvm-ffi")
    return unsupported(fmt::format("binding \"{}\" (only tvm-ffi)", binding.substr(0, 40)));
  PB_ASSIGN_OR_RETURN(const JsonRef entry_ref, spec.at("entry_point"));
  PB_ASSIGN_OR_RETURN(const std::string entry, entry_ref.string());
  const size_t colons = entry.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == entry.size())
    return entry_ref.error("expected FILE::FUNCTION");
  Spec out{entry.substr(0, colons), entry.substr(colons + 2)};
  if (out.function.size() > 200 ||
      !std::all_of(out.function.begin(), out.function.end(),
                   [](unsigned char c) { return std::isalnum(c) || c == '_'; }))
    return entry_ref.error("the function's name is no identifier");
  return out;
}

Result<Extraction> parse(const JsonRef& root) {
  Extraction extraction;
  Candidate& candidate = extraction.candidate;
  PB_ASSIGN_OR_RETURN(const JsonRef name, root.at("name"));
  PB_ASSIGN_OR_RETURN(candidate.name, name.string());
  PB_ASSIGN_OR_RETURN(const JsonRef definition, root.at("definition"));
  PB_ASSIGN_OR_RETURN(candidate.definition, definition.string());
  PB_ASSIGN_OR_RETURN(const JsonRef spec_ref, root.at("spec"));
  PB_ASSIGN_OR_RETURN(const Spec spec, parse_spec(spec_ref));
  candidate.entry_point = spec.function;
  PB_ASSIGN_OR_RETURN(const JsonRef sources, root.at("sources"));
  PB_ASSIGN_OR_RETURN(const auto files, sources.elements());
  std::set<std::string> seen;
  Hasher hasher;
  const fs::path folder = fs::path(spec.file).parent_path();
  bool found = false;
  for (const JsonRef& source : files) {
    PB_ASSIGN_OR_RETURN(const JsonRef path_ref, source.at("path"));
    PB_ASSIGN_OR_RETURN(const std::string path, path_ref.string());
    PB_ASSIGN_OR_RETURN(const JsonRef content_ref, source.at("content"));
    PB_ASSIGN_OR_RETURN(std::string content, content_ref.string());
    if (!seen.insert(path).second) return path_ref.error("appears twice");
    hasher.add(path).add(content);
    if (path == spec.file) {
      found = true;
      candidate.source = std::move(content);
      continue;
    }
    // Compiled from the entry file's folder, #include "..." finds its neighbours as it would there.
    const fs::path relative =
        folder.empty() ? fs::path(path) : fs::path(path).lexically_relative(folder);
    candidate.extra_files.emplace_back(relative.string(), std::move(content));
  }
  if (!found) return sources.error(fmt::format("no file \"{}\"", spec.file.substr(0, 80)));
  if (candidate.source.find_first_not_of(" \t\r\n") == std::string::npos)
    return sources.error("the entry point's file is empty");
  candidate.hash = hasher.add(spec.file).add(spec.function).hex();
  candidate.file_name = fs::path(spec.file).stem().string() + ".cu";
  extraction.ok = true;
  return extraction;
}

}  // namespace

Result<Extraction> extract_solution(const Json& document, const std::string& file) {
  if (!document.is_object() || !document.contains("sources"))
    return Error{"usage", file + ": neither a launch manifest nor a FlashInfer-Trace solution"};
  auto extraction = parse(JsonRef(document, file));
  if (!extraction.ok() && extraction.error().kind != "unsupported")
    return usage(extraction.error());
  return extraction;
}

}  // namespace ptxbench::bench
