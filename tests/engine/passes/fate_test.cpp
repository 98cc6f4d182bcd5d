// Fates: what a node or value came to through several stages, and what nobody explained.
#include "engine/passes/fate.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass_manager.h"
#include "engine/passes/stage_diff.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

History history_of(const Stages& stages) {
  History history;
  for (const Stage& stage : stages) {
    history.push_back({.label = stage.label, .rewrites = stage.rewrites});
  }
  return history;
}

// The default pipeline in training, with all its graphs.
Stages trained(std::string_view text) {
  CompileOptions options;
  options.import.frozen = {"half", "one", "root"};
  options.training.mode = GraphMode::kTrain;
  options.training.loss.kind = LossKind::kMse;
  return stages(text, options);
}

Fate fate(const Stages& stages, std::string_view name, bool is_node = false) {
  const auto history = std::make_shared<const History>(history_of(stages));
  for (const NamedThing& thing : imported_things(*history, stages.front().graph)) {
    if (thing.name != name || thing.is_node != is_node) continue;
    return Fates(history, Fates::kModel, stages.size() - 1, stages.back().graph).of(thing);
  }
  FAIL("nothing has this name");
  return {};
}

bool drop_silently(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const ValueId spare = graph.find("spare");
  if (spare == kNoValue) return false;
  rewriter.erase(graph.value(spare).producer);
  return true;
}

Stages run_pass(std::string_view text, bool (*function)(Graph&, PassContext&)) {
  static const TrainingOptions kOptions{};
  const Pass pass{.name = "planted", .doc = "A planted pass.", .run = function};
  return run_passes(graph(text), std::vector{pass},
                    {.ops = op_table(), .options = kOptions, .pass = {}, .counters = {}}, {});
}

constexpr const char* kSpare = "(float[2] x) => (float[2] y) { spare = Exp(x)  y = Neg(x) }";

NamedThing node_of(Serial serial, std::string name) {
  return {.is_node = true, .serial = serial, .name = std::move(name)};
}

// A node that is split into 'a' and 'b', of which the later stages say what became; the last graph
// has the node Add_0 and the constant c.
class SplitNode {
 public:
  SplitNode() { add_stage({{.kind = RewriteKind::kSplit, .thing = whole_, .others = {a_, b_}}}); }

  const NamedThing& a() const { return a_; }
  const NamedThing& b() const { return b_; }
  NamedThing node() const { return node_of(end_.node(end_.find_node("Add_0")).serial, "Add_0"); }
  NamedThing constant() const {
    return {.is_node = false, .serial = end_.value(end_.find("c")).serial, .name = "c"};
  }
  void add_stage(std::vector<RewriteEntry> entries) {
    const std::string label = fmt::format("{:02}-planted", history_.size() + 1);
    history_.push_back({.label = label,
                        .rewrites = {.rules = {{.name = "planted", .reason = label + " did it."}},
                                     .entries = std::move(entries)}});
  }
  Fate fate() const {
    const auto history = std::make_shared<const History>(history_);
    return Fates(history, Fates::kModel, history->size() - 1, end_).of(whole_);
  }
  std::string reason() const { return reason_of(history_, fate()); }

 private:
  NamedThing whole_ = node_of(Serial{1001}, "whole");
  NamedThing a_ = node_of(Serial{1002}, "a");
  NamedThing b_ = node_of(Serial{1003}, "b");
  Graph end_ = graph("(float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Add(x, c) }");
  History history_;
};

// Two dense layers with a gelu that is spelled out, and what folds, repeats and dies.
constexpr const char* kModel =
    "(float[4,3] x) => (float[4,2] y) <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15},"
    " float[5] b = {1,2,3,4,5}, float[5,2] v = {1,2,3,4,5,6,7,8,9,10}, float half = {0.5},"
    " float one = {1}, float root = {1.4142135}>"
    "{ m = MatMul(x, w)  h = Add(m, b)  i = Identity(h)  q = Div(i, root)  e = Erf(q)"
    "  s = Add(e, one)  p = Mul(i, s)  g = Mul(p, half)  shape = Shape(g)  r = Reshape(g, shape)"
    "  dead = Exp(r)  y = MatMul(r, v) }";

}  // namespace

TEST_CASE("fate: kept, folded, inside, dead, by which stage and why") {
  const Stages all = trained(kModel);
  CHECK(fate(all, "x").kind == FateKind::kKept);
  CHECK(fate(all, "w").kind == FateKind::kKept);
  const Fate erf = fate(all, "Erf_4", true);
  CHECK(erf.kind == FateKind::kInside);
  REQUIRE(erf.decided() != nullptr);
  CHECK(all[erf.decided()->stage].name == "fuse_gelu");
  const Fate dead = fate(all, "dead");
  CHECK(dead.kind == FateKind::kDead);
  CHECK(all[dead.decided()->stage].name == "dead_code");
  const Fate shape = fate(all, "Shape_8", true);
  CHECK(shape.kind == FateKind::kFolded);
  CHECK(all[shape.decided()->stage].name == "fold_constants");
  CHECK(fate(all, "Identity_2", true).kind == FateKind::kInside);
  CHECK(fate(all, "m").kind == FateKind::kInside);  // of the matmul that adds the bias
}

TEST_CASE("fate: a value whose gradient is there knows it") {
  const Stages all = stages(kModel, [] {
    CompileOptions options;
    options.training.mode = GraphMode::kGradients;
    options.training.loss.kind = LossKind::kMse;
    options.training.keep_gradients = true;
    return options;
  }());
  CHECK(fate(all, "w").gradient.name == "grad/w");
  CHECK_FALSE(fate(all, "y").gradient.name.empty());
}

TEST_CASE("fate: a node that a pass drops without a word is unexplained") {
  const Stages all = run_pass(kSpare, drop_silently);
  const Fate node = fate(all, "Exp_0", true);
  CHECK(node.kind == FateKind::kUnexplained);
  const auto history = std::make_shared<const History>(history_of(all));
  CHECK(contains(reason_of(*history, fate(all, "spare")), "recorded no reason"));
  const Graph end = all[1].graph;
  const StageDiff diff =
      diff_stages(history, {.stage = 0, .graph = all[0].graph}, {.stage = 1, .graph = end});
  CHECK(diff.unexplained == 2);
  CHECK(diff.nodes.at("unexplained") == 1);
  CHECK(diff.values.at("unexplained") == 1);
}

TEST_CASE("fate: what went without any entry is unexplained too") {
  const Stages all = trained(kModel);
  History history = history_of(all);
  for (HistoryStage& stage : history) {
    std::erase_if(stage.rewrites.entries,
                  [](const RewriteEntry& entry) { return entry.thing.name == "Erf_4"; });
  }
  const Fates fates(std::make_shared<const History>(history), Fates::kModel, all.size() - 1,
                    all.back().graph);
  const Graph& first = all.front().graph;
  const NodeId erf = first.find_node("Erf_4");
  const Fate lost = fates.of({.is_node = true, .serial = first.node(erf).serial, .name = "Erf_4"});
  CHECK(lost.kind == FateKind::kUnexplained);
  CHECK(contains(reason_of(history, lost), "no rewrite log says why"));
}

TEST_CASE("fate: a split of which a part went without a reason is unexplained") {
  SplitNode split;
  const RewriteEntry removed{.kind = RewriteKind::kRemoved, .thing = split.a()};
  const RewriteEntry inside{
      .kind = RewriteKind::kInside, .thing = split.b(), .others = {split.node()}};
  SUBCASE("while the other went inside a node") { split.add_stage({removed, inside}); }
  SUBCASE("before the other went inside a node") {
    split.add_stage({removed});
    split.add_stage({inside});
  }
  SUBCASE("after the other went inside a node") {
    split.add_stage({inside});
    split.add_stage({removed});
  }
  SUBCASE("before the other was folded") {
    split.add_stage({removed});
    split.add_stage(
        {{.kind = RewriteKind::kFolded, .thing = split.b(), .others = {split.constant()}}});
  }
  CHECK(split.fate().kind == FateKind::kUnexplained);
  CHECK(contains(split.reason(), "removed by planted, which recorded no reason"));
}

TEST_CASE("fate: a split is folded when all its parts are") {
  SplitNode split;
  split.add_stage(
      {{.kind = RewriteKind::kFolded, .thing = split.a(), .others = {split.constant()}}});
  SUBCASE("one part is inside another node") {
    split.add_stage({{.kind = RewriteKind::kInside, .thing = split.b(), .others = {split.node()}}});
    CHECK(split.fate().kind == FateKind::kSplit);
    CHECK(split.fate().now == std::vector{split.constant(), split.node()});
  }
  SUBCASE("one part is inside another node, and the constant is used up") {
    split.add_stage({{.kind = RewriteKind::kInside, .thing = split.b(), .others = {split.node()}},
                     {.kind = RewriteKind::kDead, .thing = split.constant()}});
    CHECK(split.fate().kind == FateKind::kInside);
    CHECK(split.reason() == "03-planted did it.");
  }
  SUBCASE("both are folded") {
    split.add_stage(
        {{.kind = RewriteKind::kFolded, .thing = split.b(), .others = {split.constant()}}});
    CHECK(split.fate().kind == FateKind::kFolded);
    CHECK(split.reason() == "03-planted did it.");
  }
  SUBCASE("nobody reads the other part") {
    split.add_stage({{.kind = RewriteKind::kDead, .thing = split.b()}});
    CHECK(split.fate().kind == FateKind::kFolded);
    CHECK(split.reason() == "02-planted did it.");
  }
}

TEST_CASE("fate: names of all kinds") {
  CHECK(name_of(FateKind::kKept) == "kept");
  CHECK(name_of(FateKind::kUnexplained) == "unexplained");
  CHECK(name_of(RewriteKind::kAdded) == "added");
  CHECK(name_of(RewriteKind::kRemoved) == "removed");
}

}  // namespace trainscope::test
