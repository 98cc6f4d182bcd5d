// Orders for memory: the problem has the bytes of the plan, the answer keeps every bit.
#include "engine/plan/memory_order.h"

#include <doctest/doctest.h>

#include <numeric>

#include "memplan/order/order.h"
#include "tests/support/graph_text.h"
#include "tests/support/trained_model.h"

namespace trainscope::test {
namespace {

// Bytes alive at each time, parameters, states and constants included, as they are placed.
std::vector<std::int64_t> placed_profile(const Program& program) {
  const memplan::Problem problem = placement_problem(program);
  std::vector<std::int64_t> profile(static_cast<std::size_t>(program.times), 0);
  for (const memplan::Buffer& buffer : problem.buffers) {
    for (std::int64_t time = buffer.lower; time < buffer.upper; ++time) {
      profile[static_cast<std::size_t>(time)] += memplan::occupied_bytes(problem, buffer);
    }
  }
  return profile;
}

// The same without those that live throughout, which stand apart in an order problem.
std::int64_t fixed_bytes(const Program& program) {
  const memplan::Problem problem = placement_problem(program);
  std::int64_t bytes = 0;
  std::size_t i = 0;
  for (const PlannedBuffer& buffer : program.buffers) {
    if (buffer.space == Space::kHost) continue;
    const memplan::Buffer& placed = problem.buffers[i++];
    if (buffer.persistent) bytes += memplan::occupied_bytes(problem, placed);
  }
  return bytes;
}

void check_problem(const Program& program, const LowerOptions& lower) {
  const memplan::OrderProblem problem = order_problem(program, lower);
  CHECK(memplan::find_order_problem_error(problem) == std::nullopt);
  std::vector<std::int32_t> given(problem.ops.size());
  std::iota(given.begin(), given.end(), 0);
  std::vector<std::int64_t> profile = memplan::order_profile(problem, given);
  const std::int64_t fixed = fixed_bytes(program);
  for (std::int64_t& bytes : profile) bytes += fixed;
  CHECK(profile == placed_profile(program));
}

struct Trained : TrainedModel {
  Trained(std::string_view name, OpOrder order, const RecomputeOptions& recompute = {},
          bool in_backward = false)
      : TrainedModel(name, [&](CompileOptions& options) {
          options.training.keep_gradients = !in_backward;
          if (in_backward) options.training.optimizer.clip_norm = 0.0;
          options.training.optimizer.in_backward = in_backward;
          options.order = order;
          options.recompute = recompute;
        }) {}
};

// Two long values are made first and read one after the other.
constexpr std::string_view kEarlyBranches =
    "(float[1000] x) => (float[] y) {"
    "  a = Exp(x)  b = Sin(x)  c = Cos(x)  d = Tanh(x)"
    "  sa = ReduceSum<keepdims=0>(a)  sb = ReduceSum<keepdims=0>(b)"
    "  sc = ReduceSum<keepdims=0>(c)  sd = ReduceSum<keepdims=0>(d)"
    "  ab = Add(sa, sb)  cd = Add(sc, sd)  y = Add(ab, cd) }";

}  // namespace

TEST_CASE("order_problem: the bytes of the placed buffers, instruction by instruction") {
  for (const std::string& name : kReferenceModels) {
    const ReferenceModel reference(name);
    for (GraphMode mode : {GraphMode::kEvaluate, GraphMode::kGradients, GraphMode::kTrain}) {
      for (bool in_place : {true, false}) {
        CAPTURE(name);
        CAPTURE(in_place);
        CompileOptions options = reference.options(mode, {.in_place = in_place});
        for (OpOrder order : {OpOrder::kGiven, OpOrder::kMemory}) {
          options.order = order;
          check_problem(compile(reference.model, options)->program, options.lower);
        }
        if (mode != GraphMode::kTrain) continue;
        options.training.optimizer.clip_norm = 0.0;
        options.training.optimizer.in_backward = true;
        check_problem(compile(reference.model, options)->program, options.lower);
      }
    }
  }
}

TEST_CASE("op order: the same bits, as many bytes as predicted, never more than as given") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    for (bool in_backward : {false, true}) {
      CAPTURE(in_backward);
      Trained given(name, OpOrder::kGiven, {}, in_backward);
      Trained ordered(name, OpOrder::kMemory, {}, in_backward);
      check_equal(given, ordered);
      CHECK(ordered.program().arena().bytes <= given.program().arena().bytes);
      CHECK(ordered.session.compiled().stages.back().name == "order");
      CHECK(given.session.compiled().stages.back().name == "dead_code");
    }
    Trained plain(name, OpOrder::kGiven);
    Trained again(name, OpOrder::kMemory, {.mode = RecomputeMode::kLevel2});
    check_equal(plain, again);
  }
}

TEST_CASE("op order: branches run one after the other") {
  CompileOptions options;
  options.training.mode = GraphMode::kInference;
  options.order = OpOrder::kGiven;
  const auto given = compile(model(kEarlyBranches), options);
  options.order = OpOrder::kMemory;
  const auto ordered = compile(model(kEarlyBranches), options);
  constexpr std::int64_t kLong = 4032;  // 1000 floats, in whole units of 64 bytes
  CHECK(given->program.arena().bytes >= 5 * kLong);
  CHECK(ordered->program.arena().bytes < 3 * kLong);
  const Stage& stage = ordered->stages.back();
  CHECK(stage.name == "order");
  CHECK(stage.changed);
  CHECK(stage.counters.at("bytes saved") ==
        given->program.arena().bytes - ordered->program.arena().bytes);
  check_placements(ordered->program, ordered->stages);
  CHECK(verify(stage.graph) == std::vector<std::string>{});
}

TEST_CASE("op order: what gains nothing stays as it is") {
  CompileOptions options;
  options.training.mode = GraphMode::kInference;
  const auto compiled = compile(
      model("(float[9] x) => (float[9] y) { a = Exp(x)  b = Sin(a)  y = Cos(b) }"), options);
  const Stage& stage = compiled->stages.back();
  CHECK(stage.name == "order");
  CHECK(!stage.changed);
  CHECK(stage.hash == compiled->stages[compiled->stages.size() - 2].hash);
}

}  // namespace trainscope::test
