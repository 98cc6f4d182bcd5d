// Forms of ops after opset 17 that say the same in another way.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters.h"
#include "engine/onnx/validate.h"
#include "engine/ops/shape_rules.h"

namespace trainscope {
namespace {

using Nodes = std::vector<SourceNode>;
constexpr int kEnd = kNewestOpset + 1;

// Opset 18 moved the axes into an input.
Nodes axes_to_attribute(ImportScope& scope, SourceNode node) {
  bool given = node.inputs.size() > 1 && !node.inputs[1].empty();
  Ints axes = given ? scope.known_ints(node, 1) : Ints{};
  bool keep_all = node.attributes.integer("noop_with_empty_axes", 0) != 0;
  node.opset = 17;
  node.inputs.resize(std::min<std::size_t>(node.inputs.size(), 1));
  node.attributes.erase("noop_with_empty_axes");
  if (axes.empty() && keep_all) {
    node.op = "Identity";
    node.attributes = {};
  } else if (!axes.empty()) {
    node.attributes.set("axes", axes);
  }
  return {std::move(node)};
}

// Opset 18 can ask for a number of parts, of which the last may be smaller.
Nodes parts_to_sizes(ImportScope& scope, SourceNode node) {
  std::int64_t parts = node.attributes.integer("num_outputs", 0);
  node.attributes.erase("num_outputs");
  node.opset = 17;
  bool sized = node.inputs.size() > 1 && !node.inputs[1].empty();
  if (sized || parts == 0) return {std::move(node)};
  require(parts == static_cast<std::int64_t>(node.outputs.size()), ErrorCode::kBadInput,
          "node '{}' (Split): num_outputs is {}, but it has {} outputs", printable(node.source),
          parts, node.outputs.size());
  const Shape& shape = scope.type(node, 0).shape;
  std::int64_t left = shape[normalized_axis(node.attributes.integer("axis", 0), shape.rank)];
  std::int64_t size = left / parts + (left % parts != 0 ? 1 : 0);
  Ints sizes;
  for (std::int64_t i = 0; i < parts; ++i) {
    sizes.push_back(std::min(size, left));
    left -= sizes.back();
  }
  node.inputs.resize(2);
  node.inputs[1] = scope.ints(sizes, node.name + "/split");
  return {std::move(node)};
}

// Opset 18 can name the axes to pad; opset 17 wants two numbers for each axis.
Nodes pads_of_all_axes(ImportScope& scope, SourceNode node) {
  bool given = node.inputs.size() > 3 && !node.inputs[3].empty();
  if (given) {
    Ints axes = scope.known_ints(node, 3);
    Ints pads = scope.known_ints(node, 1);
    int rank = scope.type(node, 0).shape.rank;
    require(pads.size() == 2 * axes.size(), ErrorCode::kBadInput,
            "node '{}' (Pad): {} pads for {} axes", printable(node.source), pads.size(),
            axes.size());
    normalized_axes(axes, rank);  // none twice
    Ints all(static_cast<std::size_t>(2 * rank), 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      auto axis = static_cast<std::size_t>(normalized_axis(axes[i], rank));
      all[axis] = pads[i];
      all[axis + static_cast<std::size_t>(rank)] = pads[i + axes.size()];
    }
    node.inputs[1] = scope.ints(all, node.name + "/pads");
  }
  node.inputs.resize(std::min<std::size_t>(node.inputs.size(), 3));
  node.opset = 17;
  return {std::move(node)};
}

// Says what a cast to an 8-bit float does with large numbers; other casts ignore it.
Nodes without_saturate(ImportScope& /*scope*/, SourceNode node) {
  node.attributes.erase("saturate");
  node.opset = 17;
  return {std::move(node)};
}

// Opset 18 can name the axes, soften a reduction and keep the ratio of height and width. What means
// no more than opset 17 could say goes; the rest stays and is refused as an unknown attribute.
Nodes resize_of_all_axes(ImportScope& /*scope*/, SourceNode node) {
  if (node.attributes.integer("antialias", 0) == 0) node.attributes.erase("antialias");
  if (node.attributes.text("keep_aspect_ratio_policy", "stretch") == "stretch") {
    node.attributes.erase("keep_aspect_ratio_policy");
  }
  node.opset = 17;
  return {std::move(node)};
}

// Ops that ONNX has had since then are in our own domain: a stage of opset 17 cannot name them.
Nodes to_own_domain(ImportScope& /*scope*/, SourceNode node) {
  node.domain = std::string(kTrainscopeDomain);
  node.opset = 17;
  return {std::move(node)};
}

// Whether `shape` has one element along each axis of `to`, or as many.
bool is_broadcast_to(const Shape& shape, const Shape& to) {
  bool fits = shape.rank <= to.rank;
  for (int a = 0; fits && a < shape.rank; ++a) {
    fits = shape[a] == 1 || shape[a] == to[a + to.rank - shape.rank];
  }
  return fits;
}

// Opset 23 broadcasts the scale to the normalised axes; ours has a number for each element of them.
Nodes norm_of_whole_scale(ImportScope& scope, SourceNode node) {
  if (node.inputs.size() < 2) return to_own_domain(scope, std::move(node));
  const Shape x = scope.type(node, 0).shape;
  const Shape scale = scope.type(node, 1).shape;
  const int axis = normalized_axis(node.attributes.integer("axis", -1), x.rank);
  const Shape normalized(x.span().subspan(static_cast<std::size_t>(axis)));
  if (scale == normalized || !is_broadcast_to(scale, normalized)) {
    return to_own_domain(scope, std::move(node));
  }
  const std::string whole = scope.fresh(node.name + "/scale");
  const Ints sizes(normalized.span().begin(), normalized.span().end());
  SourceNode expand{.op = "Expand",
                    .domain = node.domain,
                    .opset = 17,
                    .name = node.name + "/expand",
                    .source = node.source,
                    .inputs = {node.inputs[1], scope.ints(sizes, node.name + "/sizes")},
                    .outputs = {whole},
                    .attributes = {},
                    .depth = node.depth};
  node.inputs[1] = whole;
  Nodes nodes{std::move(expand)};
  nodes.push_back(to_own_domain(scope, std::move(node)).front());
  return nodes;
}

constexpr AdapterRow kRows[] = {
    {"ReduceL1", 18, kEnd, axes_to_attribute},
    {"ReduceL2", 18, kEnd, axes_to_attribute},
    {"ReduceLogSum", 18, kEnd, axes_to_attribute},
    {"ReduceLogSumExp", 18, kEnd, axes_to_attribute},
    {"ReduceMax", 18, kEnd, axes_to_attribute},
    {"ReduceMean", 18, kEnd, axes_to_attribute},
    {"ReduceMin", 18, kEnd, axes_to_attribute},
    {"ReduceProd", 18, kEnd, axes_to_attribute},
    {"ReduceSumSquare", 18, kEnd, axes_to_attribute},
    {"Split", 18, kEnd, parts_to_sizes},
    {"Pad", 18, kEnd, pads_of_all_axes},
    {"Resize", 18, kEnd, resize_of_all_axes},
    {"Cast", 19, kEnd, without_saturate},
    {"Gelu", 20, kEnd, to_own_domain, "Gelu"},
    {"RMSNormalization", 23, kEnd, norm_of_whole_scale, "RMSNormalization"},
    {"Swish", 24, kEnd, to_own_domain, "Swish"},
};

}  // namespace

std::span<const AdapterRow> newer_rows() { return kRows; }

}  // namespace trainscope
