// Sequences of tensors and optional values, resolved while the graph is built.
#include "engine/onnx/importer/sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters/adapter_tools.h"

namespace trainscope {
namespace {

constexpr std::string_view kSequenceOps[] = {
    "ConcatFromSequence", "Optional",          "OptionalGetElement", "OptionalHasElement",
    "SequenceAt",         "SequenceConstruct", "SequenceEmpty",      "SequenceErase",
    "SequenceInsert",     "SequenceLength",    "SplitToSequence"};

constexpr std::int64_t kMostElements = 100'000;  // of one sequence

SourceNode part_of(const SourceNode& node, std::string_view op, std::vector<std::string> inputs,
                   std::string output) {
  return {.op = std::string(op),
          .domain = {},
          .opset = 17,
          .name = output == node.outputs[0] ? node.name : output,
          .source = node.source,
          .inputs = std::move(inputs),
          .outputs = {std::move(output)},
          .attributes = {},
          .depth = node.depth};
}

SourceNode constant_of(const SourceNode& node, Tensor tensor) {
  SourceNode constant = part_of(node, "Constant", {}, node.outputs[0]);
  constant.attributes.set("value", std::make_shared<const Tensor>(std::move(tensor)));
  return constant;
}

// The place that input `input` names, brought into [0, size].
std::size_t place_of(ImportScope& scope, const SourceNode& node, std::size_t input,
                     std::size_t size) {
  const Ints given = scope.known_ints(node, input);
  require(given.size() == 1, ErrorCode::kBadInput, "{}: one position is expected, there are {}",
          adapted_label(node), given.size());
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t place = given[0] < 0 ? given[0] + count : given[0];
  require(place >= 0 && place <= count, ErrorCode::kBadInput,
          "{}: position {} is outside a sequence of {}", adapted_label(node), given[0], count);
  return static_cast<std::size_t>(place);
}

// The sizes of the pieces of an axis of `size` elements.
Ints piece_sizes(ImportScope& scope, const SourceNode& node, std::int64_t size) {
  const Ints given = has_input(node, 1) ? scope.known_ints(node, 1) : Ints{1};
  if (has_input(node, 1) && scope.type(node, 1).shape.rank > 0) return given;
  const std::int64_t most = given.at(0);
  require(most > 0, ErrorCode::kBadInput, "{}: pieces of {} elements", adapted_label(node), most);
  require_supported((size - 1) / most < kMostElements, "{}: a sequence of more than {} elements",
                    adapted_label(node), kMostElements);
  Ints sizes;
  for (std::int64_t left = size; left > 0; left -= most) sizes.push_back(std::min(left, most));
  return sizes;
}

}  // namespace

bool is_sequence_op(std::string_view domain, std::string_view op) {
  return domain.empty() && std::ranges::find(kSequenceOps, op) != std::end(kSequenceOps);
}

const Sequences::Names& Sequences::list(const SourceNode& node) const {
  const auto found = node.inputs.empty() ? lists_.end() : lists_.find(node.inputs[0]);
  require(found != lists_.end(), ErrorCode::kBadInput, "{}: input 0 is not a sequence",
          adapted_label(node));
  return found->second;
}

std::optional<std::vector<SourceNode>> Sequences::convert(ImportScope& scope,
                                                          const SourceNode& node) {
  const bool of_sequence = !node.inputs.empty() && lists_.contains(node.inputs[0]);
  const bool passes = node.domain.empty() && node.op == "Identity" && of_sequence;
  if (!passes && !is_sequence_op(node.domain, node.op)) return std::nullopt;
  require(node.outputs.size() == 1, ErrorCode::kBadInput, "{}: one output is expected",
          adapted_label(node));
  if (node.op == "SequenceAt") {
    const Names& names = list(node);
    const std::size_t place = place_of(scope, node, 1, names.size());
    require(place < names.size(), ErrorCode::kBadInput,
            "{}: position {} is outside a sequence of "
            "{}",
            adapted_label(node), place, names.size());
    return {{part_of(node, "Identity", {names[place]}, node.outputs[0])}};
  }
  if (node.op == "SequenceLength") {
    return {{constant_of(node, Tensor::scalar(static_cast<std::int64_t>(list(node).size())))}};
  }
  if (node.op == "OptionalHasElement") {
    return {{constant_of(node, Tensor::scalar(has_input(node, 0)))}};
  }
  if (node.op == "SplitToSequence") return split(scope, node);
  if (node.op == "ConcatFromSequence") return concat(scope, node);
  if (node.op == "SequenceInsert") {
    insert(scope, node);
  } else if (node.op == "SequenceErase") {
    erase(scope, node);
  } else if (node.op == "SequenceConstruct" || node.op == "SequenceEmpty") {
    construct(node);
  } else {
    return pass_on(node);
  }
  return std::vector<SourceNode>();
}

void Sequences::construct(const SourceNode& node) { lists_[node.outputs[0]] = node.inputs; }

std::vector<SourceNode> Sequences::split(ImportScope& scope, const SourceNode& node) {
  const Shape shape = scope.type(node, 0).shape;
  const int axis = normalized_axis(node.attributes.integer("axis", 0), shape.rank);
  const Ints sizes = piece_sizes(scope, node, shape[axis]);
  require_supported(!sizes.empty() && std::ssize(sizes) <= kMostElements,
                    "{}: a sequence of {} pieces", adapted_label(node), sizes.size());
  const bool flat = !has_input(node, 1) && node.attributes.integer("keepdims", 1) == 0;
  Names pieces;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    pieces.push_back(scope.fresh(fmt::format("{}/piece_{}", node.name, i)));
  }
  SourceNode cut =
      part_of(node, "Split", {node.inputs[0], scope.ints(sizes, node.name + "/sizes")}, pieces[0]);
  cut.outputs = pieces;
  cut.attributes.set("axis", std::int64_t{axis});
  std::vector<SourceNode> nodes{std::move(cut)};
  for (std::size_t i = 0; flat && i < pieces.size(); ++i) {
    const std::string whole = pieces[i];
    pieces[i] = scope.fresh(fmt::format("{}/element_{}", node.name, i));
    nodes.push_back(
        part_of(node, "Squeeze", {whole, scope.ints({axis}, node.name + "/axis")}, pieces[i]));
  }
  lists_[node.outputs[0]] = std::move(pieces);
  return nodes;
}

void Sequences::insert(ImportScope& scope, const SourceNode& node) {
  Names names = list(node);
  require(has_input(node, 1), ErrorCode::kBadInput, "{}: input 1 is missing", adapted_label(node));
  require_supported(std::ssize(names) < kMostElements, "{}: a sequence of more than {} elements",
                    adapted_label(node), kMostElements);
  const std::size_t place =
      has_input(node, 2) ? place_of(scope, node, 2, names.size()) : names.size();
  names.insert(names.begin() + static_cast<std::ptrdiff_t>(place), node.inputs[1]);
  lists_[node.outputs[0]] = std::move(names);
}

void Sequences::erase(ImportScope& scope, const SourceNode& node) {
  Names names = list(node);
  const std::size_t place = has_input(node, 1) ? place_of(scope, node, 1, names.size())
                            : names.empty()    ? 0
                                               : names.size() - 1;
  require(place < names.size(), ErrorCode::kBadInput, "{}: position {} is outside a sequence of {}",
          adapted_label(node), place, names.size());
  names.erase(names.begin() + static_cast<std::ptrdiff_t>(place));
  lists_[node.outputs[0]] = std::move(names);
}

std::vector<SourceNode> Sequences::concat(ImportScope& scope, const SourceNode& node) const {
  Names names = list(node);
  require(!names.empty() && node.attributes.has("axis"), ErrorCode::kBadInput,
          "{}: an axis and a sequence that is not empty are expected", adapted_label(node));
  std::vector<SourceNode> nodes;
  const std::int64_t axis = node.attributes.integer("axis", 0);
  if (node.attributes.integer("new_axis", 0) != 0) {
    const std::string axes = scope.ints({axis}, node.name + "/axis");
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string apart = scope.fresh(fmt::format("{}/element_{}", node.name, i));
      nodes.push_back(part_of(node, "Unsqueeze", {names[i], axes}, apart));
      names[i] = std::move(apart);
    }
  }
  nodes.push_back(part_of(node, "Concat", names, node.outputs[0]));
  nodes.back().attributes.set("axis", axis);
  return nodes;
}

std::vector<SourceNode> Sequences::pass_on(const SourceNode& node) {
  require_supported(has_input(node, 0), "{}: an optional value without an element",
                    adapted_label(node));
  const auto found = lists_.find(node.inputs[0]);
  if (found == lists_.end()) {
    return {part_of(node, "Identity", {node.inputs[0]}, node.outputs[0])};
  }
  const Names names = found->second;
  lists_[node.outputs[0]] = names;
  return {};
}

}  // namespace trainscope
