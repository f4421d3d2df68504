#include "toolchain/build_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "base/files.h"
#include "base/hash.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMaxFile = uint64_t{1} << 30;

void remove_quietly(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

}  // namespace

std::optional<CacheEntry> BuildCache::load(const std::string& key) const {
  const fs::path folder = path_of(key);
  const auto text = read_file(folder / "meta.json", 64 << 20);
  if (!text.ok()) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&]() -> std::optional<CacheEntry> {
    remove_quietly(folder);
    return std::nullopt;
  };
  if (!json.is_object() || !json.contains("meta") || !json.contains("files") ||
      !json["files"].is_object())
    return damaged();
  CacheEntry entry{json["meta"], {}};
  for (const auto& [name, hash] : json["files"].items()) {
    auto contents = read_file(folder / name, kMaxFile);
    if (!contents.ok() || !hash.is_string() || hash_hex(*contents) != hash.get<std::string>())
      return damaged();
    entry.files[name] = contents.take();
  }
  return entry;
}

Result<fs::path> BuildCache::store(const std::string& key, const CacheEntry& entry) const {
  static std::atomic<uint64_t> serial{0};
  std::error_code error;
  fs::create_directories(directory_, error);
  const fs::path draft = directory_ / fmt::format(".draft-{}-{}", getpid(), serial++);
  fs::create_directory(draft, error);
  if (error) return Error{"io", fmt::format("{}: {}", draft.string(), error.message())};
  Json hashes = Json::object();
  for (const auto& [name, contents] : entry.files) {
    hashes[name] = hash_hex(contents);
    PB_RETURN_IF_ERROR(write_file_atomically(draft / name, contents));
  }
  const Json json = {{"meta", entry.meta}, {"files", hashes}};
  const std::string text = json.dump(1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  PB_RETURN_IF_ERROR(write_file_atomically(draft / "meta.json", text));
  fs::rename(draft, path_of(key), error);
  // Someone else was first: theirs was made from the same input.
  if (error) remove_quietly(draft);
  if (error && !fs::exists(path_of(key) / "meta.json"))
    return Error{"io", fmt::format("{}: {}", path_of(key).string(), error.message())};
  return path_of(key);
}

}  // namespace ptxbench::toolchain
