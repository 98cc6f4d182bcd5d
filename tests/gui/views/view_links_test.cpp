// Ties through views (Reshape, Flatten, ...), which no call computes: what the graph says of nodes,
// values and calls, the plan's record says too.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "engine/ir/op_def.h"
#include "gui/views/plan_links.h"
#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

using Rows = std::set<std::uint32_t>;

template <typename List>
Rows rows_in(const List& list) {
  return {list.begin(), list.end()};
}

std::uint32_t row(ValueId id) { return static_cast<std::uint32_t>(id); }
std::uint32_t row(NodeId id) { return static_cast<std::uint32_t>(id); }

// A compiled step, its record and links; a row of the record is an id of the graph.
struct Step {
  explicit Step(std::string_view model, const ModelArguments& arguments = {})
      : compiled(test::compiled(model, arguments)) {}

  const Graph& graph() const { return compiled->program.graph; }
  // Whether the plan ties it: a view's shape or axes are constants.
  bool is_tied(const Use& use) const {
    return use.input == 0 || !graph().node(use.node).op->is_view;
  }

  std::unique_ptr<Compiled> compiled;
  PlanRecord record = plan_record(*compiled);
  PlanLinks links = PlanLinks(view_of(record));
};

const ModelArguments kSmallLstm{{"layers", std::int64_t{1}},
                                {"embedding", std::int64_t{16}},
                                {"hidden", std::int64_t{16}},
                                {"vocab", std::int64_t{32}}};

// What `inspect --node` prints of each node, from the same graph.
void check_nodes(const Step& step) {
  std::size_t views = 0;
  for (const NodeId id : step.graph().order()) {
    const Node& node = step.graph().node(id);
    CAPTURE(node.name);
    Rows inputs;
    Rows outputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_tied = step.is_tied({.node = id, .input = static_cast<int>(i)});
      if (node.inputs[i] != kNoValue && is_tied) inputs.insert(row(node.inputs[i]));
    }
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) outputs.insert(row(v));
    }
    const std::vector<std::uint32_t> read = step.links.inputs_of_node(row(id));
    const std::vector<std::uint32_t> written = step.links.outputs_of_node(row(id));
    CHECK(rows_in(read) == inputs);
    CHECK(read.size() == inputs.size());
    CHECK(rows_in(written) == outputs);
    CHECK(written.size() == outputs.size());
    if (node.op->is_view) ++views;
  }
  CHECK(views > 0);
}

void check_readers(const Step& step) {
  for (const ValueId id : step.graph().live_values()) {
    CAPTURE(step.graph().value(id).name);
    Rows readers;
    for (const Use& use : step.graph().value(id).uses) {
      if (step.is_tied(use)) readers.insert(row(use.node));
    }
    CHECK(rows_in(step.links.nodes_that_read(row(id))) == readers);
  }
}

TEST_CASE("view links: nodes read and write what the graph says, and values have its readers") {
  for (const Step& step :
       {Step("gpt2", test::kSmallText), Step("lenet"), Step("lstm", kSmallLstm)}) {
    check_nodes(step);
    check_readers(step);
  }
}

TEST_CASE("view links: a call is tied to the one that reads its result through views") {
  const Step step("gpt2", test::kSmallText);
  const PlanView& plan = step.links.plan();
  std::size_t through_views = 0;
  for (std::uint32_t call = 0; call < plan.calls.size(); ++call) {
    for (const PlanOperand& operand : rows_of(plan.operands, plan.calls[call].inputs)) {
      if (operand.value == kNoRow) continue;
      ValueId from = ValueId(static_cast<std::int32_t>(operand.value));
      while (step.graph().value(from).producer != kNoNode) {
        const Node& producer = step.graph().node(step.graph().value(from).producer);
        if (!producer.op->is_view) break;
        from = producer.inputs[0];
      }
      CHECK(step.links.storage_of(operand.value) == row(from));
      const NodeId producer = step.graph().value(from).producer;
      if (row(from) == operand.value || producer == kNoNode) continue;
      ++through_views;
      const std::uint32_t writer = step.links.calls_of_node(row(producer)).front();
      CHECK(std::ranges::count(step.links.calls_before(call), writer) == 1);
      CHECK(std::ranges::count(step.links.calls_after(writer), call) == 1);
    }
  }
  CHECK(through_views > 10);
}

TEST_CASE("view links: a selected view has its value and bytes, and its value the call before it") {
  const Step step("gpt2", test::kSmallText);
  const PlanView& plan = step.links.plan();
  std::size_t views = 0;
  for (std::uint32_t id = 0; id < plan.values.size(); ++id) {
    const PlanValue& value = plan.values[id];
    const auto writers = step.links.writers_of(id);
    if (value.view_of == kNoRow || writers.empty()) continue;
    ++views;
    const std::uint32_t serial = plan.nodes[value.producer].serial;
    const Selection node = select_node(step.links, {.stage = 2}, serial);
    CHECK(node.subject == Subject::kNode);
    CHECK(node.stage == 2);
    CHECK(node.node == serial);
    CHECK(node.value == value.serial);
    CHECK(node.buffer == value.buffer);
    CHECK(node.call == kNoRow);
    const Selection selected = select_value(step.links, {}, value.serial);
    CHECK(selected.node == serial);
    CHECK(selected.call == writers.front());
    CHECK(selected.buffer == value.buffer);
  }
  CHECK(views > 10);
}

TEST_CASE("view links: views in a circle, which a damaged record has, end somewhere") {
  PlanRecord record;
  record.values = {{.view_of = 1}, {.view_of = 2}, {.view_of = 1}, {.view_of = 3}, {}};
  const PlanLinks links(view_of(record));
  for (const std::uint32_t value : {0U, 1U, 2U}) {
    CHECK(links.storage_of(value) == links.storage_of(1));
  }
  CHECK(links.storage_of(3) == 3);
  CHECK(links.storage_of(4) == 4);
  CHECK(links.storage_of(kNoRow) == kNoRow);
}

}  // namespace
}  // namespace trainscope::gui
