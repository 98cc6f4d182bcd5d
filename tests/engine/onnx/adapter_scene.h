// Values that the nodes of adapter tests read.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "engine/onnx/importer/import_scope.h"
#include "engine/onnx/proto.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {

// A graph of values that nodes may read: x and friends of unknown elements, constants by name.
class Scene {
 public:
  Scene() : builder_(graph_, all_ops()), scope_(graph_, builder_, model_) {
    builder_.set_provenance({.sources = {"n"}, .pass = "test"});
    add_input("x", {2, 3, 4});
    add_input("m", {2, 3});
    add_input("image", {1, 3, 2, 2});
    add_input("b3", {3});
    add_input("b4", {4});
    add_input("b34", {3, 4});
    add_input("angles", {1, 2, 1});
    add_input("positions", {2, 3}, DType::kI64);
    add_input("scalar", {});
    add_input("indices", {2, 3, 4}, DType::kI64);
    add_input("truths", {2, 3}, DType::kBool);
    add_input("bytes", {2, 3, 4}, DType::kU8);
    add_input("pixels", {1, 3, 4, 4}, DType::kU8);
    builder_.constant(Tensor::scalar(2.0F), "two");
    builder_.constant(Tensor::scalar(1.0F), "one");
    builder_.constant(Tensor(TensorType{.dtype = DType::kF32, .shape = {0}}), "nothing");
    const float scales[] = {1, 1, 2, 2};
    builder_.constant(Tensor::of<float>({4}, scales), "scales");
    const float two[] = {4, 3};
    builder_.constant(Tensor::of<float>({2}, two), "two_scales");
    builder_.ints({1, 2});  // named shape
    builder_.constant(Tensor::ints(Ints{0, 1, 0, -1, 0, 1, 0, 0}), "wide_pads");
    builder_.constant(Tensor::ints(Ints{4, 7}), "two_sizes");
    builder_.constant(Tensor::ints(Ints{3, 4, 5, 6}), "pads");
  }

  ImportScope& scope() { return scope_; }

  // "Add(x, {1,2}) -> y axis=1": constants of up to 8 elements as what they hold.
  std::string text(const SourceNode& node) const {
    std::vector<std::string> inputs;
    for (const std::string& name : node.inputs) inputs.push_back(input_text(name));
    std::string line =
        fmt::format("{}({}) -> {}", node.op, join(inputs, ", "), join(node.outputs, ", "));
    std::string attributes = attributes_text(node.attributes);
    return attributes.empty() ? line : line + " " + attributes;
  }

 private:
  void add_input(std::string_view name, Shape shape, DType dtype = DType::kF32) {
    builder_.input(name, {.dtype = dtype, .shape = shape});
  }

  std::string input_text(const std::string& name) const {
    if (name.empty()) return "-";
    ValueId id = graph_.find(name);
    if (id == kNoValue || graph_.value(id).data == nullptr) return name;
    const Tensor numbers = convert(*graph_.value(id).data, DType::kF64);
    std::vector<std::string> parts;
    for (double number : numbers.values<double>()) parts.push_back(fmt::format("{}", number));
    std::string list = join(parts, ",");
    return numbers.shape().rank == 0 ? list : "{" + list + "}";
  }

  pb::GraphProto model_;
  Graph graph_;
  Builder builder_;
  ImportScope scope_;
};

}  // namespace trainscope::test
