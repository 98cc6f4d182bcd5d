// The bound on a step's time: never above a plan that is there, and above nothing where that
// counts.
#include "engine/recompute/time_bound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>

#include "engine/models/models.h"
#include "engine/recompute/recompute.h"
#include "engine/recompute/search.h"
#include "kernels/api/random.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

std::unique_ptr<Compiled> plain_step(const std::string& model, const ModelArguments& arguments,
                                     std::int64_t batch) {
  const std::string bytes = onnx_bytes(build_model(model, arguments, 1));
  CompileOptions options;
  options.device = test_device();
  options.import.dims = {{"batch", batch}};
  if (arguments.contains("context")) options.import.dims["sequence"] = 64;
  options.training.mode = GraphMode::kTrain;
  options.training.keep_gradients = false;
  options.training.loss.output = "logits";
  if (model == "unet") options.training.loss.class_axis = 1;
  return compile(OnnxModel::from_bytes(std::as_bytes(std::span(bytes))), options);
}

struct Subject {
  std::string name;
  std::unique_ptr<Compiled> compiled;
};

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  const auto add_unet = [&list](std::int64_t batch) {
    list.push_back(
        {"unet", plain_step("unet", {{"depth", 3}, {"width", 4}, {"image", 32}}, batch)});
  };
  add_unet(1);  // what it joins lies in the result
  add_unet(2);
  list.push_back({"vit", plain_step("vit",
                                    {{"layers", 4},
                                     {"heads", 2},
                                     {"embedding", 16},
                                     {"feed-forward", 32},
                                     {"patch", 4},
                                     {"image", 16},
                                     {"classes", 2}},
                                    2)});
  for (const std::string name : {"resnet18", "gpt2", "bert", "llama", "gpt2-dropout"}) {
    const ReferenceModel reference(name);
    list.push_back({name, compile(reference.model, reference.options(GraphMode::kTrain))});
  }
  return list;
}

// A fraction of what may be recomputed, another one each time.
std::vector<bool> random_units(const StepModel& model, std::uint64_t which) {
  std::vector<bool> recomputed(model.units.size(), false);
  const std::uint64_t percent = 100 * random_below(7, which, 0, 10) / 10 + 5;
  for (std::size_t i = 0; i < recomputed.size(); ++i) {
    recomputed[i] = model.units[i].forward && random_below(7, which, i + 1, 100) < percent;
  }
  return recomputed;
}

}  // namespace

TEST_CASE("time bound: no plan of any kind is quicker in its bytes" * doctest::test_suite("cpu")) {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    const Program& plain = subject.compiled->program;
    const std::vector<double> seconds = step_seconds(plain, {});
    RecomputeSearch search(plain, op_table(), {}, step_model(plain, seconds));
    const TimeBound bound(plain, seconds, search.model());
    std::vector<Attempt> attempts = search.front();
    for (std::uint64_t which = 0; which < 30; ++which) {
      attempts.push_back(search.on_demand(random_units(search.model(), which)));
    }
    for (const Attempt& attempt : attempts) {
      CAPTURE(attempt.arena_bytes);
      const double least = bound.seconds_within(attempt.arena_bytes);
      CHECK(least > 0);
      CHECK(least <= attempt.seconds);
    }
  }
}

TEST_CASE("time bound: what must be recomputed takes its time") {
  for (const Subject& subject : subjects()) {
    if (subject.name == "unet" || subject.name == "resnet18")
      continue;  // almost nothing is recomputed
    CAPTURE(subject.name);
    const Program& plain = subject.compiled->program;
    const std::vector<double> seconds = step_seconds(plain, {});
    RecomputeSearch search(plain, op_table(), {}, step_model(plain, seconds));
    const TimeBound bound(plain, seconds, search.model());
    const Attempt least = search.front().back();
    CHECK(bound.seconds_within(least.arena_bytes) > 1.02 * search.model().seconds);
    CHECK(bound.seconds_within(plain.arena().bytes) <= search.model().seconds);
    CHECK(bound.seconds_within(plain.persistent_bytes) == 0.0);  // no step at all
  }
}

TEST_CASE("time bound: a plan's is of the budget, and not above any plan within it" *
          doctest::test_suite("cpu")) {
  const std::unique_ptr<Compiled> compiled =
      plain_step("unet", {{"depth", 3}, {"width", 4}, {"image", 32}}, 1);
  const Program& plain = compiled->program;
  const std::vector<double> seconds = step_seconds(plain, {});
  const std::vector<TradePoint> front = recompute_front(plain, seconds, op_table(), {});
  REQUIRE(front.size() >= 5);  // workspaces differ by processor
  for (std::size_t i = 1; i < front.size(); i += 1 + front.size() / 4) {
    const TradePoint& point = front[i];
    CAPTURE(point.arena_bytes);
    const RecomputePlan plan =
        plan_recompute(plain, seconds, op_table(),
                       {.mode = RecomputeMode::kAuto, .budget_bytes = point.arena_bytes}, {});
    CHECK(plan.bound_bytes == point.arena_bytes);
    CHECK(plan.bound_seconds > 0);
    for (const TradePoint& other : front) {
      if (other.arena_bytes <= point.arena_bytes) CHECK(plan.bound_seconds <= other.seconds);
    }
    CHECK(plan.seconds <= point.seconds * (1 + 1e-9));
  }
}

}  // namespace trainscope::test
