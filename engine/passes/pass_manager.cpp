// Times, verifies, hashes and snapshots each pass, so that no pass has to.
#include "engine/passes/pass_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/passes/bodies.h"

namespace trainscope {
namespace {

Cost total_cost(const Graph& graph) {
  Cost total;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.node(id).next) {
    NodeArgs args(graph, graph.node(id));
    Cost cost = cost_of(*graph.node(id).op, *args);
    add_saturating(total.flops, cost.flops);
    add_saturating(total.bytes_read, cost.bytes_read);
    add_saturating(total.bytes_written, cost.bytes_written);
  }
  return total;
}

PassOptions with_present_names(PassOptions options, std::span<const Pass> passes) {
  for (std::string& name : options.disabled) name = present_pass_name(name, passes);
  options.stop_after = present_pass_name(options.stop_after, passes);
  return options;
}

void check_name(std::string_view wanted, std::span<const Pass> passes) {
  std::vector<std::string_view> names(kProgramStages.begin(), kProgramStages.end());
  for (const Pass& pass : passes) names.push_back(pass.name);
  if (std::ranges::find(names, wanted) != names.end()) return;
  throw Error(ErrorCode::kUsage, fmt::format("there is no pass '{}'", printable(wanted)))
      .hint(nearest_hint(wanted, names));
}

std::string label_of(std::string_view name, std::size_t index) {
  return fmt::format("{:02}-{}", index, name);
}

void check_invariants(const Graph& graph, std::string_view pass) {
  std::vector<std::string> problems = verify(graph);
  for (std::size_t i = 0; i < std::min<std::size_t>(problems.size(), 20); ++i) {
    fmt::print(stderr, "after pass {}: {}\n", pass, problems[i]);
  }
  CHECK_INVARIANT(problems.empty());
}

bool run_in_graph(const Pass& pass, Graph& graph, PassContext& context);

// Bodies nest as deep as the model's do.
bool run_in_bodies(const Pass& pass, Graph& graph, PassContext& context) {
  const Graph* around = context.around;
  if (around == nullptr) context.around = &graph;
  const bool changed =
      change_bodies(graph, [&](Graph& body) { return run_in_graph(pass, body, context); });
  context.around = around;
  return changed;
}

bool run_in_graph(const Pass& pass, Graph& graph, PassContext& context) {
  const bool changed = pass.run(graph, context);
  return (pass.in_bodies && run_in_bodies(pass, graph, context)) || changed;
}

// The stage that comes behind those there are.
Stage run_one(const Pass& pass, Stages& stages, PassContext context, KeepGraphs keep) {
  Stage& before = stages.back();
  context.pass = pass.name;
  context.counters.clear();
  context.near_misses.clear();
  Graph graph = graph_for_next(before, keep);
  auto start = std::chrono::steady_clock::now();
  bool changed = false;
  try {
    changed = run_in_graph(pass, graph, context);
  } catch (Error& error) {
    error.at(fmt::format("in pass {}", pass.name));
    throw;
  }
  if (changed) graph = graph.compacted();
  double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  check_invariants(graph, pass.name);
  Stage stage = stage_of(pass.name, std::move(graph), stages.size());
  CHECK_INVARIANT(changed || stage.hash == before.hash);
  if (!changed && keep == KeepGraphs::kAll) stage.graph = before.graph;
  stage.changed = changed;
  log_rewrites(stage, before, {.name = std::string(pass.name), .reason = std::string(pass.doc)});
  stage.milliseconds = ms;
  stage.counters = std::move(context.counters);
  stage.near_misses = std::move(context.near_misses);
  return stage;
}

}  // namespace

std::string present_pass_name(std::string_view name, std::span<const Pass> passes) {
  const auto renamed = std::ranges::find_if(
      passes, [name](const Pass& pass) { return !pass.formerly.empty() && pass.formerly == name; });
  return std::string(renamed == passes.end() ? name : renamed->name);
}

Stage stage_of(std::string_view name, Graph graph, std::size_t index) {
  Stage stage;
  stage.name = name;
  stage.label = label_of(name, index);
  stage.nodes = static_cast<std::int64_t>(graph.node_count());
  stage.cost = total_cost(graph);
  stage.hash = hash_of(graph);
  stage.graph = std::move(graph);
  return stage;
}

Stage unchanged_stage(std::string_view name, const Stage& before, std::size_t index) {
  Stage stage;
  stage.name = name;
  stage.label = label_of(name, index);
  stage.nodes = before.nodes;
  stage.cost = before.cost;
  stage.hash = before.hash;
  stage.graph = before.graph;
  return stage;
}

void log_rewrites(Stage& stage, const Stage& before, RewriteRule pass) {
  const RewriteNotes notes = std::exchange(stage.graph.notes, {});
  const bool given_away = before.graph.node_capacity() == 0 && before.nodes > 0;
  if (!stage.changed || given_away) return;
  stage.rewrites = rewrite_log(before.graph, stage.graph, notes, std::move(pass));
}

Graph graph_for_next(Stage& stage, KeepGraphs keep) {
  return keep == KeepGraphs::kAll ? stage.graph : std::exchange(stage.graph, Graph());
}

Stages run_passes(Graph graph, std::span<const Pass> passes, PassContext context,
                  const PassOptions& given) {
  const PassOptions options = with_present_names(given, passes);
  for (const std::string& name : options.disabled) check_name(name, passes);
  if (!options.stop_after.empty()) check_name(options.stop_after, passes);
  check_invariants(graph, "import");
  graph = graph.compacted();
  Stages stages;
  stages.push_back(stage_of("imported", std::move(graph), 0));
  std::int64_t done = 0;
  for (const Pass& pass : passes) {
    context.watch.report({.work = "passes",
                          .now = pass.name,
                          .done = done++,
                          .total = static_cast<std::int64_t>(passes.size())});
    if (!options.leaves_out(pass.name)) {
      stages.push_back(run_one(pass, stages, context, options.keep));
    }
    bool last_of_its_name = std::none_of(&pass + 1, passes.data() + passes.size(),
                                         [&pass](const Pass& p) { return p.name == pass.name; });
    if (pass.name == options.stop_after && last_of_its_name) break;
  }
  return stages;
}

}  // namespace trainscope
