// Limits of what an optimizer keeps of gradients that are nothing but rounding.
#include "profiler/numerics/tensor_limits.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/numerics/tensor_comparison.h"
#include "tests/profiler/numerics/trace_tools.h"

namespace trainscope::profiler {
namespace {

struct Moment {
  std::string state;  // "adamw.m"
  float of_a = 0.0F;  // each element
  float of_b = 0.0F;
  std::int64_t step = 1;
};

void write(const Folder& folder, const Moment& moment, bool is_b) {
  TraceWriter writer(folder, {.producer = "test", .version = "1"});
  const auto add = [&](TraceKind kind, TracePhase phase, const std::string& value, float each) {
    add_row(writer, {.step = moment.step, .phase = phase, .kind = kind, .value = value},
            std::vector<float>(100, each));
  };
  add(TraceKind::kActivation, TracePhase::kForward, "x", 1.0F);
  add(TraceKind::kGradient, TracePhase::kBackward, "w", 1.0F);
  add(TraceKind::kGradient, TracePhase::kBackward, "bias", is_b ? -1e-8F : 1e-8F);
  add(TraceKind::kState, TracePhase::kUpdate, "ai.trainscope." + moment.state + "/bias",
      is_b ? moment.of_b : moment.of_a);
  writer.sync();
}

// The oracle has a gradient of 1e-17 each, and 1e9 times that as its noise.
TensorVerdict verdict_of(const Moment& moment, bool oracle) {
  const TraceFolder folders[2];
  for (const bool is_b : {false, true}) write(folders[is_b ? 1 : 0].folder(), moment, is_b);
  if (oracle) {
    TraceWriter truth(folders[0].folder().make(kTraceOracleFolder),
                      {.producer = "f64", .version = "1"});
    const auto add = [&](const std::string& value, float each) {
      add_row(
          truth,
          {.step = 1, .phase = TracePhase::kBackward, .kind = TraceKind::kGradient, .value = value},
          std::vector<float>(100, each));
    };
    add("w", 1.0F);
    add("bias", 1e-17F);
    truth.write_noise({{.key = "grad:w", .relative = 1e-7}, {.key = "grad:bias", .relative = 1e9}});
    truth.sync();
  }
  const TensorComparison both =
      compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
  CHECK(both.tensors.back().key == "state:ai.trainscope." + moment.state + "/bias");
  return both.tensors.back().verdict;
}

// Of gradients of 1e-8 and -1e-8 each, by AdamW's and RMSprop's usual rates.
TEST_CASE("limits: a moment of a gradient that vanishes may be any rounding, and nothing larger") {
  for (const bool oracle : {true, false}) {
    CAPTURE(oracle);
    for (const std::string mean : {"adamw.m", "lion.m", "rmsprop.mean", "sgd.momentum"}) {
      CAPTURE(mean);
      CHECK(verdict_of({mean, 1e-9F, -1e-9F}, oracle) == TensorVerdict::kWithin);
      CHECK(verdict_of({mean, 1e-8F, -1e-8F}, oracle) == TensorVerdict::kWithin);
      CHECK(verdict_of({mean, 1e-9F, 1e-6F}, oracle) == TensorVerdict::kBeyond);
      CHECK(verdict_of({mean, 1e-6F, 1e-9F}, oracle) == TensorVerdict::kBeyond);
    }
    for (const std::string square : {"adamw.v", "rmsprop.square"}) {
      CAPTURE(square);
      CHECK(verdict_of({square, 1e-19F, 4e-18F}, oracle) == TensorVerdict::kWithin);
      CHECK(verdict_of({square, 1e-19F, 1e-12F}, oracle) == TensorVerdict::kBeyond);
      CHECK(verdict_of({square, 1e-12F, 1e-19F}, oracle) == TensorVerdict::kBeyond);
    }
    // As AdamW's moves, which go whichever way.
    CHECK(verdict_of({"rmsprop.momentum", 1.0F, -1.0F}, oracle) == TensorVerdict::kWithin);
  }
}

// With weight decay it may hold what its parameter went at the step before.
TEST_CASE("limits: later moments of a gradient that vanishes have no limit") {
  CHECK(verdict_of({"adamw.m", 1e-5F, -1e-5F, 2}, false) == TensorVerdict::kWithin);
  CHECK(verdict_of({"adamw.m", 1e-5F, -1e-5F, 1}, false) == TensorVerdict::kBeyond);
}

// Biases of keys begin at 0. The step before is not there, so their moves are not known.
TEST_CASE("limits: a parameter of a gradient that vanishes may be nothing but its moves") {
  const TraceFolder folders[2];
  for (const float sign : {1.0F, -1.0F}) {
    TraceWriter writer(folders[sign < 0.0F ? 1 : 0].folder(), {.producer = "test", .version = "1"});
    const auto add = [&](TraceKind kind, TracePhase phase, const std::string& value, float each) {
      add_row(writer, {.step = 4, .phase = phase, .kind = kind, .value = value},
              std::vector<float>(100, each));
    };
    add(TraceKind::kActivation, TracePhase::kForward, "x", 1.0F);
    add(TraceKind::kGradient, TracePhase::kBackward, "w", 1.0F);
    add(TraceKind::kGradient, TracePhase::kBackward, "bias", sign * 1e-8F);
    add(TraceKind::kParameter, TracePhase::kUpdate, "w", 1.0F + sign * 1e-3F);
    add(TraceKind::kParameter, TracePhase::kUpdate, "bias", sign * 1e-5F);
    writer.sync();
  }
  const TensorComparison both =
      compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
  const std::vector<ComparedTensor>& tensors = both.tensors;
  REQUIRE(tensors.size() >= 2);
  CHECK(tensors[tensors.size() - 2].key == "param:w");
  CHECK(tensors[tensors.size() - 2].verdict == TensorVerdict::kBeyond);
  CHECK(tensors.back().key == "param:bias");
  CHECK(tensors.back().verdict == TensorVerdict::kWithin);
}

// Traces of AdamW's first step, which moves all elements by 1e-3, one of a hundred the other way in
// B: a fifth of the move, 2e-4 of the norm. `noise`: the share of the step that may be turned.
struct TurnedStep {
  TraceFolder a;
  TraceFolder b;

  TurnedStep(std::optional<double> noise, float later_of_b) {
    write(a.folder(), 0.0F, 1.0F);
    write(b.folder(), 2e-3F, later_of_b);
    TraceWriter truth(a.folder().make(kTraceOracleFolder), {.producer = "f64", .version = "1"});
    add_row(truth,
            {.step = 1, .phase = TracePhase::kBackward, .kind = TraceKind::kGradient, .value = "w"},
            std::vector<float>(100, 1.0F));
    std::vector<TraceNoise> rows = {{.key = "grad:w", .relative = 1e-7}};
    if (noise) rows.push_back({.key = "param:w", .relative = *noise});
    truth.write_noise(rows);
    truth.sync();
  }

  // Of the parameter behind step 1 and of the value of step 2.
  std::pair<TensorVerdict, TensorVerdict> verdicts() const {
    const TensorComparison both = compare_tensors(Trace::open(a.path), Trace::open(b.path));
    std::map<std::string, TensorVerdict> found;
    for (const ComparedTensor& tensor : both.tensors) found[tensor.key] = tensor.verdict;
    return {found.at("param:w"), found.at("act:x")};
  }

 private:
  static void write(const Folder& folder, float turned, float later) {
    TraceWriter writer(folder, {.producer = "test", .version = "1"});
    std::vector<float> w(100, 1.0F);
    TraceRow parameter{
        .step = 0, .phase = TracePhase::kUpdate, .kind = TraceKind::kParameter, .value = "w"};
    add_row(writer, parameter, w);
    TraceRow value{.step = 1, .phase = TracePhase::kForward, .value = "x"};
    add_row(writer, value, std::vector<float>(100, 1.0F));
    for (float& each : w) each -= 1e-3F;
    w[17] += turned;
    parameter.step = 1;
    add_row(writer, parameter, w);
    value.step = 2;
    add_row(writer, value, std::vector<float>(100, later));
    writer.sync();
  }
};

TEST_CASE("limits: elements whose gradient is near its noise may step whichever way") {
  CHECK(TurnedStep(0.3, 1.0F).verdicts().first == TensorVerdict::kWithin);
  CHECK(TurnedStep(std::nullopt, 1.0F).verdicts().first == TensorVerdict::kBeyond);
}

// By 3e-4, as the first one was.
TEST_CASE("limits: later steps may be off by what the first one turned") {
  CHECK(TurnedStep(0.3, 1.0F + 2e-4F).verdicts().second == TensorVerdict::kWithin);
  CHECK(TurnedStep(0.3, 1.0F + 5e-4F).verdicts().second == TensorVerdict::kBeyond);
  CHECK(TurnedStep(std::nullopt, 1.0F + 2e-4F).verdicts().second == TensorVerdict::kBeyond);
}

}  // namespace
}  // namespace trainscope::profiler
