#include "te/kernels/scale_update.h"

#include "te/kernels/scale_update_launch.h"

namespace ptxbench::te {

Result<DeviceScalingState> DeviceScalingState::create(const ScalingState& s) {
  DeviceScalingState d;
  d.tensors_ = s.tensors, d.history_len_ = s.history_len, d.algorithm_ = s.algorithm;
  PB_ASSIGN_OR_RETURN(d.scale_, DeviceBuffer::zeroed(s.scale.size() * sizeof(float)));
  PB_ASSIGN_OR_RETURN(d.history_, DeviceBuffer::zeroed(s.history.size() * sizeof(float)));
  PB_ASSIGN_OR_RETURN(d.scaled_max_, DeviceBuffer::zeroed(s.scaled_max.size() * sizeof(float)));
  PB_RETURN_IF_ERROR(d.upload(s));
  return d;
}

Result<void> DeviceScalingState::update(const float* reduced, cudaStream_t stream) {
  device::ScaleUpdateArgs a;
  a.scale = scale_.as<float>(), a.history = history_.as<float>();
  a.scaled_max = scaled_max_.as<float>(), a.reduced = reduced;
  a.tensors = tensors_, a.history_len = history_len_;
  a.most_recent = algorithm_ == AmaxAlgorithm::most_recent;
  return launched("scale update", device::launch_scale_update(a, stream));
}

Result<ScalingState> DeviceScalingState::download() const {
  ScalingState s;
  s.tensors = tensors_, s.history_len = history_len_, s.algorithm = algorithm_;
  s.scale.resize(tensors_), s.scaled_max.resize(tensors_);
  s.history.resize(size_t{tensors_} * history_len_);
  PB_RETURN_IF_ERROR(scale_.download(s.scale.data(), scale_.bytes()));
  PB_RETURN_IF_ERROR(history_.download(s.history.data(), history_.bytes()));
  PB_RETURN_IF_ERROR(scaled_max_.download(s.scaled_max.data(), scaled_max_.bytes()));
  return s;
}

Result<void> DeviceScalingState::upload(const ScalingState& s) {
  if (s.tensors != tensors_ || s.history_len != history_len_)
    return Error{"usage", "scaling state: another number of tensors or length of the history"};
  algorithm_ = s.algorithm;
  PB_RETURN_IF_ERROR(scale_.upload(s.scale.data(), scale_.bytes()));
  PB_RETURN_IF_ERROR(history_.upload(s.history.data(), history_.bytes()));
  return scaled_max_.upload(s.scaled_max.data(), scaled_max_.bytes());
}

}  // namespace ptxbench::te
