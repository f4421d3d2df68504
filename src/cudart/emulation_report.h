#pragma once
// What a run on the live runtime has to say: findings, refused and missing calls, the error that
// stopped the device, what ran. Written as text on stderr when the process ends, or as JSON into a
// folder that `ptxbench emulate` reads (one file a process).

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/run_result.h"

namespace ptxbench::cudart {

class EmulationReport {
 public:
  std::string device;  // "NVIDIA H200"

  void add(const plan::RunResult& result);
  void unsupported(const std::string& what);  // named once on stderr, and in the report
  void refused(int status, const std::string& why);
  void stopped(int status, const std::string& kind, const std::string& message);

  bool empty() const { return findings_.empty() && unsupported_.empty() && error_.is_null(); }
  nlohmann::json document() const;
  // Into PTXBENCH_EMULATE_REPORT/PID.json; nothing without that variable.
  void save() const;

 private:
  std::vector<plan::Finding> findings_;
  std::vector<std::string> unsupported_;
  std::vector<std::string> refused_;
  nlohmann::json error_;
  std::map<std::string, plan::KernelStats> kernels_;
  uint64_t launches_ = 0;
  double emulator_ms_ = 0;
};

// A document's findings, error and missing functions in lines for people; empty if there is nothing
// to say. `verbose`: refused calls too.
std::string report_text(const nlohmann::json& document, bool verbose);

}  // namespace ptxbench::cudart
