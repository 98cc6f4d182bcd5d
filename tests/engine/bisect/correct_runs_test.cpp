// What is no mistake and may look like one: elements on a kink, Winograd's form of convolutions.
#include <doctest/doctest.h>

#include <cmath>
#include <span>

#include "engine/bisect/step_start.h"
#include "engine/bisect/typed_inputs.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "engine/models/models.h"
#include "engine/plan/kernel_choice.h"
#include "kernels/api/random.h"
#include "kernels/cpu/support/processor.h"
#include "tests/engine/bisect/planting.h"

namespace trainscope::test {
namespace {

// Moves each of the first examples so that one hidden unit, before its Relu, is nothing but
// rounding.
void put_on_kinks(Subject& subject, std::int64_t examples) {
  const Graph& graph = subject.plain.graph();
  const Tensor& weight = *graph.value(graph.find("0.weight")).data;  // [units, inputs]
  const Tensor& bias = *graph.value(graph.find("0.bias")).data;
  const std::int64_t inputs = weight.shape()[1];
  for (NamedTensors& batch : subject.batches) {
    const std::span<float> x = batch.at("x").values<float>();
    for (std::int64_t i = 0; i < examples; ++i) {
      const std::span<float> example =
          x.subspan(static_cast<std::size_t>(i * inputs), static_cast<std::size_t>(inputs));
      const std::span<const float> unit = weight.values<float>().subspan(
          static_cast<std::size_t>(i * inputs), static_cast<std::size_t>(inputs));
      for (int again = 0; again < 4; ++again) {
        double sum = static_cast<double>(bias.values<float>()[static_cast<std::size_t>(i)]);
        double square = 0.0;
        for (std::size_t k = 0; k < unit.size(); ++k) {
          sum += static_cast<double>(unit[k]) * static_cast<double>(example[k]);
          square += static_cast<double>(unit[k]) * static_cast<double>(unit[k]);
        }
        for (std::size_t k = 0; k < unit.size(); ++k) {
          example[k] -= static_cast<float>(sum / square * static_cast<double>(unit[k]));
        }
      }
    }
  }
}

// Elements of the first layer that f32 and f64 have on two sides of the kink.
std::int64_t flips(const Subject& subject) {
  const auto run = [&](const UnfusedStep& step) {
    const auto inputs = inputs_of({.batches = {subject.batches[0]}, .kept = {}}, 1, 0,
                                  subject.schedule.learning_rate);
    const Tensor before =
        reference_run(step.graph(), typed_for(step.graph(), inputs), step.evaluate())
            .at("/0/Gemm_output_0");
    return convert(before, DType::kF64);
  };
  const Tensor single = run(subject.plain);
  const Tensor truth = run(subject.defined.truth());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < truth.values<double>().size(); ++i) {
    count += (single.values<double>()[i] > 0.0) != (truth.values<double>()[i] > 0.0) ? 1 : 0;
  }
  return count;
}

Subject convolutions(KernelChoice kernels) {
  constexpr std::int64_t kPictures = 2;
  const std::string bytes = onnx_bytes(build_model(
      "resnet", {{"image", 32}, {"stem", "cifar"}, {"blocks", Ints{1, 1, 1}}, {"classes", 10}}, 1));
  CompileOptions options;
  options.import.dims = {{"batch", kPictures}};
  options.training.mode = GraphMode::kTrain;
  options.training.loss.output = "logits";
  options.training.optimizer.kind = OptimizerKind::kSgd;
  options.lower.kernels = kernels;
  options.lower.threads = 2;
  NamedTensors batch;
  Tensor pictures({.dtype = DType::kF32, .shape = {kPictures, 3, 32, 32}});
  std::uint64_t index = 0;
  for (float& x : pictures.values<float>()) {
    x = static_cast<float>(static_cast<double>(random_u64(3, 1, index++) >> 11U) * 0x1p-52 - 1.0);
  }
  Tensor labels({.dtype = DType::kI64, .shape = {kPictures}});
  std::int64_t label = 0;
  for (std::int64_t& each : labels.values<std::int64_t>()) each = label++;
  batch.emplace("x", std::move(pictures));
  batch.emplace("labels", std::move(labels));
  return Subject(OnnxModel::from_bytes(std::as_bytes(std::span(bytes))), options, {batch});
}

// Nodes of the run's step that a kernel computes by products of transformed numbers.
std::int64_t transformed_nodes(const Subject& subject) {
  const Graph& graph = subject.plain.graph();
  std::int64_t count = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const NodeArgs types(graph, node);
    const Params params = node.op->params ? node.op->params(*types) : Params(NoParams{});
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      inputs.push_back({.type = types->inputs[i], .present = types->present[i]});
    }
    for (const TensorType& type : types->outputs) outputs.push_back({.type = type});
    const PrepareArgs args{.params = params,
                           .inputs = inputs,
                           .outputs = outputs,
                           .threads = subject.options.lower.threads};
    const Kernel* kernel =
        choose_kernel(cpu_kernels(), {.op = node.op->name,
                                      .dtype = kernel_dtype(types->inputs, types->outputs),
                                      .args = args,
                                      .choice = subject.options.lower.kernels})
            .kernel;
    count += kernel != nullptr && kernel->transforms ? 1 : 0;
  }
  return count;
}

void check_silent(const Subject& subject, const ReplayOf& of) {
  const RunReplay run = replayed(subject, subject.plain.graph(), of);
  for (const LocalFault& fault : run.faults) {
    FAIL_CHECK(fault.key << " of " << fault.node << ": " << fault.over_limit().value_or(0.0)
                         << " times");
  }
  CHECK(run.judged > 20);
}

}  // namespace

TEST_CASE("correct: elements on a kink are no fault") {
  for (const KernelChoice kernels : {KernelChoice::kFastest, KernelChoice::kReference}) {
    for (const bool with_elements : {true, false}) {
      CAPTURE(with_elements);
      Subject subject("mlp", OptimizerKind::kAdamW, StepPrecision::kF32, 1, kernels);
      put_on_kinks(subject, 16);
      CHECK(flips(subject) > 0);
      check_silent(subject, {.with_elements = with_elements, .steps = 1});
    }
  }
}

TEST_SUITE("slow") {
  TEST_CASE("correct: with and without Winograd's form") {
    for (const KernelChoice kernels : {KernelChoice::kFastest, KernelChoice::kDirect}) {
      const Subject subject = convolutions(kernels);
      // It needs AVX-512; by the direct kernels there is none anywhere.
      const bool expected = kernels == KernelChoice::kFastest && cpu::has_avx512();
      CHECK((transformed_nodes(subject) > 0) == expected);
      check_silent(subject, {.with_elements = true, .steps = 1});
      check_silent(subject, {.with_elements = false, .steps = 1});
    }
  }
}

}  // namespace trainscope::test
