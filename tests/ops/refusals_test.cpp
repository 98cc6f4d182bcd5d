// Nodes that hostile or broken models hold are refused by the rows' shape rules, before any memory
// is touched.
#include <doctest/doctest.h>

#include "tests/ops/refusal.h"

namespace trainscope::test {

TEST_CASE("refusals: pointwise and activation") {
  for (const Refusal& refusal : {
           Refusal{"Add", "[2,3], [2]", "cannot be broadcast"},
           {"Add", "[2,3], [0,3]", "cannot be broadcast"},
           {"Mul", "[2], i64[2]<9", "one element type"},
           {"Add", "bool[2], bool[2]", "numbers"},
           {"Pow", "bool[2], i64[2]<9", "numbers"},
           {"Pow", "[2], bool[2]", "numbers"},
           {"PowGrad", "[3], [2], []", "must be"},
           {"Equal", "[2], i64[2]<9", "one element type"},
           {"Less", "bool[2], bool[2]", "numbers"},
           {"And", "[2], bool[2]", "must be bool"},
           {"Where", "[2], [2], [2]", "must be bool"},
           {"Where", "bool[2], [2], i64[2]<9", "one element type"},
           {"Where", "bool[3], [2], [2]", "cannot be broadcast"},
           {"Sqrt", "i64[2]<9", "float"},
           {"Neg", "bool[2]", "numbers"},
           {"Cast", "[2]; to=8", "element type 8"},
           {"Cast", "[2]", "0 is not the number of an element type"},
           {"Relu", "i64[2]<9", "float"},
           {"TanhGrad", "[2], [3]", "one type"},
           {"Max", "[2], i64[2]<9", "one element type"},
           {"Max", "[2], -, [2]", "input 1 is left out"},
           {"Sum", "bool[2], bool[2]", "numbers"},
           {"Mean", "i64[2]<9", "float"},
           {"Min", "[2], [3]", "cannot be broadcast"},
           {"MaximumGrad", "[2], [2], [3]", "cannot be broadcast"},
           {"MaximumGrad", "[3], [2], []", "must be"},
           {"Mod", "bool[2], bool[2]; fmod=1", "numbers"},
           {"Clip", "[2], [2], []", "one element"},
           {"Clip", "[2], -, i64[]<9", "one element type"},
           {"Clip", "bool[2]", "numbers"},
           {"Or", "[2], bool[2]", "must be bool"},
           {"Xor", "bool[2], bool[3]", "cannot be broadcast"},
           {"GreaterOrEqual", "bool[2], bool[2]", "numbers"},
           {"IsNaN", "i64[2]", "float"},
           {"Ceil", "i64[2]", "float"},
           {"Celu", "[2]; alpha=0.0", "alpha is 0"},
           {"PRelu", "[2], [2,2]", "cannot be broadcast to x"},
           {"Elu", "i64[2]", "float"},
       }) {
    check_refused(refusal);
  }
}

TEST_CASE("refusals: reductions") {
  for (const Refusal& refusal : {
           Refusal{"ReduceSum", "[2,3], i64[1]={2}", "axis 2 is outside"},
           {"ReduceSum", "[2,3], i64[1]={-3}", "axis -3 is outside"},
           {"ReduceSum", "[2,3], i64[2]={0,-2}", "given twice"},
           {"ReduceSum", "[2,3], i64[1]<2", "known when the graph is built"},
           {"ReduceSum", "bool[2]", "numbers"},
           {"ReduceMean", "[2,3]; axes={5}", "axis 5 is outside"},
           {"ReduceMean", "i64[2]<9", "float"},
           {"ReduceMax", "bool[2]", "numbers"},
           {"ReduceL2", "i64[2]<9", "float"},
           {"ReduceProd", "[2,3]; axes={0,-2}", "given twice"},
           {"ReduceLogSumExp", "[2,3]; axes={2}", "axis 2 is outside"},
       }) {
    check_refused(refusal);
  }
}

TEST_CASE("refusals: order and running sums") {
  for (const Refusal& refusal : {
           Refusal{"ArgMax", "[2,3]; axis=2", "axis 2 is outside"},
           {"ArgMax", "[]", "axis 0 is outside"},
           {"ArgMin", "[3,0]; axis=1", "no elements to choose from"},
           {"ArgMin", "bool[2]", "numbers"},
           {"TopK", "[2,3], i64[1]={4}", "k is 4"},
           {"TopK", "[2,3], i64[1]={-1}", "k is -1"},
           {"TopK", "[2,3], i64[2]={1,2}", "one number"},
           {"TopK", "[2,3], i64[1]<3", "known when the graph is built"},
           {"TopK", "[2,3], i64[1]={1}; axis=2", "axis 2 is outside"},
           {"TopKGrad", "[2,2], i64[2,3]<2; shape={2,4}", "must be"},
           {"TopKGrad", "[2,2], i64[2,2]<2; shape={3,4}", "must be"},
           {"TopKGrad", "[2,2], i64[2,2]<2; shape={4}", "another rank"},
           {"Hardmax", "[2]; axis=1", "axis 1 is outside"},
           {"CumSum", "[2], i64[2]={0,1}", "one axis"},
           {"CumSum", "[2], i64[]={1}", "axis 1 is outside"},
           {"CumSum", "bool[2], i64[]={0}", "numbers"},
           {"EyeLike", "[2]", "2 dimensions"},
           {"EyeLike", "[2,2]; dtype=8", "element type 8"},
       }) {
    check_refused(refusal);
  }
}

TEST_CASE("refusals: views") {
  for (const Refusal& refusal : {
           Refusal{"Reshape", "[2,3], i64[1]={5}", "cannot become"},
           {"Reshape", "[2,3], i64[2]={-1,-1}", "-1 twice"},
           {"Reshape", "[2,3], i64[2]={4,-1}", "no size for -1"},
           {"Reshape", "[0,3], i64[2]={0,-1}", "no size for -1"},
           {"Reshape", "[2,3], i64[2]={-2,-3}", "negative"},
           {"Reshape", "[2,3], i64[3]={2,3,0}", "copies a dimension"},
           {"Reshape", "[0], i64[3]={0,4611686018427387904,4}", "too many elements"},
           {"Reshape", "[1], i64[9]={1,1,1,1,1,1,1,1,1}", "at most 8"},
           {"Reshape", "[2], i64[1]<9", "known when the graph is built"},
           {"Reshape", "[2], [1]={2}", "must be int64"},
           {"Flatten", "[2,3]; axis=3", "outside"},
           {"Unsqueeze", "[2], i64[2]={0,0}", "given twice"},
           {"Unsqueeze", "[2], i64[1]={3}", "outside"},
           {"Unsqueeze", "[1,1,1,1,1,1,1,1], i64[1]={0}", "at most 8"},
           {"Squeeze", "[2,1], i64[1]={0}", "not of size 1"},
       }) {
    check_refused(refusal);
  }
}

TEST_CASE("refusals: movement") {
  for (const Refusal& refusal : {
           Refusal{"Transpose", "[2,3]; perm={0}", "1 axes"},
           {"Transpose", "[2,3]; perm={0,0}", "given twice"},
           {"Transpose", "[2,3]; perm={0,2}", "outside"},
           {"Concat", "[2], [2]", "axis is missing"},
           {"Concat", "[2,3], [3,3]; axis=1", "differ"},
           {"Concat", "[2,3], [2]; axis=1", "differ"},
           {"Concat", "[2], i64[2]<9; axis=0", "one element type"},
           {"Concat", "[], []; axis=0", "outside"},
           {"Split", "[5]; outputs=2", "2 equal slices"},
           {"Split", "[5], i64[2]={2,2}; outputs=2", "do not add up"},
           {"Split", "[5], i64[2]={-1,6}; outputs=2", "negative"},
           {"Split", "[5], i64[2]={2,3}; outputs=3", "3 outputs"},
           {"Split", "[5]; axis=1 outputs=1", "outside"},
           {"Trilu", "[3]", "matrix"},
           {"Trilu", "[3,3], i64[2]={1,2}", "one element"},
           {"Slice", "[4], i64[1]={0}, i64[2]={1,2}", "2 ends"},
           {"Slice", "[4], i64[1]={0}, i64[1]={1}, i64[1]={1}", "outside"},
           {"Slice", "[4], i64[2]={0,0}, i64[2]={1,1}, i64[2]={0,-1}", "given twice"},
           {"Slice", "[4], i64[1]={0}, i64[1]={1}, -, i64[1]={0}", "step"},
           {"Slice", "[4], i64[1]<3, i64[1]={1}", "known when the graph is built"},
           {"SliceGrad", "[2]; shape={4} start={3} step={1}", "do not fit"},
           {"SliceGrad", "[2]; shape={4} start={0} step={-1}", "do not fit"},
           {"SliceGrad", "[2]; shape={4} start={0} step={9223372036854775807}", "do not fit"},
           {"SliceGrad", "[3]; shape={4} start={0} step={9223372036854775807}", "too large"},
           {"SliceGrad", "[2]; shape={4,4} start={0} step={1}", "1 numbers"},
           {"Expand", "[2], i64[1]={3}", "cannot be broadcast"},
           {"Expand", "[1], i64[1]={-1}", "negative"},
           {"Expand", "[1], i64[2]={4611686018427387904,4}", "too many elements"},
           {"Pad", "[2], i64[1]={1}", "two for each axis"},
           {"Pad", "[2], i64[2]={-1,-2}", "remove more"},
           {"Pad", "[2], i64[2]={2,0}; mode='reflect'", "reflect"},
           {"Pad", "[0], i64[2]={1,0}; mode='edge'", "edge"},
           {"Pad", "[2], i64[2]={1,1}; mode='wrap'", "mode is 'wrap'"},
           {"Pad", "[2], i64[2]={9223372036854775807,1}", "too large"},
           {"Pad", "[2], i64[2]={1,1}, [2]", "pad value"},
       }) {
    check_refused(refusal);
  }
}

TEST_CASE("refusals: constants and indices") {
  for (const Refusal& refusal : {
           Refusal{"ConstantOfShape", "i64[1]={-1}", "negative"},
           {"ConstantOfShape", "i64[2]={4611686018427387904,4611686018427387904}", "too many"},
           {"ConstantOfShape", "i64[9]={1,1,1,1,1,1,1,1,1}", "at most 8"},
           {"Gather", "[2], [1]", "i64 or i32"},
           {"Gather", "[2], i64[1]<2; axis=1", "outside"},
           {"Gather", "[], i64[1]<2", "outside"},
           {"Gather", "[1,1,1,1,1,1,1,1], i64[1,1]<1", "at most 8"},
           {"GatherGrad", "[2,3], i64[3]<2; shape={5,3}", "must be"},
           {"GatherGrad", "[2], i64[2]<2; shape={-5}", "negative"},
           {"GatherGrad", "[2], i64[2]<2, [4]; shape={5}", "must be"},
           {"SumRowsById", "[2,3], i64[3]<2, i64[]={5}", "must be"},
           {"SumRowsById", "[2], i64[2]<2, i64[]={-5}", "negative"},
           {"SumRowsById", "[2], i64[2]<2, i64[]", "known when the graph is built"},
           {"SumRowsById", "i64[2], i64[2]<2, i64[]={5}", "float tensor"},
           {"GatherGrad", "[2], i64[2]<2, i64[5]<9; shape={5}", "must be"},
       }) {
    check_refused(refusal);
  }
}

}  // namespace trainscope::test
