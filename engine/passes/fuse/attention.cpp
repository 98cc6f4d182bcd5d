// fuse_attention: matmuls, masks, softmax and dropout of attention as one node, which reads the
// heads where a linear layer leaves them.
#include <utility>
#include <variant>

#include "engine/passes/fuse/attention_search.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// A table of rotary positions for heads whose axes were permuted.
ValueId permuted_table(Builder& b, ValueId table, const Ints& permutation) {
  const Shape given = b.shape(table);  // a copy: the graph grows
  Shape all;
  for (int axis = given.rank; axis < static_cast<int>(permutation.size()); ++axis) {
    all.push_back(1);
  }
  for (std::int64_t size : given.span()) all.push_back(size);
  return b("Transpose", {b.reshape(table, all)}, {{"perm", permutation}});
}

ValueId by_token(Builder& b, const Strand& strand) {
  ValueId heads = strand.source;
  if (!strand.is_in_order()) heads = b("Transpose", {heads}, {{"perm", strand.permutation}});
  if (strand.rotary == kNoNode) return heads;
  const Node rotary = b.graph().node(strand.rotary);  // a copy: the graph grows
  const ValueId cos = permuted_table(b, rotary.inputs[1], strand.rotary_permutation);
  const ValueId sin = permuted_table(b, rotary.inputs[2], strand.rotary_permutation);
  return b("RotaryEmbedding", {heads, cos, sin}, rotary.attributes);
}

// The step by which the weights drop out; kNoValue: they do not.
ValueId step_of_dropout(Builder& b, NodeId id, Attributes& attributes) {
  if (id == kNoNode) return kNoValue;
  const Node& node = b.graph().node(id);
  const auto dropout = std::get<DropoutParams>(node.op->params(*NodeArgs(b.graph(), node)));
  attributes.set("ratio", dropout.ratio);
  attributes.set("seed", static_cast<std::int64_t>(dropout.seed));
  attributes.set("stream", static_cast<std::int64_t>(dropout.stream));
  return node.inputs[1];
}

ValueId attention(Builder& b, const AttentionMatch& found) {
  const auto size = [&b](const Strand& strand, std::size_t axis) {
    return b.shape(strand.source)[static_cast<int>(strand.permutation[axis])];
  };
  Attributes attributes{{"scale", found.scale}, {"causal", std::int64_t{found.causal ? 1 : 0}}};
  std::vector<ValueId> inputs;
  if (found.packed != kNoValue) {
    const std::int64_t heads = size(found.q, 2);
    const std::int64_t kv_heads = size(found.k, 2);
    attributes.set("q_heads", heads);
    attributes.set("kv_heads", kv_heads);
    const Shape whole{size(found.q, 0), size(found.q, 1), heads + 2 * kv_heads, size(found.q, 3)};
    inputs = {b.reshape(found.packed, whole), kNoValue, kNoValue};
  } else {
    inputs = {by_token(b, found.q), by_token(b, found.k), by_token(b, found.v)};
  }
  ValueId bias = kNoValue;
  for (ValueId each : found.biases) bias = bias == kNoValue ? each : b("Add", {bias, each});
  inputs.push_back(bias);
  inputs.push_back(step_of_dropout(b, found.dropout, attributes));
  while (inputs.back() == kNoValue) inputs.pop_back();
  const ValueId y = b.multi("Attention", std::move(inputs), 2, std::move(attributes))[0];
  return found.by_token ? y : b("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}});
}

bool fuse_attention(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, context.options);
  CausalMasks masks(graph, context.evaluate);
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased || !match.is_op(id, "Softmax")) continue;
    AttentionSearch search(match, masks);
    const std::optional<AttentionMatch> found = search.find(id);
    if (!found) {
      if (!search.why_not().empty()) {
        context.near_miss(graph, id, search.matched(), search.why_not());
      }
      continue;
    }
    replace_region(rewriter, found->nodes, found->last,
                   [&](Builder& b) { return attention(b, *found); });
    context.count("fused");
  }
  return rewriter.changed();
}

}  // namespace

Pass fuse_attention_pass() {
  return {.name = "fuse_attention",
          .doc =
              "Compute attention in one node that never holds all scores, and reads q, k and v "
              "where linear layers leave them.",
          .run = fuse_attention};
}

}  // namespace trainscope
