#pragma once
// Tensor-map arguments of a case of group "tma".

#include <string>

#include "emu/hw_vectors.h"
#include "plan/tensor_map.h"

namespace ptxbench {

inline plan::MapType map_type(const std::string& text) {
  static const char* const names[] = {
      "UINT8",   "UINT16",  "UINT32",   "INT32",       "UINT64",   "INT64",       "FLOAT16",
      "FLOAT32", "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ"};
  for (int i = 0; i < 13; ++i)
    if (text == names[i]) return static_cast<plan::MapType>(i);
  return static_cast<plan::MapType>(std::stoi(text));  // refused types are recorded by number
}

inline plan::TensorMapArgs map_args(const hw::Json& c) {
  plan::TensorMapArgs a;
  a.type = map_type(c.at("type").get<std::string>());
  a.rank = c.at("rank").get<uint32_t>();
  auto fill = [](auto& to, const hw::Json& from) {
    for (size_t i = 0; i < to.size() && i < from.size(); ++i) to[i] = from[i].get<uint64_t>();
  };
  fill(a.dims, c.at("dims"));
  fill(a.strides, c.at("strides"));
  fill(a.box, c.at("box"));
  fill(a.element_strides, c.at("element_strides"));
  a.interleave = static_cast<plan::MapInterleave>(c.at("interleave").get<int>());
  a.swizzle = static_cast<plan::MapSwizzle>(c.at("swizzle").get<int>());
  a.nan_fill = c.at("nan_fill").get<int>() != 0;
  return a;
}

inline plan::TensorMapArgs im2col_args(const hw::Json& c) {
  plan::TensorMapArgs a;
  a.type = map_type(c.at("type").get<std::string>());
  a.rank = static_cast<uint32_t>(c.at("dims").size());
  a.im2col = true;
  a.pixels = c.at("pixelsPerColumn");
  a.box[0] = c.at("channelsPerPixel");
  for (uint32_t i = 0; i < a.rank; ++i) {
    a.dims[i] = c.at("dims")[i];
    a.element_strides[i] = c.at("element_strides")[i];
    if (i) a.strides[i - 1] = c.at("strides")[i - 1], a.box[i] = 1;
    if (i + 2 < a.rank) {
      a.lower[i] = c.at("pixelBoxLowerCorner")[i];
      a.upper[i] = c.at("pixelBoxUpperCorner")[i];
    }
  }
  return a;
}

}  // namespace ptxbench
