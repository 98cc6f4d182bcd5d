// Windows as attributes of pools.
#pragma once

#include <utility>

#include "engine/ir/attributes.h"
#include "kernels/api/params.h"

namespace trainscope {

// kernel_shape, strides, dilations and pads in numbers: [begin of each axis, end of each axis].
inline Attributes window_attributes(const WindowParams& window) {
  const auto first = [&window](const Spatial& values) {
    return Ints(values.begin(), values.begin() + window.rank);
  };
  Ints pads = first(window.pad_begin);
  const Ints pad_end = first(window.pad_end);
  pads.insert(pads.end(), pad_end.begin(), pad_end.end());
  return {{"kernel_shape", first(window.kernel)},
          {"strides", first(window.stride)},
          {"dilations", first(window.dilation)},
          {"pads", std::move(pads)}};
}

}  // namespace trainscope
