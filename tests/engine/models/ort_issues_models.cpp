// Issues about models whose training graph ONNX Runtime does not build, or builds wrongly.
#include "tests/engine/models/ort_issues.h"

namespace trainscope::test {
namespace {

constexpr LossOptions kOwnLoss = {.kind = LossKind::kOutput, .output = "loss"};

const OrtIssue kModelIssues[] = {
    {.issue = "#6087",
     .loss_there = 1.0757338,
     .about = "MobileNet's inverted residual: batch norms and a convolution by channel",
     .inputs = "float[4,3,6,6] x",
     .outputs = "float[4,3] logits",
     .weights = "float[6,3,1,1] expand; float[6] s1; float[6] b1; float[6] mean1; float[6] var;"
                "float[6,1,3,3] depthwise; float[6] s2; float[6] b2; float[6] mean2;"
                "float[6] second_var; float[3,6,1,1] project; float[3,3] head; float[3] bias",
     .nodes = R"({ zero = Constant <value_float = 0.0> ()  six = Constant <value_float = 6.0> ()
  a = Conv(x, expand)  n = BatchNormalization(a, s1, b1, mean1, var)  r = Clip(n, zero, six)
  d = Conv <group = 6, pads = [1, 1, 1, 1]> (r, depthwise)
  m = BatchNormalization(d, s2, b2, mean2, second_var)  q = Clip(m, zero, six)
  p = Conv(q, project)  sum = Add(p, x)  g = GlobalAveragePool(sum)  f = Flatten(g)
  logits = Gemm(f, head, bias) })",
     .loss = {.output = "logits"},
     .integers_below = 3,
     .train_all = true},
    {.issue = "#16597",
     .loss_there = 1.0537931,
     .about = "a ResNet with every initializer asked for as a parameter",
     .inputs = "float[4,3,6,6] x",
     .outputs = "float[4,3] logits",
     .weights = "float[3,3,3,3] conv1; float[3] s1; float[3] b1; float[3] mean1; float[3] var;"
                "float[3,3,3,3] conv2; float[3] s2; float[3] b2; float[3] mean2;"
                "float[3] second_var; float[3,3] fc; float[3] bias",
     .nodes = R"({ a = Conv <pads = [1, 1, 1, 1]> (x, conv1)
  n = BatchNormalization(a, s1, b1, mean1, var)  r = Relu(n)
  c = Conv <pads = [1, 1, 1, 1]> (r, conv2)
  m = BatchNormalization(c, s2, b2, mean2, second_var)  sum = Add(m, x)  q = Relu(sum)
  g = GlobalAveragePool(q)  f = Flatten(g)  logits = Gemm <transB = 1> (f, fc, bias) })",
     .loss = {.output = "logits"},
     .integers_below = 3,
     .train_all = true},
    {.issue = "#19811",
     .loss_there = 1.0930704,
     .about = "a ResNet's stem and bottleneck with a strided shortcut",
     .inputs = "float[4,1,16,16] x",
     .outputs = "float[4,3] logits",
     .weights = "float[3,1,7,7] stem; float[3] s0; float[3] b0; float[3] mean0; float[3] stem_var;"
                "float[2,3,1,1] reduce; float[2,2,3,3] conv; float[2] s1; float[2] b1;"
                "float[2] mean1; float[2] var; float[4,2,1,1] widen; float[4,3,1,1] shortcut;"
                "float[4] s2; float[4] b2; float[4] mean2; float[4] short_var; float[4,3] fc",
     .nodes = R"({ a = Conv <strides = [2, 2], pads = [3, 3, 3, 3]> (x, stem)
  n = BatchNormalization(a, s0, b0, mean0, stem_var)  r = Relu(n)
  p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r)
  c = Conv(p, reduce)  d = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (c, conv)
  m = BatchNormalization(d, s1, b1, mean1, var)  q = Relu(m)  w = Conv(q, widen)
  i = Conv <strides = [2, 2]> (p, shortcut)
  k = BatchNormalization(i, s2, b2, mean2, short_var)  sum = Add(w, k)  t = Relu(sum)
  g = GlobalAveragePool(t)  f = Flatten(g)  logits = MatMul(f, fc) })",
     .loss = {.output = "logits"},
     .integers_below = 3},
    {.issue = "#14209",
     .loss_there = 1.0699793,
     .about = "EfficientNet: SiLU, squeeze and excitation, and a counter num_batches_tracked",
     .inputs = "float[4,3,5,5] x",
     .outputs = "float[4,3] logits",
     .weights = "float[4,3,3,3] conv; float[4] scale; float[4] shift; float[4] mean; float[4] var;"
                "int64 num_batches_tracked = {5}; float[2,4,1,1] squeeze; float[2] b1;"
                "float[4,2,1,1] excite; float[4] b2; float[4,3] head",
     .nodes = R"({ a = Conv <pads = [1, 1, 1, 1]> (x, conv)
  n = BatchNormalization(a, scale, shift, mean, var)  e = Sigmoid(n)  h = Mul(n, e)
  g = GlobalAveragePool(h)  q = Conv(g, squeeze, b1)  r = Sigmoid(q)  u = Mul(q, r)
  v = Conv(u, excite, b2)  gate = Sigmoid(v)  o = Mul(h, gate)
  p = GlobalAveragePool(o)  f = Flatten(p)  logits = MatMul(f, head) })",
     .loss = {.output = "logits"},
     .integers_below = 3},
    {.issue = "#22465",
     .about = "DistilBERT: masked attention, dropout, erf, mean squared error on an embedding",
     .inputs = "int64[2,5] input_ids, int64[2,5] attention_mask",
     .outputs = "float[2,5,6] output",
     .weights = "float[11,6] words; float[5,6] positions; int64[1,5] position_ids = {0,1,2,3,4};"
                "float[6] g1; float[6] b1; float[6,6] query; float[6,6] key; float[6,6] value;"
                "float[6,6] out; float[6] g2; float[6] b2; float[6,8] wide; float[8,6] narrow;"
                "float[6] g3; float[6] b3; bool training = {1}; int64 zero = {0};"
                "int64[4] heads = {2, 5, 2, 3}; int64[3] joined = {2, 5, 6};"
                "int64[4] mask_shape = {2, 1, 1, 5}",
     .nodes = R"({ ratio = Constant <value_float = 0.1> ()
  lowest = Constant <value_float = -3.4e38> ()  root = Constant <value_float = 1.7320508> ()
  two = Constant <value_float = 1.4142135> ()  half = Constant <value_float = 0.5> ()
  one = Constant <value_float = 1.0> ()
  w = Gather(words, input_ids)  p = Gather(positions, position_ids)  e0 = Add(w, p)
  e1 = LayerNormalization(e0, g1, b1)  x = Dropout(e1, ratio, training)
  q0 = MatMul(x, query)  q1 = Reshape(q0, heads)  q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
  q = Div(q2, root)
  k0 = MatMul(x, key)  k1 = Reshape(k0, heads)  k = Transpose <perm = [0, 2, 3, 1]> (k1)
  v0 = MatMul(x, value)  v1 = Reshape(v0, heads)  v = Transpose <perm = [0, 2, 1, 3]> (v1)
  scores = MatMul(q, k)  hidden = Equal(attention_mask, zero)  m0 = Reshape(hidden, mask_shape)
  like = Shape(scores)  m = Expand(m0, like)  s = Where(m, lowest, scores)
  a0 = Softmax <axis = -1> (s)  a = Dropout(a0, ratio, training)  c0 = MatMul(a, v)
  c1 = Transpose <perm = [0, 2, 1, 3]> (c0)  c = Reshape(c1, joined)  o = MatMul(c, out)
  r1 = Add(o, x)  y = LayerNormalization(r1, g2, b2)  h0 = MatMul(y, wide)
  h1 = Div(h0, two)  h2 = Erf(h1)  h3 = Add(h2, one)  h4 = Mul(h0, h3)  h = Mul(h4, half)
  f = MatMul(h, narrow)  r2 = Add(f, y)  output = LayerNormalization(r2, g3, b3) })",
     .loss = {.kind = LossKind::kMse, .output = "output"},
     .integers_below = 11,
     .train_all = true},
    {.issue = "#19351",
     .loss_there = 1.005062,
     .about = "a BERT classifier in opset 19, whose sizes come from Shape nodes",
     .inputs = "int64[3,4] input_ids",
     .outputs = "float[3,3] logits",
     .weights =
         "float[9,6] words; float[8,6] positions; float[2,6] segments; float[6] g; float[6] b;"
         "float[6,6] query; float[6,6] value; float[6,6] pooler; float[6] pooler_bias;"
         "float[6,3] head; int64[1] one = {1}; int64[1] zero = {0}; int64 first = {0};"
         "int64[8] ids = {0,1,2,3,4,5,6,7}",
     .nodes = R"({ shape = Shape(input_ids)  tokens = Shape <start = 1, end = 2> (input_ids)
  seen = Slice(ids, zero, tokens)  place = Unsqueeze(seen, zero)
  kind = ConstantOfShape <value = int64[1] {0}> (shape)
  w = Gather(words, input_ids)  p = Gather(positions, place)  k = Gather(segments, kind)
  e0 = Add(w, p)  e1 = Add(e0, k)  x = LayerNormalization(e1, g, b)
  q = MatMul(x, query)  t = Transpose <perm = [0, 2, 1]> (x)  s = MatMul(q, t)  a = Softmax(s)
  v = MatMul(x, value)  c = MatMul(a, v)  y = Add(c, x)  cls = Gather <axis = 1> (y, first)
  h0 = Gemm(cls, pooler, pooler_bias)  h = Tanh(h0)  logits = MatMul(h, head) })",
     .loss = {.output = "logits"},
     .integers_below = 3,
     .opset = "19"},
    {.issue = "#19427",
     .loss_there = 1.2493859,
     .about = "LayerNormalization of opset 17 with its one required output",
     .inputs = "float[5,6] x",
     .outputs = "float[5,3] y",
     .weights = "float[6] g; float[6] b; float[6,8] w1; float[8,3] w2; float[3] c",
     .nodes = R"({ n = LayerNormalization <axis = -1> (x, g, b)  h = MatMul(n, w1)  r = Relu(h)
  z = Gemm(r, w2, c)  y = LogSoftmax <axis = 1> (z) })",
     .loss = {.kind = LossKind::kNll, .output = "y"},
     .integers_below = 3},
    {.issue = "#22955",
     .loss_there = 2.1298252,
     .about =
         "a causal language model: the same norm inside a decoder block, words tied to the head",
     .inputs = "int64[2,5] ids",
     .outputs = "float[2,5,7] logits",
     .weights =
         "float[7,6] words; float[5,6] positions; float[6] g1; float[6] b1; float[6,6] query;"
         "float[6,6] key; float[6,6] value; float[6] g2; float[6] b2; float[6,8] wide;"
         "float[8,6] narrow; float[6] g3; float[6] b3; int64[2] square = {5, 5};"
         "int64 diagonal = {1}",
     .nodes = R"({ lowest = Constant <value_float = -1e4> ()
  full = ConstantOfShape <value = float[1] {1.0}> (square)
  above = Trilu <upper = 1> (full, diagonal)  mask = Mul(above, lowest)
  w = Gather(words, ids)  x = Add(w, positions)  n = LayerNormalization(x, g1, b1)
  q = MatMul(n, query)  k0 = MatMul(n, key)  k = Transpose <perm = [0, 2, 1]> (k0)
  v = MatMul(n, value)  s0 = MatMul(q, k)  s = Add(s0, mask)  a = Softmax(s)
  c = MatMul(a, v)  r = Add(x, c)  m = LayerNormalization(r, g2, b2)
  h = MatMul(m, wide)  t = Tanh(h)  f = MatMul(t, narrow)  u = Add(r, f)
  z = LayerNormalization(u, g3, b3)  head = Transpose <perm = [1, 0]> (words)
  logits = MatMul(z, head) })",
     .loss = {.output = "logits"},
     .integers_below = 7},
    {.issue = "#9375",
     .loss_there = 0.3205828,
     .about = "a layer exported as a function of the file",
     .inputs = "float[5,4] x",
     .outputs = "float[5,2] y",
     .weights = "float[3,4] fc1_w; float[3] fc1_b; float[2,3] fc2_w; float[2] fc2_b",
     .nodes =
         "{ h = local.Linear(x, fc1_w, fc1_b)  r = Relu(h)  y = local.Linear(r, fc2_w, fc2_b) }",
     .loss = {.kind = LossKind::kMse, .output = "y"},
     .opset = "17, \"local\" : 1",
     .functions = R"(<domain: "local", opset_import: ["" : 17]>
Linear (x, w, b) => (y) { t = Transpose <perm = [1, 0]> (w)  m = MatMul(x, t)  y = Add(m, b) })"},
    {.issue = "#18344",
     .loss_there = 0.4677486,
     .about = "Gemm and Relu of opset 10 with two outputs and a weighted sum of two losses",
     .inputs = "float[5,4] x, float[5,2] target1, float[5,3] target2",
     .outputs = "float[5,2] a, float[5,3] b, float loss",
     .weights =
         "float[6,4] w; float[6] bias; float[2,6] wa; float[2] ba; float[3,6] wb; float[3] bb",
     .nodes =
         R"({ first = Constant <value = float {0.4}> ()  second = Constant <value = float {0.6}> ()
  h = Gemm <transB = 1> (x, w, bias)  r = Relu(h)  a = Gemm <transB = 1> (r, wa, ba)
  b = Gemm <transB = 1> (r, wb, bb)  d1 = Sub(a, target1)  q1 = Mul(d1, d1)
  l1 = ReduceMean <keepdims = 0> (q1)  d2 = Sub(b, target2)  q2 = Mul(d2, d2)
  l2 = ReduceMean <keepdims = 0> (q2)  p1 = Mul(first, l1)  p2 = Mul(second, l2)
  loss = Add(p1, p2) })",
     .loss = kOwnLoss,
     .opset = "10"},
    {.issue = "#19464",
     .loss_there = 4.2878051,
     .about = "YOLO: boxes, objectness and classes, a loss of three parts (also #19008)",
     .inputs = "float[2,3,4,4] x, float[2,4,4,4] boxes, float[2,1,4,4] object_flags,"
               "int64[2,4,4] classes",
     .outputs = "float loss",
     .weights = "float[6,3,3,3] conv; float[8,6,1,1] head; float[8] bias;"
                "int64[3] sizes = {4, 1, 3}",
     .nodes = R"({ one = Constant <value_float = 1.0> ()
  h = Conv <pads = [1, 1, 1, 1]> (x, conv)  r = LeakyRelu <alpha = 0.1> (h)
  o = Conv(r, head, bias)  box, object, scores = Split <axis = 1> (o, sizes)
  d = Sub(box, boxes)  q = Mul(d, d)  box_loss = ReduceMean <keepdims = 0> (q)
  p = Sigmoid(object)  lp = Log(p)  np = Sub(one, p)  ln = Log(np)  nt = Sub(one, object_flags)
  t1 = Mul(object_flags, lp)  t2 = Mul(nt, ln)  t = Add(t1, t2)  n = Neg(t)
  object_loss = ReduceMean <keepdims = 0> (n)
  class_loss = SoftmaxCrossEntropyLoss(scores, classes)
  two = Add(box_loss, object_loss)  loss = Add(two, class_loss) })",
     .loss = kOwnLoss,
     .integers_below = 3},
    {.issue = "#16809",
     .loss_there = 1.9939703,
     .about = "an ONNX file of somebody else's, opset 8, trained as it is (also #3706, #4762)",
     .inputs = "float[3,1,8,8] Input3",
     .outputs = "float[3,4] Plus214",
     .weights = "float[2,1,5,5] Parameter5; float[2,1,1] Parameter6; float[2,4,4,4] Parameter193;"
                "float[1,4] Parameter194; int64[2] flat = {3, 32}; int64[2] matrix = {32, 4}",
     .nodes = R"({ weight = Reshape(Parameter193, matrix)
  c = Conv <auto_pad = "SAME_UPPER", kernel_shape = [5, 5]> (Input3, Parameter5)
  b = Add(c, Parameter6)  r = Relu(b)
  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2], auto_pad = "NOTSET"> (r)
  f = Reshape(p, flat)  m = MatMul(f, weight)  Plus214 = Add(m, Parameter194) })",
     .loss = {.output = "Plus214"},
     .integers_below = 4,
     .opset = "8"},
    {.issue = "examples#176",
     .loss_there = 2.7894025,
     .about = "MobileBERT's bottleneck with stacked layers, masked language modelling",
     .inputs = "int64[2,5] input_ids",
     .outputs = "float[2,5,9] logits",
     .weights = "float[9,8] words; float[8,4] bottleneck; float[4] g1; float[4] b1; float[4,6] w1;"
                "float[6,4] v1; float[4] s1; float[4] t1; float[4,6] w2; float[6,4] v2;"
                "float[4,8] widen; float[8] g2; float[8] b2; float[9] bias",
     .nodes = R"({ e = Gather(words, input_ids)  x0 = MatMul(e, bottleneck)
  x = LayerNormalization(x0, g1, b1)  a0 = MatMul(x, w1)  a1 = Relu(a0)  a2 = MatMul(a1, v1)
  a3 = Add(a2, x)  a4 = Mul(a3, s1)  a = Add(a4, t1)  c0 = MatMul(a, w2)  c1 = Relu(c0)
  c2 = MatMul(c1, v2)  c = Add(c2, a)  o0 = MatMul(c, widen)  o1 = Add(o0, e)
  o = LayerNormalization(o1, g2, b2)  head = Transpose <perm = [1, 0]> (words)
  z = MatMul(o, head)  logits = Add(z, bias) })",
     .loss = {.output = "logits"},
     .integers_below = 9},
};

}  // namespace

std::span<const OrtIssue> issues_of_models() { return kModelIssues; }

}  // namespace trainscope::test
