// Nodes, constants and initial parameters of a model under construction.
#include "engine/models/plain_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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

constexpr double kTruncation = 2.0;  // deviations
// Between the draws of one element; no tensor has so many.
constexpr std::uint64_t kRedrawDistance = std::uint64_t{1} << 48;

}  // namespace

ValueName PlainBuilder::input(std::string_view name, DType dtype, std::vector<ModelDim> dims) {
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

ValueName PlainBuilder::parameter(std::string_view name, const Shape& shape, Fill fill) {
  CHECK_INVARIANT(names_.emplace(name).second);
  const TensorType type{.dtype = DType::kF32, .shape = shape};
  auto elements = [type, fill = std::move(fill)] {
    Tensor tensor(type);
    fill(tensor.values<float>());
    return tensor;
  };
  model_.initializers.push_back(
      {.name = std::string(name), .type = type, .elements = std::move(elements)});
  return std::string(name);
}

ValueName PlainBuilder::normal(std::string_view name, const Shape& shape, double deviation) {
  const auto fill = [deviation, seed = seed_, stream = stream_of(name)](std::span<float> elements) {
    for (std::size_t i = 0; i < elements.size(); i += 2) {
      const std::array<double, 2> pair = random_normal_pair(seed, stream, i / 2);
      elements[i] = static_cast<float>(deviation * pair[0]);
      if (i + 1 < elements.size()) elements[i + 1] = static_cast<float>(deviation * pair[1]);
    }
  };
  return parameter(name, shape, fill);
}

ValueName PlainBuilder::truncated_normal(std::string_view name, const Shape& shape,
                                         double deviation) {
  const auto fill = [deviation, seed = seed_, stream = stream_of(name)](std::span<float> elements) {
    std::uint64_t index = 0;
    for (float& element : elements) {
      std::uint64_t draw = index++;
      double number = random_normal(seed, stream, draw);
      while (std::fabs(number) > kTruncation) {
        number = random_normal(seed, stream, draw += kRedrawDistance);
      }
      element = static_cast<float>(deviation * number);
    }
  };
  return parameter(name, shape, fill);
}

ValueName PlainBuilder::uniform(std::string_view name, const Shape& shape, double bound) {
  const auto fill = [bound, seed = seed_, stream = stream_of(name)](std::span<float> elements) {
    std::uint64_t index = 0;
    for (float& element : elements) {
      const double draw = static_cast<double>(random_uniform(seed, stream, index++));
      element = static_cast<float>(bound * (2.0 * draw - 1.0));
    }
  };
  return parameter(name, shape, fill);
}

ValueName PlainBuilder::filled(std::string_view name, const Shape& shape, float value) {
  return parameter(name, shape,
                   [value](std::span<float> elements) { std::ranges::fill(elements, value); });
}

ValueName PlainBuilder::statistic(std::string_view name, const Shape& shape, float value) {
  const ValueName made = filled(name, shape, value);
  model_.initializers.back().trained = false;
  return made;
}

ValueName PlainBuilder::constant(const ValueName& name, Tensor elements) {
  if (names_.contains(name)) return name;
  auto value = std::make_shared<const Tensor>(std::move(elements));
  return add({.op = "Constant",
              .name = name,
              .inputs = {},
              .outputs = {name},
              .attributes = {{"value", std::move(value)}}});
}

ValueName PlainBuilder::number(float value) {
  return constant(fmt::format("/number/{}", value), Tensor::scalar(value));
}

ValueName PlainBuilder::integer(std::int64_t value) {
  return constant(fmt::format("/integer/{}", value), Tensor::scalar(value));
}

ValueName PlainBuilder::ints(const Ints& values) {
  return constant("/ints/" + shape_text(values), Tensor::ints(values));
}

ValueName PlainBuilder::add(PlainNode node) {
  for (const ValueName& output : node.outputs) CHECK_INVARIANT(names_.insert(output).second);
  model_.nodes.push_back(std::move(node));
  return model_.nodes.back().outputs.front();
}

ValueName PlainBuilder::labelled(std::string_view label) const {
  return scope_.empty() ? fmt::format("/{}", label) : fmt::format("/{}/{}", scope_, label);
}

ValueName PlainBuilder::node(std::string_view op, std::string_view label,
                             std::vector<ValueName> inputs, Attributes attributes) {
  return result(op, labelled(label), std::move(inputs), std::move(attributes));
}

std::vector<ValueName> PlainBuilder::multi(std::string_view op, std::string_view label,
                                           std::vector<ValueName> inputs, const Results& results) {
  PlainNode node{.op = std::string(op),
                 .name = labelled(label),
                 .inputs = std::move(inputs),
                 .outputs = {},
                 .attributes = results.attributes};
  for (std::string_view output : results.labels) node.outputs.push_back(labelled(output));
  add(std::move(node));
  return model_.nodes.back().outputs;
}

ValueName PlainBuilder::result(std::string_view op, const ValueName& name,
                               std::vector<ValueName> inputs, Attributes attributes) {
  return add({.op = std::string(op),
              .name = name,
              .inputs = std::move(inputs),
              .outputs = {name},
              .attributes = std::move(attributes)});
}

}  // namespace trainscope
