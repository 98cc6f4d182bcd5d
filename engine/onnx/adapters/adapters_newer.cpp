// Forms of ops after opset 17 that say the same in another way.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters/adapter_tools.h"
#include "engine/onnx/adapters/adapters.h"
#include "engine/onnx/validate.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

using Nodes = std::vector<SourceNode>;
constexpr int kEnd = kNewestOpset + 1;
constexpr std::int64_t kMostWrapped = std::int64_t{1} << 24;

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

// Opset 20 has them for booleans: whether any or all are true, by counting.
Nodes extreme_with_booleans(ImportScope& scope, SourceNode node) {
  if (scope.type(node, 0).dtype != DType::kBool) return axes_to_attribute(scope, std::move(node));
  const bool all = node.op == "ReduceMin";
  const Attributes to_count{{"to", onnx_number(DType::kI64)}};
  Rewritten rewritten(scope, node);
  std::string counted = node.inputs[0];
  if (all) counted = rewritten.add("Not", {counted}, "not");
  counted = rewritten.add("Cast", {counted}, "numbers", to_count);
  SourceNode count = node;
  count.op = "ReduceSum";
  count.opset = 17;
  count.inputs[0] = counted;
  count.outputs = {scope.fresh(node.name + "/count")};
  Nodes nodes = rewritten.take(std::move(count));
  SourceNode last = node;
  last.op = all ? "Not" : "Cast";
  last.opset = 17;
  last.inputs = {nodes.back().outputs[0]};
  last.attributes = all ? Attributes() : Attributes{{"to", onnx_number(DType::kBool)}};
  if (all) {
    SourceNode any = last;
    any.op = "Cast";
    any.name = node.name + "/any";
    any.outputs = {scope.fresh(any.name)};
    any.attributes = {{"to", onnx_number(DType::kBool)}};
    last.inputs = any.outputs;
    nodes.push_back(std::move(any));
  }
  nodes.push_back(std::move(last));
  return nodes;
}

// Opset 18 can ask for a number of slices, of which the last may be smaller.
Nodes slices_to_sizes(ImportScope& scope, SourceNode node) {
  std::int64_t slices = node.attributes.integer("num_outputs", 0);
  node.attributes.erase("num_outputs");
  node.opset = 17;
  bool sized = node.inputs.size() > 1 && !node.inputs[1].empty();
  if (sized || slices == 0) return {std::move(node)};
  require(slices == static_cast<std::int64_t>(node.outputs.size()), ErrorCode::kBadInput,
          "node '{}' (Split): num_outputs is {}, but it has {} outputs", printable(node.source),
          slices, node.outputs.size());
  const Shape& shape = scope.type(node, 0).shape;
  std::int64_t left = shape[normalized_axis(node.attributes.integer("axis", 0), shape.rank)];
  std::int64_t size = left / slices + (left % slices != 0 ? 1 : 0);
  Ints sizes;
  for (std::int64_t i = 0; i < slices; ++i) {
    sizes.push_back(std::min(size, left));
    left -= sizes.back();
  }
  node.inputs.resize(2);
  node.inputs[1] = scope.ints(sizes, node.name + "/split");
  return {std::move(node)};
}

// Along each axis that grows or shrinks, the places that its elements come from: the tensor repeats
// itself without end. Opset 19 has this.
Nodes wrapped(ImportScope& scope, const SourceNode& node, const Ints& pads) {
  const Shape shape = scope.type(node, 0).shape;
  const auto rank = static_cast<std::size_t>(shape.rank);
  require(pads.size() == 2 * rank, ErrorCode::kBadInput, "node '{}' (Pad): {} pads for {} axes",
          printable(node.source), pads.size(), rank);
  Rewritten rewritten(scope, node);
  std::string x = node.inputs[0];
  for (std::size_t a = 0; a < rank; ++a) {
    const std::int64_t size = shape.dims[a];
    const std::int64_t before = pads[a];
    const std::int64_t after = pads[a + rank];
    if (before == 0 && after == 0) continue;
    require(size > 0, ErrorCode::kBadInput, "node '{}' (Pad): axis {} has nothing to repeat",
            printable(node.source), a);
    const std::int64_t length =
        std::max<std::int64_t>(0, checked_add(size, checked_add(before, after)));
    require_supported(length <= kMostWrapped, "node '{}' (Pad): an axis of {} elements",
                      printable(node.source), length);
    Ints places;
    for (std::int64_t i = 0; i < length; ++i) {
      places.push_back(((i - before) % size + size) % size);
    }
    const std::string label = fmt::format("axis_{}", a);
    x = rewritten.add("Gather", {x, rewritten.ints(places, label + "_places")}, label,
                      {{"axis", static_cast<std::int64_t>(a)}});
  }
  SourceNode last = node;
  last.op = "Identity";
  last.opset = 17;
  last.attributes = {};
  last.inputs = {x};
  return rewritten.take(std::move(last));
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
  if (node.attributes.text("mode", "constant") == "wrap") {
    return wrapped(scope, node, scope.known_ints(node, 1));
  }
  node.inputs.resize(std::min<std::size_t>(node.inputs.size(), 3));
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

// What a node of opset 23 rotates: x [batch, heads, sequence, width], or [batch, sequence, hidden].
struct RotaryHeads {
  Shape x;
  std::int64_t heads = 0;
  std::int64_t pairs = 0;
  bool flat() const { return x.rank == 3; }
};

RotaryHeads rotary_heads(ImportScope& scope, const SourceNode& node) {
  RotaryHeads found{.x = scope.type(node, 0).shape};
  require(found.x.rank == 3 || found.x.rank == 4, ErrorCode::kBadInput,
          "node '{}' (RotaryEmbedding): X has {} dimensions, expected 3 or 4",
          printable(node.source), found.x.rank);
  found.heads = found.flat() ? node.attributes.integer("num_heads", 0) : found.x[1];
  const std::int64_t last = found.x[found.x.rank - 1];
  require(!found.flat() || (found.heads > 0 && last % found.heads == 0), ErrorCode::kBadInput,
          "node '{}' (RotaryEmbedding): num_heads is {}, expected a divisor of the {} elements "
          "of the last axis of X",
          printable(node.source), found.heads, last);
  const std::int64_t width = found.flat() ? last / found.heads : last;
  const std::int64_t given = node.attributes.integer("rotary_embedding_dim", 0);
  const std::int64_t rotated = given == 0 ? width : given;
  require(rotated >= 0 && rotated <= width && rotated % 2 == 0, ErrorCode::kBadInput,
          "node '{}' (RotaryEmbedding): {} elements of a head of {} are rotated, expected an even "
          "number of "
          "them",
          printable(node.source), rotated, width);
  found.pairs = rotated / 2;
  return found;
}

// Opset 23 looks up positions in tables [positions, pairs at least], or has tables [batch,
// sequence, pairs at least]; ours are broadcast to x.
std::string rotary_table(ImportScope& scope, const SourceNode& node, Rewritten& rewritten,
                         std::size_t input) {
  const RotaryHeads heads = rotary_heads(scope, node);
  const std::string label = input == 1 ? "cos" : "sin";
  const Shape shape = scope.type(node, input).shape;
  std::string table = node.inputs[input];
  require(shape.rank == 0 || shape[shape.rank - 1] >= heads.pairs, ErrorCode::kBadInput,
          "node '{}' (RotaryEmbedding): the {} table has {} columns, expected at least {}",
          printable(node.source), label, shape[shape.rank - 1], heads.pairs);
  const bool looked_up = node.inputs.size() > 3 && !node.inputs[3].empty();
  if (shape.rank > 0 && shape[shape.rank - 1] != heads.pairs) {
    table = rewritten.add(
        "Slice",
        {table, rewritten.ints({0}, label + "_begin"),
         rewritten.ints({heads.pairs}, label + "_end"), rewritten.ints({-1}, label + "_axis")},
        label + "_pairs");
  }
  if (looked_up) table = rewritten.add("Gather", {table, node.inputs[3]}, label + "_rows");
  const std::string axis = rewritten.ints({heads.flat() ? 2 : 1}, label + "_heads");
  return rewritten.add("Unsqueeze", {table, axis}, label);
}

Nodes rotary_to_own(ImportScope& scope, SourceNode node) {
  const RotaryHeads heads = rotary_heads(scope, node);
  Rewritten rewritten(scope, node);
  const std::string cos = rotary_table(scope, node, rewritten, 1);
  const std::string sin = rotary_table(scope, node, rewritten, 2);
  SourceNode rotated = node;
  rotated.inputs = {node.inputs[0], cos, sin};
  rotated.attributes.erase("num_heads");
  rotated.attributes.erase("rotary_embedding_dim");
  if (!heads.flat()) return rewritten.take(to_own_domain(scope, std::move(rotated)).front());
  const Ints split{heads.x[0], heads.x[1], heads.heads, heads.x[2] / heads.heads};
  rotated.inputs[0] =
      rewritten.add("Reshape", {node.inputs[0], rewritten.ints(split, "split")}, "by_head");
  rotated.outputs = {scope.fresh(node.name + "/rotated")};
  Nodes nodes = rewritten.take(to_own_domain(scope, rotated).front());
  nodes.push_back(
      {.op = "Reshape",
       .domain = {},
       .opset = 17,
       .name = node.name + "/together",
       .source = node.source,
       .inputs = {rotated.outputs[0], rewritten.ints({heads.x[0], heads.x[1], heads.x[2]}, "flat")},
       .outputs = node.outputs,
       .attributes = {},
       .depth = node.depth});
  return nodes;
}

constexpr AdapterRow kRows[] = {
    {"ReduceL1", 18, kEnd, axes_to_attribute},
    {"ReduceL2", 18, kEnd, axes_to_attribute},
    {"ReduceLogSum", 18, kEnd, axes_to_attribute},
    {"ReduceLogSumExp", 18, kEnd, axes_to_attribute},
    {"ReduceMax", 18, 20, axes_to_attribute},
    {"ReduceMax", 20, kEnd, extreme_with_booleans},
    {"ReduceMean", 18, kEnd, axes_to_attribute},
    {"ReduceMin", 18, 20, axes_to_attribute},
    {"ReduceMin", 20, kEnd, extreme_with_booleans},
    {"ReduceProd", 18, kEnd, axes_to_attribute},
    {"ReduceSumSquare", 18, kEnd, axes_to_attribute},
    {"Split", 18, kEnd, slices_to_sizes},
    {"Pad", 18, kEnd, pads_of_all_axes},
    {"Resize", 18, kEnd, resize_of_all_axes},
    {"Mish", 18, kEnd, to_own_domain, "Mish"},
    {"AffineGrid", 20, kEnd, to_own_domain, "AffineGrid"},
    {"Gelu", 20, kEnd, to_own_domain, "Gelu"},
    {"GridSample", 20, kEnd, to_own_domain, "GridSample"},
    {"BitwiseAnd", 18, kEnd, to_own_domain, "BitwiseAnd"},
    {"BitwiseNot", 18, kEnd, to_own_domain, "BitwiseNot"},
    {"BitwiseOr", 18, kEnd, to_own_domain, "BitwiseOr"},
    {"BitwiseXor", 18, kEnd, to_own_domain, "BitwiseXor"},
    {"CenterCropPad", 18, kEnd, to_own_domain, "CenterCropPad"},
    {"Col2Im", 18, kEnd, to_own_domain, "Col2Im"},
    {"DeformConv", 19, kEnd, to_own_domain, "DeformConv"},
    {"TensorScatter", 24, kEnd, to_own_domain, "TensorScatter"},
    {"RMSNormalization", 23, kEnd, norm_of_whole_scale, "RMSNormalization"},
    {"RotaryEmbedding", 23, kEnd, rotary_to_own, "RotaryEmbedding"},
    {"Swish", 24, kEnd, to_own_domain, "Swish"},
    {"CumProd", 26, kEnd, to_own_domain, "CumProd"},
    {"BitCast", 26, kEnd, to_own_domain, "BitCast"},
};

}  // namespace

std::span<const AdapterRow> newer_rows() { return kRows; }

}  // namespace trainscope
