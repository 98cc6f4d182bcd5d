// Model protos made by code, and what reading them leads to.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "engine/onnx/import.h"
#include "tests/support/memory_peak.h"

namespace trainscope::test {

// The rows of every op, made once.
const OpTable& all_ops();

// y = Relu(Gemm(x, w, b)) with x f32[2,3] and inline raw weights: valid, and small enough to be
// broken in every way.
onnx::ModelProto small_model();

std::string bytes_of(const onnx::ModelProto& model);
OnnxModel read_bytes(std::string_view bytes, const std::filesystem::path& folder = {});
OnnxModel read_proto(const onnx::ModelProto& model, const std::filesystem::path& folder = {});

// A field of protobuf's format with a length: its tag, the length, the content.
std::string embedded(char tag, std::string_view content);

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

// Computes values that are known before the run, within the limits that compile() sets.
Evaluate known_values();

// A model that must be refused: how a valid one is broken, and a piece of message, context or hint.
struct BrokenModel {
  const char* name;
  void (*break_it)(onnx::ModelProto&);
  const char* fragment;
  ErrorCode code = ErrorCode::kBadInput;
};

// Reads the bytes of a model and builds its graph: refused with this fragment and code, within 5 s
// of processor time and 1 GiB.
void check_refused(std::string_view name, const std::string& bytes, std::string_view fragment,
                   ErrorCode code = ErrorCode::kBadInput);
void check_refused(std::span<const BrokenModel> cases, const onnx::ModelProto& valid);

// A model in ONNX's text format: its inputs ("float[2,3] x, int64[1] i={4}": those with elements
// are initializers), then its nodes, of which one makes y.
onnx::ModelProto text_model(std::string_view inputs, std::string_view nodes, int opset = 17);

struct RefusedText {
  const char* inputs;
  const char* nodes;
  const char* fragment;
  int opset = 17;
};
void check_refused(std::span<const RefusedText> cases);

// The cost of what happens while it lives: the processor's time, so that the others on the machine
// do not count, and memory.
class ResourceWatch {
 public:
  // "" within a minute and 1 GiB more than at the beginning, else what went beyond.
  std::string problem() const;

 private:
  std::clock_t begin_ = std::clock();
  MemoryPeak memory_;
};

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
