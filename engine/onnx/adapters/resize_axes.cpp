// Resize since opset 18: it may name the axes that it resizes, and keep the ratio of their sizes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters/adapter_tools.h"
#include "engine/onnx/adapters/adapters.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

constexpr std::size_t kRegion = 1;
constexpr std::size_t kScalesInput = 2;
constexpr std::size_t kSizesInput = 3;

Floats known_numbers(const ImportScope& scope, const SourceNode& node, std::size_t input) {
  const Tensor* known = scope.known(node, input);
  require_supported(known != nullptr, "{}: input {} must be known before the run",
                    adapted_label(node), input);
  const Tensor exact = convert(*known, DType::kF64);
  return {exact.values<double>().begin(), exact.values<double>().end()};
}

// Numbers of the axes, `each` of them, put among those of all axes.
Floats spread(const SourceNode& node, const Ints& axes, const Floats& given, Floats all) {
  const std::size_t each = given.size() / axes.size();
  require(given.size() == each * axes.size() && each > 0, ErrorCode::kBadInput,
          "{}: {} numbers for {} axes", adapted_label(node), given.size(), axes.size());
  const std::size_t rank = all.size() / each;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i % axes.size()]);
    all[i / axes.size() * rank + axis] = given[i];
  }
  return all;
}

void set_numbers(ImportScope& scope, SourceNode& node, std::size_t input, const Floats& numbers) {
  const Shape shape{static_cast<std::int64_t>(numbers.size())};
  const DType dtype = scope.type(node, input).dtype;
  node.inputs[input] = scope.constant(convert(Tensor::of<double>(shape, numbers), dtype),
                                      fmt::format("{}/all_{}", node.name, input));
}

Ints resized_axes(const SourceNode& node, int rank) {
  Ints axes = node.attributes.integers("axes");
  normalized_axes(axes, rank);  // none twice, none outside
  for (std::int64_t& axis : axes) axis = normalized_axis(axis, rank);
  if (!axes.empty()) return axes;
  for (int a = 0; a < rank; ++a) axes.push_back(a);
  return axes;
}

// The sizes that one ratio for all axes leads to: the largest inside the given ones, or the
// smallest around them.
Floats with_ratio(const SourceNode& node, const Shape& x, const Ints& axes, Floats sizes) {
  const std::string policy = node.attributes.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return sizes;
  require(policy == "not_larger" || policy == "not_smaller", ErrorCode::kBadInput,
          "{}: keep_aspect_ratio_policy is '{}'; stretch, not_larger and not_smaller exist",
          adapted_label(node), printable(policy));
  double ratio = 0.0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double each = sizes.at(i) / static_cast<double>(x[static_cast<int>(axes[i])]);
    const bool first = i == 0;
    ratio = first ? each : policy == "not_larger" ? std::min(ratio, each) : std::max(ratio, each);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    sizes[i] = std::floor(ratio * static_cast<double>(x[static_cast<int>(axes[i])]) + 0.5);
  }
  return sizes;
}

}  // namespace

std::vector<SourceNode> resize_of_all_axes(ImportScope& scope, SourceNode node) {
  const Shape x = scope.type(node, 0).shape;
  const Ints axes = resized_axes(node, x.rank);
  const auto rank = static_cast<std::size_t>(x.rank);
  const bool partial = node.attributes.has("axes");
  if (has_input(node, kSizesInput)) {
    const Floats sizes = known_numbers(scope, node, kSizesInput);
    require(sizes.size() == axes.size(), ErrorCode::kBadInput, "{}: {} sizes for {} axes",
            adapted_label(node), sizes.size(), axes.size());
    Floats all;
    for (std::int64_t size : x.span()) all.push_back(static_cast<double>(size));
    set_numbers(scope, node, kSizesInput,
                spread(node, axes, with_ratio(node, x, axes, sizes), std::move(all)));
  } else if (partial && has_input(node, kScalesInput)) {
    set_numbers(scope, node, kScalesInput,
                spread(node, axes, known_numbers(scope, node, kScalesInput), Floats(rank, 1.0)));
  }
  if (partial && has_input(node, kRegion)) {
    Floats whole(2 * rank, 0.0);
    std::fill(whole.begin() + x.rank, whole.end(), 1.0);
    set_numbers(scope, node, kRegion,
                spread(node, axes, known_numbers(scope, node, kRegion), std::move(whole)));
  }
  node.attributes.erase("axes");
  node.attributes.erase("keep_aspect_ratio_policy");
  if (node.attributes.integer("antialias", 0) == 0) node.attributes.erase("antialias");
  node.opset = 17;
  return {std::move(node)};
}

}  // namespace trainscope
