// Mistakes of types of two bytes: a loss scale that fp16 has no room for, parameters that were
// rounded before the run began.
#include <doctest/doctest.h>

#include <memory>

#include "engine/bisect/limits.h"
#include "engine/ir/well_known.h"
#include "tests/engine/bisect/planting.h"

namespace trainscope::test {
namespace {

// The step in fp16 with this loss scale.
RunReplay with_loss_scale(const Subject& subject, float scale) {
  Graph graph = subject.plain.graph();
  const ValueId state = graph.find(kLossScaleState);
  REQUIRE(state != kNoValue);
  Tensor first = convert(Tensor::scalar(scale), graph.value(state).type.dtype);
  graph.value(state).data =
      std::make_shared<const Tensor>(std::move(first).reshaped(graph.value(state).type.shape));
  return replayed(subject, graph, {.steps = 1, .rounding = rounding_of(DType::kF16)});
}

TEST_CASE("planted: a loss scale that makes gradients infinite in fp16") {
  for (const std::string model : {"mlp", "gpt2"}) {
    CAPTURE(model);
    const Subject subject(model, OptimizerKind::kAdamW, StepPrecision::kF16);
    for (const LocalFault& fault : with_loss_scale(subject, 1024.0F).faults) {
      FAIL_CHECK(fault.key << ": " << fault.cause);
    }
    const RunReplay run = with_loss_scale(subject, 0x1p40F);
    REQUIRE(!run.faults.empty());
    const LocalFault& first = run.faults.front();
    CAPTURE(first.key);
    CAPTURE(first.cause);
    CHECK(first.kind == FaultKind::kOverflow);
    CHECK(first.step == 1);
    CHECK(first.phase == profiler::TracePhase::kBackward);
    CHECK(first.node.find("logits") == std::string::npos);  // these are f32
    CHECK(first.cause.find("infinity where the largest exact element is") != std::string::npos);
  }
}

TEST_CASE("planted: a run that begins with rounded parameters") {
  for (const auto& [dtype, name] :
       {std::pair(DType::kBF16, "bf16"), std::pair(DType::kF16, "f16")}) {
    for (const bool with_elements : {true, false}) {
      CAPTURE(name);
      CAPTURE(with_elements);
      const Subject subject("mlp");
      const Graph& graph = subject.plain.graph();
      NamedTensors rounded;
      for (const ValueId id : graph.values_of(ValueKind::kParameter)) {
        const Value& parameter = graph.value(id);
        rounded.emplace(parameter.name, convert(convert(*parameter.data, dtype), DType::kF32));
      }
      const RunReplay run =
          replayed(subject, graph, {.with_elements = with_elements, .steps = 1, .kept = rounded});
      REQUIRE(!run.faults.empty());
      const LocalFault& first = run.faults.front();
      CAPTURE(first.key);
      CAPTURE(first.cause);
      CHECK(first.kind == FaultKind::kStart);
      CHECK(first.key.starts_with("param:"));
      CHECK(first.cause ==
            std::string("the run begins with the model's elements rounded to ") + name);
    }
  }
}

}  // namespace
}  // namespace trainscope::test
