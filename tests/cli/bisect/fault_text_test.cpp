// What is said of faults, with and without numbers.
#include "cli/bisect/fault_text.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/program_runner.h"

namespace trainscope::test {

TEST_CASE("fault text: an error and its limit") {
  const LocalFault fault{.step = 1,
                         .key = "act:y",
                         .op = "Relu",
                         .node = "/r",
                         .cause = "zeros",
                         .error = 3e-2,
                         .limit = 1e-5};
  CHECK(fault_text(fault) ==
        "step 1, forward, act:y of Relu '/r': local error 3.00e-02, 3e+03 times its limit; op "
        "fault: zeros");
  CHECK(fault_json(fault).at("over_limit").as_number() == doctest::Approx(3e3));
}

TEST_CASE("fault text: integers are not equal, special values have no error") {
  LocalFault fault{.step = 2, .key = "act:i", .cause = "another result", .error = 0.5};
  CHECK(fault_text(fault) == "step 2, forward, act:i: it is not equal; op fault: another result");
  CHECK(fault_json(fault).at("over_limit").is_null());
  fault.error = 0.0;
  fault.limit = 1e-5;
  fault.kind = FaultKind::kOverflow;
  fault.cause = "2 NaN";
  CHECK(fault_text(fault) == "step 2, forward, act:i: overflow fault: 2 NaN");
  CHECK(fault_json(fault).at("over_limit").is_null());
}

TEST_CASE("fault text: kernels of integers, and of what is no number") {
  KernelBisect found{.faults = {{.op = "Add", .kernel = "add", .value = "i", .error = 1.0}}};
  CHECK(text_has(print(found, "run").text, "by add: it is not equal\nsee: "));
  found.faults.front().limit = 1e-6;
  found.faults.front().error = HUGE_VAL;
  CHECK(text_has(print(found, "run").text, "by add: NaN or infinity on one side alone\n"));
}

}  // namespace trainscope::test
