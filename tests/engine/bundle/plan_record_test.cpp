// Records in memory: texts, what rows say, what is alive.
#include "engine/bundle/plan_record.h"

#include <doctest/doctest.h>

#include "tests/engine/bundle/plan_tools.h"

namespace trainscope {

TEST_CASE("plan record: each text is there once") {
  PlanTexts texts;
  CHECK(texts.id("") == 0);
  const TextId relu = texts.id("Relu");
  CHECK(texts.id("Gemm") != relu);
  CHECK(texts.id("Relu") == relu);
  CHECK(texts.ends().size() == 3);
  CHECK(std::string(texts.bytes().begin(), texts.bytes().end()) == "ReluGemm");
}

TEST_CASE("plan record: a call is named by its node, one without by what it writes") {
  PlanRecord plan = chain_plan(2);
  plan.operands.push_back({.value = 1, .buffer = 1});
  plan.calls.push_back(
      {.kind = PlanCallKind::kStateCopy, .outputs = {.begin = 4, .count = 1}, .time = 1});
  const PlanView view = view_of(plan);
  CHECK(view.name_of(view.calls[1]) == "relu_1");
  CHECK(view.op_of(view.calls[1]) == "Relu");
  CHECK(view.text(view.sources_of(view.calls[1])[0]) == "/relu_1");
  CHECK(view.name_of(view.calls[2]) == "relu_0:0");
  CHECK(view.op_of(view.calls[2]).empty());
  CHECK(view.sources_of(view.calls[2]).empty());
}

TEST_CASE("plan record: values lead back to those that they have the elements of") {
  PlanRecord plan = chain_plan(4);  // x, then the results of four nodes
  CHECK(original_values(view_of(plan)) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  plan.nodes[2].rematerialized_of = 0;
  plan.calls[3].kind = PlanCallKind::kTransfer;  // reads what node 2 makes
  CHECK(original_values(view_of(plan)) == std::vector<std::uint32_t>{0, 1, 2, 1, 1});
}

TEST_CASE("plan record: bytes that are alive at each time, of the device alone") {
  PlanRecord plan = chain_plan(3);
  plan.buffers.push_back({.space = PlanSpaceKind::kHost, .end = 3, .bytes = 1000});
  CHECK(live_bytes(view_of(plan)) == std::vector<std::int64_t>{128, 192, 192});
}

}  // namespace trainscope
