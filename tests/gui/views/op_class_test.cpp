// Ops and their gradients are of one class; every op of the table has one.
#include "gui/views/op_class.h"

#include <doctest/doctest.h>

#include <set>

#include "engine/compile.h"

namespace trainscope::gui {
namespace {

TEST_CASE("op_class: well-known ops are where people look for them") {
  CHECK(class_of("MatMul") == OpClass::kMatmul);
  CHECK(class_of("ConvGradWeight") == OpClass::kMatmul);
  CHECK(class_of("AttentionGrad") == OpClass::kAttention);
  CHECK(class_of("LayerNormalizationGrad") == OpClass::kNorm);
  CHECK(class_of("Gelu") == OpClass::kActivation);
  CHECK(class_of("GeluGrad") == OpClass::kActivation);
  CHECK(class_of("Add") == OpClass::kPointwise);
  CHECK(class_of("Reshape") == OpClass::kMovement);
  CHECK(class_of("CrossEntropyGrad") == OpClass::kLoss);
  CHECK(class_of("AdamWStep") == OpClass::kOptimizer);
  CHECK(class_of("GlobalNorm") == OpClass::kOptimizer);
  CHECK(class_of("NoSuchThing") == OpClass::kOther);
}

TEST_CASE("op_class: few ops of the table are of no class") {
  std::size_t other = 0;
  std::size_t all = 0;
  for (const OpDef* op : op_table().rows()) {
    ++all;
    if (class_of(op->name) == OpClass::kOther) ++other;
  }
  CHECK(all > 100);
  CHECK(6 * other < all);
}

}  // namespace
}  // namespace trainscope::gui
