#pragma once
// How te_bench measures: rotating buffers, operation and copies in turn, medians. See te_bench.cc.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "copy.h"
#include "numeric/dtype.h"
#include "numeric/random.h"
#include "te/kernels/device_buffer.h"

namespace ptxbench::te::bench {

[[noreturn]] inline void die(const std::string& message) {
  fmt::print(stderr, "te_bench: {}\n", message);
  std::exit(2);
}
inline void need(cudaError_t status) {
  if (status != cudaSuccess) die(cudaGetErrorString(status));
}
template <class T>
T need(Result<T> result) {
  if (!result.ok()) die(result.error().message);
  return result.take();
}
inline void need(Result<void> result) {
  if (!result.ok()) die(result.error().message);
}

struct Options {
  int rounds = 15;
  std::vector<std::pair<int64_t, int64_t>> shapes;
  std::string only, json;
  bool variants = false;
};

// Sets of buffers that together are several times the L2.
inline int sets_for(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>(400'000'000 / bytes, 2, 16));
}

// A million bf16 normals, repeated.
inline DeviceBuffer random_buffer(int64_t bytes) {
  static const std::vector<uint16_t> pattern = [] {
    std::vector<uint16_t> v(1 << 20);
    numeric::Random({1, 2}).fill_normal(0, numeric::DType::bfloat16, v.data(), v.size());
    return v;
  }();
  DeviceBuffer b = need(DeviceBuffer::zeroed(bytes));
  for (int64_t at = 0; at < bytes; at += int64_t(pattern.size()) * 2)
    need(cudaMemcpy(b.as<uint8_t>() + at, pattern.data(),
                    std::min<int64_t>(bytes - at, pattern.size() * 2), cudaMemcpyHostToDevice));
  return b;
}
// Small positive fp32 values: moments of the optimizer.
inline DeviceBuffer small_f32_buffer(int64_t count) {
  std::vector<float> pattern(1 << 20);
  numeric::Random({1, 3}).fill_uniform(0, pattern);
  for (float& v : pattern) v *= 1e-4f;
  DeviceBuffer b = need(DeviceBuffer::zeroed(count * 4));
  for (int64_t at = 0; at < count; at += int64_t(pattern.size()))
    need(cudaMemcpy(b.as<float>() + at, pattern.data(),
                    std::min<int64_t>(count - at, pattern.size()) * 4, cudaMemcpyHostToDevice));
  return b;
}

// One operation: `run(set)` enqueues it on the buffers of a set.
struct Operation {
  std::string name, plan;
  int64_t bytes = 0;
  int sets = 1;
  std::function<void(int)> run;
};

inline float milliseconds(const std::function<void(int)>& run, int sets, int launches) {
  static cudaEvent_t start, stop;
  if (start == nullptr) {
    need(cudaEventCreate(&start));
    need(cudaEventCreate(&stop));
  }
  static int set = 0;
  need(cudaEventRecord(start, nullptr));
  for (int i = 0; i < launches; ++i) run(set = (set + 1) % sets);
  need(cudaEventRecord(stop, nullptr));
  need(cudaEventSynchronize(stop));
  float ms = 0;
  need(cudaEventElapsedTime(&ms, start, stop));
  return ms / launches;
}

inline float median(std::vector<float> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

struct Row {
  std::string name, shape, plan;
  double microseconds, bandwidth, copy_bandwidth;
};

class Table {
 public:
  Table(const Options& options) : options_(options) {
    fmt::print("{:<26} {:>13} {:>9} {:>9} {:>9} {:>8}  {}\n", "operation", "shape", "us", "GB/s",
               "copy GB/s", "of copy", "plan");
  }

  // Measures operations of the same size in turn with the copies.
  void measure(const std::string& shape, std::vector<Operation> all) {
    if (!options_.only.empty())
      std::erase_if(
          all, [&](const Operation& o) { return o.name.find(options_.only) == std::string::npos; });
    if (all.empty()) return;
    const int64_t half = all[0].bytes / 2 / 16 * 16;
    const int sets = static_cast<int>(std::clamp<int64_t>(400'000'000 / (2 * half), 2, 16));
    std::vector<DeviceBuffer> from, to;
    for (int i = 0; i < sets; ++i) {
      from.push_back(random_buffer(half));
      to.push_back(need(DeviceBuffer::zeroed(half)));
    }
    Operation kernel{"copy kernel", "", 2 * half, sets, [&](int s) {
                       need(launch_copy(from[s].as<void>(), to[s].as<void>(), half, nullptr));
                     }};
    Operation memcpy{"cudaMemcpyAsync", "", 2 * half, sets, [&](int s) {
                       need(cudaMemcpyAsync(to[s].as<void>(), from[s].as<void>(), half,
                                            cudaMemcpyDeviceToDevice, nullptr));
                     }};
    std::vector<Operation*> turn = {&kernel, &memcpy};
    for (Operation& o : all) turn.push_back(&o);
    std::vector<std::vector<float>> times(turn.size());
    for (int round = -1; round < options_.rounds; ++round)
      for (size_t i = 0; i < turn.size(); ++i) {
        const int launches =
            static_cast<int>(std::clamp<int64_t>(2'000'000'000 / turn[i]->bytes, 4, 200));
        const float ms = milliseconds(turn[i]->run, turn[i]->sets, launches);
        if (round >= 0) times[i].push_back(ms);
      }
    need(cudaDeviceSynchronize());
    const double copy =
        std::max(2.0 * half / median(times[0]), 2.0 * half / median(times[1])) / 1e6;
    for (size_t i = 0; i < turn.size(); ++i) {
      const float ms = median(times[i]);
      rows_.push_back(
          {turn[i]->name, shape, turn[i]->plan, ms * 1e3, turn[i]->bytes / ms / 1e6, copy});
      const Row& r = rows_.back();
      fmt::print("{:<26} {:>13} {:>9.2f} {:>9.0f} {:>9.0f} {:>7.1f}%  {}\n", r.name, r.shape,
                 r.microseconds, r.bandwidth, r.copy_bandwidth, 100 * r.bandwidth / copy, r.plan);
    }
    std::fflush(stdout);
  }

  void write_json() const {
    if (options_.json.empty()) return;
    std::FILE* f = std::fopen(options_.json.c_str(), "w");
    if (f == nullptr) die("cannot write " + options_.json);
    for (const Row& r : rows_)
      fmt::print(
          f,
          "{{\"operation\": \"{}\", \"shape\": \"{}\", \"us\": {:.3f}, \"gb_per_s\": {:.1f}, "
          "\"copy_gb_per_s\": {:.1f}, \"plan\": \"{}\"}}\n",
          r.name, r.shape, r.microseconds, r.bandwidth, r.copy_bandwidth, r.plan);
    std::fclose(f);
  }

 private:
  Options options_;
  std::vector<Row> rows_;
};

void bench_casts(Table& table, const Options& options, int64_t rows, int64_t cols);
void bench_norms(Table& table, const Options& options, int64_t rows, int64_t cols);
void bench_optimizer(Table& table, int64_t rows, int64_t cols);
void bench_model_ops(Table& table, int64_t rows, int64_t cols);

}  // namespace ptxbench::te::bench
