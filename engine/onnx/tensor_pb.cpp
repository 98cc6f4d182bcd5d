// A tensor alone in a file (.pb), as ONNX's test data and tools store them.
#include "engine/onnx/tensor_pb.h"

#include <limits>
#include <string>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {

Tensor read_tensor_pb(const std::filesystem::path& path) {
  constexpr std::uint64_t kMaxMessageBytes = std::numeric_limits<std::int32_t>::max();
  const std::string bytes = read_file(path, kMaxMessageBytes);
  try {
    pb::TensorProto proto;
    bool parsed = proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    require(parsed, ErrorCode::kBadInput, "the file is not an ONNX tensor, or it is damaged");
    ExternalFiles no_files;
    check_tensor(proto, "the tensor", no_files);
    return read_tensor(proto, "the tensor", no_files);
  } catch (Error& error) {
    error.at(printable(path.string()));
    throw;
  }
}

}  // namespace trainscope
