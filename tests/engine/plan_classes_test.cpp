// Classes of ops in plans: as the record says, and by the op table where it does not.
#include "engine/plan_classes.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "engine/bundle/plan_file.h"
#include "engine/compile.h"
#include "engine/record_plan.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

TEST_CASE("plan classes: well-known ops are where people look for them") {
  CHECK(class_of_op("MatMul") == OpClass::kMatmul);
  CHECK(class_of_op("ConvGradWeight") == OpClass::kMatmul);
  CHECK(class_of_op("AttentionGrad") == OpClass::kAttention);
  CHECK(class_of_op("LayerNormalizationGrad") == OpClass::kNorm);
  CHECK(class_of_op("Gelu") == OpClass::kActivation);
  CHECK(class_of_op("Add") == OpClass::kPointwise);
  CHECK(class_of_op("Reshape") == OpClass::kMovement);
  CHECK(class_of_op("CrossEntropyGrad") == OpClass::kLoss);
  CHECK(class_of_op("AdamWStep") == OpClass::kOptimizer);
  CHECK(class_of_op("GlobalNorm") == OpClass::kOptimizer);
  CHECK(class_of_op("RandomNormal") == OpClass::kPointwise);  // no norm
}

TEST_CASE("plan classes: gradients of other engines are of the class of their op") {
  CHECK(class_of_op("GemmGrad") == OpClass::kMatmul);
  CHECK(class_of_op("ReshapeGrad") == OpClass::kMovement);
  CHECK(class_of_op("NoSuchThing") == OpClass::kOther);
  CHECK(class_of_op("NoSuchThingGrad") == OpClass::kOther);
  CHECK(class_of_op("Grad") == OpClass::kOther);
}

TEST_CASE("plan classes: a record says the classes of the op table") {
  const ReferenceModel reference("gpt2");
  const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain));
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  std::size_t matmuls = 0;
  for (const PlanCall& call : plan.calls) {
    const std::string_view op = plan.op_of(call);
    CAPTURE(op);
    CHECK((plan.class_of(call) == OpClass::kUnstated) == op.empty());
    CHECK(class_of(plan, call) == (op.empty() ? OpClass::kUnstated : class_of_op(op)));
    if (class_of(plan, call) == OpClass::kMatmul) ++matmuls;
  }
  CHECK(matmuls > 0);
}

TEST_CASE("plan classes: of older records the op table says them") {
  for (const char* version : {"plan-version-1", "plan-version-2", "plan-version-3"}) {
    CAPTURE(version);
    const auto folder = std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data" / version;
    const StoredPlan stored = StoredPlan::open(Folder::open(folder) / "plan.bin");
    std::size_t matmuls = 0;
    for (const PlanCall& call : stored.view().calls) {
      CHECK(stored.view().class_of(call) == OpClass::kUnstated);
      const bool runs = !stored.view().op_of(call).empty();
      CHECK((class_of(stored.view(), call) != OpClass::kUnstated) == runs);
      CHECK(class_of(stored.view(), call) != OpClass::kOther);
      if (class_of(stored.view(), call) == OpClass::kMatmul) ++matmuls;
    }
    CHECK(matmuls > 0);
  }
}

}  // namespace
}  // namespace trainscope::test
