#include "bench/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "numeric/dtype.h"

namespace ptxbench::bench {
namespace {

constexpr uint64_t kMaxHeader = uint64_t{100} << 20;  // the format's own limit
constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

struct Name {
  const char *ours, *theirs;
};
constexpr Name kNames[] = {
    {"float64", "F64"},
    {"float32", "F32"},
    {"float16", "F16"},
    {"bfloat16", "BF16"},
    {"float8_e4m3fn", "F8_E4M3"},
    {"float8_e5m2", "F8_E5M2"},
    {"int64", "I64"},
    {"int32", "I32"},
    {"int16", "I16"},
    {"int8", "I8"},
    {"uint64", "U64"},
    {"uint32", "U32"},
    {"uint16", "U16"},
    {"uint8", "U8"},
    {"bool", "BOOL"},
};

Error bad(const std::filesystem::path& path, const std::string& message) {
  return Error{"bad-safetensors", fmt::format("{}: {}", path.string(), message)};
}

// "version ...\noid sha256:...\nsize 123\n".
Error lfs_pointer(const std::filesystem::path& path, const std::string& text) {
  const auto field = [&](const std::string& name) {
    const size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) return std::string("unknown");
    const size_t begin = at + name.size() + 2;
    return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
  };
  return Error{
      "lfs-pointer",
      fmt::format("{} is a Git LFS pointer, not the data ({}, {} bytes): fetch it with `git "
                  "lfs pull` in the dataset",
                  path.string(), field("oid"), field("size"))};
}

struct Entry {
  SafeTensor tensor;
  uint64_t begin = 0, end = 0;
};

Result<uint64_t> expected_bytes(const JsonRef& ref, const SafeTensor& tensor) {
  const auto type = numeric::dtype_from_name(tensor.dtype);
  if (!type) return ref.error("dtype has no size here");
  uint64_t bytes = numeric::dtype_size(*type);
  for (int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && bytes > (uint64_t{1} << 50) / static_cast<uint64_t>(extent)))
      return ref.error("impossible shape");
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

Result<Entry> read_entry(const JsonRef& ref) {
  Entry entry;
  PB_ASSIGN_OR_RETURN(const JsonRef dtype_ref, ref.at("dtype"));
  PB_ASSIGN_OR_RETURN(const std::string dtype, dtype_ref.string());
  const auto name = std::find_if(std::begin(kNames), std::end(kNames),
                                 [&](const Name& n) { return dtype == n.theirs; });
  if (name == std::end(kNames))
    return dtype_ref.error(fmt::format("unknown dtype \"{}\"", dtype.substr(0, 40)));
  entry.tensor.dtype = name->ours;
  PB_ASSIGN_OR_RETURN(const JsonRef shape, ref.at("shape"));
  PB_ASSIGN_OR_RETURN(const auto extents, shape.elements());
  for (const JsonRef& extent : extents) {
    PB_ASSIGN_OR_RETURN(const int64_t value, extent.integer());
    entry.tensor.shape.push_back(value);
  }
  PB_ASSIGN_OR_RETURN(const JsonRef offsets, ref.at("data_offsets"));
  PB_ASSIGN_OR_RETURN(const auto ends, offsets.elements());
  if (ends.size() != 2) return offsets.error("expected two offsets");
  PB_ASSIGN_OR_RETURN(const int64_t begin, ends[0].integer());
  PB_ASSIGN_OR_RETURN(const int64_t end, ends[1].integer());
  PB_ASSIGN_OR_RETURN(const uint64_t bytes, expected_bytes(ref, entry.tensor));
  if (begin < 0 || end < begin || static_cast<uint64_t>(end - begin) != bytes)
    return offsets.error(fmt::format("do not enclose the tensor's {} bytes", bytes));
  entry.begin = static_cast<uint64_t>(begin);
  entry.end = static_cast<uint64_t>(end);
  return entry;
}

}  // namespace

Result<SafeTensor> read_safetensor(const std::filesystem::path& path, const std::string& key) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return Error{"not-found", fmt::format("no file {}", path.string())};
  const uint64_t size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  std::string start(std::min<uint64_t>(size, 1024), '\0');
  if (error || !in.read(start.data(), static_cast<std::streamsize>(start.size())))
    return bad(path, "cannot be read");
  if (start.compare(0, kLfsPointer.size(), kLfsPointer) == 0) return lfs_pointer(path, start);
  uint64_t header_bytes = 0;
  if (size < 8) return bad(path, fmt::format("{} bytes are no safetensors file", size));
  std::memcpy(&header_bytes, start.data(), 8);
  if (header_bytes > std::min(kMaxHeader, size - 8))
    return bad(path,
               fmt::format("states a header of {} bytes in a file of {}", header_bytes, size));
  std::string header(header_bytes, '\0');
  in.seekg(8);
  if (!in.read(header.data(), static_cast<std::streamsize>(header_bytes)))
    return bad(path, "the header cannot be read");
  const auto document = parse_json(header, path.string());
  if (!document.ok()) return bad(path, document.error().message);
  const JsonRef root(*document, path.string());
  if (!root.has(key) || key == "__metadata__") {
    std::string names;
    const auto members = root.members();
    if (members.ok())
      for (const auto& [name, ref] : *members)
        if (name != "__metadata__" && names.size() < 200)
          names += (names.empty() ? "" : ", ") + name;
    return bad(path, fmt::format("has no tensor \"{}\" (it has: {})", key, names));
  }
  PB_ASSIGN_OR_RETURN(const JsonRef ref, root.at(key));
  auto entry = read_entry(ref);
  if (!entry.ok()) return Error{"bad-safetensors", entry.error().message};
  if (entry->end > size - 8 - header_bytes)
    return bad(path, fmt::format("tensor \"{}\" ends behind the end of the file", key));
  SafeTensor tensor = std::move(entry->tensor);
  tensor.bytes.resize(entry->end - entry->begin);
  in.seekg(static_cast<std::streamoff>(8 + header_bytes + entry->begin));
  if (!in.read(reinterpret_cast<char*>(tensor.bytes.data()),
               static_cast<std::streamsize>(tensor.bytes.size())))
    return bad(path, fmt::format("tensor \"{}\" cannot be read", key));
  return tensor;
}

Result<void> write_safetensors(const std::filesystem::path& path,
                               const std::map<std::string, SafeTensor>& tensors) {
  Json header = Json::object();
  uint64_t at = 0;
  for (const auto& [key, tensor] : tensors) {
    const auto name = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const Name& n) { return tensor.dtype == n.ours; });
    if (name == std::end(kNames))
      return Error{"unsupported", fmt::format("safetensors has no dtype {}", tensor.dtype)};
    header[key] = {{"dtype", name->theirs},
                   {"shape", tensor.shape},
                   {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = dump_json(header, -1);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
  std::string bytes(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, 8);
  bytes += text;
  for (const auto& [key, tensor] : tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return write_file_atomically(path, bytes);
}

}  // namespace ptxbench::bench
