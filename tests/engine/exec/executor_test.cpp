// Executor: access to values, in-place and copied updates, shared parameters, the first bad tensor.
#include "engine/exec/executor.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "engine/exec/arena.h"
#include "engine/exec/device_work.h"
#include "engine/ir/well_known.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/kept_plans.h"

namespace trainscope::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Running {
  Program program;
  Executor executor;

  explicit Running(Graph g, const LowerOptions& options = {})
      : program(lower(std::move(g), test_device(), options)), executor(program) {
    executor.load_initial();
    keep_plan(program);
  }
  explicit Running(std::string_view text) : Running(graph(text)) {}
  std::vector<float> values(std::string_view name) const {
    const Tensor tensor = executor.read(name);
    return {tensor.values<float>().begin(), tensor.values<float>().end()};
  }
};

using Values = std::vector<float>;

}  // namespace

TEST_CASE("executor: computes outputs from bound inputs, again and again") {
  Running r("(float[2] x) => (float[2] y) <float[2] w = {10, 100}> { a = Mul(x, w)  y = Neg(a) }");
  for (float x : {1.0F, 2.0F}) {
    r.executor.write("x", floats({2}, {x, x + 1}));
    r.executor.run_micro_step();
    CHECK(r.values("y") == Values{-10 * x, -100 * (x + 1)});
  }
  CHECK(r.values("w") == Values{10, 100});
}

TEST_CASE("executor: refuses names and types that the program does not have") {
  Running r("(float[2] x) => (float[2] y) { y = Neg(x) }");
  CHECK(r.executor.has("x"));
  CHECK_FALSE(r.executor.has("z"));
  CHECK(contains(refusal_of([&] { (void)r.executor.read("z"); }), "the program has no value 'z'"));
  CHECK(contains(refusal_of([&] {
                   r.executor.write("x", floats({3}, {1, 2, 3}));
                 }),
                 "'x' must be f32[2], is f32[3]"));
  CHECK(error_of([&] {
          r.executor.write("x", doubles({2}, {1, 2}));
        })->code() == ErrorCode::kBadInput);
}

TEST_CASE("executor: values without bytes say so") {
  const Running r("(float[4] x) => (float[2,2] y) <int64[2] s = {2,2}> { y = Reshape(x, s) }");
  CHECK_FALSE(r.executor.has("s"));
  CHECK(contains(refusal_of([&] { (void)r.executor.read("s"); }), "keeps no bytes for 's'"));
}

TEST_CASE("executor: states are updated after the phase that computes the new value") {
  Graph g = graph(
      "(float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {5, 5}>"
      "{ n = Add(w, x)  y = Mul(w, v)  m = Mul(v, v) }");
  g.updates.push_back({.state = g.find("w"), .value = g.find("n")});  // w is read later: a copy
  g.updates.push_back({.state = g.find("v"), .value = g.find("x")});  // an input
  Running r(std::move(g));
  CHECK(std::ranges::count(r.program.calls, CallKind::kStateCopy, &Call::kind) == 2);
  r.executor.write("x", floats({2}, {10, 20}));
  r.executor.run_micro_step();
  CHECK(r.values("y") == Values{5, 10});
  CHECK(r.values("w") == Values{11, 22});
  CHECK(r.values("v") == Values{5, 5});  // not before the update phase
  r.executor.run_update();
  CHECK(r.values("v") == Values{10, 20});
}

TEST_CASE("executor: an evaluation reads another executor's parameters, also through views") {
  const std::string text =
      "(float[4] x) => (float[2,2] y) <float[4] w = {1, 2, 3, 4}, int64[2] s = {2,2}, float[2,2] k"
      " = {100, 100, 100, 100}>"
      "{ v = Reshape(w, s)  u = Reshape(x, s)  a = Mul(u, v)  y = Add(a, k) }";
  const Graph both = graph(text, {.frozen = {"k"}});
  auto training = std::make_shared<Executor>(lower(both, test_device(), {}));
  training->load_initial();
  const auto program = std::make_shared<const Program>(
      lower(both, training->program().device, {.external_parameters = true}));
  CHECK(program->arena().bytes < training->program().arena().bytes);
  Executor evaluation(program, training);
  evaluation.load_initial();
  training->write("w", floats({4}, {5, 6, 7, 8}));
  training.reset();  // the evaluation keeps what it reads
  evaluation.write("x", floats({4}, {1, 1, 1, 1}));
  evaluation.run_micro_step();
  CHECK(difference(evaluation.read("y"), floats({2, 2}, {105, 106, 107, 108})) == 0.0);
  CHECK(evaluation.used_bytes() == program->arena().bytes);
}

TEST_CASE("executor: a call that is timed before it runs has its inputs still") {
  Running r("(float[3] x) => (float[3] y) { a = Neg(x)  b = Add(a, a)  y = Mul(b, a) }");
  const auto timed = [&] {
    r.executor.write("x", floats({3}, {1, 2, 3}));
    for (std::size_t i = 0; i < r.program.calls.size(); ++i) {
      CHECK(r.executor.seconds_of_next() > 0.0);
      CHECK(r.executor.cursor() == CallId(static_cast<std::int32_t>(i)));
      r.executor.run_until(CallId(static_cast<std::int32_t>(i) + 1));
    }
    r.executor.run_update();
  };
  timed();
  CHECK(r.values("y") == Values{2, 8, 18});
  timed();
  CHECK(r.values("y") == Values{2, 8, 18});
}

TEST_CASE("executor: the first bad tensor is the input, the parameter or the node's result") {
  const std::string text =
      "(float[2] x) => (float[2] y) <float[2] w = {1, 1}>"
      "{ a = Mul(x, w)  b = Log(a)  c = Neg(b)  d = Mul(c, c)  y = Add(d, d) }";
  const auto first_bad = [&](Values x, Values w) {
    Running r(text);
    r.executor.write("x", floats({2}, x));
    r.executor.write("w", floats({2}, w));
    r.executor.run_micro_step();
    r.executor.write("x", floats({2}, x));  // its bytes may be used again by now
    return r.executor.find_bad_tensor();
  };
  CHECK_FALSE(first_bad({1, 2}, {1, 2}).has_value());

  const auto input = first_bad({1, kNaN}, {kNaN, kNaN});
  REQUIRE(input.has_value());
  CHECK(input->value == "x");
  CHECK(input->op == "input");
  CHECK(input->node.empty());
  CHECK(input->nan == 1);
  CHECK(input->elements == 2);

  const auto parameter = first_bad({1, 2}, {kInf, kNaN});
  REQUIRE(parameter.has_value());
  CHECK(parameter->value == "w");
  CHECK(parameter->op == "parameter");
  CHECK(parameter->nan == 1);
  CHECK(parameter->infinite == 1);

  const auto node = first_bad({1, 2}, {1, -1});
  REQUIRE(node.has_value());
  CHECK(node->value == "b");
  CHECK(node->op == "Log");
  CHECK(node->nan == 1);

  // Log(0) is -infinity, which is no fault by itself; its square is the first +infinity.
  const auto infinite = first_bad({0, 2}, {1, 1});
  REQUIRE(infinite.has_value());
  CHECK(infinite->value == "c");
  CHECK(infinite->infinite == 1);
}

TEST_CASE("executor: states that the forward pass itself overwrites are not blamed") {
  // Batch norm's running statistics turn NaN with the batch; the culprit is Log.
  CompileOptions options;
  options.device = test_device();
  options.training.loss.kind = LossKind::kMse;
  options.training.mode = GraphMode::kTrain;
  options.training.micro_batches = 2;
  const OnnxModel m = model(
      "(float[4,2] x) => (float[4,2] y) <float[2] w = {1, 1}, float[2] s = {1, 1}, float[2] b = {0,"
      " 0}, float[2] mean = {0, 0}, float[2] var = {1, 1}>"
      "{ l = Log(x)  h = Mul(l, w)  y = BatchNormalization <training_mode = 1> (h, s, b, mean, "
      "var) }");
  const auto compiled = compile(m, options);
  Executor executor(compiled->program);
  executor.load_initial();
  const Tensor x = floats({4, 2}, {1, 2, 3, 4, -5, 6, 7, 8});
  const auto bind = [&] {
    executor.write("x", x);
    executor.write("labels", Tensor(x.type()));
    executor.write(kMicroStepInput, Tensor::scalar<std::int64_t>(0));
  };
  bind();
  executor.run_micro_step();
  REQUIRE(std::isnan(executor.read("mean").values<float>()[0]));
  bind();
  const auto bad = executor.find_bad_tensor();
  REQUIRE(bad.has_value());
  CHECK(bad->value == "l");
  CHECK(bad->op == "Log");
}

TEST_CASE("arena: zeroed, page-aligned, and the guard behind it notices a write") {
  const DeviceHandle device = test_device();
  const auto put = [&](const Arena& arena, std::size_t at) {
    CHECK(device->fill(kComputeStream, arena.data() + at, std::byte{1}, 1).done());
  };
  const Arena arena(device, Space::kDevice, 100);
  CHECK(arena.bytes() == 100);
  CHECK(reinterpret_cast<std::uintptr_t>(arena.data()) % 4096 == 0);
  std::array<std::byte, 100> bytes;
  copy_and_wait(*device, bytes.data(), arena.data(), bytes.size());
  for (const std::byte b : bytes) CHECK(b == std::byte{0});
  CHECK(arena.guard_intact());
  put(arena, 99);
  CHECK(arena.guard_intact());
  put(arena, 100);
  CHECK_FALSE(arena.guard_intact());
  CHECK(Arena(device, Space::kDevice, 0).guard_intact());
}

TEST_CASE("arena: more than the machine has is an error with advice") {
  for (const Space space : {Space::kDevice, Space::kHost}) {
    const std::optional<Error> error =
        error_of([&] { Arena(test_device(), space, std::int64_t{1} << 50); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kOutOfMemory);
    CHECK(contains(error->hint(), "smaller batch"));
  }
}

}  // namespace trainscope::test
