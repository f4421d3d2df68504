#pragma once
// A folder of build results named by what they were made from. An entry is a folder with meta.json
// and files; it appears by one rename, so readers see all of it or nothing, and several processes
// may publish the same entry at once. Contents are checked against their hashes when read.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace ptxbench::toolchain {

struct CacheEntry {
  nlohmann::json meta;                       // an object
  std::map<std::string, std::string> files;  // name → contents
};

class BuildCache {
 public:
  explicit BuildCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Nothing if there is no entry or it is damaged (it is then removed).
  std::optional<CacheEntry> load(const std::string& key) const;
  // Returns the entry's folder. Errors: "io".
  Result<std::filesystem::path> store(const std::string& key, const CacheEntry& entry) const;
  std::filesystem::path path_of(const std::string& key) const { return directory_ / key; }

 private:
  std::filesystem::path directory_;
};

}  // namespace ptxbench::toolchain
