// What is told of nodes of all stages, of buffers and kernels, and that it leads on.
#include "gui/views/inspection.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "engine/core/text.h"
#include "gui/views/inspection_stage.h"
#include "gui/views/model_nodes.h"
#include "gui/views/past_nodes.h"
#include "profiler/analysis/breakdown.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

struct InspectedRun {
  InspectedRun() {
    static const test::MadeRun made("inspected", *test::compiled("gpt2", test::kSmallText));
    run = RunData::open(made.folder());
    links = PlanLinks(*run->plan());
  }
  Inspection of(const Selection& selection) { return inspection_of(selection, *run, &links); }
  const PlanView& plan() const { return links.plan(); }

  std::unique_ptr<RunData> run;
  PlanLinks links;
};

const InspectionRow* row_labelled(const Inspection& shown, std::string_view label) {
  const auto found = std::ranges::find(shown.rows, label, &InspectionRow::label);
  return found == shown.rows.end() ? nullptr : &*found;
}

std::string text_at(const Inspection& shown, std::string_view label) {
  const InspectionRow* row = row_labelled(shown, label);
  return row == nullptr ? std::string() : row->text;
}

bool leads_to(const Inspection& shown, std::string_view target) {
  return std::ranges::find(shown.rows, target, &InspectionRow::target) != shown.rows.end();
}

// "NAME TYPE" of the rows below a heading that begins so, up to the next.
std::vector<std::string> links_below(const Inspection& shown, std::string_view heading) {
  std::vector<std::string> links;
  bool is_below = false;
  for (const InspectionRow& row : shown.rows) {
    if (row.kind == InspectionKind::kHeading) is_below = row.label == heading;
    if (is_below && row.is_wide) links.push_back(row.text + " " + row.detail);
  }
  return links;
}

std::vector<std::string> values_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> values;
  std::set<ValueId> seen;
  for (const ValueId id : ids) {
    if (id == kNoValue || !seen.insert(id).second) continue;
    values.push_back(graph.value(id).name + " " + type_text(graph.value(id).type));
  }
  return values;
}

const Node* node_named(const Graph& graph, std::string_view name) {
  const NodeId id = graph.find_node(name);
  return id == kNoNode ? nullptr : &graph.node(id);
}

TEST_CASE("inspection: of a node that passes made and took away all that its stage has") {
  InspectedRun opened;
  const std::vector<PastNode> past = past_nodes(*opened.run);
  REQUIRE(past.size() > 5);
  for (std::size_t i = 0; i < past.size(); i += 1 + past.size() / 12) {
    INFO(past[i].name, " ", past[i].stage);
    const Graph& graph = *opened.run->graph(past[i].stage);
    const Node* node = node_named(graph, past[i].name);
    REQUIRE(node != nullptr);
    const auto serial = static_cast<std::uint32_t>(node->serial);
    REQUIRE(opened.links.node_of_serial(serial) == kNoRow);
    // Whatever stage is shown: the last one does not have it.
    for (const std::int32_t stage : {-1, static_cast<std::int32_t>(past[i].stage)}) {
      const Selection selection =
          select_unplanned_node(*opened.run, {.stage = stage, .step = 2}, serial);
      CHECK(selection.stage == static_cast<std::int32_t>(past[i].stage));
      CHECK(selection.step == 2);
      const Inspection shown = opened.of(selection);
      CHECK(shown.what == "node");
      CHECK(shown.name == past[i].name);
      CHECK(shown.stage == opened.run->stages()[past[i].stage].label);
      CHECK(text_at(shown, "op") == node->op->name);
      CHECK(text_at(shown, "phase") == name_of(node->phase));
      CHECK(text_at(shown, "made by") == node->provenance.pass);
      CHECK(text_at(shown, "attributes") == attributes_text(node->attributes));
      CHECK(links_below(shown, "Reads") == values_of(graph, node->inputs));
      CHECK(links_below(shown, "Writes") == values_of(graph, node->outputs));
      const std::string became = text_at(shown, "became");
      CHECK_FALSE(became.empty());
      CHECK(became != "kept");
      CHECK(became != "unexplained");
      CHECK(row_labelled(shown, "How it came") != nullptr);
    }
  }
}

TEST_CASE(
    "inspection: a shown earlier stage has its own node, and its operands where they differ") {
  InspectedRun opened;
  const std::size_t last = opened.run->stages().size() - 1;
  const Graph& end = *opened.run->graph(last);
  std::size_t differing = 0;
  for (std::size_t stage = 0; stage < last; stage += 6) {
    const Graph& graph = *opened.run->graph(stage);
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const auto serial = static_cast<std::uint32_t>(node.serial);
      if (opened.links.node_of_serial(serial) == kNoRow) continue;
      const auto at_end = find_stage_node(*opened.run, -1, serial);
      REQUIRE(at_end.has_value());
      CHECK(at_end->stage == last);
      Selection selection = select_node(opened.links, {}, serial);
      selection.stage = static_cast<std::int32_t>(stage);
      const Inspection shown = opened.of(selection);
      const std::string& label = opened.run->stages()[stage].label;
      CHECK(text_at(shown, "in the stage") == label);
      const std::string attributes = attributes_text(node.attributes);
      CHECK(text_at(shown, "attributes") == (attributes.empty() ? "none" : attributes));
      CHECK(shown.stage.empty());  // the command line prints the plan's
      const auto inputs = values_of(graph, node.inputs);
      const bool differs = inputs != values_of(end, at_end->node->inputs) ||
                           values_of(graph, node.outputs) != values_of(end, at_end->node->outputs);
      differing += differs ? 1 : 0;
      CHECK(links_below(shown, "Reads in the stage " + label) ==
            (differs ? inputs : std::vector<std::string>()));
    }
  }
  CHECK(differing > 0);
}

TEST_CASE("inspection: of an ONNX node that is gone, what it was and what it read and wrote") {
  InspectedRun opened;
  const Graph& imported = *opened.run->graph(0);
  std::size_t looked_at = 0;
  for (const GoneNode& gone : gone_nodes(*opened.run)) {
    const Fate* fate = opened.run->node_fate(gone.name);
    REQUIRE(fate != nullptr);
    const bool is_imported = std::ranges::any_of(imported.order(), [&](NodeId id) {
      return imported.node(id).serial == fate->thing.serial;
    });
    if (!is_imported || looked_at == 10) continue;
    ++looked_at;
    INFO(gone.name);
    Selection selection = select_model_node(*opened.run, {}, gone.name);
    selection.stage = 0;
    const Inspection shown = opened.of(selection);
    CHECK(shown.what == "ONNX node");
    CHECK(text_at(shown, "became") == trainscope::name_of(fate->kind));
    const auto at = find_stage_node(*opened.run, 0, static_cast<std::uint32_t>(fate->thing.serial));
    REQUIRE(at.has_value());
    CHECK(at->stage == 0);
    CHECK(text_at(shown, "op") == at->node->op->name);
    CHECK(text_at(shown, "attributes") == attributes_text(at->node->attributes));
    CHECK(links_below(shown, "Reads") == values_of(imported, at->node->inputs));
    CHECK(links_below(shown, "Writes") == values_of(imported, at->node->outputs));
  }
  CHECK(looked_at == 10);
}

TEST_CASE("inspection: a view without a call has what it reads and writes") {
  InspectedRun opened;
  const PlanView& plan = opened.plan();
  const auto view = std::ranges::find_if(plan.nodes, [&](const PlanNode& node) {
    return opened.links.calls_of_node(static_cast<std::uint32_t>(&node - plan.nodes.data()))
               .empty() &&
           plan.text(node.op) == "Reshape";
  });
  REQUIRE(view != plan.nodes.end());
  const Inspection shown = opened.of(select_node(opened.links, {}, view->serial));
  CHECK(links_below(shown, "Reads").size() == 1);
  CHECK(links_below(shown, "Writes").size() == 1);
  CHECK(row_labelled(shown, "FLOPs") == nullptr);
}

TEST_CASE("inspection: a planned node leads to each of its sources, with what became of it") {
  InspectedRun opened;
  const PlanView& plan = opened.plan();
  std::size_t several = 0;
  std::size_t told = 0;
  for (const PlanNode& node : plan.nodes) {
    const Inspection shown = opened.of(select_node(opened.links, {}, node.serial));
    const auto sources = rows_of(plan.names, node.sources);
    several += sources.size() > 1 ? 1 : 0;
    for (const TextId source : sources) {
      const Fate* fate = opened.run->node_fate(plan.text(source));
      if (fate == nullptr) continue;
      const std::string target = fmt::format("model:{}", plan.text(source));
      const auto link = std::ranges::find(shown.rows, target, &InspectionRow::target);
      REQUIRE(link != shown.rows.end());
      CHECK(link->detail.starts_with(trainscope::name_of(fate->kind)));
      const std::string reason = reason_of(opened.run->history()->history(), *fate);
      CHECK(std::ranges::any_of(shown.rows, [&](const InspectionRow& row) {
        return row.kind == InspectionKind::kNote && row.text.ends_with(reason);
      }));
    }
    told += row_labelled(shown, "What the passes did to it") != nullptr ? 1 : 0;
  }
  CHECK(several > 0);
  CHECK(told > plan.nodes.size() / 2);
}

TEST_CASE("inspection: what the passes did to a planned node is what their logs have about it") {
  InspectedRun opened;
  const History& history = opened.run->history()->history();
  std::size_t checked = 0;
  for (const HistoryStage& stage : history) {
    for (const RewriteEntry& entry : stage.rewrites.entries) {
      if (entry.kind != RewriteKind::kInside || !entry.thing.is_node || checked == 20) continue;
      const auto heir = static_cast<std::uint32_t>(entry.others.front().serial);
      if (opened.links.node_of_serial(heir) == kNoRow) continue;
      ++checked;
      const Inspection shown = opened.of(select_node(opened.links, {}, heir));
      CHECK(std::ranges::any_of(shown.rows, [&](const InspectionRow& row) {
        return row.text.starts_with(stage.label + ": does the work of ") &&
               (row.text.find("'" + entry.thing.name + "'") != std::string::npos ||
                row.text.find(" more") != std::string::npos) &&
               row.text.find(stage.rewrites.rules[entry.rule].reason) != std::string::npos;
      }));
    }
  }
  CHECK(checked > 3);
}

TEST_CASE("inspection: a buffer leads to its values, to who writes them and to who reads them") {
  InspectedRun opened;
  const PlanView& plan = opened.plan();
  std::size_t of_one = 0;
  for (std::uint32_t id = 0; id < plan.buffers.size(); ++id) {
    INFO(id);
    const PlanBuffer& buffer = plan.buffers[id];
    const auto members = rows_of(plan.members, buffer.values);
    const Inspection shown = opened.of(select_buffer(opened.links, {}, id));
    for (const std::uint32_t value : members) {
      CHECK(leads_to(shown, fmt::format("value:{}", plan.text(plan.values[value].name))));
    }
    of_one += members.size() == 1 ? 1 : 0;
    if (members.empty()) {
      CHECK(row_labelled(shown, "workspace of") != nullptr);
    } else if (is_made_by_node(plan, buffer)) {
      CHECK(text_at(shown, "written by") == plan.text(buffer.producer));
      CHECK(row_labelled(shown, "begins as") == nullptr);
    } else {
      CHECK(text_at(shown, "begins as") == plan.text(buffer.producer));
    }
    REQUIRE(row_labelled(shown, "alive from") != nullptr);
    CHECK(row_labelled(shown, "alive from")->number == buffer.begin);
    CHECK(row_labelled(shown, "until before")->number == buffer.end);
    CHECK(row_labelled(shown, "buffer")->number == id);
  }
  CHECK(of_one > 0);
}

TEST_CASE("inspection: which op holds the peak is told before anything else of its buffer") {
  InspectedRun opened;
  const PlanView& plan = opened.plan();
  for (const std::uint32_t id : memory_peak(plan).alive) {
    if (!is_made_by_node(plan, plan.buffers[id]) || plan.buffers[id].values.count == 0) continue;
    const Inspection shown = opened.of(select_buffer(opened.links, {}, id));
    REQUIRE(shown.rows.size() > 2);
    CHECK(shown.rows[0].label == "holds");
    CHECK(shown.rows[1].label == "written by");
    CHECK(shown.rows[1].kind == InspectionKind::kLink);
    CHECK_FALSE(shown.rows[1].detail.empty());  // the op
  }
}

TEST_CASE("inspection: a kernel has its workspace, and the kernels that were not taken instead") {
  InspectedRun opened;
  const PlanView& plan = opened.plan();
  std::map<std::string, std::int64_t> workspaces;
  std::map<std::string, std::set<std::string>> others;
  for (const PlanCall& call : plan.calls) {
    const std::string kernel(profiler::kernel_of(plan, call));
    workspaces[kernel] = std::max(workspaces[kernel], call.workspace_bytes);
    for (const PlanOtherKernel& other : rows_of(plan.other_kernels, call.other_kernels)) {
      others[kernel].insert(
          fmt::format("{}: {}", plan.text(other.kernel), plan.text(other.reason)));
    }
  }
  std::size_t hungry = 0;
  for (const auto& [kernel, bytes] : workspaces) {
    INFO(kernel);
    const Inspection shown = opened.of(select_kernel(opened.links, {}, kernel));
    const InspectionRow* workspace = row_labelled(shown, "workspace");
    REQUIRE((workspace != nullptr) == (bytes > 0));
    hungry += bytes > 0 ? 1 : 0;
    if (workspace != nullptr) CHECK(workspace->number == static_cast<double>(bytes));
    std::set<std::string> told;
    for (const InspectionRow& row : shown.rows) {
      if (row.label == "not") told.insert(row.text);
    }
    CHECK(told.size() == std::min<std::size_t>(12, others[kernel].size()));
    CHECK(std::ranges::includes(others[kernel], told));
  }
  CHECK(hungry > 0);
  CHECK_FALSE(others.empty());
}

TEST_CASE("inspection: every number has a meaning, and no text is one") {
  for (int kind = 0; kind <= static_cast<int>(InspectionKind::kRoof); ++kind) {
    INFO(kind);
    const auto each = static_cast<InspectionKind>(kind);
    CHECK(meaning_of(each).empty() == !is_number(each));
  }
}

}  // namespace
}  // namespace trainscope::gui
