// Model protos made by code, and what reading them leads to.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "engine/onnx/import.h"

namespace trainscope::test {

// The rows of every op, made once.
const OpTable& all_ops();

// y = Relu(Gemm(x, w, b)) with x f32[2,3] and inline raw weights: valid, and small enough to be
// broken in every way.
onnx::ModelProto small_model();

std::string bytes_of(const onnx::ModelProto& model);
OnnxModel read_bytes(std::string_view bytes, const std::filesystem::path& folder = {});
OnnxModel read_proto(const onnx::ModelProto& model, const std::filesystem::path& folder = {});

// Context, message and hint of an error in one text.
std::string whole_text(const Error& error);
// The error that `action` throws; none when it throws nothing.
std::optional<Error> error_of(const std::function<void()>& action);

onnx::NodeProto& add_node(onnx::ModelProto& model, std::string_view op,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, std::string_view name = "");
onnx::AttributeProto& add_attribute(onnx::NodeProto& node, std::string_view name,
                                    onnx::AttributeProto::AttributeType type);
onnx::ValueInfoProto value_info(std::string_view name, const std::vector<std::int64_t>& dims,
                                int type = onnx::TensorProto::FLOAT);
onnx::TensorProto float_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                               const std::vector<float>& values);
onnx::TensorProto int_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                             const std::vector<std::int64_t>& values);

// A new folder under the system's temporary one, removed with all it holds at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace trainscope::test
