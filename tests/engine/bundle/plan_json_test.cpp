// plan.json: the keys that docs/plan-format.md lists.
#include "engine/bundle/plan_json.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/core/json.h"
#include "tests/engine/bundle/plan_tools.h"

namespace trainscope {

TEST_CASE("plan json: a line for each row, under the documented keys") {
  PlanRecord plan = chain_plan(2);
  plan.recompute.push_back({.repeats = 3,
                            .plain_bytes = 400,
                            .offloaded_bytes = 0,
                            .budget_bytes = 200,
                            .plain_seconds = 2.0,
                            .seconds = 2.5});
  plan.values.push_back({});  // of a value that a pass erased
  plan.operands.push_back({});
  plan.calls[1].inputs.begin = 3;  // with an optional input that is left out
  plan.calls[1].inputs.count = 2;
  plan.nodes[1].op_class = OpClass::kActivation;
  plan.nodes[1].rematerialized_of = 0;
  const std::string text = plan_json(view_of(plan));
  CHECK(std::count(text.begin(), text.end(), '\n') < 60);
  const Json json = Json::parse(text);
  CHECK(json.get<int>("arena_bytes") == 192);
  CHECK(json.get<int>("gap_bytes") == 0);
  CHECK(json.get<bool>("proven"));
  CHECK(json.get<std::string>("method") == "event_order");
  CHECK(json.get<int>("call_count") == 2);
  CHECK(json.get<int>("buffer_count") == 3);
  CHECK(json.at("recompute").get<double>("overhead") == 0.25);
  CHECK(!json.at("recompute").contains("bound_bytes"));
  const Json& call = json.at("calls").at(1);
  CHECK(call.get<int>("id") == 1);
  CHECK(call.get<std::string>("kind") == "kernel");
  CHECK(call.get<std::string>("node") == "relu_1");
  CHECK(call.get<std::string>("op") == "Relu");
  CHECK(call.get<std::string>("op_class") == "activation");
  CHECK(call.get<int>("rematerialized_of") == 0);
  CHECK(json.at("calls").at(0).get<std::string>("op_class") == "unstated");
  CHECK(!json.at("calls").at(0).contains("rematerialized_of"));
  CHECK(call.get<std::string>("kernel") == "relu");
  REQUIRE(call.at("refused").size() == 1);
  CHECK(call.at("refused").at(0).get<std::string>("kernel") == "relu.wide");
  REQUIRE(call.at("behind").size() == 1);
  CHECK(call.at("behind").at(0).get<std::string>("kernel") == "relu.plain");
  CHECK(call.at("behind").at(0).get<std::string>("reason") == "later in the list");
  CHECK(call.at("inputs") == Json::array({"relu_1:0"}));
  CHECK(call.at("outputs") == Json::array({"relu_1:0"}));
  CHECK(call.at("sources") == Json::array({"/relu_1"}));
  CHECK(call.at("workspace").is_null());
  CHECK(call.get<int>("flops") == 16);
  CHECK(call.get<int>("kernel_flops") == 17);
  CHECK(call.get<int>("kernel_bytes_written") == 65);
  CHECK(call.at("reads").size() == 2);
  CHECK(call.at("reads").at(1).is_null());
  const Json& operand = call.at("reads").at(0);
  CHECK(operand.get<int>("value") == 2);
  CHECK(operand.get<int>("buffer") == 2);
  CHECK(operand.get<int>("offset") == 0);
  CHECK(operand.get<std::string>("slice") == "whole");
  CHECK(operand.get<std::string>("dtype") == "f32");
  CHECK(operand.at("shape") == Json::array({2, 8}));
  CHECK(json.get<std::string>("device") == "cpu");
  CHECK(json.at("inputs") == Json::array({0}));
  CHECK(json.at("spaces").size() == 2);
  CHECK(json.at("spaces").at(0).get<int>("bytes") == 192);
  CHECK(json.at("spaces").at(1).get<std::string>("kind") == "host");
  CHECK(json.at("values").size() == 3);
  const Json& value = json.at("values").at(1);
  CHECK(value.get<std::string>("name") == "relu_0:0");
  CHECK(value.get<std::string>("dtype") == "f32");
  CHECK(value.at("shape") == Json::array({2, 8}));
  CHECK(value.get<int>("buffer") == 1);
  const Json& buffer = json.at("buffers").at(1);
  CHECK(buffer.get<int>("id") == 1);
  CHECK(buffer.get<std::string>("kind") == "value");
  CHECK(buffer.get<std::string>("class") == "activation");
  CHECK(buffer.at("owner").get<int>("value") == 1);
  CHECK(buffer.at("values") == Json::array({"relu_0:0"}));
  CHECK(buffer.at("slices").size() == 0);
  CHECK(json.at("host_buffers").size() == 0);
  CHECK(json.at("sections").size() == 0);
}

TEST_CASE("plan json: a body is a plan, with what is carried from trip to trip") {
  const Json json = Json::parse(plan_json(view_of(plan_with_body(3, chain_plan(2)))));
  CHECK(json.at("calls").at(2).get<int>("body") == 0);
  const Json& body = json.at("bodies").at(0);
  CHECK(body.get<int>("trips_input") == 0);
  CHECK(body.at("carried").at(0).get<int>("from") == 0);
  CHECK(body.at("plan").at("calls").size() == 2);
}

TEST_CASE("plan json: a value that takes up a slice of its buffer has its place") {
  PlanRecord plan = chain_plan(1);
  plan.values[1].offset = 32;
  plan.values[1].bytes = 32;
  const Json json = Json::parse(plan_json(view_of(plan)));
  const Json& slice = json.at("buffers").at(1).at("slices").at(0);
  CHECK(slice.get<std::string>("value") == "relu_0:0");
  CHECK(slice.get<int>("offset") == 96);
  CHECK(slice.get<int>("bytes") == 32);
}

}  // namespace trainscope
