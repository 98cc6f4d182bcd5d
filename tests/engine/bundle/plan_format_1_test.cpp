// plan.json of run format 1 is a record like another.
#include <doctest/doctest.h>

#include <string>

#include "engine/bundle/plan_json.h"
#include "engine/bundle/reader.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

const fs::path kRun = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/run-format-1/run";

Json recorded() { return Json::parse(get(kRun / "plan.json")); }

}  // namespace

TEST_CASE("plan format 1: calls and buffers are those of the file") {
  const Json json = recorded();
  const PlanRecord record = plan_of_format_1(json);
  const PlanView plan = view_of(record);
  CHECK(plan.arena().bytes == json.get<std::int64_t>("arena_bytes"));
  CHECK(plan.calls.size() == json.at("instructions").size());
  CHECK(plan.buffers.size() == json.at("buffers").size());
  const Json& first = json.at("instructions").at(0);
  CHECK(plan.name_of(plan.calls[0]) == first.get<std::string>("node"));
  CHECK(plan.op_of(plan.calls[0]) == "Gemm");
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Json& row = json.at("buffers").at(i);
    CHECK(plan.text(plan.buffers[i].label) == row.get<std::string>("name"));
    CHECK(plan.buffers[i].offset == row.get<std::int64_t>("offset"));
  }
  const Json again = Json::parse(plan_json(plan));
  CHECK(again.at("buffers").at(0).get<std::string>("class") == "parameter");
  CHECK(again.at("buffers").at(0).at("values") == json.at("buffers").at(0).at("values"));
}

TEST_CASE("plan format 1: values inside others keep their places") {
  Json json = recorded();
  std::string text = json.dump();
  const std::string none = R"("values":["logits","grad/CrossEntropyGrad"],"parts":[])";
  const std::size_t at = text.find(none);
  REQUIRE(at != std::string::npos);
  const std::int64_t offset = 1664;  // of the buffer of logits
  text.replace(at, none.size(),
               R"("values":["logits","grad/CrossEntropyGrad"],)"
               R"("parts":[{"value":"logits","offset":1672,"bytes":8}])");
  const PlanRecord record = plan_of_format_1(Json::parse(text));
  const Json again = Json::parse(plan_json(view_of(record)));
  for (const Json& row : again.array_at("buffers")) {
    if (row.get<std::string>("name") != "logits") continue;
    CHECK(row.get<std::int64_t>("offset") == offset);
    CHECK(row.at("slices").at(0).get<std::int64_t>("offset") == offset + 8);
  }
}

TEST_CASE("plan format 1: workspaces are those of their calls") {
  const Json json = recorded();
  const PlanRecord record = plan_of_format_1(json);
  const PlanView plan = view_of(record);
  CHECK(plan.facts().update_begin == 11);
  CHECK(plan.facts().update_call == 11);
  std::size_t workspaces = 0;
  for (std::uint32_t id = 0; id < plan.calls.size(); ++id) {
    const Json& row = json.at("instructions").at(id);
    const PlanCall& call = plan.calls[id];
    CAPTURE(plan.name_of(call));
    const auto bytes = row.get<std::int64_t>("workspace_bytes");
    REQUIRE((call.workspace == kNoRow) == (bytes == 0));
    if (bytes == 0) continue;
    const PlanBuffer& workspace = plan.buffers[call.workspace];
    CHECK(workspace.holds == BufferClass::kWorkspace);
    CHECK(workspace.bytes == bytes);
    CHECK(workspace.begin == call.time);
    CHECK(workspace.owner_kind == BufferOwner::kCall);
    CHECK(workspace.owner == id);
    CHECK(plan.text(workspace.producer) == plan.name_of(call));
    ++workspaces;
  }
  CHECK(workspaces == 6);
}

TEST_CASE("plan format 1: copies of states are calls, tiled sections are left out") {
  std::string text = recorded().dump();
  const std::string none = R"("copies":[],"chains":[])";
  const std::size_t at = text.find(none);
  REQUIRE(at != std::string::npos);
  text.replace(at, none.size(),
               R"("copies":[{"from":"next/0.bias","to":"0.bias","phase":"update"},)"
               R"({"from":"/0/Gemm","to":"2.bias","phase":"forward"}],)"
               R"("chains":[{"begin":0,"end":4}])");
  const PlanRecord record = plan_of_format_1(Json::parse(text));
  const PlanView plan = view_of(record);
  REQUIRE(plan.calls.size() == 14);
  CHECK(plan.facts().times == 12);
  CHECK(plan.facts().update_call == 12);
  CHECK(plan.sections.empty());
  const auto check_copy = [&plan](std::size_t id, std::uint32_t time, const char* from,
                                  const char* to) {
    const PlanCall& copy = plan.calls[id];
    CHECK(copy.kind == PlanCallKind::kStateCopy);
    CHECK(copy.node == kNoRow);
    CHECK(copy.time == time);
    CHECK(plan.text(plan.values[plan.operands[copy.inputs.begin].value].name) == from);
    CHECK(plan.text(plan.values[plan.operands[copy.outputs.begin].value].name) == to);
  };
  check_copy(11, 10, "/0/Gemm", "2.bias");
  check_copy(13, 11, "next/0.bias", "0.bias");
  CHECK(plan.calls[12].phase == PlanPhase::kUpdate);
  CHECK(plan.calls[12].time == 11);
}

TEST_CASE("plan format 1: damage is refused") {
  struct Row {
    const char* from;
    const char* to;
    const char* message;
  };
  const Row rows[] = {
      {"\"instructions\":", "\"calls\":", "key 'instructions' is missing"},
      {"\"phase\":\"forward\"", "\"phase\":\"sideways\"", "unknown phase 'sideways'"},
      {"\"kind\":\"persistent\"", "\"kind\":\"eternal\"", "unknown kind 'eternal'"},
      {"\"offset\":64,", "\"offset\":6592,", "buffer 1: it is not inside the arena"},
      {"\"birth\":0,", "\"birth\":-1,", "key 'birth'"},
      {"\"values\":[\"0.bias\",\"next/0.bias\"],\"parts\":[]",
       R"("values":["0.bias"],"parts":[{"value":"0.bias","offset":-9223372036854775808,"bytes":4}])",
       "it is not inside its buffer"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.to);
    std::string text = recorded().dump();
    const std::size_t at = text.find(row.from);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string_view(row.from).size(), row.to);
    const Error error = error_of([&] { plan_of_format_1(Json::parse(text)); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
  }
}

TEST_CASE("plan format 1: a run's reader gives it") {
  const RunReader run = RunReader::open(kRun);
  CHECK(run.manifest().format == 1);
  CHECK(run.plan()->view().calls.size() == 12);
  CHECK(run.stages().size() == 36);
}

}  // namespace trainscope
