// Offload on the reference models: values that go to host memory and back.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/engine/recompute/recompute_tools.h"

namespace trainscope::test {

TEST_CASE("offload: the same bits in less memory, both arenas as predicted") {
  constexpr HostLink kQuick{.bytes_per_second = 1e15, .seconds_per_transfer = 0.0};
  // The others have their peak where nothing waits: in the update, resnet18 in the workspace of one
  // of the last gradients.
  for (const std::string name : {"gpt2", "bert", "llama", "gpt2-dropout"}) {
    CAPTURE(name);
    Trained plain(name, {});
    Trained other(name, {.mode = RecomputeMode::kAuto, .max_overhead = 0.02, .link = kQuick});
    const RecomputeSummary& summary = *other.session.compiled().recompute;
    CHECK(summary.seconds <= 1.02 * summary.plain_seconds);
    CHECK(summary.bound_seconds == 0.0);  // it is for plans that compute everything
    CHECK(other.program().arena().bytes < plain.program().arena().bytes);
    CHECK(summary.offloaded_bytes > 0);
    CHECK(other.program().space(Space::kHost).bytes > 0);
    CHECK(other.program().space(Space::kHost).bytes <= summary.offloaded_bytes + 64 * 1000);
    check_equal(plain, other);
  }
}

TEST_CASE("offload: nothing waits behind a link that is slower than computing") {
  constexpr HostLink kSlow{.bytes_per_second = 1e3, .seconds_per_transfer = 0.0};
  Trained plain("gpt2", {});
  const std::int64_t budget = plain.program().arena().bytes * 9 / 10;
  Trained without("gpt2", {.mode = RecomputeMode::kAuto, .budget_bytes = budget});
  Trained with("gpt2", {.mode = RecomputeMode::kAuto, .budget_bytes = budget, .link = kSlow});
  CHECK(with.program().space(Space::kHost).bytes == 0);
  CHECK(with.session.compiled().recompute->seconds ==
        without.session.compiled().recompute->seconds);
}

TEST_CASE("offload: a link never makes a plan slower, and a quick one makes deeper budgets") {
  constexpr HostLink kQuick{.bytes_per_second = 1e12, .seconds_per_transfer = 0.0};
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  const std::int64_t plain = compile(reference.model, options)->program.arena().bytes;
  options.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = plain * 9 / 10};
  const double without = compile(reference.model, options)->recompute->seconds;
  options.recompute.link = kQuick;
  CHECK(compile(reference.model, options)->recompute->seconds < without);
}

TEST_CASE("offload: a quicker link does what a slower one does") {
  const ReferenceModel reference("gpt2");
  const CompileOptions options = reference.options(GraphMode::kTrain);
  const Program plain = compile(reference.model, options)->program;
  const std::vector<double> seconds = step_seconds(plain, {});
  // Moving bytes takes longer than waiting for the first link, and next to nothing on the second.
  std::int64_t least_of[2] = {};
  constexpr double kRates[] = {1e6, 1e15};
  for (std::size_t i = 0; i < 2; ++i) {
    const HostLink link{.bytes_per_second = kRates[i], .seconds_per_transfer = 1e-5};
    const std::vector<TradePoint> front =
        recompute_front(plain, seconds, op_table(), options.lower, {.link = link});
    CHECK(std::ranges::any_of(front, [](const TradePoint& point) { return point.host_bytes > 0; }));
    least_of[i] = front.back().arena_bytes;
  }
  CHECK(least_of[1] <= least_of[0]);
}

}  // namespace trainscope::test
