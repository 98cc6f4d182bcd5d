// Nodes, constants and initial parameters of a model under construction.
#include "engine/models/plain_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "kernels/api/random.h"

namespace trainscope {
namespace {

// Streams of the counter-based generator, apart from those of data and dropout under one seed.
constexpr std::uint64_t kInitialStreams = std::uint64_t{4} << 56;  // + 56 bits of the name's hash

std::uint64_t stream_of(std::string_view name) { return kInitialStreams + (hash_text(name) >> 8); }

Tensor f32_tensor(const Shape& shape) {
  return Tensor(TensorType{.dtype = DType::kF32, .shape = shape});
}

}  // namespace

PlainBuilder::Name PlainBuilder::input(std::string_view name, DType dtype,
                                       std::vector<ModelDim> dims) {
  CHECK_INVARIANT(names_.emplace(name).second);
  model_.inputs.push_back({.name = std::string(name), .dtype = dtype, .dims = std::move(dims)});
  return std::string(name);
}

void PlainBuilder::output(std::string_view name, std::vector<ModelDim> dims) {
  CHECK_INVARIANT(names_.contains(std::string(name)));
  model_.outputs.push_back(
      {.name = std::string(name), .dtype = DType::kF32, .dims = std::move(dims)});
}

void PlainBuilder::describe(std::string_view name, std::vector<ModelDim> dims) {
  CHECK_INVARIANT(names_.contains(std::string(name)));
  model_.values.push_back(
      {.name = std::string(name), .dtype = DType::kF32, .dims = std::move(dims)});
}

PlainBuilder::Name PlainBuilder::parameter(std::string_view name, Tensor elements) {
  CHECK_INVARIANT(names_.emplace(name).second);
  model_.initializers.push_back({.name = std::string(name), .elements = std::move(elements)});
  return std::string(name);
}

PlainBuilder::Name PlainBuilder::normal(std::string_view name, const Shape& shape,
                                        double deviation) {
  Tensor elements = f32_tensor(shape);
  const std::uint64_t stream = stream_of(name);
  std::uint64_t index = 0;
  for (float& element : elements.values<float>()) {
    element = static_cast<float>(deviation * random_normal(seed_, stream, index++));
  }
  return parameter(name, std::move(elements));
}

PlainBuilder::Name PlainBuilder::uniform(std::string_view name, const Shape& shape, double bound) {
  Tensor elements = f32_tensor(shape);
  const std::uint64_t stream = stream_of(name);
  std::uint64_t index = 0;
  for (float& element : elements.values<float>()) {
    const double draw = static_cast<double>(random_uniform(seed_, stream, index++));
    element = static_cast<float>(bound * (2.0 * draw - 1.0));
  }
  return parameter(name, std::move(elements));
}

PlainBuilder::Name PlainBuilder::filled(std::string_view name, const Shape& shape, float value) {
  Tensor elements = f32_tensor(shape);
  std::ranges::fill(elements.values<float>(), value);
  return parameter(name, std::move(elements));
}

PlainBuilder::Name PlainBuilder::constant(Name name, Tensor elements) {
  if (names_.contains(name)) return name;
  auto value = std::make_shared<const Tensor>(std::move(elements));
  return add({.op = "Constant",
              .name = name,
              .inputs = {},
              .outputs = {name},
              .attributes = {{"value", std::move(value)}}});
}

PlainBuilder::Name PlainBuilder::number(float value) {
  return constant(fmt::format("/number/{}", value), Tensor::scalar(value));
}

PlainBuilder::Name PlainBuilder::integer(std::int64_t value) {
  return constant(fmt::format("/integer/{}", value), Tensor::scalar(value));
}

PlainBuilder::Name PlainBuilder::ints(const Ints& values) {
  return constant("/ints/" + shape_text(values), Tensor::ints(values));
}

PlainBuilder::Name PlainBuilder::add(PlainNode node) {
  for (const Name& output : node.outputs) CHECK_INVARIANT(names_.insert(output).second);
  model_.nodes.push_back(std::move(node));
  return model_.nodes.back().outputs.front();
}

PlainBuilder::Name PlainBuilder::labelled(std::string_view label) const {
  return scope_.empty() ? fmt::format("/{}", label) : fmt::format("/{}/{}", scope_, label);
}

PlainBuilder::Name PlainBuilder::node(std::string_view op, std::string_view label,
                                      std::vector<Name> inputs, Attributes attributes) {
  return result(op, labelled(label), std::move(inputs), std::move(attributes));
}

std::vector<PlainBuilder::Name> PlainBuilder::multi(std::string_view op, std::string_view label,
                                                    std::vector<Name> inputs,
                                                    const Results& results) {
  PlainNode node{.op = std::string(op),
                 .name = labelled(label),
                 .inputs = std::move(inputs),
                 .outputs = {},
                 .attributes = results.attributes};
  for (std::string_view output : results.labels) node.outputs.push_back(labelled(output));
  add(std::move(node));
  return model_.nodes.back().outputs;
}

PlainBuilder::Name PlainBuilder::result(std::string_view op, const Name& name,
                                        std::vector<Name> inputs, Attributes attributes) {
  return add({.op = std::string(op),
              .name = name,
              .inputs = std::move(inputs),
              .outputs = {name},
              .attributes = std::move(attributes)});
}

}  // namespace trainscope
