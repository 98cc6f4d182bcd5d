// Each attribute by itself with values that are usual for it, and operands.
#include "engine/bisect/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostOrders = 24;  // of an Ints attribute: permutations of four axes

std::string list_text(const auto& items) {
  return fmt::format("[{}]", fmt::join(items.begin(), items.end(), ","));
}

std::string attribute_text(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.6g}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integers = std::get_if<Ints>(&value)) return list_text(*integers);
  if (const auto* numbers = std::get_if<Floats>(&value)) {
    const bool all_same =
        std::ranges::adjacent_find(*numbers, std::not_equal_to<>()) == numbers->end();
    return numbers->empty() || !all_same ? "others" : fmt::format("{:.6g}", numbers->front());
  }
  return "?";
}

std::vector<Attribute> other_integers(std::int64_t value, int rank) {
  std::set<std::int64_t> values = {0, 1, value - 1, value + 1};
  for (int axis = -rank; axis < rank; ++axis) values.insert(axis);
  values.erase(value);
  return {values.begin(), values.end()};
}

std::vector<Attribute> other_numbers(double value) {
  std::set<double> values = {0.0, 0.5, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0, 1e30, 1.0 - value};
  for (int k = -6; k <= 6; ++k) values.insert(value * std::pow(10.0, k));
  values.insert(2.0 * value);
  values.insert(0.5 * value);
  values.erase(value);
  return {values.begin(), values.end()};
}

std::vector<Attribute> other_lists(const Ints& value) {
  std::vector<Attribute> result;
  Ints order = value;
  std::ranges::sort(order);
  do {
    if (order != value) result.emplace_back(order);
  } while (std::ranges::next_permutation(order).found && result.size() < kMostOrders);
  for (const std::int64_t change : {-1, 1}) {
    Ints all = value;
    for (std::int64_t& item : all) item += change;
    result.emplace_back(all);
    for (std::size_t i = 0; i < std::min<std::size_t>(value.size(), 8); ++i) {
      Ints one = value;
      one[i] += change;
      result.emplace_back(std::move(one));
    }
  }
  return result;
}

std::vector<Attribute> other_values(const Attribute& value, int rank) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return other_integers(*integer, rank);
  }
  if (const auto* number = std::get_if<double>(&value)) return other_numbers(*number);
  if (const auto* integers = std::get_if<Ints>(&value)) return other_lists(*integers);
  if (const auto* numbers = std::get_if<Floats>(&value)) {
    std::vector<Attribute> result;
    for (const double number : {0.0, 1e-4, 5e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2}) {
      result.emplace_back(Floats(numbers->size(), number));
    }
    for (const double factor : {0.1, 0.5, 2.0, 10.0}) {
      Floats scaled = *numbers;
      for (double& item : scaled) item *= factor;
      result.emplace_back(std::move(scaled));
    }
    return result;
  }
  return {};
}

int rank_of(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.inputs.front() == kNoValue) return 0;
  return graph.value(node.inputs.front()).type.shape.rank;
}

// Rules of ONNX's ops check what a model says; those of our own trust the passes, which say sizes
// and axes as they are. Numbers that only weigh are safe in both.
bool is_safe(const Node& node, const Attribute& value) {
  const bool weighs =
      std::holds_alternative<double>(value) || std::holds_alternative<Floats>(value);
  return weighs || node.op->domain == kOnnxDomain || node.phase == Phase::kUpdate;
}

void add_attributes(const Graph& graph, const Node& node, std::vector<NodeVariant>& result) {
  const int rank = rank_of(graph, node);
  for (const auto& [name, value] : node.attributes.map()) {
    if (!is_safe(node, value)) continue;
    for (const Attribute& other : other_values(value, rank)) {
      if (other == value) continue;
      Node changed = node;
      changed.attributes.set(name, other);
      result.push_back({.node = std::move(changed),
                        .what = fmt::format("its {} is {}, not {}", name, attribute_text(other),
                                            attribute_text(value))});
    }
  }
  for (const AttributeSpec& spec : node.op->attributes) {
    if (node.attributes.has(spec.name) || !is_safe(node, std::int64_t{0})) continue;
    for (const std::int64_t number : {0, 1, 2}) {
      Node changed = node;
      changed.attributes.set(std::string(spec.name), number);
      result.push_back(
          {.node = std::move(changed), .what = fmt::format("its {} is {}", spec.name, number)});
    }
  }
}

void add_operands(const Graph& graph, const Node& node, std::vector<NodeVariant>& result) {
  if (node.inputs.size() > 4 || node.op->domain != kOnnxDomain) return;
  for (std::size_t i = 0; i + 1 < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || node.inputs[i + 1] == kNoValue) continue;
    const DType dtype = graph.value(node.inputs[i]).type.dtype;
    if (dtype != graph.value(node.inputs[i + 1]).type.dtype) continue;
    Node changed = node;
    std::swap(changed.inputs[i], changed.inputs[i + 1]);
    result.push_back({.node = std::move(changed), .what = "its operands are swapped"});
  }
  for (std::size_t i = static_cast<std::size_t>(node.op->min_inputs); i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    Node changed = node;
    changed.inputs[i] = kNoValue;
    result.push_back(
        {.node = std::move(changed),
         .what = fmt::format("its input '{}' is left out", graph.value(node.inputs[i]).name)});
  }
}

}  // namespace

std::vector<NodeVariant> variants_of(const Graph& graph, const Node& node) {
  std::vector<NodeVariant> result;
  add_attributes(graph, node, result);
  add_operands(graph, node, result);
  return result;
}

}  // namespace trainscope
