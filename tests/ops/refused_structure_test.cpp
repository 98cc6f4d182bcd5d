// Indices, repeats, blocks, sizes, transposed convolutions and losses that do not fit together are
// refused by their shape rules.
#include <doctest/doctest.h>

#include "tests/ops/refusal.h"

namespace trainscope::test {
namespace {

constexpr Refusal kPlaces[] = {
    {"GatherElements", "[3], i64[1,3]<3", "must have 1 dimensions"},
    {"GatherElements", "[3,2], i64[3,3]<3", "longer than the data"},
    {"GatherElements", "[3], [3]", "i64 or i32"},
    {"GatherElements", "[], i64[]<1", "outside"},
    {"GatherND", "[3,2], i64[]<1", "must have a dimension"},
    {"GatherND", "[3,2], i64[4,3]<2", "must be in [1, 2]"},
    {"GatherND", "[3,2], i64[4,0]<2", "must be in [1, 2]"},
    {"GatherND", "[3,2], i64[4,1]<2; batch_dims=1", "differ in batch axis 0"},
    {"GatherND", "[3,2], i64[3,1]<2; batch_dims=2", "batch_dims is 2"},
    {"GatherND", "[3,2], i64[3,1]<2; batch_dims=-1", "batch_dims is -1"},
    {"ScatterElements", "[3], i64[2]<3, [3]", "input 2 must be [2]"},
    {"ScatterElements", "[3], i64[2]<3, i64[2]<3", "one element type"},
    {"ScatterElements", "[3], i64[2]<3, [2]; reduction='mean'", "reduction is 'mean'"},
    {"ScatterElements", "bool[3], i64[2]<3, bool[2]; reduction='add'", "needs numbers"},
    {"ScatterND", "[3,2], i64[4,1]<3, [4,3]", "input 2 must be [4,2]"},
    {"ScatterND", "[3,2], i64[4,3]<3, [4]", "must be in [1, 2]"},
    {"ElementIndex", "i64[3]<2, i64[2]={2,2}", "2 dimensions"},
    {"ElementIndex", "i64[3]<2, i64[1]<2", "known when the graph is built"},
    {"SliceIndex", "i64[3,2]<2, i64[2]={-2,2}", "negative"},
    {"SliceIndex", "i64[3,2]<2, i32[2]={2,2}", "must be i64"},
    {"PutRows", "[3,2], i64[4]<3, [4,3]", "must be [4,2]"},
    {"AddRows", "[3,2,1], i64[4]<3, [4,2]", "2 dimensions"},
    {"MultiplyRows", "bool[3,2], i64[4]<3, bool[4,2]", "numbers"},
    {"MultiplyRowsGrad", "[3,2], i64[4]<3, [3,2]", "must be [4,2]"},
    {"Interpolate", "[3], i64[1,1]={3}, [1,1]={1}", "index 3 is outside"},
    {"Interpolate", "[3], i64[1,1]={-1}, [1,1]={1}", "index -1 is outside"},
    {"Interpolate", "[3], i64[1,1]<3, [1,1]={1}", "known when the graph is built"},
    {"Interpolate", "[3], i64[1,1]={1}, [1,1]", "known when the graph is built"},
    {"Interpolate", "[3], i64[2,1]={1,1}, [1,2]={1,1}", "must be [2,1]"},
    {"Interpolate", "[3], i64[1,1]={1}, [1,1]={1}, [2]", "must be [1]"},
    {"InterpolateGrad", "[2], i64[1,1]={1}, [1,1]={1}; size=3", "index has 1 rows"},
    {"InterpolateGrad", "[1], i64[1,1]={3}, [1,1]={1}; size=3", "index 3 is outside"},
};

constexpr Refusal kRearranged[] = {
    {"Range", "[]={0}, []={1}, []={0}", "is 0"},
    {"Range", "[]={0}, []={inf}, []={1}", "input 1 is inf"},
    {"Range", "[]={0}, []={1e30}, []={1}", "too many elements"},
    {"Range", "i64[]={0}, i64[]={9223372036854775807}, i64[]={1}", "too many elements"},
    {"Range", "i64[]={0}, i32[]={5}, i64[]={1}", "one element type"},
    {"Range", "i64[]={0}, i64[2]={5,6}, i64[]={1}", "one element"},
    {"Range", "i64[]={0}, i64[]<5, i64[]={1}", "known when the graph is built"},
    {"Tile", "[2,3], i64[1]={2}", "1 numbers of repeats"},
    {"Tile", "[2], i64[1]={-1}", "negative"},
    {"Tile", "[4], i64[1]={4611686018427387904}", "too large"},
    {"DepthToSpace", "[1,4,2,2]", "blocksize is 0"},
    {"DepthToSpace", "[1,6,2,2]; blocksize=2", "6 channels"},
    {"DepthToSpace", "[4,2,2]; blocksize=2", "4 dimensions"},
    {"DepthToSpace", "[1,4,2,2]; blocksize=2 mode='ABC'", "mode is 'ABC'"},
    {"SpaceToDepth", "[1,4,3,2]; blocksize=2", "3 x 2"},
    {"SpaceToDepth", "[1,4,2,2]; blocksize=9223372036854775807", "blocksize is"},
    {"OneHot", "i64[2]<3, i64[]={-1}, [2]", "depth, is -1"},
    {"OneHot", "i64[2]<3, i64[]={3}, [3]", "must be [2]"},
    {"OneHot", "i64[2]<3, i64[]={3}, [2]; axis=2", "outside"},
    {"OneHot", "bool[2], i64[]={3}, [2]", "must be numbers"},
    {"OneHot", "i64[2]<3, i64[]={9223372036854775807}, [2]", "depth, is"},
    {"ReverseSequence", "[4], i64[4]<2", "time and a batch"},
    {"ReverseSequence", "[4,3], i64[4]<2", "must be [3]"},
    {"ReverseSequence", "[4,3], i64[3]<2; time_axis=1", "one must be 0"},
    {"Compress", "[3], bool[3]; axis=0", "known when the graph is built"},
    {"Compress", "[3], bool[4]={0,0,0,1}; axis=0", "4 elements"},
    {"Compress", "[3], i64[3]={0,0,1}; axis=0", "must be bool"},
};

constexpr Refusal kNetworks[] = {
    {"Resize", "[2]", "either scales"},
    {"Resize", "[2], -, [1]={2}, i64[1]={4}", "either scales"},
    {"Resize", "[2], -, [2]={2,1}", "must be [1]"},
    {"Resize", "[2], -, [1]={0}", "not positive"},
    {"Resize", "[2], -, [1]={nan}", "holds nan"},
    {"Resize", "[2], -, [1]={1e30}", "at most"},
    {"Resize", "[2], -, -, i64[1]={-1}", "at most"},
    {"Resize", "[2], -, -, i64[1]={9223372036854775807}", "at most"},
    {"Resize", "[0], -, -, i64[1]={2}", "no elements"},
    {"Resize", "[2], -, [1]", "known when the graph is built"},
    {"Resize", "[2], -, [1]={2}; mode='lanczos'", "nearest, linear, cubic exist"},
    {"Resize", "[2], -, [1]={2}; coordinate_transformation_mode='tf_crop_and_resize'",
     "needs the region"},
    {"Resize", "i64[2]<9, -, [1]={2}; mode='linear'", "need floats"},
    {"ConvTranspose", "[1,2,3], [3,2,3]", "does not fit a weight"},
    {"ConvTranspose", "[1,3,3], [3,2,3]; group=2", "does not fit a weight"},
    {"ConvTranspose", "[1,2,3], [2,2,3,3]", "equally many"},
    {"ConvTranspose", "[1,2], [2,2]", "equally many"},
    {"ConvTranspose", "[1,2,3], [2,3,3], [2]", "must be [3]"},
    {"ConvTranspose", "[1,2,0], [2,2,3]", "no elements"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; pads={5,0}", "leave nothing"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; pads={1}", "attribute pads has 1"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; output_padding={-1}", "outside"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; output_shape={1,2}", "output_shape has 2"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; kernel_shape={2}", "kernel_shape is [2]"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; auto_pad='SAME'", "auto_pad is 'SAME'"},
    {"ConvTranspose", "[1,2,3], [2,2,3]; group=9223372036854775807", "does not fit"},
    {"InstanceNormalization", "[3], [3], [3]", "batch and a channel"},
    {"InstanceNormalization", "[2,3], [2], [3]", "must be [3]"},
    {"InstanceNormalizationGrad", "[2,3], [2,4], [4]", "one type"},
    {"LRN", "[2,3]", "size is 0"},
    {"LRN", "[3]; size=1", "batch and a channel"},
    {"LpNormalization", "[3]; p=3", "p is 3"},
    {"GlobalMaxPool", "[2,3]", "one spatial dimension"},
    {"GlobalMaxPool", "[2,3,0]", "no elements"},
    {"LpPool", "[2,3,4]", "kernel_shape is missing"},
    {"LpPool", "[2,3,4]; kernel_shape={2} p=0", "p is 0"},
    {"SoftmaxCrossEntropyLoss", "[3], i64[]<3", "batch and a class"},
    {"SoftmaxCrossEntropyLoss", "[3,5,2], i64[3]<5", "must be [3,2]"},
    {"SoftmaxCrossEntropyLoss", "[3,5], i64[3]<5, [4]", "must be [5]"},
    {"NegativeLogLikelihoodLoss", "[3,5], [3]", "i64 or i32"},
    {"NegativeLogLikelihoodLoss", "[3,5], i64[3]<5; reduction='max'", "reduction is 'max'"},
};

}  // namespace

TEST_CASE("refusals: places that indices name") {
  for (const Refusal& refusal : kPlaces) check_refused(refusal);
}

TEST_CASE("refusals: ranges, repeats, blocks and selections") {
  for (const Refusal& refusal : kRearranged) check_refused(refusal);
}

TEST_CASE("refusals: resizing, transposed convolutions, norms and ONNX's losses") {
  for (const Refusal& refusal : kNetworks) check_refused(refusal);
}

}  // namespace trainscope::test
