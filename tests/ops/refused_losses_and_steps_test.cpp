// What losses, optimizer steps and dropout refuse before any memory is touched.
#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/refusal.h"

namespace trainscope::test {
namespace {

constexpr Refusal kRefused[] = {
    {"CrossEntropy", "[2,3], i64[3]<2", "[2]"},
    {"CrossEntropy", "[2,3], i64[2]<3; class_axis=2", "axis 2"},
    {"CrossEntropy", "[2,3], i64[2]<3; class_axis=-3", "axis -3"},
    {"CrossEntropy", "[2,3], [2]", "i64 or i32"},
    {"CrossEntropy", "i64[2,3], i64[2]<3", "float"},
    {"CrossEntropy", "[], i64[]", "axis"},
    {"CrossEntropyGrad", "[], [2,3], i64[2]<3, [3], []", "[2]"},
    {"CrossEntropyGrad", "[1], [2,3], i64[2]<3, [2], []", "0 dimensions"},
    {"CrossEntropyGrad", "[], [2,3], i64[2]<3, [2], i64[]", "i64"},
    {"NegativeLogLikelihoodGrad", "[], i64[2]<3, []; classes=-1", "-1"},
    {"NegativeLogLikelihoodGrad", "[], i64[1,1,1,1,1,1,1,1], []; classes=2", "8"},
    {"NegativeLogLikelihoodGrad", "[], i64[9]<3, []; classes=1000000000000000000", ""},
    {"WeightedCrossEntropy", "[2,3], i64[3]<2", "[2]"},
    {"WeightedCrossEntropy", "[2,3], i64[2]<3, [2]={1.0,2.0}", "[3]"},
    {"WeightedCrossEntropy", "[2,3], i64[2]<3, i64[3]={1,2,3}", "i64"},
    {"WeightedCrossEntropy", "[2,3], i64[2]<3; label_smoothing=1.5", "label_smoothing"},
    {"WeightedCrossEntropy", "[2,3], i64[2]<3; label_smoothing=nan", "label_smoothing"},
    {"WeightedCrossEntropyGrad", "[], [2,3], i64[2]<3, [2], [], [2]={1.0,2.0}", "[3]"},
    {"WeightedCrossEntropyGrad", "[1], [2,3], i64[2]<3, [2], []", "0 dimensions"},
    {"MeanAbsoluteError", "[2,3], [3]", "[3]"},
    {"MeanAbsoluteErrorGrad", "[2], [2], [2]", "0 dimensions"},
    {"MeanSquaredError", "[2,3], [3]", "[3]"},
    {"MeanSquaredError", "[2], f32[2]", "f32"},
    {"BceWithLogitsGrad", "[2], [2], [2]", "0 dimensions"},
    {"SgdStep", "[2], [3], []>0, []>0, i64[]={1}", "[3]"},
    {"SgdStep", "[2], [2], []>0, []>0, i64[]={1}; momentum=0.9", "tensors for each parameter"},
    {"SgdStep", "[2], [2], []>0, []>0, i64[]={1}; momentum=1.0", "momentum"},
    {"SgdStep", "[2], [2], []>0, []>0, i64[]={1}; momentum=nan", "momentum"},
    {"SgdStep", "[2], [2], []>0, []>0, i64[]={1}; weight_decay={0.1,0.2}", "2 entries"},
    {"SgdStep", "[2], [2], [1]>0, []>0, i64[]={1}", "0 dimensions"},
    {"SgdStep", "[2], [2], []>0, []>0, []", "i64"},
    {"SgdStep", "[2], -, []>0, []>0, i64[]={1}", "left out"},
    {"AdamWStep", "[2], [2], [2], []>0, []>0, i64[]={1}", "tensors for each parameter"},
    {"AdamWStep", "[2], [2], [2], [2,1], []>0, []>0, i64[]={1}; outputs=3", "[2,1]"},
    {"AdamWStep", "[2], [2], [2], [2], []>0, []>0, i64[]={1}; outputs=3 beta2=1.0", "beta2"},
    {"AdamWStep", "[2], [2], [2], [2], []>0, []>0, i64[]={1}; outputs=3 epsilon=-1.0", "epsilon"},
    {"AdamWStep", "[2], [2], [2], [2], []>0, []>0, i64[]={1}; outputs=3 mode=3", "mode"},
    {"SgdStep", "[2], [2], []>0, []>0, i64[]={1}; nesterov=1", "nesterov"},
    {"SgdRowsStep", "[5,2], [3,2], i64[3], i64[], []>0, []>0, i64[]; momentum=0.9 outputs=2",
     "1 states"},
    {"SgdRowsStep", "[5,2], [3,3], i64[3], i64[], []>0, []>0, i64[]", "[3,2]"},
    {"SgdRowsStep", "[5,2], [3,2], i64[4], i64[], []>0, []>0, i64[]", "[3]"},
    {"SgdRowsStep", "[5,2], [3,2], i64[3], i64[1], []>0, []>0, i64[]", "0 dimensions"},
    {"SgdRowsStep", "[], [], i64[3], i64[], []>0, []>0, i64[]", "rows"},
    {"SgdRowsStep", "[5,2], [3,2], i64[3], i64[], []>0, []>0, i64[]; outputs=2", "the step has 1"},
    {"SgdRowsStep", "[5,2], -, i64[3], i64[], []>0, []>0, i64[]", "left out"},
    {"AdamWRowsStep", "[5,2], [3,2], [5,2], [4,2], i64[3], i64[], []>0, []>0, i64[]; outputs=3",
     "[4,2]"},
    {"AdamWRowsStep",
     "[5,2], [3,2], [5,2], [5,2], i64[3], i64[], []>0, []>0, i64[]; outputs=3 mode=7", "mode"},
    {"LambStep", "[2], [2], [2], []>0, []>0, i64[]={1}", "tensors for each parameter"},
    {"LambStep", "[2], [2], [2], [2], []>0, []>0, i64[]={1}; outputs=3 ratio_min=-1.0", "ratio"},
    {"LambStep", "[2], [2], [2], [2], []>0, []>0, i64[]={1}; outputs=3 ratio_min=2.0 ratio_max=1.0",
     "ratio"},
    {"LambStep", "[2], [2], [2], [2], []>0, []>0, i64[]={1}; outputs=3 epsilon=-1.0", "epsilon"},
    {"GlobalNorm", "[2], i64[2]", "i64"},
    {"GlobalNorm", "[2]; divisor=0", "divisor"},
    {"GradientScale", "[1]", "0 dimensions"},
    {"Accumulate", "[2], [3], i64[]", "[3]"},
    {"Accumulate", "[2], [2], i64[1]", "0 dimensions"},
    {"RandomDropout", "[2], i64[]; ratio=1.0", "ratio"},
    {"RandomDropout", "[2], i64[]; ratio=-0.1", "ratio"},
    {"RandomDropout", "[2], i64[2]", "0 dimensions"},
    {"RandomDropout", "i64[2], i64[]", "float"},
    {"Dropout", "[2], [2]", "one element"},
};

}  // namespace

TEST_CASE("losses, steps, dropout: inputs that do not fit are refused as bad input") {
  for (const Refusal& refused : kRefused) check_refused(refused);
}

TEST_CASE("Dropout: a training node with a ratio must be replaced before it is decomposed") {
  const OpTable ops = standard_ops();
  Graph graph;
  Builder b(graph, ops);
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {2}});
  const ValueId ratio = b.constant(Tensor::scalar(0.1F));
  const ValueId training = b.constant(Tensor::scalar(true));
  const ValueId y = b("Dropout", {x, ratio, training});
  const Node node = graph.node(graph.value(y).producer);
  CHECK_THROWS_WITH_AS(node.op->decompose(b, node),
                       "Dropout in training mode with ratio 0.10000000149011612 has no meaning "
                       "without a random stream: it must become RandomDropout first",
                       Error);
}

}  // namespace trainscope::test
