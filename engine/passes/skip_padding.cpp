// skip_padding: what is computed token by token is computed for real tokens only.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/passes/padding_search.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// Writes the nodes of a search once more, on rows of which the real tokens' come first.
class Packing {
 public:
  Packing(Rewriter& rewriter, const PaddingSearch& search, ValueId mask, PassContext& context)
      : rewriter_(rewriter),
        graph_(rewriter.graph()),
        search_(search),
        mask_(mask),
        context_(context) {}

  void run(const std::vector<NodeId>& nodes) {
    written_.insert(nodes.begin(), nodes.end());
    ignore_labels();
    order_rows(rewriter_.before(nodes.front()));
    for (NodeId id : nodes) write(id);
    release_outputs(nodes);
    for (NodeId id : nodes) put_back(id);
    for (NodeId id : std::views::reverse(nodes)) {
      rewriter_.erase_into(id, packed_.at(graph_.node(id).outputs[0]));
    }
  }

 private:
  const TokenRows& tokens() const { return search_.tokens(); }

  void order_rows(Builder& b) {
    ValueId real = mask_;
    const DType dtype = b.type(mask_).dtype;
    if (dtype != DType::kI64 && dtype != DType::kI32) {
      real = cast_to(b, cast_to(b, real, DType::kBool), DType::kI64);
    }
    const std::vector<ValueId> ordered =
        b.multi("CompactRows", {b.reshape(real, {tokens().rows()})}, 2,
                {{"ignore_index", std::int64_t{0}}});
    order_ = ordered[0];
    count_ = ordered[1];
  }

  // Labels of padding do not count, whatever they are: for losses over all rows, and where
  // `compact_labels` chooses some.
  void ignore_labels() {
    std::map<ValueId, std::int64_t> labels;  // and what they ignore
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const bool counts = node.op->counts_rows;
      if (!counts && (row_kind(node) != RowKind::kLoss || written_.contains(id))) continue;
      const ValueId given = node.inputs[counts ? 0 : 1];
      const NodeId made_by = graph_.value(given).producer;
      const bool chosen = made_by != kNoNode && graph_.node(made_by).op->index_input >= 0;
      if (chosen) continue;
      if (graph_.value(given).type.elements() != tokens().rows()) continue;
      labels.emplace(given, node.attributes.integer("ignore_index", -100));
    }
    for (const auto& [given, ignored] : labels) {
      const std::vector<Use> uses = graph_.value(given).uses;
      NodeId first = uses.front().node;
      for (NodeId id : graph_.order()) {
        if (std::ranges::find(uses, id, &Use::node) == uses.end()) continue;
        first = id;
        break;
      }
      Builder& b = rewriter_.before(first);
      const TensorType type = b.type(given);
      const ValueId real = b.reshape(cast_to(b, mask_, DType::kBool), type.shape);
      const ValueId none = b.scalar(static_cast<double>(ignored), type.dtype);
      const ValueId masked = b("Where", {real, given, none});
      for (const Use& use : uses) rewriter_.set_input(use.node, use.input, masked);
    }
  }

  ValueId moved(Builder& b, std::string_view op, ValueId v, Attributes attributes = {}) {
    context_.count("moves of rows");
    return b(op, {v, order_, count_}, std::move(attributes));
  }

  // v's rows in their new order.
  ValueId packed(Builder& b, ValueId v) {
    const auto known = packed_.find(v);
    if (known != packed_.end()) return known->second;
    const ValueId rows = moved(b, "PackRows", b.reshape(v, tokens().flat(b.shape(v))));
    packed_.emplace(v, rows);
    return rows;
  }

  void write(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the graph grows
    Builder& b = rewriter_.before(id);
    context_.count(node.op->name);
    packed_[node.outputs[0]] = written(b, node);
  }

  ValueId written(Builder& b, const Node& node) {
    switch (row_kind(node)) {
      case RowKind::kView:
        return b.reshape(packed(b, node.inputs[0]), tokens().flat(b.shape(node.outputs[0])));
      case RowKind::kMatmul:
        return matmul(b, node);
      case RowKind::kLoss:
        return loss(b, node);
      default:
        return token_wise(b, node);
    }
  }

  ValueId matmul(Builder& b, const Node& node) {
    std::vector<ValueId> inputs{packed(b, node.inputs[0]), node.inputs[1], count_};
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
      inputs.push_back(b.reshape(node.inputs[2], {b.type(node.inputs[2]).elements()}));
    }
    Attributes attributes;
    const bool transposed =
        node.attributes.integer("transB", 0) != 0 || node.attributes.integer("transpose_b", 0) != 0;
    if (transposed) attributes.set("transpose_b", std::int64_t{1});
    return b("CompactMatMul", std::move(inputs), std::move(attributes));
  }

  // Labels of padding do not count, whatever they are.
  ValueId loss(Builder& b, const Node& node) {
    const std::int64_t ignored = node.attributes.integer("ignore_index", -100);
    const ValueId labels =
        moved(b, "PackRows", b.reshape(node.inputs[1], {tokens().rows()}), {{"fill", ignored}});
    Attributes attributes = node.attributes;
    attributes.set("class_axis", std::int64_t{-1});
    return b.multi(node.op->name, {packed(b, node.inputs[0]), labels}, 3, std::move(attributes))
        .front();
  }

  // The same op on rows. What all rows share loses its axes of size 1 in front.
  ValueId token_wise(Builder& b, const Node& node) {
    const Shape result = b.shape(node.outputs[0]);
    const int own = tokens().flat(result).rank - 1;
    std::vector<ValueId> inputs = node.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNoValue) continue;
      if (search_.is_rows(node, i)) {
        inputs[i] = packed(b, inputs[i]);
        continue;
      }
      const Shape shared = b.shape(inputs[i]);
      if (shared.rank <= own) continue;
      inputs[i] = b.reshape(inputs[i], Shape(shared.span().last(static_cast<std::size_t>(own))));
    }
    Attributes attributes = node.attributes;
    if (row_kind(node) == RowKind::kNorm) {
      attributes.set(
          "axis", static_cast<std::int64_t>(
                      normalized_axis(attributes.integer("axis", -1), result.rank) - result.rank));
    }
    return b(node.op->name, std::move(inputs), std::move(attributes));
  }

  // The step keeps no outputs of the model.
  void release_outputs(const std::vector<NodeId>& nodes) {
    std::vector<ValueId> released;
    for (NodeId id : nodes) {
      const ValueId v = graph_.node(id).outputs[0];
      if (v != graph_.loss) released.push_back(v);
    }
    graph_.release_outputs(released);
  }

  // For those that read all rows in their places: padding as zeros.
  void put_back(NodeId id) {
    const ValueId v = graph_.node(id).outputs[0];
    const ValueId now = packed_.at(v);
    if (v == graph_.loss) return rewriter_.replace(v, now);
    const bool read = std::ranges::any_of(
        graph_.value(v).uses, [this](const Use& use) { return !written_.contains(use.node); });
    if (!read) return;
    Builder& b = rewriter_.before(id);
    const Shape shape = b.shape(v);  // a copy: the graph grows
    rewriter_.replace(v, b.reshape(moved(b, "UnpackRows", now), shape));
  }

  Rewriter& rewriter_;
  Graph& graph_;
  const PaddingSearch& search_;
  ValueId mask_;
  PassContext& context_;
  ValueId order_ = kNoValue;
  ValueId count_ = kNoValue;
  std::unordered_set<NodeId> written_;           // the nodes of the search
  std::unordered_map<ValueId, ValueId> packed_;  // of the old order: in the new one
};

ValueId checked_mask(const Graph& graph, const std::string& name) {
  const ValueId mask = graph.find(name);
  const bool given =
      mask != kNoValue && std::ranges::find(graph.inputs, mask) != graph.inputs.end();
  require(given, ErrorCode::kUsage,
          "the mask of padding is to be '{}', which is no input of the model", printable(name));
  const TensorType& type = graph.value(mask).type;
  require(type.shape.rank == 2, ErrorCode::kUsage,
          "the mask of padding '{}' is {}, expected [batch, sequence]", printable(name),
          type_text(type));
  return mask;
}

bool skip_padding(Graph& graph, PassContext& context) {
  const TrainingOptions& options = context.options;
  const bool wanted = !options.skip_padding.empty() && options.mode == GraphMode::kTrain &&
                      !options.keep_outputs && graph.loss != kNoValue;
  if (!wanted) return false;
  for (NodeId id : graph.order()) {
    if (graph.node(id).provenance.pass == context.pass) return false;  // done
  }
  const ValueId mask = checked_mask(graph, options.skip_padding);
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, options);
  PaddingSearch search(match, mask, options);
  const std::vector<NodeId> nodes = search.find();
  for (const auto& [id, why] : search.near_misses()) context.near_miss(graph.node(id), why);
  if (nodes.empty()) return false;
  Packing(rewriter, search, mask, context).run(nodes);
  return true;
}

}  // namespace

Pass skip_padding_pass() {
  return {.name = "skip_padding",
          .doc =
              "With --skip-padding: matmuls, norms and what lies between them are computed for "
              "real tokens only.",
          .run = skip_padding};
}

}  // namespace trainscope
