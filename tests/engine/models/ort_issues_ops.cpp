// Issues about ops for which ONNX Runtime builds no gradient, at all or on the CPU.
#include "tests/engine/models/ort_issues.h"

namespace trainscope::test {
namespace {

constexpr LossOptions mse_of(const char* output) {
  return {.kind = LossKind::kMse, .output = output};
}

// Two layers of the op between them.
const OrtIssue kOpIssues[] = {
    {.issue = "#10138",
     .loss_there = 0.6161498,
     .about = "Round in a model to train",
     .inputs = "float[6,4] x",
     .outputs = "float[6,3] y",
     .weights = "float[4,5] w; float[10,3] v",
     // Activations rounded to quarters beside those that are not; Round passes no gradient on.
     .nodes = R"({ four = Constant <value_float = 4.0> ()
  h = MatMul(x, w)  s = Mul(h, four)  r = Round(s)  q = Div(r, four)
  e = Concat <axis = 1> (h, q)  y = MatMul(e, v) })",
     .loss = mse_of("y")},
    {.issue = "#22407",
     .loss_there = 0.9942565,
     .about = "Atan",
     .inputs = "float[6,4] x",
     .outputs = "float[6,2] y",
     .weights = "float[4,5] w; float[5] b; float[5,2] v; float[2] c",
     .nodes = "{ h = Gemm(x, w, b)  a = Atan(h)  y = Gemm(a, v, c) }",
     .loss = mse_of("y")},
    {.issue = "#14412",
     .loss_there = 2.5478423,
     .about = "ReduceMin of the distances between two sets of points, minimised over a shift",
     .inputs = "float[5,3] coords, float[7,3] reference",
     .outputs = "float loss",
     .weights = "float[1,3] delta; int64[1] one = {1}; int64[1] zero = {0}; int64[1] two = {2}",
     .nodes = R"({ moved = Add(coords, delta)  a = Unsqueeze(moved, one)
  b = Unsqueeze(reference, zero)  d = Sub(a, b)  square = Mul(d, d)
  sum = ReduceSum <keepdims = 0> (square, two)  distance = Sqrt(sum)
  nearest = ReduceMin <axes = [1], keepdims = 0> (distance)
  loss = ReduceSum <keepdims = 0> (nearest) })",
     .loss = {.kind = LossKind::kOutput, .output = "loss"}},
    {.issue = "#17710",
     .loss_there = 0.8652748,
     .about = "ConvTranspose on the CPU",
     .inputs = "float[2,2,6,6] x",
     .outputs = "float[2,1,6,6] y",
     .weights = "float[3,2,3,3] w; float[3] b; float[3,1,3,3] v; float[1] c",
     .nodes = R"({ h = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w, b)  r = Relu(h)
  y = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]> (r, v, c) })",
     .loss = mse_of("y")},
    {.issue = "#16866",
     .loss_there = 2.3903742,
     .about = "Resize in a U-Net",
     .inputs = "float[2,1,8,8] x",
     .outputs = "float[2,3,8,8] logits",
     .weights = "float[3,1,3,3] down; float[4,3,3,3] bottom; float[3,7,3,3] up; float[3] b;"
                "float[4] scales = {1, 1, 2, 2}",
     .nodes = R"({ d = Conv <pads = [1, 1, 1, 1]> (x, down)  skip = Relu(d)
  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (skip)
  m = Conv <pads = [1, 1, 1, 1]> (p, bottom)  n = Relu(m)
  u = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (n, , scales)
  c = Concat <axis = 1> (skip, u)  logits = Conv <pads = [1, 1, 1, 1]> (c, up, b) })",
     .loss = {.output = "logits", .class_axis = 1},
     .integers_below = 3},
    {.issue = "#18265",
     .loss_there = 0.287845,
     .about = "LeakyRelu",
     .inputs = "float[6,4] x",
     .outputs = "float[6,2] y",
     .weights = "float[4,5] w; float[5,2] v",
     .nodes = "{ h = MatMul(x, w)  a = LeakyRelu <alpha = 0.2> (h)  y = MatMul(a, v) }",
     .loss = mse_of("y")},
    {.issue = "#20781",
     .loss_there = 0.5046611,
     .about = "MatMulNBits: low-rank adapters beside a matrix that is stored in four bits",
     .inputs = "float[5,16] x",
     .outputs = "float[5,2] y",
     .weights = "uint8[4,1,8] packed = {121, 66, 189, 242, 33, 6, 240, 132, 119, 98, 240, 243, "
                "203, 77, 118, 77, "
                "199, 7, 32, 81, 21, 154, 15, 137, 242, 198, 218, 202, 227, 68, 187, 49};"
                "float[4] scales = {0.11, 0.07, 0.09, 0.12}; float[16,16] before;"
                "float[16,2] lora_a; float[2,4] lora_b; float[4,2] head",
     .nodes = R"({ h = MatMul(x, before)  t = Tanh(h)
  m = com.microsoft.MatMulNBits <K = 16, N = 4, bits = 4, block_size = 16> (t, packed, scales)
  a = MatMul(t, lora_a)  b = MatMul(a, lora_b)  sum = Add(m, b)  r = Relu(sum)
  y = MatMul(r, head) })",
     .loss = mse_of("y"),
     .opset = "17, \"com.microsoft\" : 1"},
    {.issue = "examples#185",
     .loss_there = 0.3647991,
     .about = "Reciprocal in a convolution whose weight is scaled by a style (DragGAN)",
     .inputs = "float[1,3,5,5] x, float[1,4] style",
     .outputs = "float[1,4,5,5] y",
     .weights = "float[4,3,3,3] w; float[4,3] affine; int64[4] shape = {1, 3, 1, 1};"
                "int64[3] axes = {1, 2, 3}",
     .nodes = R"({ small = Constant <value_float = 0.01> ()
  s = MatMul(style, affine)  r = Reshape(s, shape)  m = Mul(w, r)
  q = Mul(m, m)  n = ReduceSum <keepdims = 1> (q, axes)  e = Add(n, small)  root = Sqrt(e)
  d = Reciprocal(root)  k = Mul(m, d)  y = Conv <pads = [1, 1, 1, 1]> (x, k) })",
     .loss = mse_of("y")},
};

}  // namespace

std::span<const OrtIssue> issues_of_ops() { return kOpIssues; }

}  // namespace trainscope::test
