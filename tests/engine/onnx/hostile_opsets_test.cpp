// Nodes of older and newer opsets that their adapters cannot turn into nodes of today.
#include <doctest/doctest.h>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

const RefusedText kOlder[] = {
    {"float[2,3] x", "y = Squeeze<axes=[5]>(x)", "axis 5 is outside", 11},
    {"float[2,3] x", "y = Squeeze<axes=[0]>(x)", "is not of size 1", 11},
    {"float[2,3] x", "y = Unsqueeze<axes=[0,0]>(x)", "axis 0 is given twice", 11},
    {"float[2,3] x", "y = Unsqueeze<axes=\"0\">(x)", "attribute 'axes' must be", 11},
    {"float[2,3] x", "y = Unsqueeze(x)", "1 inputs given, 2 to 2 expected", 11},
    {"float[2,3] x", "y = ReduceSum<axes=[-9223372036854775808]>(x)", "is outside", 11},
    {"float[7,3] x", "y, z = Split<split=[3,3]>(x)", "do not add up", 11},
    {"float[7,3] x", "y, z = Split<split=[8,-1]>(x)", "slice size -1 is negative", 2},
    {"float[7,3] x", "y, z = Split<split=[1,2,4]>(x)", "3 slice sizes for 2 outputs", 2},
    {"float[7] x", "y = Slice<starts=[0], ends=[1,2]>(x)", "1 starts, 2 ends", 9},
    {"float[7] x", "y = Slice<starts=[0], ends=[1], axes=[1]>(x)", "axis 1 is outside", 9},
    {"float[7] x", "y = Slice<starts=[0]>(x)", "2 inputs given, 3 to 5 expected", 9},
    {"float[7] x", "y = Pad<pads=[-4,-4]>(x)", "remove more", 10},
    {"float[7] x", "y = Pad<paddings=[9223372036854775807,0]>(x)", "is too large", 1},
    {"float[7] x", "y = Pad<pads=[1]>(x)", "1 pads; two for each axis", 2},
    {"float[7] x", "y = Clip<min=\"low\">(x)", "attribute 'min' must be a number", 6},
    {"float[7] x", "y, i = TopK(x)", "attribute 'k' is missing", 9},
    {"float[7] x", "y, i = TopK<k=-1>(x)", "k is -1", 1},
    {"float[7] x", "y, i = TopK<k=8>(x)", "k is 8", 9},
    {"float[7] x", "y = Dropout<ratio=\"half\">(x)", "attribute 'ratio' must be a number", 10},
    {"float[2,3] x, float[3] s", "y = BatchNormalization<spatial=0>(x, s, s, s, s)",
     "spatial=0 is not supported", 8},
    {"float[2,3] x, float[3] s", "n, m, v, t, u = BatchNormalization(x, s, s, s, s) y = Relu(u)",
     "reads 'u', an output that has no counterpart", 9},
    {"float[2,3] x", "y = Softmax<axis=2>(x)", "axis 2 is outside", 11},
    {"float x", "y = Softmax(x)", "axis 1 is outside", 11},
    {"float[2,3] x", "y = LogSoftmax<axis=-9223372036854775808>(x)", "is outside", 9},
    {"float[2,3] x", "y = Hardmax<axis=3>(x)", "axis 3 is outside", 1},
    {"float[1,1,2,2] x", "y = Upsample<scales=[1.0, 1.0]>(x)", "must be [4]", 7},
    {"float[1,1,2,2] x", "y = Upsample<scales=[1.0, 1.0, 0.0, 2.0]>(x)", "is not positive", 7},
    {"float[1,1,2,2] x", "y = Upsample<height_scale=1e30, width_scale=1.0>(x)", "at most 4194304",
     1},
    {"float[2] x, float[1] s={2}", "y = Resize<mode=\"cubical\">(x, s)", "mode is 'cubical'", 10},
    {"float[2,3,4] x, float[3,4] b", "y = Add<broadcast=1, axis=2>(x, b)", "does not fit into", 6},
    {"float[2,3,4] x, float[3] b", "y = Mul<broadcast=1, axis=-4>(x, b)", "axis -4 is outside", 1},
    {"float[2,3,4] x, float[3] b", "y = And<broadcast=1, axis=1>(x, b)", "must be bool", 1},
    {"float[2] x", "y = Cast<to=\"FLOATY\">(x)", "not the name of a type", 1},
    {"float[2] x", "y = Cast<to=\"UNDEFINED\">(x)", "not the name of a type", 5},
    {"float[2] x", "y = Cast<to=\"COMPLEX64\">(x)", "element type 14 is not supported", 1},
    {"float[2,3] x", "y = Concat(x, x)", "axis is missing", 4},
    {"float[2] x", "y = Concat(x, x)", "axis 1 is outside", 3},
    {"float[2,3] x", "y = Reshape<shape=[-1,-1]>(x)", "holds -1 twice", 4},
    {"float[2,3] x", "y = Reshape(x)", "1 inputs given, 2 to 2 expected", 4},
    {"float[2,3] x, float a={9}, float t={2}", "y = Tile(x, t, a)", "axis 9 is outside", 1},
    {"float[2,3] x, float a={0}, float t={-2}", "y = Tile(x, t, a)", "-2 is negative", 1},
    {"float[2,3] x, float a={0}, float t={1e30}", "y = Tile(x, t, a)",
     "e+30, a whole number was expected", 1},
    {"float[2,3] x, float a={0}, float t", "y = Tile(x, t, a)", "input 1 must be known", 1},
    {"float[2,3] x, float[7] s", "y = PRelu(x, s)", "cannot be broadcast", 6},
    {"float[2,3] x", "y = Einsum<equation=\"ij->i\">(x)", "no conversion from opset 11 is known",
     11},
};

const RefusedText kNewer[] = {
    {"float[2,3] x, int64[1] a={2}", "y = ReduceMean(x, a)", "axis 2 is outside", 18},
    {"float[2,3] x, int64[2] a={0,-2}", "y = ReduceMax(x, a)", "axis 0 is given twice", 18},
    {"float[2,3] x, int64[1] a", "y = ReduceMin(x, a)", "input 1 must be known before the run", 18},
    {"float[2,3] x, float[1] a={0}", "y = ReduceProd(x, a)", "input 1", 18},
    {"float[2,3] x", "y, z = Split<num_outputs=3>(x)", "num_outputs is 3, but it has 2 outputs",
     18},
    {"float[2,3] x", "y, z = Split<num_outputs=-1>(x)", "num_outputs is -1", 18},
    {"float[2,3] x", "y, z = Split<num_outputs=2, axis=2>(x)", "axis 2 is outside", 18},
    {"float[2,3] x, int64[2] p={1,1}, int64[1] a={2}", "y = Pad(x, p, , a)", "axis 2 is outside",
     18},
    {"float[2,3] x, int64[2] p={1,1}, int64[2] a={0,1}", "y = Pad(x, p, , a)", "2 pads for 2 axes",
     18},
    {"float[2,3] x, int64[4] p={1,2,1,2}, int64[2] a={0,-2}", "y = Pad(x, p, , a)",
     "axis 0 is given twice", 18},
    {"float[0,3] x, int64[4] p={1,1,1,1}", "y = Pad<mode=\"wrap\">(x, p)",
     "axis 0 has nothing to repeat", 19},
    {"float[2,3] x, int64[2] p={1,1}", "y = Pad<mode=\"wrap\">(x, p)", "2 pads for 2 axes", 19},
    {"float[2] x, int64[2] p={1,4611686018427387904}", "y = Pad<mode=\"wrap\">(x, p)",
     "an axis of 4611686018427387907 elements", 19},
    {"float[200000] x, float[1] s={0.00001}", "y = Resize<antialias=1, mode=\"linear\">(x, , s)",
     "makes filters of more than 65536 places", 18},
    {"float[2] x, int64[1] s={4}", "y = Resize<keep_aspect_ratio_policy=\"mine\">(x, , , s)",
     "keep_aspect_ratio_policy is 'mine'; stretch, not_larger and not_smaller exist", 18},
    {"float[2] x, int64[2] s={4,4}", "y = Resize<axes=[0]>(x, , , s)", "2 sizes for 1 axes", 18},
    {"float[2] x, int64[1] s={4}", "y = Resize<axes=[1]>(x, , , s)", "axis 1 is outside", 18},
    {"float[2,3] x, float[2] s={1,1}", "y = Resize<axes=[0,0]>(x, , s)", "axis 0 is given twice",
     18},
    {"float[2] x", "y = Cast<to=15>(x)", "element type 15 is not supported", 19},
    {"float[2] x", "y = Cast<to=99, saturate=0>(x)", "99 is not the number", 19},
    {"float[2,3] x", "y = Mish(x, x)", "2 inputs given", 18},
    {"float[2,3] x", "y = GroupNormalization<num_groups=1>(x, x, x)",
     "scale and bias must have the shape [3], one is [2,3]", 21},
};

}  // namespace

TEST_CASE("hostile opsets: what old forms of ops cannot say") { check_refused(kOlder); }
TEST_CASE("hostile opsets: what new forms of ops cannot say") { check_refused(kNewer); }

}  // namespace trainscope::test
