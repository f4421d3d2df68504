#pragma once
// A recording file, read with distrust: a process that ran a candidate's code wrote it.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cudart/wire.h"
#include "plan/launch_plan.h"

namespace ptxbench::cudart {

struct RecordedBuffer {
  wire::BufferKind kind{};
  uint32_t argument = 0;
  std::string name;
  uint64_t address = 0, bytes = 0;
};

struct HostBuffer {
  uint64_t address = 0, bytes = 0;
};

struct RecordedLaunch {
  plan::Launch launch;  // params.bytes as recorded, no patches
};
struct RecordedMemset {
  uint64_t dst = 0, bytes = 0;
  uint32_t value = 0, element_size = 1;
};
struct RecordedUpload {
  uint64_t dst = 0;
  std::vector<uint8_t> bytes;
};
struct RecordedCopy {
  uint64_t dst = 0, src = 0, bytes = 0;
};
struct RecordedFree {
  uint64_t address = 0;
};
using RecordedStep =
    std::variant<RecordedLaunch, RecordedMemset, RecordedUpload, RecordedCopy, RecordedFree>;

struct RecordedMap {
  plan::TensorMapArgs args;
  uint8_t token[wire::kTokenBytes] = {};
};

// Something host code did that makes the recording unusable.
struct Complaint {
  std::string reason;  // RecordOutcome::reason
  std::string message;
};

struct Recording {
  std::vector<RecordedBuffer> buffers;
  std::vector<HostBuffer> pinned;  // page-locked host memory
  std::vector<RecordedStep> steps;
  std::vector<RecordedMap> maps;
  std::vector<Complaint> complaints;  // in order
  uint64_t touched = 0;               // device address that host code dereferenced; 0 = none
  bool finished = false;
  wire::Finish finish{};
  std::string error_kind, error_message;
};

// kind "bad-recording": not a recording, or tampered with. A file cut short at any record is fine
// (`finished` is false then).
Result<Recording> parse_recording(const std::string& bytes);

}  // namespace ptxbench::cudart
