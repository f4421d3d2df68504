#pragma once
// What host code is told about the target device. Sources: NVIDIA's architecture white papers and
// data sheets, CUDA programming guide table "Technical specifications per compute capability", and
// deviceQuery outputs of the parts.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace ptxbench::cudart {

struct DeviceProfile {
  const char* key;
  const char* name;
  int major, minor;
  int sms;
  uint64_t memory_bytes;
  int l2_bytes, persisting_l2_bytes;
  int clock_khz, memory_clock_khz, memory_bus_bits;
  // SMs per GPC as (count, SMs) pairs, largest first: bounds how many clusters are co-resident. The
  // split varies from die to die; this is the common one.
  int gpcs[2][2];

  // The same on every sm_90 and sm_100 part.
  static constexpr int kWarp = 32;
  static constexpr int kMaxThreadsPerBlock = 1024;
  static constexpr int kMaxThreadsPerSm = 2048;
  static constexpr int kMaxBlocksPerSm = 32;
  static constexpr int kRegistersPerSm = 65536;
  static constexpr int kSharedPerSm = 233472;          // 228 KiB
  static constexpr int kSharedPerBlockOptin = 232448;  // 227 KiB
  static constexpr int kSharedPerBlock = 49152;
  static constexpr int kReservedShared = 1024;
};

constexpr DeviceProfile kProfiles[] = {
    {"h100",
     "NVIDIA H100 80GB HBM3",
     9,
     0,
     132,
     85'029'158'912u,
     52'428'800,
     32'768'000,
     1'980'000,
     2'619'000,
     5120,
     {{6, 16}, {2, 18}}},
    {"h200",
     "NVIDIA H200",
     9,
     0,
     132,
     150'109'880'320u,
     62'914'560,
     39'321'600,
     1'980'000,
     3'201'000,
     6144,
     {{6, 16}, {2, 18}}},
    {"b200",
     "NVIDIA B200",
     10,
     0,
     148,
     191'497'895'936u,
     132'644'864,
     82'903'040,
     1'965'000,
     3'996'000,
     8192,
     {{6, 18}, {2, 20}}},
};

// Whether PTX for a target ("sm_90a") can be brought to run on the device: architecture-specific
// code on its own architecture, family-specific within the major version, any other upwards.
inline bool runs_on(const std::string& target, const DeviceProfile& device) {
  int number = 0;
  char suffix = 0;
  if (std::sscanf(target.c_str(), "sm_%d%c", &number, &suffix) < 1) return false;
  const int own = device.major * 10 + device.minor;
  if (suffix == 'a') return number == own;
  if (suffix == 'f') return number / 10 == device.major && number <= own;
  return number <= own;
}

inline const DeviceProfile* find_profile(const char* key) {
  for (const DeviceProfile& profile : kProfiles)
    if (std::strcmp(profile.key, key) == 0) return &profile;
  return nullptr;
}

}  // namespace ptxbench::cudart
