// Pairs, limits, refusals: on traces of a few tensors.
#include "profiler/numerics/tensor_comparison.h"

#include <cmath>

#include "engine/core/error.h"
#include "engine/core/safetensors.h"
#include "profiler/numerics/tensor_limits.h"
#include "tests/profiler/numerics/trace_tools.h"

namespace trainscope::profiler {
namespace {

constexpr std::int64_t kElements = 1000;

std::vector<float> numbers(double error, std::uint64_t seed = 1) {
  std::vector<float> result(kElements);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double x = std::sin(static_cast<double>(i * seed));
    result[i] = static_cast<float>(x * (1.0 + error * (i % 2 == 0 ? 1.0 : -1.0)));
  }
  return result;
}

struct Step {
  double error = 0.0;  // of the second activation
  double gradient_error = 0.0;
  double input = 0.0;
  std::string model = "ab";
  bool oracle = true;
  bool second = true;  // whether there is a second activation
};

TraceRow row(TraceKind kind, const std::string& value, TracePhase phase) {
  return {.step = 1, .phase = phase, .kind = kind, .value = value};
}

void write(const Folder& folder, const Step& step) {
  TraceWriter writer(folder, {.producer = "test", .version = "1", .model = step.model});
  add_row(writer, row(TraceKind::kInput, "ids", TracePhase::kInput), numbers(step.input, 5));
  add_row(writer, row(TraceKind::kActivation, "x", TracePhase::kForward), numbers(0.0, 2));
  if (step.second) {
    add_row(writer, row(TraceKind::kActivation, "y", TracePhase::kForward), numbers(step.error, 3));
  } else {
    writer.write_names({{.value = "act:y", .fate = "inside", .row = "", .reason = ""}});
  }
  add_row(writer, row(TraceKind::kGradient, "w", TracePhase::kBackward),
          numbers(step.gradient_error, 4));
  writer.sync();
  if (!step.oracle) return;
  TraceWriter truth(folder.make(kTraceOracleFolder), {.producer = "f64", .version = "1"});
  add_row(truth, row(TraceKind::kActivation, "y", TracePhase::kForward), numbers(0.0, 3));
  add_row(truth, row(TraceKind::kGradient, "w", TracePhase::kBackward), numbers(0.0, 4));
  truth.write_noise({{.key = "act:y", .relative = 1e-6}, {.key = "grad:w", .relative = 2e-6}});
  truth.sync();
}

TensorComparison compared(const Step& a, const Step& b) {
  const TraceFolder first;
  const TraceFolder second;
  write(first.folder(), a);
  write(second.folder(), b);
  return compare_tensors(Trace::open(first.path), Trace::open(second.path));
}

const ComparedTensor& tensor_of(const TensorComparison& both, const std::string& key) {
  for (const ComparedTensor& tensor : both.tensors) {
    if (tensor.key == key) return tensor;
  }
  FAIL("no tensor " << key);
  return both.tensors[0];
}

TEST_CASE("compare: the same trace is the same") {
  const TensorComparison both = compared({}, {});
  CHECK(both.tensors.size() == 4);
  CHECK_FALSE(both.first.has_value());
  CHECK(both.measured);
  for (const ComparedTensor& tensor : both.tensors) CHECK(tensor.verdict == TensorVerdict::kSame);
}

TEST_CASE("compare: limits are eight times the noise that was measured") {
  const TensorComparison within = compared({}, {.error = 6e-6, .gradient_error = 14e-6});
  CHECK(within.faults() == 0);
  CHECK(tensor_of(within, "act:y").verdict == TensorVerdict::kWithin);
  CHECK(tensor_of(within, "act:y").relative == doctest::Approx(6e-6).epsilon(0.25));
  CHECK(tensor_of(within, "act:y").limit.value() == doctest::Approx(8e-6));
  const TensorComparison beyond = compared({}, {.error = 12e-6, .gradient_error = 24e-6});
  REQUIRE(beyond.first.has_value());
  CHECK(beyond.tensors[*beyond.first].key == "act:y");
  CHECK(beyond.faults() == 2);
}

TEST_CASE("compare: the oracle says which of the two is wrong") {
  const TensorComparison both = compared({}, {.error = 1e-3});
  const ComparedTensor& tensor = tensor_of(both, "act:y");
  REQUIRE(tensor.error_a.has_value());
  CHECK(*tensor.error_a < 1e-6);
  CHECK(*tensor.error_b == doctest::Approx(1e-3).epsilon(0.25));
}

TEST_CASE("compare: without an oracle limits are of usual noise") {
  const TensorComparison both = compared({.oracle = false}, {.error = 1e-3, .oracle = false});
  CHECK_FALSE(both.measured);
  REQUIRE(both.first.has_value());
  CHECK(both.tensors[*both.first].limit.value() == doctest::Approx(8 * kUnmeasuredNoise));
}

TEST_CASE("compare: what one trace alone has is named, with or without a fate") {
  const TensorComparison both = compared({}, {.second = false});
  CHECK(both.only_a == std::vector<std::string>{"act:y"});
  CHECK(both.only_b.empty());
  CHECK(both.accounted == 1);
}

TEST_CASE("compare: names lead to rows of other names") {
  const TraceFolder first;
  const TraceFolder second;
  write(first.folder(), {});
  {
    TraceWriter writer(second.folder(), {.producer = "test", .version = "1"});
    add_row(writer, row(TraceKind::kActivation, "other", TracePhase::kForward), numbers(0.0, 3));
    writer.write_names({{.value = "act:y", .fate = "renamed", .row = "act:other"}});
    writer.sync();
  }
  const Trace a = Trace::open(first.path);
  const Trace b = Trace::open(second.path);
  CHECK(tensor_of(compare_tensors(a, b), "act:y").verdict == TensorVerdict::kSame);
  CHECK(tensor_of(compare_tensors(b, a), "act:other").verdict == TensorVerdict::kSame);
}

// The first two have the same program, the third has one with a node less.
TEST_CASE("compare: an engine's own values are held against those of the same program alone") {
  const TraceFolder folders[3];
  for (int i = 0; i < 3; ++i) {
    TraceWriter writer(folders[i].folder(), {.producer = "test", .version = "1"});
    add_row(writer, row(TraceKind::kActivation, "x", TracePhase::kForward), numbers(0.0, 2));
    const auto add_own = [&](const std::string& name, std::uint64_t seed) {
      TraceRow own = row(TraceKind::kOwn, name, TracePhase::kBackward);
      own.op = "MatMul";
      add_row(writer, own, numbers(0.0, seed));
    };
    if (i < 2) add_own("grad/MatMul_1", 3);
    add_own(i < 2 ? "grad/MatMul_2" : "grad/MatMul_1", 4);
    writer.sync();
  }
  const Trace a = Trace::open(folders[0].path);
  CHECK(compare_tensors(a, Trace::open(folders[1].path)).tensors.size() == 3);
  const TensorComparison other = compare_tensors(a, Trace::open(folders[2].path));
  CHECK(other.tensors.size() == 1);
  CHECK_FALSE(other.first.has_value());
  CHECK(other.only_a.empty());
}

// As the log-sum-exp of log-probabilities, which is 0 but for rounding.
TEST_CASE("compare: an engine's own value is of no limit, and a fault for NaN and shape alone") {
  const auto verdict_of = [](const std::vector<float>& of_a, const std::vector<float>& of_b) {
    const TraceFolder folders[2];
    for (const bool other : {false, true}) {
      TraceWriter writer(folders[other ? 1 : 0].folder(), {.producer = "test", .version = "1"});
      add_row(writer, row(TraceKind::kActivation, "x", TracePhase::kForward), numbers(0.0, 2));
      add_row(writer, row(TraceKind::kOwn, "CrossEntropy:1", TracePhase::kForward),
              other ? of_b : of_a);
      writer.sync();
    }
    const TensorComparison both =
        compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
    const ComparedTensor& tensor = tensor_of(both, "own:CrossEntropy:1");
    CHECK_FALSE(tensor.limit.has_value());
    CHECK(tensor.over_limit() == 0.0);
    CHECK(both.first.has_value() == is_fault(tensor.verdict));
    return tensor.verdict;
  };
  CHECK(verdict_of({1e-7F, -6e-8F}, {1e-7F, -6e-8F}) == TensorVerdict::kSame);
  CHECK(verdict_of({1e-7F, -6e-8F}, {-1e-7F, 0.0F}) == TensorVerdict::kUnjudged);
  CHECK_FALSE(is_fault(TensorVerdict::kUnjudged));
  CHECK(verdict_of({1e-7F, -6e-8F}, {1e-7F, NAN}) == TensorVerdict::kSpecial);
  CHECK(verdict_of({1e-7F, -6e-8F}, {1e-7F}) == TensorVerdict::kShape);
}

TEST_CASE("compare: other models, batches and steps are refused with the difference") {
  CHECK_THROWS_WITH_AS(compared({}, {.model = "cd"}), doctest::Contains("different models"), Error);
  CHECK_THROWS_WITH_AS(compared({}, {.input = 0.5}), doctest::Contains("input 'ids' of step 1"),
                       Error);
  const TraceFolder first;
  const TraceFolder second;
  write(first.folder(), {});
  TraceWriter writer(second.folder(), {.producer = "test", .version = "1"});
  TraceRow late = row(TraceKind::kActivation, "x", TracePhase::kForward);
  late.step = 7;
  add_row(writer, late, numbers(0.0));
  writer.sync();
  CHECK_THROWS_WITH_AS(compare_tensors(Trace::open(first.path), Trace::open(second.path)),
                       doctest::Contains("no step in common"), Error);
}

// Of a run and one that went on from step 4: what both begin with is compared.
TEST_CASE("compare: parameters before the first common step") {
  const TraceFolder folders[2];
  for (const bool other : {false, true}) {
    const TraceFolder& folder = folders[other ? 1 : 0];
    TraceWriter writer(folder.folder(), {.producer = "test", .version = "1"});
    TraceRow parameter = row(TraceKind::kParameter, "w", TracePhase::kUpdate);
    parameter.step = 4;
    add_row(writer, parameter, numbers(other ? 1e-3 : 0.0, 3));
    TraceRow activation = row(TraceKind::kActivation, "x", TracePhase::kForward);
    activation.step = 5;
    add_row(writer, activation, numbers(0.0, 2));
    writer.sync();
  }
  const TensorComparison both =
      compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
  CHECK(both.steps == std::vector<std::int64_t>{5});
  REQUIRE(both.first.has_value());
  CHECK(both.tensors[*both.first].key == "param:w");
}

TEST_CASE("compare: NaN in one alone, and another number of elements") {
  const TraceFolder first;
  const TraceFolder second;
  const auto write_one = [](const Folder& folder, const std::vector<float>& elements) {
    TraceWriter writer(folder, {.producer = "test", .version = "1"});
    add_row(writer, row(TraceKind::kActivation, "x", TracePhase::kForward), elements);
    add_row(writer, row(TraceKind::kActivation, "y", TracePhase::kForward), {1.0F, NAN});
    writer.sync();
  };
  write_one(first.folder(), {1.0F, 2.0F});
  write_one(second.folder(), {1.0F, NAN});
  const TensorComparison both = compare_tensors(Trace::open(first.path), Trace::open(second.path));
  CHECK(both.tensors[0].verdict == TensorVerdict::kSpecial);
  CHECK(both.tensors[1].verdict == TensorVerdict::kSame);
  const TraceFolder third;
  write_one(third.folder(), {1.0F, 2.0F, 3.0F});
  CHECK(compare_tensors(Trace::open(first.path), Trace::open(third.path)).tensors[0].verdict ==
        TensorVerdict::kShape);
}

TEST_CASE("compare: with all elements errors are exact") {
  const TraceFolder first;
  const TraceFolder second;
  const auto write_full = [](const Folder& folder, const std::vector<float>& elements) {
    TraceWriter writer(folder, {.producer = "test", .version = "1"});
    add_row(writer, row(TraceKind::kActivation, "x", TracePhase::kForward), elements);
    writer.sync();
    const Tensor tensor =
        Tensor::of<float>(Shape{static_cast<std::int64_t>(elements.size())}, elements);
    const NamedTensor named{.name = "act:x", .tensor = tensor.view()};
    write_safetensors(folder.make(kTraceFullFolder) / "1.safetensors", std::span(&named, 1));
  };
  write_full(first.folder(), {1.0F, -2.0F, 1e-9F, 4.0F});
  write_full(second.folder(), {1.0F, -2.0F, -1e-9F, 4.0F + 0x1p-21F});
  const TensorComparison both = compare_tensors(Trace::open(first.path), Trace::open(second.path));
  REQUIRE(both.tensors[0].elements.has_value());
  const ElementErrors& errors = *both.tensors[0].elements;
  CHECK(errors.largest == doctest::Approx(0x1p-21));
  CHECK(errors.sign_flips == 1);
  CHECK(errors.ulp_median >= 1.0);
  CHECK(errors.cosine == doctest::Approx(1.0));
}

// Two gradients, of which the oracle has norms and noise.
struct TwoGradients {
  float w = 1.0F;      // each element of grad:w
  float other = 1.0F;  // of grad:other
};
struct OracleOfTwo {
  std::vector<float> w;
  double noise = 1e-7;
};

TensorComparison compared_gradients(TwoGradients a, TwoGradients b, const OracleOfTwo& oracle) {
  const TraceFolder folders[2];
  for (int i = 0; i < 2; ++i) {
    const TwoGradients& of = i == 0 ? a : b;
    TraceWriter writer(folders[i].folder(), {.producer = "test", .version = "1"});
    add_row(writer, row(TraceKind::kGradient, "w", TracePhase::kBackward),
            std::vector<float>(100, of.w));
    add_row(writer, row(TraceKind::kGradient, "other", TracePhase::kBackward),
            std::vector<float>(100, of.other));
    writer.sync();
  }
  TraceWriter truth(folders[0].folder().make(kTraceOracleFolder),
                    {.producer = "f64", .version = "1"});
  add_row(truth, row(TraceKind::kGradient, "w", TracePhase::kBackward), oracle.w);
  add_row(truth, row(TraceKind::kGradient, "other", TracePhase::kBackward),
          std::vector<float>(100, 1.0F));
  truth.write_noise(
      {{.key = "grad:w", .relative = oracle.noise}, {.key = "grad:other", .relative = 1e-7}});
  truth.sync();
  return compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
}

TEST_CASE("compare: a gradient that is zero in one run alone is a fault, in whichever") {
  const OracleOfTwo oracle{.w = std::vector<float>(100, 1.0F)};
  for (const bool in_a : {true, false}) {
    const TwoGradients zero{.w = 0.0F};
    const TensorComparison both =
        compared_gradients(in_a ? zero : TwoGradients{}, in_a ? TwoGradients{} : zero, oracle);
    CHECK(tensor_of(both, "grad:w").verdict == TensorVerdict::kBeyond);
    CHECK(tensor_of(both, "grad:other").verdict == TensorVerdict::kSame);
  }
}

// 0 in exact arithmetic, but for what f64 rounds.
TEST_CASE("compare: a gradient that vanishes may be any rounding, and nothing larger") {
  const OracleOfTwo oracle{.w = std::vector<float>(100, 1e-17F), .noise = 1e9};  // 1e-8 each
  CHECK(compared_gradients({.w = 1e-8F}, {.w = -2e-8F}, oracle).faults() == 0);
  CHECK(tensor_of(compared_gradients({.w = 1e-8F}, {.w = 1e-3F}, oracle), "grad:w").verdict ==
        TensorVerdict::kBeyond);
  CHECK(tensor_of(compared_gradients({.w = 1e-3F}, {.w = 1e-8F}, oracle), "grad:w").verdict ==
        TensorVerdict::kBeyond);
}

// The oracle has a norm of rounding for it, as 0 has no share.
TEST_CASE("compare: a value that is 0 in f64 may be any rounding, and nothing larger") {
  const auto verdict_of = [](float of_a, float of_b) {
    const TraceFolder folders[2];
    const TraceRow value = row(TraceKind::kActivation, "x", TracePhase::kForward);
    for (const bool other : {false, true}) {
      TraceWriter writer(folders[other ? 1 : 0].folder(), {.producer = "test", .version = "1"});
      add_row(writer, value, std::vector<float>(100, other ? of_b : of_a));
      writer.sync();
    }
    TraceWriter truth(folders[0].folder().make(kTraceOracleFolder),
                      {.producer = "f64", .version = "1"});
    add_row(truth, value, std::vector<float>(100, 0.0F));
    truth.write_noise({{.key = "act:x", .relative = 1e-6}});  // 1e-7 each
    truth.sync();
    const TensorComparison both =
        compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
    return tensor_of(both, "act:x").verdict;
  };
  CHECK(verdict_of(1e-7F, -2e-7F) == TensorVerdict::kWithin);
  CHECK(verdict_of(0.0F, 2e-7F) == TensorVerdict::kWithin);
  CHECK(verdict_of(1e-7F, 1e-5F) == TensorVerdict::kBeyond);
  CHECK(verdict_of(1e-3F, 0.0F) == TensorVerdict::kBeyond);
}

TEST_CASE("compare: a gradient that overflows does not widen the limits of the others") {
  std::vector<float> overflows(100, 3e38F);
  overflows[3] = INFINITY;
  const TensorComparison both =
      compared_gradients({}, {.other = 1.001F}, {.w = overflows, .noise = 1e300});
  const ComparedTensor& other = tensor_of(both, "grad:other");
  CHECK(other.verdict == TensorVerdict::kBeyond);
  CHECK(other.limit.value() < 1e-5);
  CHECK(std::isfinite(tensor_of(both, "grad:w").limit.value()));
}

// A step of two engines of which none has an oracle: a weight, and a bias whose gradient is this.
TensorComparison compared_biases(float gradient_of_a, float gradient_of_b) {
  const TraceFolder folders[2];
  for (const bool other : {false, true}) {
    TraceWriter writer(folders[other ? 1 : 0].folder(), {.producer = "test", .version = "1"});
    const float gradient = other ? gradient_of_b : gradient_of_a;
    const auto add = [&](std::int64_t step, TraceKind kind, const std::string& value, float each) {
      TraceRow added = row(kind, value, TracePhase::kUpdate);
      added.step = step;
      add_row(writer, added, std::vector<float>(100, each));
    };
    add(0, TraceKind::kParameter, "bias", 0.0F);
    add_row(writer, row(TraceKind::kActivation, "x", TracePhase::kForward), numbers(0.0, 2));
    add(1, TraceKind::kGradient, "w", 1.0F);
    add(1, TraceKind::kGradient, "bias", gradient);
    add(1, TraceKind::kParameter, "bias", gradient > 0.0F ? -1e-3F : 1e-3F);  // as Adam moves it
    writer.sync();
  }
  return compare_tensors(Trace::open(folders[0].path), Trace::open(folders[1].path));
}

TEST_CASE("compare: without an oracle a gradient vanishes beside all others") {
  const TensorComparison rounding = compared_biases(1e-9F, -2e-9F);
  CHECK_FALSE(rounding.measured);
  CHECK(tensor_of(rounding, "grad:bias").verdict == TensorVerdict::kWithin);
  CHECK(rounding.faults() == 0);  // whichever way the bias went
  for (const bool in_a : {true, false}) {
    const TensorComparison larger =
        in_a ? compared_biases(1e-3F, -1e-9F) : compared_biases(1e-9F, -1e-3F);
    CHECK(tensor_of(larger, "grad:bias").verdict == TensorVerdict::kBeyond);
    CHECK(larger.faults() == 2);
  }
}

TEST_CASE("compare: signs show the kinks of the Relu family, and no others") {
  for (const std::string_view op : {"Relu", "LeakyRelu", "PRelu", "BiasRelu"}) CHECK(has_kink(op));
  for (const std::string_view op : {"Clip", "Max", "Min", "HardSigmoid", "HardSwish", "Gelu", ""}) {
    CAPTURE(std::string(op));
    CHECK_FALSE(has_kink(op));
  }
}

}  // namespace
}  // namespace trainscope::profiler
