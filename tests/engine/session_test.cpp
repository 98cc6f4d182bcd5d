// compile and session: the default pipeline, other modes and sizes on the same parameters.
#include "engine/session.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

// Dropout, batch norm and a batch size that is bound late.
constexpr const char* kText =
    "(float[N,3] x) => (float[N,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] s ="
    " {1,1,1,1}, float[4] b = {0,0,0,0}, float[4] mean = {0,0,0,0}, float[4] var = {1,1,1,1},"
    " float r = {0.5}, bool t = {1}>"
    "{ h = MatMul(x, w)  d = Dropout(h, r, t)  n = BatchNormalization <training_mode = 1> (d, s, b,"
    " mean, var)  y = Relu(n) }";

CompileOptions options(std::int64_t rows) {
  CompileOptions options;
  options.import.dims = {{"N", rows}};
  options.import.frozen = {"r"};
  return options;
}

void bind(Executor& executor, std::int64_t rows, float value) {
  Tensor x({.dtype = DType::kF32, .shape = {rows, 3}});
  std::ranges::fill(x.values<float>(), value);
  executor.write("x", x);
  if (executor.has("labels")) executor.write("labels", Tensor({DType::kI64, Shape{rows}}));
}

}  // namespace

TEST_CASE("compile: every pass of the list runs in its order, in every mode") {
  const OnnxModel m = model(kText);
  for (GraphMode mode :
       {GraphMode::kInference, GraphMode::kEvaluate, GraphMode::kGradients, GraphMode::kTrain}) {
    CompileOptions with_mode = options(4);
    with_mode.training.mode = mode;
    const auto compiled = compile(m, with_mode);
    REQUIRE(compiled->stages.size() == default_passes().size() + 2);
    CHECK(compiled->stages.back().name == "order");
    for (std::size_t i = 0; i < default_passes().size(); ++i) {
      CHECK(compiled->stages[i + 1].name == default_passes()[i].name);
    }
    const Graph& g = compiled->program.graph;
    const bool trains = mode == GraphMode::kGradients || mode == GraphMode::kTrain;
    CHECK((g.loss != kNoValue) == (mode != GraphMode::kInference));
    CHECK(count_ops(g, "RandomDropout") == (trains ? 2 : 0));  // the mask is drawn again backward
    CHECK(count_ops(g, "AdamWStep") == (mode == GraphMode::kTrain ? 1 : 0));
    CHECK(g.gradients.size() == (mode == GraphMode::kGradients ? 3U : 0U));
    CHECK(print(g) == print(compiled->stages.back().graph));
  }
}

TEST_CASE("compile: what makes the program can be left out by name, as passes can") {
  const OnnxModel m = model(kText);
  const auto names = [&](const CompileOptions& wanted) {
    std::vector<std::string> list;
    const auto compiled = compile(m, wanted);
    for (const Stage& stage : compiled->stages) list.push_back(stage.name);
    return list;
  };
  CompileOptions training = options(4);
  training.training.mode = GraphMode::kTrain;
  training.recompute.mode = RecomputeMode::kLevel1;
  std::vector<std::string> all = names(training);
  REQUIRE(all.size() > 2);
  CHECK(std::vector(all.end() - 2, all.end()) == std::vector<std::string>{"order", "recompute"});
  training.passes.disabled = {"order"};
  std::erase(all, "order");
  CHECK(names(training) == all);
  training.passes.disabled = {"order", "recompute", "batch_tiles"};
  std::erase(all, "recompute");
  CHECK(names(training) == all);
  training.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = 1};
  CHECK(contains(refusal_of([&] { (void)compile(m, training); }), "leave out --disable recompute"));
  training.passes = {.disabled = {}, .stop_after = "order"};
  CHECK(contains(refusal_of([&] { (void)compile(m, training); }), "leave out --stop-after order"));
  training.recompute.budget_bytes = {};
  CHECK(names(training).back() == "order");
  training.passes.stop_after = "orders";
  CHECK(contains(refusal_of([&] { (void)compile(m, training); }), "there is no pass 'orders'"));
}

TEST_CASE("compile: what a gradient reads of the forward phase is no part of the gradient") {
  CompileOptions training;
  training.training.mode = GraphMode::kTrain;
  training.training.loss = {.kind = LossKind::kMse, .output = "y"};
  const Stages made = stages(
      "(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}>"
      "{ a = Mul(x, w)  s = Sin(a)  c = Cos(a)  y = Add(s, c) }",
      training);
  int cosines = 0;
  for (const NodeId id : made.back().graph.order()) {
    const Node& node = made.back().graph.node(id);
    if (node.op->name != "Cos") continue;
    ++cosines;
    CHECK(node.provenance.sources.list() == std::vector<std::string>{"Cos_2"});
  }
  CHECK(cosines == 1);  // the gradient of the sine reads this one
}

TEST_CASE("compile: every forward node has the sources that it had before the gradients") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Stages made = build_stages(reference.model, reference.options(GraphMode::kTrain));
    const auto before = std::ranges::find(made, "differentiate", &Stage::name) - 1;
    const Graph& forward = before->graph;
    const Graph& whole = made.back().graph;
    int compared = 0;
    for (const NodeId id : whole.order()) {
      const Node& node = whole.node(id);
      const NodeId then = forward.find_node(node.name);
      if (node.phase != Phase::kForward || then == kNoNode) continue;
      CHECK_MESSAGE(node.provenance.sources == forward.node(then).provenance.sources, node.name);
      ++compared;
    }
    CHECK(compared > 3);
  }
}

TEST_CASE("compile: an executor needs the initial elements no more once it has loaded them") {
  const OnnxModel m = model(kText);
  const auto kept = compile(m, options(4));
  const auto released = compile(m, options(4));
  const auto loss_of = [](Compiled& compiled, bool release) {
    Executor executor(compiled.program);
    executor.load_initial();
    if (release) release_initial(compiled);
    bind(executor, 4, 1.0F);
    executor.write("ai.trainscope.random_step", Tensor::scalar<std::int64_t>(1));
    executor.run_micro_step();
    return Tensor::scalar(read_loss(executor));
  };
  CHECK(difference(loss_of(*released, true), loss_of(*kept, false)) == 0.0);
  for (const Stage& stage : released->stages) {
    for (ValueId id : stage.graph.values_of(ValueKind::kParameter)) {
      CHECK(stage.graph.value(id).data == nullptr);
    }
  }
  CHECK(m.initializer("w") != nullptr);  // the model's own
}

TEST_CASE("session: evaluation and inference read the training parameters as they are") {
  const OnnxModel m = model(kText);
  Session session(m, options(4));
  Executor& evaluation = session.executor(GraphMode::kEvaluate);
  Executor& inference = session.executor(GraphMode::kInference);
  CHECK(&session.executor(GraphMode::kEvaluate) == &evaluation);  // made once
  CHECK(&inference != &evaluation);
  const auto result = [&] {
    bind(inference, 4, 1.0F);
    inference.run_micro_step();
    return inference.read("y");
  };
  const Tensor before = result();
  // x of ones: each column of w summed, over sqrt(1 + 1e-5).
  CHECK(difference(before, floats({4, 4}, {15, 18, 21, 24, 15, 18, 21, 24, 15, 18, 21, 24, 15, 18,
                                           21, 24})) < 1e-4);
  Tensor doubled = session.executor().read("w");
  for (float& w : doubled.values<float>()) w *= 2.0F;
  session.executor().write("w", doubled);
  CHECK(result().values<float>()[0] == doctest::Approx(2.0F * before.values<float>()[0]));
}

TEST_CASE("session: other sizes are other programs on the same parameters, each made once") {
  const OnnxModel m = model(kText);
  Session session(m, options(4));
  Executor& seven = session.executor(GraphMode::kInference, options(7).import);
  Executor& four = session.executor(GraphMode::kInference);
  CHECK(&seven != &four);
  CHECK(&session.executor(GraphMode::kInference, options(7).import) == &seven);
  bind(seven, 7, 1.0F);
  seven.run_micro_step();
  bind(four, 4, 1.0F);
  four.run_micro_step();
  CHECK(seven.read("y").shape() == Shape{7, 4});
  CHECK(seven.read("y").values<float>()[27] == four.read("y").values<float>()[15]);
}

TEST_CASE("session: an executor that somebody holds keeps all that it needs") {
  std::shared_ptr<Executor> training;
  std::shared_ptr<Executor> inference;
  {
    Session session(model(kText), options(4));  // the only handle of the model
    training = session.shared_executor();
    session.executor(GraphMode::kInference);
    CompileOptions forward = options(4);
    forward.training.mode = GraphMode::kInference;
    forward.lower.external_parameters = true;
    inference = make_executor(compile(session.model(), forward), training);
    inference->load_initial();
  }
  const Tensor w = training->read("w");
  training.reset();  // its parameters are the other one's
  bind(*inference, 4, 1.0F);
  inference->run_micro_step();
  CHECK(w.values<float>()[11] == 12.0F);
  CHECK(inference->read("y").values<float>()[3] == doctest::Approx(24.0F).epsilon(1e-4));
}

TEST_CASE("session: the exported model infers what the session infers") {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "trainscope-session-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path folder = pattern;
  const OnnxModel m = model(kText);
  Session session(m, options(4));
  session.executor().write("mean", floats({4}, {1, 2, 3, 4}));
  session.executor().write("b", floats({4}, {0.5F, 0, 0, 0}));
  session.export_inference(entry_of(folder / "trained.onnx"));

  const OnnxModel trained = OnnxModel::read(folder / "trained.onnx");
  CHECK(trained.op_counts().count("Dropout") == 0);
  const Tensor x = floats({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1});
  const Graph g = graph(trained, {.dims = {{"N", 4}}});
  Executor& inference = session.executor(GraphMode::kInference);
  inference.write("x", x);
  inference.run_micro_step();
  CHECK(difference(outputs_of(g, {{"x", x}}).at("y"), inference.read("y")) < 1e-6);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace trainscope::test
