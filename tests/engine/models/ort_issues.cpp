// Models of issues from their rows: text with drawn weights, options, a batch.
#include "tests/engine/models/ort_issues.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "kernels/api/random.h"

namespace trainscope::test {
namespace {

std::uint64_t stream_of(std::string_view name) {
  return hash_bytes(std::as_bytes(std::span(name.data(), name.size())));
}

// "float[3,2] w" -> [3,2]
Shape shape_in(std::string_view declaration) {
  std::vector<std::int64_t> dims;
  const std::size_t open = declaration.find('[');
  if (open == std::string_view::npos) return {};
  const std::string_view inside = declaration.substr(open + 1, declaration.find(']') - open - 1);
  for (std::string_view dim : split(inside, ',')) dims.push_back(std::stoll(std::string(dim)));
  return Shape(std::span<const std::int64_t>(dims));
}

std::string initializer_text(std::string_view declaration) {
  if (declaration.find('=') != std::string_view::npos) return std::string(declaration);
  const std::string_view name = declaration.substr(declaration.rfind(' ') + 1);
  const Tensor elements = drawn(name, {.dtype = DType::kF32, .shape = shape_in(declaration)});
  std::string list;
  for (const float element : elements.values<float>()) {
    list += fmt::format("{}{:.4f}", list.empty() ? "" : ", ", element);
  }
  return fmt::format("{} = {{{}}}", declaration, list);
}

Tensor batch_tensor(std::string_view name, const TensorType& type, const OrtIssue& issue) {
  if (type.dtype != DType::kI64) {
    Tensor tensor = drawn(name, {.dtype = DType::kF32, .shape = type.shape});
    if (name.ends_with("flags")) {
      for (float& element : tensor.values<float>()) element = element > 0.0F ? 1.0F : 0.0F;
    }
    return convert(tensor, type.dtype);
  }
  Tensor tensor(type);
  std::uint64_t index = 0;
  const bool mask = name.ends_with("mask");
  for (std::int64_t& element : tensor.values<std::int64_t>()) {
    element = static_cast<std::int64_t>(random_below(
        3, stream_of(name), index++, mask ? 4 : static_cast<std::uint64_t>(issue.integers_below)));
    if (mask) element = element > 0 ? 1 : 0;
  }
  return tensor;
}

}  // namespace

Tensor drawn(std::string_view name, const TensorType& type) {
  Tensor tensor({.dtype = DType::kF32, .shape = type.shape});
  std::uint64_t index = 0;
  for (float& element : tensor.values<float>()) {
    const double normal = random_normal(11, stream_of(name), index++);
    element = static_cast<float>(name.ends_with("var") ? 1.0 + 0.1 * normal : 0.5 * normal);
  }
  return type.dtype == DType::kF32 ? std::move(tensor) : convert(tensor, type.dtype);
}

OnnxModel model_of(const OrtIssue& issue) {
  std::string initializers;
  for (std::string_view declaration : split(issue.weights, ';')) {
    initializers +=
        fmt::format("{}{}", initializers.empty() ? "" : ", ", initializer_text(trim(declaration)));
  }
  return OnnxModel::parse_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : {}]>\n"
      "issue ({}) => ({})\n<{}>\n{}\n{}",
      issue.opset, issue.inputs, issue.outputs, initializers, issue.nodes, issue.functions));
}

CompileOptions options_of(const OrtIssue& issue, GraphMode mode) {
  CompileOptions options;
  if (issue.train_all) options.import.trainable = {"*"};
  options.training.mode = mode;
  options.training.loss = issue.loss;
  options.training.keep_gradients = mode == GraphMode::kGradients;
  return options;
}

Batch batch_of(const Compiled& compiled, const OrtIssue& issue) {
  const Graph& imported = compiled.stages.front().graph;
  const Graph& step = compiled.program.graph;
  Batch batch;
  const auto add = [&](const Value& value) {
    batch.tensors.emplace_back(value.name, batch_tensor(value.name, value.type, issue));
  };
  for (ValueId id : imported.inputs) add(imported.value(id));
  const ValueId labels = step.find(issue.loss.labels);
  if (issue.loss.kind != LossKind::kOutput && labels != kNoValue) add(step.value(labels));
  batch.examples = 1;
  return batch;
}

void bind_step(Executor& executor, const Batch& batch) {
  bind_batch(executor, batch);
  if (executor.has(kRandomStepInput)) {
    executor.write(kRandomStepInput, Tensor::scalar<std::int64_t>(1));
  }
}

}  // namespace trainscope::test
