// What is said of calls at fault, of the part or device to blame, and where nothing is.
#include "cli/bisect/program_text.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

CallFault wrong_result() {
  return {.kind = CallFaultKind::kMakes,
          .call = CallId{57},
          .phase = Phase::kBackward,
          .op = "Relu",
          .node = "/1/Relu/rematerialized",
          .definition = "/1/Relu",
          .source = "/1/Relu",
          .kernel = "relu",
          .value = "y",
          .error = 3e-2,
          .limit = 1e-5};
}

}  // namespace

TEST_CASE("program text: what a call reads, makes, and what a state keeps") {
  CallFault fault = wrong_result();
  CHECK(
      call_fault_text(fault) ==
      "backward, call 57, Relu '/1/Relu/rematerialized' by relu: 'y' is not what its node makes of "
      "its inputs: error 3.00e-02, 3e+03 times its limit");
  fault.error = HUGE_VAL;
  CHECK(text_has(call_fault_text(fault), "'y' has NaN or infinity"));
  fault.limit = 0.0;
  CHECK(text_has(call_fault_text(fault), "'y' is not equal to what its node makes"));
  fault.kind = CallFaultKind::kReads;
  fault.tile = 1;
  CHECK(call_fault_text(fault) ==
        "backward, call 57, batch tile 1, Relu '/1/Relu/rematerialized' by relu: reads other bytes "
        "than 'y' was given");
  CHECK(call_fault_json(fault).at("tile").as_int() == 1);
  fault.kind = CallFaultKind::kKeeps;
  CHECK(text_has(call_fault_text(fault), "'y' has other bytes after the step than its update"));
}

TEST_CASE("program text: the part to blame, or none of them") {
  ProgramBisect found{.check = {.calls = 60}, .parts = {"order", "recompute"}};
  CHECK(print(found, "run").exit_code == 0);
  CHECK(text_has(print(found, "run").text, "no culprit: each of 60 calls (order, recompute)"));
  CHECK(print(found, "run").facts.at("culprit").is_null());
  found.check.faults = {wrong_result()};
  found.to_blame = "recompute";
  const Outcome blamed = print(found, "run");
  CHECK(blamed.exit_code == 9);
  CHECK(blamed.text.starts_with("culprit: recompute: backward, call 57, "));
  CHECK(blamed.text.ends_with("see: trainscope inspect run --calls --at /1/Relu\n"));
  CHECK(blamed.facts.at("culprit").at("stage").as_string() == "recompute");
  found.to_blame = "";
  const Outcome of_none = print(found, "run");
  CHECK(text_has(of_none.text, "culprit: the call itself, also without each of order, recompute"));
  CHECK(text_has(of_none.text, "see: trainscope bisect run --between kernels"));
}

TEST_CASE("program text: devices, of which the first with a fault is the culprit") {
  const std::vector<DeviceCheck> devices = {
      {.device = "cpu", .check = {.calls = 20, .most = 0.25, .most_of = "/0/Gemm"}},
      {.device = "cuda:0", .check = {.faults = {wrong_result()}, .calls = 5}}};
  const Outcome outcome = print(devices, "run");
  CHECK(outcome.exit_code == 9);
  CHECK(text_has(outcome.text, "no culprit on cpu: each of 20 calls"));
  CHECK(text_has(outcome.text, "culprit on cuda:0: backward, call 57"));
  CHECK(outcome.facts.at("culprit").at("device").as_string() == "cuda:0");
  CHECK(outcome.facts.at("devices").as_array().size() == 2);
  CHECK(print({devices.front()}, "run").exit_code == 0);
}

}  // namespace trainscope::test
