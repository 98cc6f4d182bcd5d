// Ties between nodes, calls, values and buffers of a compiled step.
#include "gui/views/plan_links.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

TEST_CASE("plan_links: calls lead to what they read and write, and back") {
  const auto step = test::compiled("mlp");
  const PlanRecord record = plan_record(*step);
  const PlanLinks links(view_of(record));
  const PlanView& plan = links.plan();
  for (std::uint32_t id = 0; id < plan.calls.size(); ++id) {
    const PlanCall& call = plan.calls[id];
    if (call.node != kNoRow) {
      const auto calls = links.calls_of_node(call.node);
      CHECK(std::ranges::count(calls, id) == 1);
    }
    for (const PlanOperand& operand : rows_of(plan.operands, call.outputs)) {
      if (operand.value == kNoRow) continue;
      CHECK(std::ranges::count(links.writers_of(operand.value), id) == 1);
      for (const std::uint32_t reader : links.readers_of(operand.value)) {
        if (reader <= id) continue;
        CHECK(std::ranges::count(links.calls_after(id), reader) == 1);
        CHECK(std::ranges::count(links.calls_before(reader), id) == 1);
      }
    }
  }
}

TEST_CASE("plan_links: a selected node has its call, kernel and buffer, and a buffer leads back") {
  const auto step = test::compiled("gpt2", test::kSmallText);
  const PlanRecord record = plan_record(*step);
  const PlanLinks links(view_of(record));
  const PlanView& plan = links.plan();
  const std::uint32_t call = plan.facts().update_call - 1;
  const Selection by_call = select_call(links, {.stage = 3, .step = 7}, call);
  CHECK(by_call.stage == 3);
  CHECK(by_call.step == 7);
  CHECK(by_call.call == call);
  CHECK(by_call.kernel == plan.text(plan.calls[call].kernel));
  const Selection by_node = select_node(links, {}, by_call.node);
  CHECK(by_node.node == by_call.node);
  CHECK(plan.calls[by_node.call].node == plan.calls[call].node);
  const Selection by_buffer = select_buffer(links, {}, by_call.buffer);
  CHECK(by_buffer.buffer == by_call.buffer);
  const Selection by_value = select_value(links, {}, by_call.value);
  CHECK(by_value.buffer == by_call.buffer);
}

TEST_CASE("plan_links: a node is found by its name and by an ONNX node that it stems from") {
  const auto step = test::compiled("gpt2", test::kSmallText);
  const PlanRecord record = plan_record(*step);
  const PlanLinks links(view_of(record));
  const PlanView& plan = links.plan();
  const std::uint32_t node = plan.calls.front().node;
  REQUIRE(node != kNoRow);
  CHECK(links.node_named(plan.text(plan.nodes[node].name)) == node);
  const auto sources = rows_of(plan.names, plan.nodes[node].sources);
  REQUIRE(!sources.empty());
  const std::uint32_t found = links.node_named(plan.text(sources.front()));
  CHECK(found != kNoRow);
  CHECK(links.node_named("no such node") == kNoRow);
}

TEST_CASE("plan_links: what the plan does not have selects nothing of it") {
  const auto step = test::compiled("mlp");
  const PlanRecord record = plan_record(*step);
  const PlanLinks links(view_of(record));
  const Selection selection = select_node(links, {}, 1'000'000);
  CHECK(selection.node == 1'000'000);
  CHECK(selection.call == kNoRow);
  CHECK(select_call(links, {}, kNoRow).call == kNoRow);
  CHECK(select_buffer(links, {}, kNoRow).buffer == kNoRow);
}

}  // namespace
}  // namespace trainscope::gui
