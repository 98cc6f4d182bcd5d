// Times of ops: of each call by itself before there are data, and what its kernel does.
#include "engine/op_times.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/session.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {

TEST_CASE("op times: each call by itself, on inputs of zeros") {
  const ReferenceModel reference("gpt2");
  const std::shared_ptr<const Compiled> compiled =
      compile(reference.model, reference.options(GraphMode::kTrain));
  const Program& program = compiled->program;
  const std::vector<double> seconds = seconds_alone({compiled, &program});
  REQUIRE(seconds.size() == program.graph.node_capacity());
  for (const Call& call : program.calls) {
    if (call.kernel == nullptr) continue;
    CAPTURE(program.graph.node(call.node).name);
    CHECK(seconds[static_cast<std::size_t>(call.node)] > 0.0);
  }
}

TEST_CASE("op times: a row has what the op needs, and what its kernel does") {
  const ReferenceModel reference("resnet18");
  Session session(reference.model, reference.options(GraphMode::kTrain, {.threads = 2}));
  OpTimes times(session.executor().shared_program());
  const std::vector<OpTime> rows = times.rows();
  CHECK(rows.size() > 100);
  int different = 0;
  for (const OpTime& row : rows) {
    CAPTURE(row.value);
    CHECK((row.flops == 0 || row.done.flops > 0));
    CHECK(row.done.bytes_read + row.done.bytes_written > 0);
    if (row.done.flops != row.flops) ++different;
  }
  CHECK(different > 0);  // convolutions in whole registers, or by a transform
}

}  // namespace trainscope::test
