// Times by step, narrow ones and wide ones.
#include "profiler/analysis/step_ns.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

namespace trainscope::profiler {
namespace {

constexpr std::int64_t kMostNarrow = 0xFFFFFFFF;

TEST_CASE("StepNs: a time that 32 bits do not hold, and those beside it, stay what they are") {
  for (const std::int64_t long_one : {kMostNarrow, kMostNarrow + 1, std::int64_t{-1}}) {
    INFO(long_one);
    StepNs ns{7, kMostNarrow};
    ns.reserve(4);
    ns.push_back(long_one);
    ns.resize(4);
    ns.add(3, 5);
    CHECK(ns == StepNs{7, kMostNarrow, long_one, 5});
    CHECK_FALSE(ns == StepNs{7, kMostNarrow, long_one});
    CHECK_FALSE(ns == StepNs{7, kMostNarrow, long_one, 6});
    CHECK(ns.sum() == 12 + kMostNarrow + long_one);
    CHECK(ns.doubles()[2] == static_cast<double>(long_one));
    ns.add(1, 1);  // one more than it can hold
    CHECK(ns[1] == kMostNarrow + 1);
    ns.resize(2);
    CHECK(ns.sum() == 8 + kMostNarrow);
  }
}

TEST_CASE("StepNs: steps behind steps, of both widths") {
  const StepNs narrow{1, 2};
  const StepNs wide{kMostNarrow + 1, 3};
  for (const auto& [first, second] : {std::pair{&narrow, &wide}, std::pair{&wide, &narrow}}) {
    StepNs both = *first;
    both.append(*second);
    CHECK(both == StepNs{(*first)[0], (*first)[1], (*second)[0], (*second)[1]});
    CHECK(both.sum() == first->sum() + second->sum());
  }
}

}  // namespace
}  // namespace trainscope::profiler
