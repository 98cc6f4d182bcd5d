// merge_matmuls: matmuls of one input as one node, which goes through the input once.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostMatmuls = 8;  // that a kernel takes

// Rows of x times one matrix, and perhaps a number per column.
struct RowMatmul {
  NodeId node = kNoNode;
  ValueId x = kNoValue;
  ValueId matrix = kNoValue;
  ValueId bias = kNoValue;  // [columns]
  bool transposed = false;
};

using Group = std::vector<RowMatmul>;

// Nodes in their order, divided into matmuls of one input that nothing costly stands between.
class GroupSearch {
 public:
  GroupSearch(const Matcher& match, PassContext& context) : match_(match), context_(context) {}

  std::vector<Group> find() {
    for (NodeId id : match_.graph().order()) {
      const Node& node = match_.graph().node(id);
      places_.emplace(id, places_.size());
      if (node.op->precision != Precision::kLow) continue;
      const std::optional<RowMatmul> matmul = row_matmul(id);
      if (!matmul || !joins(*matmul)) groups_.emplace_back();
      if (matmul) groups_.back().push_back(*matmul);
    }
    std::erase_if(groups_, [](const Group& group) { return group.size() < 2; });
    return std::move(groups_);
  }

 private:
  const Shape& shape(ValueId v) const { return match_.value(v).type.shape; }

  std::optional<RowMatmul> row_matmul(NodeId id) const {
    const Node& node = match_.graph().node(id);
    const bool ours = is_op(node, kTrainscopeDomain, "BatchMatMul");
    if (!ours && !match_.is_op(id, "MatMul") && !match_.is_op(id, "Gemm")) return std::nullopt;
    const auto flag = [&node](std::string_view a, std::string_view b) {
      return node.attributes.integer(a, 0) != 0 || node.attributes.integer(b, 0) != 0;
    };
    const bool plain = !flag("transA", "transpose_a") && !flag("upcast", "upcast") &&
                       node.attributes.number("alpha", 1.0) == 1.0 &&
                       node.attributes.number("beta", 1.0) == 1.0;
    const RowMatmul matmul{.node = id,
                           .x = match_.input(id, 0),
                           .matrix = match_.input(id, 1),
                           .bias = match_.input(id, 2),
                           .transposed = flag("transB", "transpose_b")};
    const Shape& y = shape(match_.output(id));
    const bool rows = shape(matmul.x).rank >= 2 && shape(matmul.matrix).rank == 2;
    if (!plain || !rows) return std::nullopt;
    const bool fits = matmul.bias == kNoValue || shape(matmul.bias) == Shape{y[y.rank - 1]};
    return fits ? std::optional(matmul) : std::nullopt;
  }

  // Whether it may be computed where the last group's first matmul is.
  bool joins(const RowMatmul& matmul) {
    const auto [known, fresh] = reader_of_.try_emplace(matmul.x, matmul.node);
    const NodeId other = std::exchange(known->second, matmul.node);
    if (fresh) return false;
    const std::string name = printable(match_.graph().node(other).name);
    const Group& group = groups_.back();
    if (group.empty() || group.front().x != matmul.x) {
      return refuse(matmul, {other}, fmt::format("other matmuls stand between it and '{}'", name));
    }
    std::vector<NodeId> members;
    for (const RowMatmul& member : group) members.push_back(member.node);
    if (group.front().transposed != matmul.transposed) {
      return refuse(matmul, members,
                    fmt::format("one matrix is transposed, that of '{}' not", name));
    }
    for (ValueId v : {matmul.matrix, matmul.bias}) {
      const NodeId producer = v == kNoValue ? kNoNode : match_.value(v).producer;
      if (producer == kNoNode || places_.at(producer) < places_.at(group.front().node)) continue;
      return refuse(matmul, members,
                    fmt::format("'{}' is made after '{}'", printable(match_.value(v).name), name));
    }
    return group.size() < kMostMatmuls;
  }

  // `others`: that it would have been computed with.
  bool refuse(const RowMatmul& matmul, const std::vector<NodeId>& others, std::string why) {
    context_.near_miss(match_.graph(), matmul.node, others, std::move(why));
    return false;
  }

  const Matcher& match_;
  PassContext& context_;
  std::unordered_map<NodeId, std::size_t> places_;
  std::unordered_map<ValueId, NodeId> reader_of_;  // the last matmul of a value
  std::vector<Group> groups_;                      // empty: another op
};

std::vector<ValueId> inputs_of(const Group& group) {
  std::vector<ValueId> inputs{group.front().x};
  for (const RowMatmul& matmul : group) inputs.push_back(matmul.matrix);
  for (const RowMatmul& matmul : group) inputs.push_back(matmul.bias);
  while (inputs.back() == kNoValue) inputs.pop_back();
  return inputs;
}

void merge(Rewriter& rewriter, const Group& group) {
  const Graph& graph = rewriter.graph();
  Attributes attributes;
  if (group.front().transposed) attributes.set("transpose_b", std::int64_t{1});
  Builder& b = rewriter.before(group.front().node);
  const std::vector<ValueId> made = b.multi("MultiMatMul", inputs_of(group),
                                            static_cast<int>(group.size()), std::move(attributes));
  for (std::size_t i = 0; i < group.size(); ++i) {
    rewriter.replace(graph.node(group[i].node).outputs[0], made[i]);
    rewriter.erase(group[i].node);
  }
}

bool merge_matmuls(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, context.options);
  for (const Group& group : GroupSearch(match, context).find()) {
    merge(rewriter, group);
    context.count("fused");
    context.count("matmuls", static_cast<std::int64_t>(group.size()));
  }
  return rewriter.changed();
}

}  // namespace

Pass merge_matmuls_pass() {
  return {.name = "merge_matmuls",
          .formerly = "merge_products",
          .doc = "Compute matmuls of one input in one node.",
          .run = merge_matmuls};
}

}  // namespace trainscope
