// fuse_fake_quantize: a tensor that is quantized and read back as one node, which has a gradient.
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ops/quantize/quantize_layout.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

struct Pair {
  NodeId quantize = kNoNode;
  NodeId dequantize = kNoNode;
};

class PairSearch {
 public:
  explicit PairSearch(const Graph& graph) : graph_(graph) {}

  std::optional<Pair> find(NodeId id) {
    if (!is_op(node(id), kTrainscopeDomain, "DequantizeLinear")) return std::nullopt;
    const Pair pair{.quantize = graph_.value(node(id).inputs[0]).producer, .dequantize = id};
    if (pair.quantize == kNoNode) return std::nullopt;
    if (!is_op(node(pair.quantize), kTrainscopeDomain, "QuantizeLinear")) return std::nullopt;
    matched_ = {pair.dequantize, pair.quantize};
    why_not_ = reason(pair);
    if (!why_not_.empty()) return std::nullopt;
    return pair;
  }

  // Not empty: there is a pair, but for this.
  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return matched_; }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  ValueId input(NodeId id, std::size_t i) const {
    return i < node(id).inputs.size() ? node(id).inputs[i] : kNoValue;
  }
  DType dtype(ValueId v) const { return graph_.value(v).type.dtype; }

  bool same_value(ValueId a, ValueId b) const {
    if (a == b) return true;
    if (a == kNoValue || b == kNoValue) return false;
    const Value& first = graph_.value(a);
    const Value& second = graph_.value(b);
    const bool constants =
        first.kind == ValueKind::kConstant && second.kind == ValueKind::kConstant;
    if (!constants || !first.data || !second.data || first.type != second.type) return false;
    return std::memcmp(first.data->data(), second.data->data(), first.type.bytes()) == 0;
  }

  bool same_attribute(const Pair& pair, std::string_view name, std::int64_t absent) const {
    return node(pair.quantize).attributes.integer(name, absent) ==
           node(pair.dequantize).attributes.integer(name, absent);
  }

  std::string reason(const Pair& pair) const {
    const ValueId x = input(pair.quantize, 0);
    const ValueId quantized = input(pair.dequantize, 0);
    if (!is_quantized_integer(dtype(quantized))) return "it is not quantized to integers";
    const DType type = dtype(x);
    const bool one_type = is_float(type) && dtype(input(pair.quantize, 1)) == type &&
                          dtype(node(pair.dequantize).outputs[0]) == type;
    if (!one_type) return "the tensor, its scale and the result are of different types";
    const bool same = same_value(input(pair.quantize, 1), input(pair.dequantize, 1)) &&
                      same_value(input(pair.quantize, 2), input(pair.dequantize, 2)) &&
                      same_attribute(pair, "axis", 1) && same_attribute(pair, "block_size", 0);
    return same ? "" : "it is read back with another scale or zero point";
  }

  const Graph& graph_;
  std::vector<NodeId> matched_;
  std::string why_not_;
};

// The zero point as a float; zeros where there is none.
ValueId zero_of(Builder& b, ValueId zero, const TensorType& scale) {
  if (zero == kNoValue) return b.constant(Tensor(scale), "zero");
  const bool small = is_storage(b.type(zero).dtype);
  const Attributes to{{"to", onnx_number(scale.dtype)}};
  return b.reshape(b(small ? "StorageCast" : "Cast", {zero}, to), scale.shape);
}

ValueId fake_quantized(Builder& b, const Pair& pair) {
  const Node quantize = b.graph().node(pair.quantize);  // a copy: the graph grows
  const ValueId scale = quantize.inputs[1];
  const ValueId zero = quantize.inputs.size() > 2 ? quantize.inputs[2] : kNoValue;
  const IntegerRange range = integer_range(b.type(quantize.outputs[0]).dtype);
  Attributes attributes{{"least", range.least}, {"greatest", range.greatest}};
  for (std::string_view name : {"axis", "block_size"}) {
    if (quantize.attributes.has(name)) {
      attributes.set(std::string(name), quantize.attributes.integer(name, 0));
    }
  }
  const TensorType type = b.type(scale);
  return b("FakeQuantize", {quantize.inputs[0], scale, zero_of(b, zero, type)},
           std::move(attributes));
}

bool fuse_fake_quantize(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased) continue;
    PairSearch search(graph);
    const std::optional<Pair> found = search.find(id);
    if (!found) {
      if (!search.why_not().empty()) {
        context.near_miss(graph, id, search.matched(), search.why_not());
      }
      continue;
    }
    replace_region(rewriter, {found->dequantize, found->quantize}, id,
                   [&](Builder& b) { return fake_quantized(b, *found); });
    context.count("fused");
  }
  return rewriter.changed();
}

}  // namespace

Pass fuse_fake_quantize_pass() {
  return {.name = "fuse_fake_quantize",
          .doc = "Quantize a float and read it back in one node, which has a gradient.",
          .run = fuse_fake_quantize};
}

}  // namespace trainscope
