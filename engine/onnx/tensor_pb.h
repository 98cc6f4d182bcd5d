// A tensor alone in a file (.pb), as ONNX's test data and tools store them.
#pragma once

#include <filesystem>

#include "engine/core/tensor.h"

namespace trainscope {

// Reads a serialized TensorProto. kIo when the file cannot be read, kBadInput, naming it, when it
// holds no valid tensor; external data is refused.
Tensor read_tensor_pb(const std::filesystem::path& path);

}  // namespace trainscope
