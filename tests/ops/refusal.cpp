// Checks that an op refuses an example.
#include "tests/ops/refusal.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "engine/ops/standard_ops.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

void check_refused(const Refusal& refusal) {
  const OpTable ops = standard_ops();
  INFO(refusal.op, " \"", refusal.example, "\"");
  try {
    const OpCase accepted(ops.get(refusal.op), refusal.example, DType::kF64);
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    INFO(error.message());
    CHECK(error.message().find(refusal.message) != std::string::npos);
  }
}

}  // namespace trainscope::test
