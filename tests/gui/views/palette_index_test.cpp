// What the palette finds: ops through views, nodes of stages that have gone, names that several
// things share.
#include "gui/views/palette_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

using Names = std::set<std::string>;

// A made run, and what is found in it.
struct Searched {
  explicit Searched(std::string_view name, const Compiled& step) : made(name, step) {
    index.add_plan(links);
    index.add_gone(gone_nodes(*run));
    index.add_past(past_nodes(*run), run->stages());
  }

  Names found(std::string_view query, FindKind kind) const {
    Names names;
    for (const Found& each : index.find(query, 10'000)) {
      const FindEntry& entry = index.entries()[each.entry];
      if (entry.kind == kind) names.insert(entry.name);
    }
    return names;
  }

  test::MadeRun made;
  std::unique_ptr<RunData> run = RunData::open(made.folder());
  PlanLinks links{*run->plan()};
  PaletteIndex index;
};

// Nodes of one op with a result that a node of the other op reads.
Names read_by(const Graph& graph, std::string_view op, std::string_view reader) {
  Names names;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->name != op) continue;
    for (const ValueId result : node.outputs) {
      if (result == kNoValue) continue;
      for (const Use& use : graph.value(result).uses) {
        if (graph.node(use.node).op->name == reader) names.insert(node.name);
      }
    }
  }
  return names;
}

const Searched& fused() {
  static const Searched searched("fused", *test::compiled("gpt2", test::kSmallText));
  return searched;
}

TEST_CASE("palette: a pattern of two ops finds views, and what they read") {
  const OnnxModel model = test::model_of("gpt2", test::kSmallText);
  CompileOptions options = test::options_for(model);
  options.passes.disabled = {"fuse_attention"};
  const auto step = compile(model, options);
  const Searched searched("unfused", *step);
  for (const auto& [op, reader] : {std::pair("Transpose", "Reshape"), {"Reshape", "Transpose"}}) {
    const Names expected = read_by(step->program.graph, op, reader);
    CHECK_FALSE(expected.empty());
    CHECK(searched.found(std::string(op) + "->" + reader, FindKind::kNode) == expected);
  }
  CHECK(searched.found("Reshape->Conv", FindKind::kNode).empty());
}

TEST_CASE("palette: a pattern of two ops finds the model's nodes that passes took away") {
  const Graph& imported = *fused().run->graph(0);
  const Names expected = read_by(imported, "Transpose", "Reshape");
  CHECK(expected.size() == 3);  // one of each layer's attention
  CHECK(fused().found("Transpose->Reshape", FindKind::kNode).empty());
  CHECK(fused().found("Transpose -> Reshape", FindKind::kModelNode) == expected);
}

TEST_CASE("palette: nodes that one pass made and another took away are found") {
  const std::vector<PastNode> past = past_nodes(*fused().run);
  REQUIRE_FALSE(past.empty());
  for (const PastNode& node : past) {
    CAPTURE(node.name);
    const auto serial_in = [&](std::size_t stage) {
      const Graph& graph = *fused().run->graph(stage);
      for (const NodeId id : graph.order()) {
        if (graph.node(id).name == node.name) return graph.node(id).serial;
      }
      return kNoSerial;
    };
    const Serial serial = serial_in(node.stage);
    CHECK(serial != kNoSerial);
    CHECK(serial_in(node.stage + 1) != serial);
    CHECK(fused().links.node_of_serial(static_cast<std::uint32_t>(serial)) == kNoRow);
    CHECK(fused().run->node_fate(static_cast<std::uint32_t>(serial)) == nullptr);
    CHECK(fused().found(node.name, FindKind::kPastNode).contains(node.name));
    const std::string& label = fused().run->stages()[node.stage + 1].label;
    CHECK(node.fate.find(label + "; made by ") != std::string::npos);
  }
}

TEST_CASE("palette: a node of the model is found before a value that has its name") {
  const PlanView& plan = fused().links.plan();
  std::size_t shared = 0;
  for (const GoneNode& node : gone_nodes(*fused().run)) {
    const bool is_value = std::ranges::any_of(plan.values, [&](const PlanValue& value) {
      return value.serial != 0 && plan.text(value.name) == node.name;
    });
    if (!is_value) continue;
    CAPTURE(node.name);
    ++shared;
    std::vector<FindKind> kinds;
    for (const Found& each : fused().index.find(node.name, 10)) {
      const FindEntry& entry = fused().index.entries()[each.entry];
      if (entry.name == node.name) kinds.push_back(entry.kind);
    }
    const auto model = std::ranges::find(kinds, FindKind::kModelNode);
    const auto value = std::ranges::find(kinds, FindKind::kValue);
    CHECK(value != kinds.end());
    CHECK(model < value);
  }
  CHECK(shared > 0);
}

}  // namespace
}  // namespace trainscope::gui
