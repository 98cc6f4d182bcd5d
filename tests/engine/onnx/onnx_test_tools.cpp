// Model protos made by code, and what reading them leads to.
#include "tests/engine/onnx/onnx_test_tools.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <onnx/defs/parser.h>

#include <array>
#include <cstdlib>

#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {

const OpTable& all_ops() {
  static const OpTable table = standard_ops();
  return table;
}

onnx::NodeProto& add_node(onnx::ModelProto& model, std::string_view op,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, std::string_view name) {
  onnx::NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type(std::string(op));
  if (!name.empty()) node.set_name(std::string(name));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

onnx::AttributeProto& add_attribute(onnx::NodeProto& node, std::string_view name,
                                    onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(std::string(name));
  a.set_type(type);
  return a;
}

onnx::ValueInfoProto value_info(std::string_view name, const std::vector<std::int64_t>& dims,
                                int type) {
  onnx::ValueInfoProto info;
  info.set_name(std::string(name));
  info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (std::int64_t dim : dims) shape.add_dim()->set_dim_value(dim);
  return info;
}

namespace {

onnx::TensorProto header(std::string_view name, const std::vector<std::int64_t>& dims, int type) {
  onnx::TensorProto tensor;
  tensor.set_name(std::string(name));
  tensor.set_data_type(type);
  for (std::int64_t dim : dims) tensor.add_dims(dim);
  return tensor;
}

}  // namespace

onnx::TensorProto float_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                               const std::vector<float>& values) {
  onnx::TensorProto tensor = header(name, dims, onnx::TensorProto::FLOAT);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

onnx::TensorProto int_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                             const std::vector<std::int64_t>& values) {
  onnx::TensorProto tensor = header(name, dims, onnx::TensorProto::INT64);
  tensor.set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
  return tensor;
}

onnx::ModelProto small_model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("test");
  auto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("small");
  *graph.add_input() = value_info("x", {2, 3});
  *graph.add_output() = value_info("y", {2, 2});
  *graph.add_initializer() = float_tensor("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  *graph.add_initializer() = float_tensor("b", {2}, {0.5F, -0.5F});
  add_node(model, "Gemm", {"x", "w", "b"}, {"h"}, "fc");
  onnx::AttributeProto& alpha =
      add_attribute(*graph.mutable_node(0), "alpha", onnx::AttributeProto::FLOAT);
  alpha.set_f(1.0F);
  add_node(model, "Relu", {"h"}, {"y"}, "act");
  return model;
}

std::string bytes_of(const onnx::ModelProto& model) { return model.SerializeAsString(); }

OnnxModel read_bytes(std::string_view bytes, const std::filesystem::path& folder) {
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), folder);
}

OnnxModel read_proto(const onnx::ModelProto& model, const std::filesystem::path& folder) {
  return read_bytes(bytes_of(model), folder);
}

std::string embedded(char tag, std::string_view content) {
  std::string bytes(1, tag);
  std::size_t size = content.size();
  for (; size >= 0x80; size >>= 7) bytes += static_cast<char>(0x80 | (size & 0x7f));
  bytes += static_cast<char>(size);
  return bytes.append(content);
}

std::string whole_text(const Error& error) {
  return error.message() + "\n" + join(error.context(), "\n") + "\n" + error.hint();
}

std::optional<Error> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

Evaluate known_values() {
  return evaluator(all_ops(), cpu_kernels(), {.limit = kKnownValuesLimit});
}

void check_refused(std::string_view name, const std::string& bytes, std::string_view fragment,
                   ErrorCode code) {
  CAPTURE(name);
  const Evaluate evaluate = known_values();
  const ResourceWatch watch;
  const std::optional<Error> error =
      error_of([&] { to_graph(read_bytes(bytes), all_ops(), {.evaluate = &evaluate}); });
  CHECK(watch.problem() == "");
  if (!error) {
    FAIL_CHECK("accepted");
    return;
  }
  CHECK_MESSAGE(whole_text(*error).find(fragment) != std::string::npos, whole_text(*error));
  CHECK_MESSAGE(error->code() == code, whole_text(*error));
}

void check_refused(std::span<const BrokenModel> cases, const onnx::ModelProto& valid) {
  for (const BrokenModel& each : cases) {
    onnx::ModelProto model = valid;
    each.break_it(model);
    check_refused(each.name, bytes_of(model), each.fragment, each.code);
  }
}

onnx::ModelProto text_model(std::string_view inputs, std::string_view nodes, int opset) {
  std::string given;
  std::string initializers;
  for (std::size_t begin = 0; begin < inputs.size();) {
    std::size_t end = inputs.find_first_of(",[{", begin);
    // Commas inside brackets and braces do not end an input.
    while (end != std::string_view::npos && inputs[end] != ',') {
      const std::size_t close = inputs.find(inputs[end] == '[' ? ']' : '}', end);
      end = inputs.find_first_of(",[{", close);
    }
    const std::string_view input = trim(inputs.substr(begin, end - begin));
    std::string& list = input.find('{') == std::string_view::npos ? given : initializers;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", input);
    begin = end == std::string_view::npos ? inputs.size() : end + 1;
  }
  const std::string text = fmt::format(
      "<ir_version: 8, opset_import: [\"\" : {}, \"ai.trainscope\" : 1]>\n"
      "g ({}) => (float[] y) {} {{ {} }}",
      opset, given, initializers.empty() ? "" : fmt::format("<{}>", initializers), nodes);
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser(text.c_str()).Parse(model);
  REQUIRE_MESSAGE(status.IsOK(), status.ErrorMessage(), "\n", text);
  return model;
}

void check_refused(std::span<const RefusedText> cases) {
  for (const RefusedText& each : cases) {
    check_refused(fmt::format("{}; {}", each.inputs, each.nodes),
                  bytes_of(text_model(each.inputs, each.nodes, each.opset)), each.fragment);
  }
}

std::string ResourceWatch::problem() const {
#ifdef __SANITIZE_ADDRESS__
  constexpr int kFactor = 8;  // the sanitizers' own time and memory
#else
  constexpr int kFactor = 1;
#endif
  constexpr double kMostSeconds = 60 * kFactor;  // hostile graphs would take hours
  constexpr std::int64_t kMostBytes = (std::int64_t{1} << 30) * kFactor;
  const double seconds = static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC;
  const std::int64_t bytes = memory_.bytes();
  if (seconds > kMostSeconds) return fmt::format("took {} s", seconds);
  return bytes > kMostBytes ? fmt::format("took {} bytes", bytes) : "";
}

ScratchFolder::ScratchFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "trainscope-onnx-XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, ErrorCode::kIo, "cannot make {}", pattern);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace trainscope::test
