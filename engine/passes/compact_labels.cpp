// compact_labels: masked-label compaction. The rows of the last linear layer whose labels count are
// gathered to the front, and it multiplies these alone.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"
#include "engine/passes/plain_view.h"
#include "engine/passes/token_rows.h"

namespace trainscope {
namespace {

// A cross entropy of rows of scores, and the matmul that makes them.
struct Head {
  NodeId loss = kNoNode;
  NodeId matmul = kNoNode;
  std::vector<NodeId> nodes;  // both, and what only reshapes between them
  ValueId bias = kNoValue;    // [classes]
  bool transpose_b = false;
};

class HeadSearch {
 public:
  explicit HeadSearch(const Matcher& match) : match_(match) {}

  std::optional<Head> find() {
    ValueId v = match_.graph().loss;
    head_.loss = match_.value(v).producer;
    while (is_view(head_.loss)) head_.loss = match_.value(match_.input(head_.loss, 0)).producer;
    if (!is_plain_loss(head_.loss)) return std::nullopt;
    head_.nodes = {head_.loss};
    v = match_.input(head_.loss, 0);
    const std::int64_t classes = last_axis(v);
    while (last_axis(v) == classes && is_read_once(v)) {
      const NodeId id = match_.value(v).producer;
      if (id == kNoNode) return refuse(v, "is no matmul");
      if (!is_view(id)) return with_matmul(id);
      head_.nodes.push_back(id);
      v = match_.input(id, 0);
    }
    return refuse(v, "is read by more than the loss, or has other rows");
  }

  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return head_.nodes; }
  NodeId loss() const { return match_.value(match_.graph().loss).producer; }

 private:
  const Node& node(NodeId id) const { return match_.graph().node(id); }
  const Shape& shape(ValueId v) const { return match_.value(v).type.shape; }
  std::int64_t last_axis(ValueId v) const {
    return shape(v).rank == 0 ? 0 : shape(v)[shape(v).rank - 1];
  }
  bool is_view(NodeId id) const { return id != kNoNode && is_plain_view(*node(id).op); }
  // As an output of the model it need not stay: the step does not keep these.
  bool is_read_once(ValueId v) const { return match_.value(v).uses.size() == 1; }

  // Over the last axis, by a mean of its own.
  bool is_plain_loss(NodeId id) const {
    if (id == kNoNode || !node(id).op->of_scores || node(id).inputs.size() > 2) return false;
    const std::vector<ValueId>& outputs = node(id).outputs;
    for (std::size_t i = 1; i < outputs.size(); ++i) {
      if (outputs[i] != kNoValue && !match_.value(outputs[i]).uses.empty()) return false;
    }
    const int rank = shape(match_.input(id, 0)).rank;
    const std::int64_t axis = node(id).attributes.integer("class_axis", -1);
    return normalized_axis(axis, rank) == rank - 1;
  }

  std::optional<Head> refuse(ValueId v, std::string_view why) {
    why_not_ = "'" + printable(match_.value(v).name) + "' " + std::string(why);
    return std::nullopt;
  }

  std::optional<Head> with_matmul(NodeId id) {
    const Node& matmul = node(id);
    if (row_kind(matmul) != RowKind::kMatmul) return refuse(match_.output(id), "is no matmul");
    head_.nodes.push_back(id);
    const auto flag = [&matmul](std::string_view a, std::string_view b) {
      return matmul.attributes.integer(a, 0) != 0 || matmul.attributes.integer(b, 0) != 0;
    };
    const bool scaled = matmul.attributes.number("alpha", 1.0) != 1.0 ||
                        matmul.attributes.number("beta", 1.0) != 1.0;
    if (flag("transA", "transpose_a") || scaled || shape(matmul.inputs[1]).rank != 2 ||
        shape(matmul.inputs[0]).rank < 2) {
      return refuse(match_.output(id), "is not rows times one matrix");
    }
    head_.matmul = id;
    head_.transpose_b = flag("transB", "transpose_b");
    head_.bias = match_.input(id, 2);
    if (head_.bias != kNoValue && shape(head_.bias).elements() != last_axis(match_.output(id))) {
      return refuse(head_.bias, "is more than a number per class");
    }
    return head_;
  }

  const Matcher& match_;
  Head head_;  // as far as it is found
  std::string why_not_;
};

SourceNames sources_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> sources;
  for (NodeId id : nodes) {
    const SourceNames& more = graph.node(id).provenance.sources;
    sources.insert(sources.end(), more.begin(), more.end());
  }
  return SourceNames(std::move(sources));
}

struct CompactedHead {
  ValueId scores = kNoValue;
  ValueId loss = kNoValue;
};

// The scores and the loss of the compacted rows: those that count come first.
CompactedHead compacted_loss(Builder& b, const Head& head, const Node& loss, const Node& matmul) {
  const Shape x = b.shape(matmul.inputs[0]);
  const std::int64_t width = x[x.rank - 1];
  const std::int64_t rows = b.type(loss.inputs[1]).elements();
  const ValueId labels = b.reshape(loss.inputs[1], {rows});
  const std::vector<ValueId> compacted =
      b.multi("CompactRows", {labels}, 2,
              {{"ignore_index", loss.attributes.integer("ignore_index", -100)}});
  const ValueId packed = b("Gather", {b.reshape(matmul.inputs[0], {rows, width}), compacted[0]});
  std::vector<ValueId> inputs{packed, matmul.inputs[1], compacted[1]};
  if (head.bias != kNoValue) {
    inputs.push_back(b.reshape(head.bias, {b.type(head.bias).elements()}));
  }
  Attributes attributes;
  if (head.transpose_b) attributes.set("transpose_b", std::int64_t{1});
  const ValueId scores = b("CompactMatMul", std::move(inputs), std::move(attributes));
  const ValueId packed_labels = b("Gather", {labels, compacted[0]});
  Attributes of_loss = loss.attributes;
  of_loss.set("class_axis", std::int64_t{-1});
  const std::vector<ValueId> loss_outputs =
      b.multi(loss.op->name, {scores, packed_labels}, 3, std::move(of_loss));
  return {.scores = scores, .loss = loss_outputs.front()};
}

void replace(Rewriter& rewriter, const Head& head) {
  Graph& graph = rewriter.graph();
  const Node loss = graph.node(head.loss);  // copies: the graph grows
  const Node matmul = graph.node(head.matmul);
  std::vector<ValueId> scores;
  for (NodeId id : head.nodes) {
    if (id != head.loss) scores.push_back(graph.node(id).outputs[0]);
  }
  graph.release_outputs(scores);
  Builder& b = rewriter.before(head.loss);
  b.set_provenance({.sources = sources_of(graph, head.nodes), .pass = b.provenance().pass});
  const CompactedHead made = compacted_loss(b, head, loss, matmul);
  rewriter.replace(loss.outputs[0], made.loss);
  rewriter.erase(head.loss);
  for (NodeId id : head.nodes) {  // from the loss back
    if (id != head.loss) rewriter.erase_into(id, made.scores);
  }
}

bool skip_ignored(Graph& graph, PassContext& context) {
  const TrainingOptions& options = context.options;
  const bool wanted = options.skip_ignored && options.mode == GraphMode::kTrain &&
                      !options.keep_outputs && options.loss_chunks <= 1;
  if (!wanted || graph.loss == kNoValue) return false;
  for (NodeId id : graph.order()) {
    if (graph.node(id).op->counts_rows) return false;  // done
  }
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, options);
  HeadSearch search(match);
  const std::optional<Head> head = search.find();
  if (!head) {
    if (!search.why_not().empty()) {
      context.near_miss(graph, search.loss(), search.matched(), search.why_not());
    }
    return false;
  }
  replace(rewriter, *head);
  context.count("heads");
  return true;
}

}  // namespace

Pass compact_labels_pass() {
  return {.name = "compact_labels",
          .formerly = "counted_rows",
          .doc =
              "With --skip-ignored: rows whose labels count are compacted, and the last linear "
              "layer computes these alone.",
          .run = skip_ignored};
}

}  // namespace trainscope
