// Walks by the paths of items, held against what the run's record says.
#include "tests/gui/platform/walks.h"

#include <algorithm>
#include <memory>
#include <set>

#include "engine/bundle/plan_moment.h"
#include "gui/views/palette_index.h"

namespace trainscope::gui::test {
namespace {

constexpr double kAtRoof = 0.9;  // of the roof: from there on there is nothing to explain

// Whether what writes the buffer first is a node: of parameters, states, constants and batches the
// record says what kind of value they start as.
bool names_its_node(const PlanView& plan, const PlanBuffer& buffer) {
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) {
    return plan.text(node.name) == plan.text(buffer.producer);
  });
}

// Those that the pass which fuses Gelu put into one node, of the first such node.
std::vector<std::string> parts_of_gelu(RunData& run) {
  REQUIRE(run.history() != nullptr);
  const History& history = run.history()->history();
  std::vector<std::string> parts;
  std::string fused;
  for (const Fate& fate : run.fates()) {
    const FateStep* step = fate.decided();
    const bool is_inside = fate.thing.is_node && fate.kind == FateKind::kInside && step != nullptr;
    if (!is_inside || !history[step->stage].label.ends_with("-fuse_gelu")) continue;
    REQUIRE_FALSE(fate.now.empty());
    if (fused.empty()) fused = fate.now.front().name;
    if (fate.now.front().name == fused) parts.push_back(fate.thing.name);
  }
  return parts;
}

}  // namespace

void Walk::press(std::string_view chord) {
  ++actions;
  key(chord);
}

bool Walk::pick(std::string_view path) {
  ++actions;
  return click(path);
}

void Walk::write(std::string_view text) {
  ++actions;
  type(text);
}

void Walk::turn(std::string_view path, float turns) {
  ++actions;
  wheel(path, turns);
  step();
}

bool Walk::tells(std::string_view part) const {
  const auto shown = items().below("inspector/inspector/");
  return std::ranges::any_of(
      shown, [&](const Item* item) { return item->label.find(part) != std::string::npos; });
}

bool Walk::explains(std::string_view sentence) const {
  std::string text;
  for (const Item* item : items().below("inspector/inspector/")) text += item->label + ' ';
  return !sentence.empty() && text.find(sentence) != std::string::npos;
}

void Walk::find_model_node(std::string_view name) {
  press("Ctrl+P");
  write(name);
  step();
  const auto is_first = [&] {
    return label("palette/0/") == name && says("palette/0/", name_of(FindKind::kModelNode));
  };
  if (!is_first()) press("Down");
  press("Enter");
  step(2);
}

void walk_to_peak(const std::filesystem::path& run) {
  INFO(run.string());
  Walk walk(run);
  REQUIRE(walk.pick("main/overview/ask/peak"));
  walk.step(2);
  const PlanView& plan = *walk.workbench().run()->plan();
  const Selection& selected = walk.workbench().selection();
  REQUIRE(selected.buffer < plan.buffers.size());
  // It is alive when most bytes are, and no other that a node makes is larger then.
  const std::uint32_t time = memory_peak(plan).time;
  const std::vector<std::uint32_t> alive = alive_at(plan, time);
  CHECK(std::ranges::find(alive, selected.buffer) != alive.end());
  CHECK(names_its_node(plan, plan.buffers[selected.buffer]));
  for (const std::uint32_t other : alive) {
    if (!names_its_node(plan, plan.buffers[other])) continue;
    CHECK(plan.buffers[other].bytes <= plan.buffers[selected.buffer].bytes);
  }
  CHECK(walk.tells(plan.text(plan.buffers[selected.buffer].label)));
  CHECK(walk.actions <= kMostActions);
}

void walk_to_pass(const std::filesystem::path& run) {
  INFO(run.string());
  Walk walk(run);
  const PlanView& plan = *walk.workbench().run()->plan();
  const PlanNode& node = plan.nodes[plan.nodes.size() / 2];
  walk.press("Ctrl+P");
  walk.write(plan.text(node.name));
  walk.press("Enter");
  walk.step(2);
  CHECK(walk.workbench().selected_name() == "node:" + std::string(plan.text(node.name)));
  CHECK(walk.tells("made by"));
  CHECK(walk.tells(plan.text(node.pass)));
  CHECK(walk.actions <= kMostActions);
}

std::string walk_to_fate(const std::filesystem::path& run, const std::string& model_node) {
  INFO(run.string(), " ", model_node);
  Walk walk(run);
  walk.find_model_node(model_node);
  CHECK(walk.workbench().selected_name() == "model:" + model_node);
  const Fate* fate = walk.workbench().run()->node_fate(model_node);
  REQUIRE(fate != nullptr);
  CHECK(walk.tells("Where it went"));
  CHECK(walk.tells(trainscope::name_of(fate->kind)));
  walk.press("F1");
  walk.step(2);
  // The graph says the same, and leads to what does its work now.
  const bool has_heir =
      std::ranges::any_of(fate->now, [&](const NamedThing& thing) { return thing.is_node; });
  std::string op;
  if (fate->kind == FateKind::kInside && has_heir) {
    REQUIRE(walk.pick("main/graph/follow"));
    CHECK(walk.workbench().selected_name() == "node:" + fate->now.front().name);
    const PlanLinks& links = *walk.workbench().links();
    const std::uint32_t node = links.node_of_serial(walk.workbench().selection().node);
    REQUIRE(node != kNoRow);
    op = links.plan().text(links.plan().nodes[node].op);
    walk.step(2);
    CHECK(walk.tells(op));
  }
  CHECK(walk.actions <= kMostActions);
  return op;
}

std::vector<std::string> walk_to_gelu(const std::filesystem::path& run) {
  const std::unique_ptr<RunData> model = RunData::open(run);
  const std::vector<std::string> parts = parts_of_gelu(*model);
  std::vector<std::string> ops;
  for (const GoneNode& node : gone_nodes(*model)) {
    if (std::ranges::find(parts, node.name) == parts.end()) continue;
    ops.push_back(node.op);
    CHECK(walk_to_fate(run, node.name).find("Gelu") != std::string::npos);
  }
  CHECK(ops.size() == parts.size());
  return ops;
}

std::vector<std::string> nodes_of_each_fate(const std::filesystem::path& run) {
  const std::unique_ptr<RunData> model = RunData::open(run);
  std::vector<std::string> names;
  std::set<std::string> fates;
  for (const GoneNode& node : gone_nodes(*model)) {
    const bool is_new = fates.insert(node.fate.substr(0, node.fate.find(','))).second;
    if (is_new) names.push_back(node.name);
  }
  return names;
}

std::vector<profiler::RoofReason> walk_to_slowest(const std::filesystem::path& run) {
  INFO(run.string());
  std::vector<profiler::RoofReason> reasons;
  Walk walk(run);
  walk.press("F4");
  REQUIRE(walk.pick("main/kernels/table/row/0/"));
  walk.step(2);
  CHECK(walk.tells("of a step"));
  const PlanLinks& links = *walk.workbench().links();
  const PlanView& plan = links.plan();
  const std::uint32_t node = links.node_of_serial(walk.workbench().selection().node);
  REQUIRE(node != kNoRow);
  for (const std::uint32_t call : links.calls_of_node(node)) {
    const profiler::CallTime& time = walk.workbench().run()->times()->calls[call];
    reasons.push_back(profiler::roof_reason(
        *walk.workbench().run()->machine(), plan, plan.calls[call],
        1e-9 * static_cast<double>(time.sum()) / static_cast<double>(time.runs)));
    const profiler::RoofReason& reason = reasons.back();
    INFO(reason.share, " ", reason.bound, "; ", reason.reason);
    REQUIRE_FALSE(reason.bound.empty());
    CHECK(walk.explains(reason.bound));
    if (reason.share >= kAtRoof) continue;
    // A long one ends below what is seen.
    if (!walk.explains(reason.reason)) walk.turn("inspector/inspector/scroll", -2.0F);
    CHECK(walk.explains(reason.reason));
  }
  if (!walk.tells("chosen")) walk.turn("inspector/inspector/scroll", -4.0F);
  CHECK(walk.tells("chosen"));  // its kernel
  CHECK(walk.actions <= kMostActions);
  return reasons;
}

}  // namespace trainscope::gui::test
