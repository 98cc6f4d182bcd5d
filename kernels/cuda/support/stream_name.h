// What a stream of a device is called where a call on it failed.
#pragma once

#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// "the compute stream", "the transfer stream".
constexpr std::string_view stream_name(Stream stream) {
  return stream == kComputeStream ? "the compute stream" : "the transfer stream";
}

}  // namespace trainscope::cuda
