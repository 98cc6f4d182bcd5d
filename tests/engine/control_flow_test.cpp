// Programs with loops: the bytes that were planned, the numbers of the node-by-node reference, a
// node count that does not depend on trips, recomputation, bf16, stage files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/exec/reference.h"
#include "engine/session.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

// A state [4,8] that goes through tanh(h w + x) so many times; the mean of its squares is the loss.
std::string loop_text(const std::string& trips) {
  return fmt::format(
      "(float[4,8] x, int64 n) => (float loss) <float[8,8] w = {{{}}}, int64 trips = {{{}}}, bool "
      "go "
      "= {{1}}> {{ h = Loop <body = b (int64 i, bool c, float[4,8] p) => (bool d, float[4,8] q) {{ "
      "d "
      "= Identity(c) m = MatMul(p, w) a = Add(m, x) q = Tanh(a) }}> ({}, go, x) s = Mul(h, h) loss "
      "= ReduceMean<keepdims = 0>(s) }}",
      [] {
        std::vector<std::string> numbers;
        for (int i = 0; i < 64; ++i) numbers.push_back(fmt::format("{:.3f}", 0.4 * std::sin(i)));
        return fmt::format("{}", fmt::join(numbers, ","));
      }(),
      trips == "n" ? "1" : trips, trips == "n" ? "n" : "trips");
}

CompileOptions gradient_options() {
  CompileOptions options;
  options.training.mode = GraphMode::kGradients;
  options.training.keep_gradients = true;
  options.training.loss = {.kind = LossKind::kOutput, .output = "loss"};
  return options;
}

Tensor picture() {
  Tensor x({.dtype = DType::kF32, .shape = {4, 8}});
  for (int i = 0; i < 32; ++i)
    x.values<float>()[static_cast<std::size_t>(i)] = 0.1F * static_cast<float>(i % 7) - 0.3F;
  return x;
}

struct Step {
  std::shared_ptr<const Compiled> compiled;
  std::shared_ptr<Executor> executor;

  Step(const std::string& text, const CompileOptions& options)
      : compiled(compile(model(text), options)), executor(make_executor(compiled)) {
    executor->load_initial();
  }
  const Program& program() const { return compiled->program; }
  void run(std::int64_t n = 1) {
    executor->write("x", picture());
    if (executor->has("n")) executor->write("n", Tensor::scalar(n));
    executor->run_micro_step();
    CHECK(executor->used_bytes() == program().arena().bytes);
    CHECK(executor->guard_intact());
  }
  double loss() const {
    const std::string name = program().graph.value(program().graph.loss).name;
    return convert(executor->read(name), DType::kF64).values<double>()[0];
  }
  Tensor gradient() const { return executor->read("grad/w"); }
};

// The final graph node by node with the reference kernels.
std::pair<double, Tensor> by_reference(const Step& step, std::int64_t n) {
  const Graph& graph = step.program().graph;
  const Evaluate evaluate =
      evaluator(op_table(), cpu_kernels(), {.kernels = KernelChoice::kReference});
  Tensors given{{"x", picture()}};
  if (graph.find("n") != kNoValue) given.emplace("n", Tensor::scalar(n));
  const ReferenceValues values = reference_run(graph, given, evaluate);
  return {convert(values.at(graph.loss), DType::kF64).values<double>()[0], values.at("grad/w")};
}

}  // namespace

TEST_CASE("loops: a thousand trips are no more nodes, and the arena is what was predicted") {
  std::map<int, std::size_t> nodes;
  for (const int trips : {0, 1, 10, 1000}) {
    CAPTURE(trips);
    Step step(loop_text(std::to_string(trips)), gradient_options());
    step.run();
    nodes[trips] = step.program().graph.node_count();
    const auto [loss, gradient] = by_reference(step, 1);
    CHECK(step.loss() == doctest::Approx(loss).epsilon(1e-5));
    CHECK(difference(step.gradient(), gradient) < 1e-4);
  }
  CHECK(nodes[10] == nodes[1000]);
  CHECK(nodes[1] == nodes[1000]);
}

TEST_CASE("loops: trips that the data counts, within --max-trips and beyond") {
  CompileOptions options = gradient_options();
  const std::string text = loop_text("n");
  CHECK(contains(refusal_of([&] { compile(model(text), options); }), "--max-trips N"));
  options.import.max_trips = 100;
  Step step(text, options);
  for (const std::int64_t trips : {3, 0, 100, 7, -2}) {
    CAPTURE(trips);
    step.run(trips);
    Step known(loop_text(std::to_string(std::max<std::int64_t>(0, trips))), gradient_options());
    known.run();
    CHECK(step.loss() == known.loss());
    CHECK(difference(step.gradient(), known.gradient()) == 0.0);
  }
  CHECK(step.executor->beyond_plan().trips == 0);
  CHECK(step.executor->beyond_plan().bytes == 0);
  const std::string refusal = refusal_of([&] { step.run(std::int64_t{1} << 40); });
  CHECK(contains(refusal, "the data asks for 1099511627776 trips, but the plan has room for 100"));
  CHECK(contains(refusal, "--max-trips"));
  step.run(3);  // goes on
}

// Steps of two plans of a model, one with room for all trips, do the same.
void check_beyond(const std::string& text, std::int64_t room, const std::vector<std::int64_t>& runs,
                  BeyondPlan needed) {
  CompileOptions options = gradient_options();
  options.import.max_trips = room;
  Step small(text, options);
  options.import.max_trips = 300;
  Step large(text, options);
  for (const std::int64_t trips : runs) {
    CAPTURE(trips);
    small.run(trips);
    large.run(trips);
    CHECK(small.loss() == large.loss());
    CHECK(difference(small.gradient(), large.gradient()) == 0.0);
  }
  CHECK(small.program().arena().bytes < large.program().arena().bytes);
  CHECK(small.executor->beyond_plan().trips == needed.trips);
  CHECK(small.executor->beyond_plan().bytes == needed.bytes);
  CHECK(large.executor->beyond_plan().bytes == 0);
}

TEST_CASE("loops: what trips beyond the room for them leave lies in a second arena") {
  // States [4,8] of 196 trips, in blocks for 16, 32, 64 and 128.
  constexpr std::int64_t kState = 4 * 8 * 4;
  const BeyondPlan needed{.bytes = (16 + 32 + 64 + 128) * kState, .trips = 200};
  check_beyond(loop_text("n"), 4, {3, 5, 200, 21, 4, 2, 200}, needed);
}

TEST_CASE("loops: a loop in a body has more trips than there is room for") {
  const std::string text =
      R"((float[4,8] x, int64 n) => (float loss) <float[8] w = {0.9,0.8,0.7,0.6,0.5,0.9,0.8,1.1}>
      { last = Scan <num_scan_inputs = 1, body = b (float[8] p, float[8] s) => (float[8] r)
          { r = Loop <body = l (int64 i, bool c, float[8] h) => (bool d, float[8] m)
              { d = Identity(c) a = Mul(h, w) t = Add(a, s) m = Sin(t) }> (n, , p) }> (w, x)
        q = Mul(last, last) loss = ReduceMean<keepdims = 0>(q) })";
  // The forward loop of the backward phase, which alone keeps its states.
  check_beyond(text, 3, {2, 7, 19, 1}, {.bytes = 16 * 8 * 4, .trips = 19});
}

TEST_CASE("loops: a condition that goes on beyond the room for trips") {
  const std::string text =
      R"((float[4,8] x, int64 n) => (float loss) <float[8] w = {0.9,0.8,0.7,0.6,0.5,0.9,0.8,1.1},
       int64 one = {1}, int64 many = {1000000}, bool go = {1}>
      { k, h = Loop <body = b (int64 i, bool c, int64 left, float[4,8] p) =>
          (bool d, int64 less, float[4,8] q)
          { less = Sub(left, one) d = Greater(less, one) m = Mul(p, w) q = Sin(m) }> (many, go, n, x)
        s = Mul(h, h) loss = ReduceMean<keepdims = 0>(s) })";
  // Of 17 trips the state [4,8] and the number that is left, in blocks for 16 and 32.
  check_beyond(text, 2, {3, 12, 2, 20}, {.bytes = (16 + 32) * (4 * 8 * 4 + 8), .trips = 19});
}

TEST_CASE("loops: recomputation keeps the budget and the numbers") {
  // Two loops, the first of whose states wait for the backward phase while the second one runs.
  const std::string text =
      R"((float[4,8] x) => (float loss) <float[8] w = {0.9,0.8,0.7,0.6,0.5,0.9,0.8,1.1}, int64 n = {50}>
      { h = Loop <body = b (int64 i, bool c, float[4,8] p) => (bool d, float[4,8] q)
          { d = Identity(c) m = Mul(p, w) q = Sin(m) }> (n, , x)
        k = Loop <body = b (int64 i, bool c, float[4,8] p) => (bool d, float[4,8] q)
          { d = Identity(c) m = Mul(p, w) q = Sin(m) }> (n, , h)
        s = Mul(k, k) loss = ReduceMean<keepdims = 0>(s) })";
  CompileOptions options = gradient_options();
  Step plain(text, options);
  plain.run();
  options.recompute = {.mode = RecomputeMode::kAuto,
                       .budget_bytes = plain.program().arena().bytes - 4 * 8 * 4 * 20};
  Step less(text, options);
  less.run();
  CHECK(less.program().arena().bytes <= *options.recompute.budget_bytes);
  CHECK(less.compiled->recompute->repeats > 0);
  CHECK(less.loss() == plain.loss());
  CHECK(difference(less.gradient(), plain.gradient()) == 0.0);
}

TEST_CASE("loops: in bf16 the body's matmuls are, its states stay f32") {
  CompileOptions options = gradient_options();
  const std::string text = loop_text("20");
  Step wide(text, options);
  options.training.precision = StepPrecision::kBF16;
  Step narrow(text, options);
  wide.run();
  narrow.run();
  const std::string printed = print(narrow.program().graph);
  CHECK(contains(printed, "bf16[4,8]"));
  CHECK(narrow.loss() == doctest::Approx(wide.loss()).epsilon(2e-2));
  CHECK(narrow.loss() != wide.loss());
  CHECK(difference(narrow.gradient(), wide.gradient()) < 5e-2);
}

TEST_CASE("loops: a stage file holds the bodies") {
  const Step step(loop_text("20"), gradient_options());
  for (const Stage& stage : step.compiled->stages) {
    CAPTURE(stage.name);
    const std::string bytes = onnx_bytes(stage.graph, {});
    const OnnxModel read = OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
    const Graph graph = to_graph(read, op_table(), {});
    CHECK(print(graph) == print(stage.graph));
    CHECK(hash_of(graph) == hash_of(stage.graph));
  }
}

}  // namespace trainscope::test
