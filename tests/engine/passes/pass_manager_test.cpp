// The pass manager: which passes run, what it records, what it refuses and what it takes for a
// mistake of ours.
#include "engine/passes/pass_manager.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>

#include "engine/ir/rewriter.h"
#include "tests/support/ended.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr const char* kText =
    "(float[2] x) => (float[2] y) { a = Identity(x)  b = Exp(a)  y = Neg(b) }";

const TrainingOptions kOptions{};

Stages run(const std::vector<Pass>& passes, const PassOptions& options = {}) {
  return run_passes(graph(kText), passes,
                    {.ops = op_table(), .options = kOptions, .pass = {}, .counters = {}}, options);
}

bool do_nothing(Graph&, PassContext&) { return false; }

bool drop_identities(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    if (graph.node(id).op->name != "Identity") continue;
    rewriter.replace_node(id, {graph.node(id).inputs[0]});
    context.count("dropped");
  }
  return rewriter.changed();
}

bool nearly_drop(Graph& graph, PassContext& context) {
  context.near_miss(graph.node(graph.first()), "it is the first");
  return false;
}

bool change_and_deny(Graph& graph, PassContext& context) {
  drop_identities(graph, context);
  return false;
}

bool break_the_graph(Graph& graph, PassContext&) {
  graph.value(graph.find("b")).type.shape = {9};
  return true;
}

bool refuse(Graph&, PassContext&) { fail(ErrorCode::kBadInput, "no"); }

Pass pass(std::string_view name, bool (*function)(Graph&, PassContext&)) {
  return {.name = name, .doc = "", .run = function};
}

std::vector<std::string> labels(const Stages& stages) {
  std::vector<std::string> list;
  for (const Stage& stage : stages) list.push_back(stage.label);
  return list;
}

bool breaks_an_invariant(const std::function<void()>& action) {
  return ended(action).text.find("check failed") != std::string::npos;
}

}  // namespace

TEST_CASE("pass manager: a stage per pass, numbered, with counters and what changed") {
  const Stages stages = run({pass("idle", do_nothing), pass("drop", drop_identities)});
  CHECK(labels(stages) == std::vector<std::string>{"00-imported", "01-idle", "02-drop"});
  CHECK_FALSE(stages[1].changed);
  CHECK(stages[1].hash == stages[0].hash);
  CHECK(stages[1].counters.empty());
  CHECK(stages[2].changed);
  CHECK(stages[2].hash != stages[0].hash);
  CHECK(stages[2].counters == std::map<std::string, std::int64_t>{{"dropped", 1}});
  CHECK(stages[0].nodes == 3);
  CHECK(stages[2].nodes == 2);
  CHECK(stages[2].milliseconds >= 0.0);
  CHECK(stages[0].graph.node_count() == 3);  // a snapshot: later passes do not touch it
  CHECK(stages[2].cost.bytes_written == 2 * 2 * 4);
  CHECK(stages[2].cost.flops == stages[0].cost.flops);
}

TEST_CASE("pass manager: stages that change nothing share the graph of the one before") {
  const Stages stages = run({pass("idle", do_nothing), pass("drop", drop_identities)});
  const auto storage = [](const Stage& stage) { return &stage.graph.node(stage.graph.first()); };
  CHECK(storage(stages[1]) == storage(stages[0]));
  CHECK(storage(stages[2]) != storage(stages[1]));
}

TEST_CASE("pass manager: where the last graph alone is kept, the records are the same") {
  const std::vector<Pass> passes{pass("idle", do_nothing), pass("drop", drop_identities),
                                 pass("idle", do_nothing)};
  const Stages all = run(passes);
  const Stages last = run(passes, {.keep = KeepGraphs::kLast});
  REQUIRE(labels(last) == labels(all));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].label);
    CHECK(last[i].hash == all[i].hash);
    CHECK(last[i].nodes == all[i].nodes);
    CHECK(last[i].changed == all[i].changed);
    CHECK(last[i].counters == all[i].counters);
    CHECK(last[i].cost.bytes_written == all[i].cost.bytes_written);
    CHECK(last[i].graph.value_capacity() == (i + 1 == all.size() ? 3 : 0));
  }
  CHECK(print(last.back().graph) == print(all.back().graph));
}

TEST_CASE("pass manager: near misses are in the stage of their pass alone") {
  const Stages stages = run({pass("near", nearly_drop), pass("idle", do_nothing)});
  REQUIRE(stages[1].near_misses.size() == 1);
  CHECK(stages[1].near_misses[0].nodes ==
        std::vector<std::string>{stages[1].graph.node(stages[1].graph.first()).name});
  CHECK(stages[1].near_misses[0].reason == "it is the first");
  CHECK(stages[2].near_misses.empty());
}

TEST_CASE("pass manager: disabled passes leave no stage") {
  const std::vector<Pass> passes{pass("drop", drop_identities), pass("idle", do_nothing),
                                 pass("drop", drop_identities)};
  CHECK(labels(run(passes, {.disabled = {"drop"}, .stop_after = {}})) ==
        std::vector<std::string>{"00-imported", "01-idle"});
  CHECK(run(passes, {.disabled = {"drop"}, .stop_after = {}}).back().nodes == 3);
  CHECK(labels(run(passes, {.disabled = {"drop", "idle"}, .stop_after = {}})).size() == 1);
}

TEST_CASE("pass manager: stops after the last pass of the name, also when it is disabled") {
  const std::vector<Pass> passes{pass("drop", drop_identities), pass("idle", do_nothing),
                                 pass("drop", drop_identities), pass("last", do_nothing)};
  const auto stopped = [&](const PassOptions& options) { return labels(run(passes, options)); };
  CHECK(stopped({.disabled = {}, .stop_after = "drop"}) ==
        std::vector<std::string>{"00-imported", "01-drop", "02-idle", "03-drop"});
  CHECK(stopped({.disabled = {}, .stop_after = "idle"}) ==
        std::vector<std::string>{"00-imported", "01-drop", "02-idle"});
  CHECK(stopped({.disabled = {"drop"}, .stop_after = "drop"}) ==
        std::vector<std::string>{"00-imported", "01-idle"});
}

TEST_CASE("pass manager: the name that a pass had before is accepted, and recorded as today's") {
  Pass drop = pass("drop", drop_identities);
  drop.formerly = "dropped_identities";
  const std::vector<Pass> passes{drop, pass("idle", do_nothing), pass("last", do_nothing)};
  const auto same = [&](const PassOptions& then, const PassOptions& now) {
    return labels(run(passes, then)) == labels(run(passes, now));
  };
  CHECK(same({.disabled = {"dropped_identities"}}, {.disabled = {"drop"}}));
  CHECK(same({.stop_after = "dropped_identities"}, {.stop_after = "drop"}));
  CHECK(labels(run(passes)).at(1) == "01-drop");
  CHECK(present_pass_name("dropped_identities", passes) == "drop");
  CHECK(present_pass_name("drop", passes) == "drop");
  CHECK(present_pass_name("idle", passes) == "idle");
  CHECK(present_pass_name("dropped", passes) == "dropped");
  CHECK(present_pass_name("", passes).empty());
}

TEST_CASE("pass manager: the renamed passes of the default pipeline, by both names") {
  const std::map<std::string, std::string> renamed{
      {"transposed_products", "fuse_transpose"}, {"merge_products", "merge_matmuls"},
      {"summed_products", "fuse_matmul_add"},    {"summed_norms", "fuse_norm_grad_add"},
      {"counted_rows", "compact_labels"},        {"wide_gradients", "upcast_gradients"}};
  for (const auto& [then, now] : renamed) CHECK(present_pass_name(then, default_passes()) == now);
  for (const Pass& pass : default_passes()) {
    CAPTURE(pass.name);
    CHECK(present_pass_name(pass.name, default_passes()) == pass.name);
    const auto known = renamed.find(std::string(pass.formerly));
    CHECK((pass.formerly.empty() || (known != renamed.end() && known->second == pass.name)));
  }
  for (const auto& [then, now] : renamed) {
    CAPTURE(then);
    CompileOptions by_old;
    by_old.training.mode = GraphMode::kInference;
    CompileOptions by_new = by_old;
    by_old.passes.disabled = {then};
    by_new.passes.disabled = {now};
    CHECK(labels(stages(kText, by_old)) == labels(stages(kText, by_new)));
    CHECK(labels(stages(kText, by_old)).size() == default_passes().size());
  }
}

TEST_CASE("pass manager: unknown names are usage errors with the nearest pass") {
  for (const PassOptions& options : {PassOptions{.disabled = {"symplify"}, .stop_after = {}},
                                     PassOptions{.disabled = {}, .stop_after = "symplify"}}) {
    CompileOptions compile;
    compile.passes = options;
    const std::optional<Error> error = error_of([&] { stages(kText, compile); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kUsage);
    CHECK(error->message() == "there is no pass 'symplify'");
    CHECK(error->hint() == "did you mean 'simplify'?");
  }
}

TEST_CASE("pass manager: the FLOPs of all nodes are the largest number where they are beyond it") {
  // 2^61 of each matmul.
  constexpr const char* kMatmuls =
      "(float[1048576,1048576] x) => (float[1048576,1048576] y) {"
      " a = MatMul(x, x) b = MatMul(a, a) c = MatMul(b, b) y = MatMul(c, c) }";
  const Stages all =
      run_passes(graph(kMatmuls), {},
                 {.ops = op_table(), .options = kOptions, .pass = {}, .counters = {}}, {});
  CHECK(all.back().cost.flops == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("pass manager: errors carry the pass") {
  const std::optional<Error> error = error_of([] { run({pass("picky", refuse)}); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->context() == std::vector<std::string>{"in pass picky"});
}

TEST_CASE("pass manager: a broken graph or a wrong `changed` is our own mistake") {
  CHECK(breaks_an_invariant([] { run({pass("broken", break_the_graph)}); }));
  CHECK(breaks_an_invariant([] { run({pass("liar", change_and_deny)}); }));
  CHECK_FALSE(breaks_an_invariant([] { run({pass("drop", drop_identities)}); }));
}

TEST_CASE("pass manager: every pass of the default pipeline is idempotent in every mode") {
  constexpr const char* kModel =
      "(float[4,3] x) => (float[4,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] bias = {0.5,"
      " -0.5}, float r = {0.25}, bool t = {1}, float[2] mean = {0, 0}, float[2] var = {1, 1},"
      " float[2] scale = {1, 2}, int64[2] s = {4, 2}>"
      "{ h = Gemm(x, w, bias)  d = Dropout(h, r, t)  i = Identity(d)  n = BatchNormalization"
      " <training_mode = 1> (i, scale, bias, mean, var)  e = Relu(n)  f = Relu(n)  g = Add(e, f)"
      "  y = Reshape(g, s) }";
  for (GraphMode mode :
       {GraphMode::kInference, GraphMode::kEvaluate, GraphMode::kGradients, GraphMode::kTrain}) {
    CompileOptions options;
    options.import.frozen = {"r"};
    options.training.mode = mode;
    options.training.micro_batches = 2;
    options.training.optimizer.clip_norm = 1.0;
    const Stages all = stages(kModel, options);
    CHECK(all.size() == default_passes().size() + 1);
    for (std::size_t i = 1; i < all.size(); ++i) {
      CAPTURE(all[i].label);
      CHECK_FALSE(changes(all[i].graph, all[i].name, options.training));
    }
  }
}

}  // namespace trainscope::test
