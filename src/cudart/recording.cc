#include "cudart/recording.h"

#include <fmt/format.h>

#include <cstring>

#include "cudart/cuda_error.h"

namespace ptxbench::cudart {
namespace {

constexpr size_t kMaxSteps = 1 << 20, kMaxBuffers = 1 << 20, kMaxMaps = 1 << 20;

plan::Dim3 read_dim(wire::Reader& in) {
  plan::Dim3 d;
  d.x = in.get<uint32_t>();
  d.y = in.get<uint32_t>();
  d.z = in.get<uint32_t>();
  return d;
}

std::vector<uint8_t> to_bytes(std::string_view view) { return {view.begin(), view.end()}; }

RecordedLaunch read_launch(wire::Reader& in) {
  RecordedLaunch r;
  r.launch.kernel = in.get_string();
  r.launch.grid = read_dim(in);
  r.launch.block = read_dim(in);
  r.launch.cluster = read_dim(in);
  r.launch.explicit_cluster = in.get<uint8_t>() != 0;
  r.launch.cooperative = in.get<uint8_t>() != 0;
  r.launch.programmatic_stream_serialization = in.get<uint8_t>() != 0;
  r.launch.dynamic_shared_bytes = in.get<uint32_t>();
  r.launch.max_dynamic_shared_bytes = in.get<uint32_t>();
  r.launch.stream = in.get<uint32_t>();
  r.launch.params.bytes = to_bytes(in.get_bytes());
  return r;
}

bool read_map(wire::Reader& in, std::string_view payload, Recording& out) {
  RecordedMap map;
  const uint32_t serial = in.get<uint32_t>();
  plan::TensorMapArgs& a = map.args;
  a.type = static_cast<plan::MapType>(in.get<uint8_t>());
  a.rank = in.get<uint32_t>();
  a.global_address = in.get<uint64_t>();
  for (uint64_t& v : a.dims) v = in.get<uint64_t>();
  for (uint64_t& v : a.strides) v = in.get<uint64_t>();
  for (uint32_t& v : a.box) v = in.get<uint32_t>();
  for (uint32_t& v : a.element_strides) v = in.get<uint32_t>();
  a.interleave = static_cast<plan::MapInterleave>(in.get<uint8_t>());
  a.swizzle = static_cast<plan::MapSwizzle>(in.get<uint8_t>());
  a.l2_promotion = in.get<uint8_t>();
  a.nan_fill = in.get<uint8_t>() != 0;
  a.im2col = in.get<uint8_t>() != 0;
  a.pixels = in.get<uint32_t>();
  for (int32_t& v : a.lower) v = in.get<int32_t>();
  for (int32_t& v : a.upper) v = in.get<int32_t>();
  if (!in.ok() || serial != out.maps.size() || out.maps.size() >= kMaxMaps || a.rank < 1 ||
      a.rank > 5 || a.type > plan::MapType::tf32_ftz || a.interleave > plan::MapInterleave::b32 ||
      a.swizzle > plan::MapSwizzle::b128 || !plan::check(a).ok())
    return false;
  const auto* raw = reinterpret_cast<const uint8_t*>(payload.data());
  wire::make_token(serial, wire::token_hash(raw, payload.size()), map.token);
  out.maps.push_back(map);
  return true;
}

bool read_buffer(wire::Reader& in, Recording& out) {
  RecordedBuffer b;
  b.kind = static_cast<wire::BufferKind>(in.get<uint8_t>());
  b.argument = in.get<uint32_t>();
  b.name = in.get_string();
  b.address = in.get<uint64_t>();
  b.bytes = in.get<uint64_t>();
  // Addresses ascend with room between, as the allocator hands them out.
  const bool ascending =
      out.buffers.empty() || b.address > out.buffers.back().address + out.buffers.back().bytes;
  if (!in.ok() || b.kind > wire::BufferKind::symbol || b.bytes > uint64_t{1} << 40 || !ascending ||
      b.address > uint64_t{1} << 47 || out.buffers.size() >= kMaxBuffers)
    return false;
  out.buffers.push_back(std::move(b));
  return true;
}

// One record; false if it is malformed.
bool read_record(wire::Kind kind, std::string_view payload, Recording& out) {
  wire::Reader in(reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
  if (out.steps.size() >= kMaxSteps || out.complaints.size() >= kMaxSteps) return false;
  switch (kind) {
    case wire::Kind::hello:
      return false;  // only at the start
    case wire::Kind::buffer:
      return read_buffer(in, out);
    case wire::Kind::launch:
      out.steps.emplace_back(read_launch(in));
      break;
    case wire::Kind::memset: {
      RecordedMemset m;
      m.dst = in.get<uint64_t>();
      m.value = in.get<uint32_t>();
      m.element_size = in.get<uint32_t>();
      m.bytes = in.get<uint64_t>();
      out.steps.emplace_back(m);
      break;
    }
    case wire::Kind::upload: {
      RecordedUpload u;
      u.dst = in.get<uint64_t>();
      u.bytes = to_bytes(in.get_bytes());
      out.steps.emplace_back(std::move(u));
      break;
    }
    case wire::Kind::copy: {
      RecordedCopy c;
      c.dst = in.get<uint64_t>();
      c.src = in.get<uint64_t>();
      c.bytes = in.get<uint64_t>();
      out.steps.emplace_back(c);
      break;
    }
    case wire::Kind::tensor_map:
      return read_map(in, payload, out);
    case wire::Kind::unsupported:
      out.complaints.push_back(
          {"unsupported-runtime-call",
           "host code calls " + in.get_string() + ", which recording does not support"});
      break;
    case wire::Kind::readback:
      out.complaints.push_back({"result-readback", in.get_string()});
      break;
    case wire::Kind::refused: {
      const uint32_t error = in.get<uint32_t>();
      out.complaints.push_back(
          {"launch-refused", fmt::format("{}: {}", cuda_error_name(error), in.get_string())});
      break;
    }
    case wire::Kind::host_buffer: {
      HostBuffer h;
      h.address = in.get<uint64_t>();
      h.bytes = in.get<uint64_t>();
      if (out.pinned.size() >= kMaxBuffers) return false;
      out.pinned.push_back(h);
      break;
    }
    case wire::Kind::release:
      out.steps.emplace_back(RecordedFree{in.get<uint64_t>()});
      break;
    case wire::Kind::host_touched:
      out.touched = in.get<uint64_t>();
      break;
    case wire::Kind::finished:
      out.finished = true;
      out.finish = in.get<wire::Finish>();
      out.error_kind = in.get_string();
      out.error_message = in.get_string();
      if (out.finish > wire::Finish::no_entry) return false;
      break;
    default:
      return false;
  }
  return in.ok() && in.at_end();
}

}  // namespace

Result<Recording> parse_recording(const std::string& bytes) {
  wire::Reader in(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  Recording out;
  bool first = true;
  while (!in.at_end()) {
    const auto kind = in.get<wire::Kind>();
    const std::string_view payload = in.get_bytes();
    if (!in.ok()) break;  // cut short while writing
    if (first) {
      wire::Reader hello(reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
      if (kind != wire::Kind::hello || hello.get<uint32_t>() != wire::kRecordingMagic ||
          hello.get<uint32_t>() != wire::kVersion)
        return Error{"bad-recording", "the host process wrote something that is no recording"};
      first = false;
    } else if (out.finished || !read_record(kind, payload, out)) {
      return Error{"bad-recording",
                   fmt::format("the recording is malformed at a record of kind {}", int(kind))};
    }
  }
  return out;
}

}  // namespace ptxbench::cudart
