// Advice on a small step, asked for without any command line.
#include "engine/advise/advice.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/core/error.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

// A linear layer on batches of 4.
AdviceRequest points() {
  return {.train = points_request({}, 0), .sizes = {.batch = 4, .shapes = {}}};
}

TEST_CASE("advice: levers by their gains, each with the arena that its step has") {
  const AdviceRequest request = points();
  const Advice advice = advise(request);
  CHECK((advice.base.times_from == TimesFrom::kSteps));
  CHECK(advice.base.seconds() > 0.0);
  CHECK(advice.base.examples() == 4);
  CHECK(!advice.base.labels_that_count);  // of a loss without classes
  REQUIRE(!advice.levers.empty());
  double gain = advice.levers.front().gain;
  for (const LeverAdvice& each : advice.levers) {
    CAPTURE(each.lever.name);
    CHECK(each.gain <= gain);
    gain = each.gain;
    CHECK(each.forecast.seconds > 0.0);
    const TrainRequest step = changed(request.train, request.sizes, each.lever.change);
    CHECK(each.arena_bytes == compile(step.model, step.compile)->program.arena().bytes);
    CHECK(each.examples == step.batch * step.compile.training.micro_batches);
  }
  for (const Lever& each : advice.left_out) CHECK(!each.why_not.empty());
}

TEST_CASE("advice: what fits in the memory asked for comes first") {
  AdviceRequest request = points();
  request.memory_bytes = 1;
  const Advice none = advise(request);
  CHECK(std::ranges::none_of(none.levers, &LeverAdvice::fits));
  CHECK(std::ranges::is_sorted(none.levers, {}, &LeverAdvice::arena_bytes));
  request.memory_bytes = std::int64_t{1} << 30;
  const Advice all = advise(request);
  CHECK(std::ranges::all_of(all.levers, &LeverAdvice::fits));
  CHECK(std::ranges::is_sorted(all.levers, {}, &LeverAdvice::seconds_an_example));
}

TEST_CASE("advice: what is tried uses the bytes that were planned") {
  const AdviceRequest request = points();
  Advice advice = advise(request);
  try_levers(advice, request, 2);
  REQUIRE(advice.levers.size() > 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const LeverAdvice& each = advice.levers[i];
    REQUIRE(each.trial.has_value());
    CHECK(each.trial->used_bytes == each.arena_bytes);
    CHECK(each.trial->seconds > 0.0);
    CHECK(each.trial->base_seconds > 0.0);
    CHECK(time_error(advice, each) > -1.0);
  }
  CHECK(!advice.levers[2].trial);
}

TEST_CASE("advice: of shapes alone nothing is run, and its data are not opened") {
  AdviceRequest request = points();
  request.shapes_only = true;
  request.train.open_data = nullptr;
  Advice advice = advise(request);
  CHECK((advice.base.times_from == TimesFrom::kMachine));
  CHECK(!advice.base.note.empty());
  for (const LeverAdvice& each : advice.levers) {
    CHECK(each.forecast.modelled_seconds == each.forecast.seconds);
  }
  try {
    try_levers(advice, request, 1);
    FAIL("steps were run");
  } catch (const Error& error) {
    CHECK((error.code() == ErrorCode::kUsage));
  }
}

// Data that ask to stop when they are read.
class StoppingPoints final : public Dataset {
 public:
  explicit StoppingPoints(std::stop_source stop) : stop_(std::move(stop)) {}
  std::span<const Field> fields() const override { return points_.fields(); }
  std::int64_t examples(Split split) const override { return points_.examples(split); }
  bool can_pad() const override { return points_.can_pad(); }
  Json description() const override { return points_.description(); }
  void read(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    points_.read(split, epoch, indices, out);
    std::stop_source(stop_).request_stop();
  }

 private:
  std::stop_source stop_;
  Points points_;
};

TEST_CASE("advice: work ends when it is asked to stop") {
  std::stop_source before;
  before.request_stop();
  CHECK_THROWS_AS((void)advise(points(), before.get_token()), Stopped);
  AdviceRequest request = points();
  Advice advice = advise(request);
  CHECK_THROWS_AS(try_levers(advice, request, 1, before.get_token()), Stopped);
  CHECK(!advice.levers.front().trial);
  const std::stop_source while_it_works;
  request.train.open_data = opened(std::make_shared<const StoppingPoints>(while_it_works));
  CHECK_THROWS_AS((void)advise(request, while_it_works.get_token()), Stopped);
}

}  // namespace
}  // namespace trainscope::test
