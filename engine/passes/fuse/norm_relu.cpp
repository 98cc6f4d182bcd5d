// fuse_norm_relu: batch norm in training and the Relu behind it, perhaps with the addition of
// a residual network between them, as one node.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// PyTorch's form of the norm, which has a fused op of its own.
bool is_sample_norm(const Node& node) {
  return is_op(node, kTrainscopeDomain, "SampleBatchNormalization");
}

struct NormReluMatch {
  NodeId norm = kNoNode;
  ValueId residual = kNoValue;
  std::vector<NodeId> nodes;  // Relu, the addition, the norm
};

// From a Relu back to the norm.
class NormReluSearch {
 public:
  explicit NormReluSearch(const Matcher& match) : match_(match) {}

  std::optional<NormReluMatch> find(NodeId relu) {
    if (!match_.is_op(relu, "Relu")) return std::nullopt;
    const ValueId before = match_.input(relu, 0);
    if (const NodeId norm = training_norm(before); norm != kNoNode) {
      return usable({.norm = norm, .nodes = {relu, norm}});
    }
    const NodeId add = match_.made_by(before, "Add");
    if (add == kNoNode) return std::nullopt;
    for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const NodeId norm = training_norm(match_.input(add, i));
      if (norm == kNoNode) continue;
      std::optional<NormReluMatch> found =
          usable({.norm = norm, .residual = match_.input(add, 1 - i), .nodes = {relu, add, norm}});
      if (found) return found;
    }
    return std::nullopt;
  }

  // Not empty: there are a norm and a Relu, but for this.
  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return matched_; }

 private:
  const Node& node(NodeId id) const { return match_.graph().node(id); }

  // The node that makes v by the statistics of the batch; else kNoNode.
  NodeId training_norm(ValueId v) const {
    const NodeId producer = v == kNoValue ? kNoNode : match_.value(v).producer;
    const bool sample =
        producer != kNoNode && match_.output(producer) == v && is_sample_norm(node(producer));
    const NodeId id = sample ? producer : match_.made_by(v, "BatchNormalization");
    if (id == kNoNode || node(id).attributes.integer("training_mode", 0) == 0) return kNoNode;
    return id;
  }

  std::optional<NormReluMatch> refuse(std::string why) {
    why_not_ = std::move(why);
    return std::nullopt;
  }

  std::optional<NormReluMatch> usable(NormReluMatch found) {
    matched_ = found.nodes;
    for (NodeId id : found.nodes) {
      const ValueId v = match_.output(id);
      if (id == found.nodes.front() || match_.only_reader(v) != kNoNode) continue;
      return refuse(match_.why_kept(v));
    }
    // They are made where Relu stands, later than before.
    const std::vector<ValueId>& outputs = node(found.norm).outputs;
    for (std::size_t k = 1; k < outputs.size(); ++k) {
      if (outputs[k] == kNoValue || match_.value(outputs[k]).uses.empty()) continue;
      return refuse(fmt::format("running statistics of '{}' are read in the same step",
                                printable(node(found.norm).name)));
    }
    const TensorType& type = match_.value(match_.output(found.norm)).type;
    const TensorType& scale = match_.value(node(found.norm).inputs[1]).type;
    if (scale.dtype != computed(type.dtype)) {
      return refuse(fmt::format("its scale is {}, {} is expected", type_text(scale),
                                name_of(computed(type.dtype))));
    }
    if (found.residual != kNoValue && match_.value(found.residual).type != type) {
      return refuse(fmt::format("'{}' is {}, the norm's result {}",
                                printable(match_.value(found.residual).name),
                                type_text(match_.value(found.residual).type), type_text(type)));
    }
    return found;
  }

  const Matcher& match_;
  std::vector<NodeId> matched_;
  std::string why_not_;
};

// Its first result; the others take the place of the norm's.
ValueId fused_norm(Rewriter& rewriter, Builder& b, const NormReluMatch& found) {
  const Node norm = b.graph().node(found.norm);  // a copy: the graph grows
  Attributes attributes = norm.attributes;
  attributes.erase("training_mode");
  std::vector<ValueId> inputs = norm.inputs;
  if (found.residual != kNoValue) inputs.push_back(found.residual);
  const std::vector<ValueId> made =
      b.multi(is_sample_norm(norm) ? "SampleBatchNormRelu" : "BatchNormRelu", std::move(inputs),
              static_cast<int>(norm.outputs.size()), attributes);
  for (std::size_t k = 1; k < made.size(); ++k) {
    if (norm.outputs[k] != kNoValue) rewriter.replace(norm.outputs[k], made[k]);
  }
  return made[0];
}

bool fuse_norm_relu(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, context.options);
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased) continue;
    NormReluSearch search(match);
    const std::optional<NormReluMatch> found = search.find(id);
    if (!found) {
      if (!search.why_not().empty()) {
        context.near_miss(graph, id, search.matched(), search.why_not());
      }
      continue;
    }
    replace_region(rewriter, found->nodes, id,
                   [&](Builder& b) { return fused_norm(rewriter, b, *found); });
    context.count("fused");
  }
  return rewriter.changed();
}

}  // namespace

Pass fuse_norm_relu_pass() {
  return {.name = "fuse_norm_relu",
          .doc = "Compute batch norm in training, the sum with a residual, and Relu in one node.",
          .run = fuse_norm_relu};
}

}  // namespace trainscope
