// Whether two traces read the same: in all common steps, and by the names that the sides have.
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "profiler/numerics/tensor_comparison.h"
#include "tests/profiler/numerics/trace_tools.h"

namespace trainscope::profiler {
namespace {

// Steps 1 and 5 of an input whose elements are these at step 5.
Trace trace_of(const TraceFolder& folder, float at_five, std::int64_t last = 5) {
  TraceWriter writer(folder.folder(), {.producer = "test", .version = "1"});
  for (const std::int64_t step : {std::int64_t{1}, last}) {
    const float each = step == 1 ? 1.0F : at_five;
    add_row(writer,
            {.step = step, .phase = TracePhase::kInput, .kind = TraceKind::kInput, .value = "ids"},
            std::vector<float>(10, each));
    add_row(writer, {.step = step, .kind = TraceKind::kActivation, .value = "x"}, {1.0F});
  }
  writer.sync();
  return Trace::open(folder.path);
}

TEST_CASE("compare: batches of later common steps are refused with the difference") {
  const TraceFolder folders[4];
  const Trace a = trace_of(folders[0], 2.0F);
  const Trace b = trace_of(folders[1], 3.0F);
  CHECK_THROWS_WITH_AS(
      compare_tensors(a, b),
      doctest::Contains("input 'ids' of step 5 is 10 with mean 2 in A, 10 with mean 3 in B"),
      Error);
  CHECK_THROWS_WITH_AS(require_same_batches(a, b), doctest::Contains("of step 5"), Error);
  CHECK_NOTHROW(compare_tensors(a, trace_of(folders[2], 2.0F)));
  // What one of them alone has is of no other batch.
  CHECK_NOTHROW(compare_tensors(a, trace_of(folders[3], 3.0F, 6)));
}

TEST_CASE("compare: messages call the sides by their names") {
  const TraceFolder folders[2];
  const Trace first = trace_of(folders[0], 2.0F);
  const Trace second = trace_of(folders[1], 3.0F);
  CHECK_THROWS_WITH_AS(compare_tensors(first, second, 0, {.a = "B", .b = "A"}),
                       doctest::Contains("mean 2 in B, 10 with mean 3 in A"), Error);
}

}  // namespace
}  // namespace trainscope::profiler
