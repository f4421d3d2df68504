#pragma once
// Reader of tests/data/hw: inputs and outputs of PTX instructions recorded on an H200 (README.md
// there).
//
//   const hw::Group& g = hw::group("cvt");
//   for (const auto& c : g.cases()) {
//     hw::Array out = g.array(c["out"]);                   // {"at","type","shape"} -> view of the
//     bytes auto in = g.input(c["inputs"][0]).as<uint32_t>();    // element-wise groups share named
//     inputs
//   }
// A broken data set is a test failure, not something to skip: every function throws
// std::runtime_error, which GoogleTest reports.

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptxbench::hw {

using Json = nlohmann::json;

struct Array {
  std::string type;           // "u8", "u16", "u32", "u64": bit patterns, little endian
  std::vector<size_t> shape;  // outermost first
  std::span<const uint8_t> bytes;

  size_t element_bytes() const { return std::stoul(type.substr(1)) / 8; }
  size_t size() const { return bytes.size() / element_bytes(); }
  // Arrays start at 16-byte boundaries, so the view is aligned.
  template <class T>
  std::span<const T> as() const {
    if (sizeof(T) != element_bytes())
      throw std::runtime_error("hardware vector read as a wrong type");
    return {reinterpret_cast<const T*>(bytes.data()), size()};
  }
  uint64_t at(size_t i) const {  // element of any width
    uint64_t v = 0;
    std::memcpy(&v, bytes.data() + i * element_bytes(), element_bytes());
    return v;
  }
};

namespace detail {
inline std::string folder() { return std::string(PTXBENCH_SOURCE_DIR) + "/tests/data/hw/"; }

inline std::vector<uint8_t> read_file(const std::string& name) {
  std::ifstream in(folder() + name, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open tests/data/hw/" + name);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Appends the content of one zstd file of known raw size.
inline void append(std::vector<uint8_t>& out, const Json& part) {
  std::vector<uint8_t> packed = read_file(part.at("file").get<std::string>());
  size_t bytes = part.at("bytes").get<size_t>(), start = out.size();
  out.resize(start + bytes);
  size_t got = ZSTD_decompress(out.data() + start, bytes, packed.data(), packed.size());
  if (got != bytes)
    throw std::runtime_error("damaged tests/data/hw file " + part.at("file").dump());
}
}  // namespace detail

class Group {
 public:
  explicit Group(const Json& entry) : inputs_(entry.value("inputs", Json::object())) {
    for (const Json& part : entry.at("parts")) detail::append(blob_, part);
    std::vector<uint8_t> lines;
    detail::append(lines, entry.at("list"));
    for (auto it = lines.begin(); it != lines.end();) {
      auto end = std::find(it, lines.end(), '\n');
      cases_.push_back(Json::parse(it, end));
      it = end == lines.end() ? end : end + 1;
    }
    if (cases_.size() != entry.at("cases").get<size_t>() || cases_.empty())
      throw std::runtime_error("hardware vectors: the manifest promises another number of cases");
  }

  const std::vector<Json>& cases() const { return cases_; }
  std::vector<Json> cases(const std::string& kind) const {
    std::vector<Json> out;
    for (const Json& c : cases_)
      if (c.value("kind", "") == kind) out.push_back(c);
    return out;
  }
  Array array(const Json& reference) const {
    Array a;
    a.type = reference.at("type").get<std::string>();
    a.shape = reference.at("shape").get<std::vector<size_t>>();
    size_t bytes = a.element_bytes(), at = reference.at("at").get<size_t>();
    for (size_t n : a.shape) bytes *= n;
    if (at + bytes > blob_.size()) throw std::runtime_error("hardware vector outside its blob");
    a.bytes = {blob_.data() + at, bytes};
    return a;
  }
  Array input(const std::string& name) const { return array(inputs_.at(name)); }

 private:
  Json inputs_;
  std::vector<uint8_t> blob_;
  std::vector<Json> cases_;
};

// The groups named in manifest.json; loaded at first use and kept.
inline const Group& group(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Group>> loaded;
  static const Json manifest = [] {
    std::vector<uint8_t> text = detail::read_file("manifest.json");
    return Json::parse(text.begin(), text.end());
  }();
  std::lock_guard lock(mutex);
  auto& slot = loaded[name];
  if (!slot) slot = std::make_unique<Group>(manifest.at("groups").at(name));
  return *slot;
}

}  // namespace ptxbench::hw
