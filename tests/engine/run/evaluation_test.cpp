// Evaluation of forward programs, as `eval` and a run ask for it.
#include "engine/run/evaluation.h"

#include <doctest/doctest.h>

#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

ValidationData points_data(std::int64_t batch) {
  return {.data = std::make_shared<const Points>(),
          .batch = batch,
          .loss = {.kind = LossKind::kMse, .output = "y"}};
}

Evaluation evaluation_of(const TrainRequest& request, std::int64_t batch) {
  CompileOptions options = request.compile;
  options.import.dims["n"] = batch;
  ForwardPrograms programs(request.model, nullptr, options);
  const std::optional<Evaluation> found = evaluate_validation(programs, points_data(batch));
  REQUIRE(found.has_value());
  return *found;
}

TEST_CASE("evaluation: every example counts once, whatever the batch is") {
  const TrainRequest request = points_request({}, 0);
  const Evaluation whole = evaluation_of(request, 10);
  CHECK(whole.examples == 10);
  CHECK(whole.loss > 0.0);
  // Of ten examples a batch of 4 leaves two, which get a program of their own.
  for (const std::int64_t batch : {4, 3, 12}) {
    CAPTURE(batch);
    const Evaluation other = evaluation_of(request, batch);
    CHECK(other.examples == 10);
    CHECK(other.loss == doctest::Approx(whole.loss).epsilon(1e-5));
  }
}

// Points of which a batch says that it has more labels the later it comes.
class Uneven final : public Dataset {
 public:
  std::span<const Field> fields() const override { return points_.fields(); }
  std::int64_t examples(Split split) const override { return points_.examples(split); }
  bool can_pad() const override { return false; }
  Json description() const override { return points_.description(); }
  void read(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    points_.read(split, epoch, indices, out);
    out.loss_terms = 1 + indices.front();
  }

 private:
  Points points_;
};

TEST_CASE("evaluation: a sum of losses is a mean over examples, whatever their labels are") {
  TrainRequest request = points_request({}, 0);
  LossOptions& loss = request.compile.training.loss;
  const auto evaluated = [&](std::int64_t batch) {
    CompileOptions options = request.compile;
    options.import.dims["n"] = batch;
    ForwardPrograms programs(request.model, nullptr, options);
    const std::optional<Evaluation> found = evaluate_validation(
        programs, {.data = std::make_shared<const Uneven>(), .batch = batch, .loss = loss});
    REQUIRE(found.has_value());
    return found->loss;
  };
  CHECK(evaluated(4) != doctest::Approx(evaluated(10)).epsilon(1e-3));  // one loss: by labels
  loss.further = {{.kind = LossKind::kL1, .output = "y", .weight = 0.5}};
  CHECK(evaluated(4) == doctest::Approx(evaluated(10)).epsilon(1e-5));
}

TEST_CASE("evaluation: a model that fixes its batch leaves the rest out") {
  TrainRequest request = points_request({}, 0);
  request.model = model(
      "(float[4,3] x) => (float[4,2] y)"
      "<float[3,2] w = {1, 0, 0, 1, 0.5, 0.5}> { y = MatMul(x, w) }");
  request.compile.import.dims.clear();
  ForwardPrograms programs(request.model, nullptr, request.compile);
  const std::optional<Evaluation> found = evaluate_validation(programs, points_data(4));
  REQUIRE(found.has_value());
  CHECK(found->examples == 8);
  CHECK(examples_left_out(points_data(4), request.model) == 2);
}

TEST_CASE("evaluation: ends when it is asked to stop") {
  const TrainRequest request = points_request({}, 0);
  ForwardPrograms programs(request.model, nullptr, request.compile);
  std::stop_source stop;
  stop.request_stop();
  ValidationData data = points_data(4);
  data.watch.stop = stop.get_token();
  CHECK(!evaluate_validation(programs, data));
}

}  // namespace
}  // namespace trainscope::test
