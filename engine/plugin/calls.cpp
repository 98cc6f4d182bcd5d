// Engine's nodes and tensors as the plain structs of the plugin interface.
#include "engine/plugin/calls.h"

#include <iterator>
#include <variant>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

plugin::TensorType plugin_type(const TensorType& type) {
  plugin::TensorType result{.dtype = row_of(type.dtype).onnx_number, .rank = type.shape.rank};
  std::ranges::copy(type.shape.span(), std::begin(result.dims));
  return result;
}

std::optional<DType> engine_dtype(std::int32_t onnx_number) {
  for (const DType dtype : kAllDTypes) {
    if (row_of(dtype).onnx_number == onnx_number) return dtype;
  }
  return std::nullopt;
}

std::optional<TensorType> engine_type(const plugin::TensorType& type) {
  const std::optional<DType> dtype = engine_dtype(type.dtype);
  if (!dtype || type.rank < 0 || type.rank > kMaxRank) return std::nullopt;
  TensorType result{.dtype = *dtype, .shape = {}};
  for (std::int32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] < 0) return std::nullopt;
    result.shape.push_back(type.dims[i]);
  }
  return result;
}

plugin::Tensor plugin_tensor(const TensorView& view) {
  return {.type = plugin_type(view.type), .data = view.data, .present = view.present ? 1 : 0};
}

PluginAttributes::PluginAttributes(const Attributes& attributes) : owner_(attributes) {
  for (const auto& [name, value] : owner_.map()) {
    plugin::Attribute attribute{.name = name.c_str()};
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      attribute.kind = plugin::AttributeKind::kInteger;
      attribute.integer = *integer;
    } else if (const auto* number = std::get_if<double>(&value)) {
      attribute.kind = plugin::AttributeKind::kNumber;
      attribute.number = *number;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      attribute.kind = plugin::AttributeKind::kText;
      attribute.text = text->c_str();
    } else if (const auto* integers = std::get_if<Ints>(&value)) {
      attribute.kind = plugin::AttributeKind::kIntegers;
      attribute.count = static_cast<std::int32_t>(integers->size());
      attribute.integers = integers->data();
    } else if (const auto* numbers = std::get_if<Floats>(&value)) {
      attribute.kind = plugin::AttributeKind::kNumbers;
      attribute.count = static_cast<std::int32_t>(numbers->size());
      attribute.numbers = numbers->data();
    } else {
      continue;
    }
    list_.push_back(attribute);
  }
}

NodeCall::NodeCall(const OpArgs& args) : attributes_(args.attributes) {
  for (int i = 0; i < args.input_count(); ++i) {
    const Tensor* known = args.constants[static_cast<std::size_t>(i)];
    // A plugin only reads them, but the struct is that of outputs too.
    void* data = known == nullptr ? nullptr : const_cast<std::byte*>(known->data());
    inputs_.push_back({.type = plugin_type(args.has(i) ? args.type(i) : TensorType{}),
                       .data = data,
                       .present = args.has(i) ? 1 : 0});
  }
  for (const TensorType& type : args.outputs) outputs_.push_back({.type = plugin_type(type)});
  outputs_.resize(static_cast<std::size_t>(args.output_count));
  call_.input_count = static_cast<std::int32_t>(inputs_.size());
  call_.output_count = args.output_count;
  call_.inputs = inputs_.data();
  call_.outputs = outputs_.data();
  call_.attributes = attributes_.list().data();
  call_.attribute_count = static_cast<std::int32_t>(attributes_.list().size());
  call_.report = report;
  call_.host = this;
}

void NodeCall::report(const plugin::Call* call, const char* message) {
  static_cast<NodeCall*>(call->host)->reported_ = message == nullptr ? "it failed" : message;
}

void NodeCall::check() const {
  if (reported_) fail(ErrorCode::kBadInput, "{}", printable(*reported_, 400));
}

}  // namespace trainscope
