// Rnn, Lstm and Gru over all steps of a batch of sequences, and their gradients. ONNX's RNN, LSTM
// and GRU are read as these, which keep what their gradients need of every step.
#include <algorithm>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/gemm/matmul_cost.h"
#include "engine/ops/recurrent/recurrent_rules.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// Not rounded where Y is: gates near 1 would lose what is left of them.
TensorType saved_type(const OpArgs& args, const CellForm& form, const CellSizes& sizes, int first) {
  return {computed(args.type(first).dtype),
          checked_shape(Shape{sizes.directions, sizes.time, sizes.batch,
                              checked_multiply(saved_blocks(args, form), sizes.hidden)})};
}

TensorType y_type(const CellSizes& sizes, DType dtype) {
  return {dtype, checked_shape(Shape{sizes.time, sizes.directions, sizes.batch, sizes.hidden})};
}

template <const CellForm& kForm>
Types cell_shape(const OpArgs& args) {
  const CellSizes sizes = checked_cell_sizes(args, kForm, 0);
  recurrent_params(args, kForm);
  const DType dtype = args.type(0).dtype;
  Types types{y_type(sizes, dtype)};
  for (int state = 0; state < kForm.states; ++state) types.push_back(sizes.state(dtype));
  if (kForm.saves) types.push_back(saved_type(args, kForm, sizes, 0));
  return types;
}

template <const CellForm& kForm>
Params cell_params(const OpArgs& args) {
  return recurrent_params(args, kForm);
}

// Units of all sequences, steps and directions.
std::int64_t cell_count(const CellSizes& sizes) {
  return saturating_multiply(sizes.directions * sizes.batch * sizes.hidden, sizes.time);
}

// The weights of every step and unit, by all that it is given.
std::int64_t product_flops(const CellForm& form, const CellSizes& sizes) {
  return matmul_flops(saturating_multiply(cell_count(sizes), form.gates),
                      sizes.width + sizes.hidden);
}

// The products, and the functions of each unit.
template <const CellForm& kForm>
Cost cell_cost(const OpArgs& args) {
  const CellSizes sizes = checked_cell_sizes(args, kForm, 0);
  std::int64_t flops = product_flops(kForm, sizes);
  add_saturating(flops, saturating_multiply(cell_count(sizes), kForm.pointwise_flops));
  return with_flops(args, flops);
}
// Each product's gradients are two products.
template <const CellForm& kForm>
Cost cell_grad_cost(const OpArgs& args) {
  const CellSizes sizes = checked_cell_sizes(args, kForm, kForm.gradient_first());
  std::int64_t flops = saturating_multiply(2, product_flops(kForm, sizes));
  add_saturating(flops, saturating_multiply(cell_count(sizes), kForm.gradient_flops));
  return with_flops(args, flops);
}

// Of each unit at each step.
template <const CellForm& kForm>
std::int64_t cell_terms(const OpArgs& args) {
  const CellSizes sizes = checked_cell_sizes(args, kForm, 0);
  return saturating_multiply(kForm.gates, sizes.width + sizes.hidden);
}

// Number of the gradient of an input among the gradient op's outputs; lengths have none.
std::size_t gradient_output(int input) {
  return static_cast<std::size_t>(input < CellInput::kLengths ? input : input - 1);
}

std::vector<int> wanted_inputs(const GradArgs& g) {
  std::vector<int> wanted;
  for (int i = 0; i < static_cast<int>(g.x.size()); ++i) {
    const bool given = g.x[static_cast<std::size_t>(i)] != kNoValue;
    if (i != CellInput::kLengths && given && g.wants(i)) wanted.push_back(i);
  }
  return wanted;
}

template <const CellForm& kForm>
Values cell_gradient(const GradArgs& g) {
  const auto saved = static_cast<std::size_t>(kForm.outputs()) - 1;
  if (kForm.saves) {
    require(g.dy.size() <= saved || g.dy[saved] == kNoValue, ErrorCode::kBadInput,
            "output {} of {} influences the loss, but has no gradient", saved, kForm.op);
    require(g.y.size() > saved && g.y[saved] != kNoValue, ErrorCode::kBadInput,
            "{} is differentiated only with its output {}", kForm.op, saved);
  }
  Values inputs;
  for (std::size_t k = 0; k < static_cast<std::size_t>(1 + kForm.states); ++k) {
    inputs.push_back(k < g.dy.size() ? g.dy[k] : kNoValue);
  }
  inputs.push_back(g.y[0]);
  if (kForm.saves) inputs.push_back(g.y[saved]);
  for (std::size_t i = 0; i < g.x.size(); ++i) {
    inputs.push_back(i == std::size_t{CellInput::kBias} ? kNoValue : g.x[i]);
  }
  const std::vector<int> wanted = wanted_inputs(g);
  std::vector<bool> made{true};
  for (int input : wanted) {
    made.resize(std::max(made.size(), gradient_output(input) + 1));
    made[gradient_output(input)] = true;
  }
  const Values grads = g.b.multi(kForm.gradient, std::move(inputs), made, g.node.attributes);
  Values gradients(g.x.size(), kNoValue);
  for (int input : wanted)
    gradients[static_cast<std::size_t>(input)] = grads[gradient_output(input)];
  return gradients;
}

template <const CellForm& kForm>
Types cell_grad_shape(const OpArgs& args) {
  constexpr int kFirst = kForm.gradient_first();
  const CellSizes sizes = checked_cell_sizes(args, kForm, kFirst);
  recurrent_params(args, kForm);
  const DType dtype = args.type(kFirst).dtype;
  const auto require_type = [&args](int input, const TensorType& type) {
    require_dtype(args, input, type.dtype);
    require_shape(args, input, type.shape);
  };
  const TensorType y = y_type(sizes, dtype);
  if (args.has(0)) require_type(0, y);
  for (int state = 1; state <= kForm.states; ++state) {
    if (args.has(state)) require_type(state, sizes.state(dtype));
  }
  for (int i = 1 + kForm.states; i < kFirst; ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is missing", i);
  }
  require_type(1 + kForm.states, y);
  if (kForm.saves) require_type(kFirst - 1, saved_type(args, kForm, sizes, kFirst));
  const std::int64_t columns = kForm.gates * sizes.hidden;
  Types types{args.type(kFirst),
              args.type(kFirst + CellInput::kInputWeights),
              args.type(kFirst + CellInput::kRecurrence),
              {dtype, {sizes.directions, 2 * columns}},
              sizes.state(dtype)};
  if (kForm.states == 2) {
    types.push_back(sizes.state(dtype));
    types.push_back({dtype, {sizes.directions, 3 * sizes.hidden}});
  }
  return types;
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kDirection{"direction", "forward, reverse or bidirectional; forward"};
constexpr AttributeSpec kActivations{
    "activations", "names of functions with blanks between them, those of each direction; ONNX's"};
constexpr AttributeSpec kAlphas{"activation_alpha", "of the functions that have one, in turn"};
constexpr AttributeSpec kBetas{"activation_beta", "of the functions that have one, in turn"};
constexpr AttributeSpec kClip{"clip", "what functions are given is brought into [-clip, clip]"};
constexpr AttributeSpec kCoupled{"input_forget", "1: the forget gate is 1 - the input gate; 0"};
constexpr AttributeSpec kLinear{"linear_before_reset",
                                "1: the reset gate scales the product of h, 0: h itself; 0"};

// What all rows have in common.
template <const CellForm& kForm>
OpDef cell_row() {
  OpDef row;
  row.name = kForm.op;
  row.domain = kTrainscopeDomain;
  row.min_inputs = 3;
  row.max_inputs = kForm.inputs;
  row.max_outputs = kForm.outputs();
  row.attributes = {kDirection, kActivations, kAlphas, kBetas, kClip};
  row.params = cell_params<kForm>;
  row.shape = cell_shape<kForm>;
  row.gradient = cell_gradient<kForm>;
  row.cost = cell_cost<kForm>;
  row.terms = cell_terms<kForm>;
  row.precision = Precision::kLow;
  row.op_class = OpClass::kMatmul;
  row.traits = kWholeValues;
  return row;
}

template <const CellForm& kForm>
OpDef cell_grad_row() {
  OpDef row;
  row.name = kForm.gradient;
  row.domain = kTrainscopeDomain;
  row.min_inputs = 0;
  row.max_inputs = kForm.gradient_first() + kForm.inputs;
  row.max_outputs = kForm.inputs - 1;
  row.attributes = {kDirection, kActivations, kAlphas, kBetas, kClip};
  row.params = cell_params<kForm>;
  row.shape = cell_grad_shape<kForm>;
  row.cost = cell_grad_cost<kForm>;
  row.op_class = OpClass::kMatmul;
  row.traits = kWholeValuesOnce;
  return row;
}

// The gradient reads the states themselves, which two bytes would round: in f32 alone.
OpDef rnn_row() {
  OpDef row = cell_row<kRnnForm>();
  row.precision = Precision::kF32;
  row.doc =
      "h = f(x W' + h R' + b) from step to step: X [T, N, D], W [directions, H, D], R [directions, "
      "H, H], B [directions, 2 H] of W and of R, lengths [N] of the sequences, first h "
      "[directions, N, H] -> Y [T, directions, N, H], 0 behind a sequence's end, and the last h. "
      "The second direction goes from the last step to the first.";
  row.examples = {
      "[5,2,4], [1,3,4], [1,3,3]; outputs=2",
      "[3,2,4], [1,3,4], [1,3,3], [1,6], i64[2]={3,1}, [1,2,3]; direction='reverse' outputs=2",
      "[4,3,2], [2,3,2], [2,3,3], [2,6], i64[3]={1,4,0}, [2,3,3]; direction='bidirectional' "
      "activations='Softsign ScaledTanh' activation_alpha={0.7} activation_beta={0.4} outputs=2",
      "[3,2,4], [1,3,4], [1,3,3], [1,6], -, [1,2,3]; activations='Softplus' clip=2.5 outputs=2",
      "[3,2,4], [1,3,4], [1,3,3]; activations='LeakyRelu' activation_alpha={0.2}",
      "[3,2,4], [1,3,4], [1,3,3]; activations='Relu'",
      "[3,2,4], [1,3,4], [1,3,3]; activations='Elu' activation_alpha={0.6} outputs=2",
      "[0,2,4], [1,3,4], [1,3,3], -, -, [1,2,3]; outputs=2",
      "[3,0,4], [1,3,4], [1,3,3]; outputs=2",
      "[2,40,8], [1,110,8], [1,110,110]; outputs=2"};
  return row;
}

OpDef lstm_row() {
  OpDef row = cell_row<kLstmForm>();
  row.doc =
      "Long short-term memory: gates i, o, f and g of x W' + h R' + b, in this order along W "
      "[directions, 4 H, D], R [directions, 4 H, H] and B [directions, 8 H]; c = f c + i g, h = o "
      "tanh(c). Inputs as of Rnn, then the first c and the weights P [directions, 3 H] by which i, "
      "o and f see the cell -> Y [T, directions, N, H], the last h and c and, for the gradient, "
      "gates and cells of all steps [directions, T, N, 5 H].";
  row.attributes.push_back(kCoupled);
  row.examples = {
      "[5,2,4], [1,12,4], [1,12,3]; outputs=4",
      "[5,2,4], [1,12,4], [1,12,3], [1,24], i64[2]={5,3}, [1,2,3], [1,2,3], [1,9]; outputs=4",
      "[4,3,2], [1,8,2], [1,8,2], [1,16], i64[3]={2,0,4}, [1,3,2], [1,3,2], [1,6]; "
      "direction='reverse' input_forget=1 outputs=4",
      "[3,2,2], [2,8,2], [2,8,2], [2,16], i64[2]={3,1}, [2,2,2], [2,2,2], [2,6]; "
      "direction='bidirectional' outputs=4",
      "[3,2,4], [1,12,4], [1,12,3], [1,24]; activations='HardSigmoid Affine Softsign' "
      "activation_alpha={0.15,0.8} activation_beta={0.45,0.1} outputs=4",
      "[3,2,4], [1,12,4], [1,12,3], -, -, -, [1,2,3]; clip=1.5 outputs=4",
      "[0,2,4], [1,12,4], [1,12,3], -, -, [1,2,3], [1,2,3]; outputs=4",
      "[3,0,4], [1,12,4], [1,12,3]; outputs=4",
      "[2,30,8], [1,280,8], [1,280,70]; outputs=4"};
  return row;
}

OpDef gru_row() {
  OpDef row = cell_row<kGruForm>();
  row.doc =
      "Gated recurrent unit: gates z and r and a candidate g, in this order along W [directions, 3 "
      "H, D], R [directions, 3 H, H] and B [directions, 6 H]; h = (1 - z) g + z h. Inputs as of "
      "Rnn -> Y [T, directions, N, H], the last h and, for the gradient, z, r and g of all steps "
      "[directions, T, N, 3 H], with the product that r scales 4 H.";
  row.attributes.push_back(kLinear);
  row.examples = {
      "[5,2,4], [1,9,4], [1,9,3]; outputs=3",
      "[5,2,4], [1,9,4], [1,9,3], [1,18], i64[2]={5,3}, [1,2,3]; linear_before_reset=1 outputs=3",
      "[4,3,2], [1,6,2], [1,6,2], [1,12], i64[3]={2,0,4}, [1,3,2]; direction='reverse' outputs=3",
      "[3,2,2], [2,6,2], [2,6,2], [2,12], i64[2]={3,1}, [2,2,2]; direction='bidirectional' "
      "linear_before_reset=1 outputs=3",
      "[3,2,4], [1,9,4], [1,9,3]; linear_before_reset=1 outputs=3",
      "[3,2,4], [1,9,4], [1,9,3], [1,18]; activations='HardSigmoid ThresholdedRelu' "
      "activation_alpha={0.15,0.3} activation_beta={0.45} clip=2.0 outputs=3",
      "[0,2,4], [1,9,4], [1,9,3], -, -, [1,2,3]; outputs=3",
      "[3,0,4], [1,9,4], [1,9,3]; outputs=3",
      "[2,30,8], [1,210,8], [1,210,70]; outputs=3",
      "[2,30,8], [1,210,8], [1,210,70]; linear_before_reset=1 outputs=3"};
  return row;
}

OpDef rnn_grad_row() {
  OpDef row = cell_grad_row<kRnnForm>();
  row.doc =
      "Gradients of X, W, R, B and the first h of Rnn, from those of Y and of the last h, each of "
      "which may be left out, Y, and the inputs of Rnn, of which B is not read.";
  row.examples = {"[5,1,2,3], [1,2,3], [5,1,2,3], [5,2,4], [1,3,4], [1,3,3]; outputs=4",
                  "-, [2,3,3], [4,2,3,3], [4,3,2], [2,3,2], [2,3,3], -, i64[3]={1,4,0}, [2,3,3]; "
                  "direction='bidirectional' outputs=5",
                  "[3,1,0,3], -, [3,1,0,3], [3,0,4], [1,3,4], [1,3,3]; outputs=3",
                  "[2,1,40,110], -, [2,1,40,110], [2,40,8], [1,110,8], [1,110,110]; outputs=4",
                  "[3,2,40,110], -, [3,2,40,110], [3,40,8], [2,110,8], [2,110,110]; "
                  "direction='bidirectional' outputs=4"};
  return row;
}

OpDef lstm_grad_row() {
  OpDef row = cell_grad_row<kLstmForm>();
  row.doc =
      "Gradients of X, W, R, B, the first h and c and P of Lstm, from those of Y and of the last h "
      "and c, each of which may be left out, Y, what Lstm saved, and the inputs of Lstm, of which "
      "B is not read.";
  row.attributes.push_back(kCoupled);
  row.examples = {
      "[5,1,2,3], [1,2,3], [1,2,3], [5,1,2,3], [1,5,2,15], [5,2,4], [1,12,4], [1,12,3]; outputs=4",
      "-, [2,2,2], -, [3,2,2,2], [2,3,2,10], [3,2,2], [2,8,2], [2,8,2], -, i64[2]={3,1}, "
      "[2,2,2], [2,2,2], [2,6]; direction='bidirectional' outputs=7",
      "[3,1,0,3], -, -, [3,1,0,3], [1,3,0,15], [3,0,4], [1,12,4], [1,12,3]; outputs=3",
      "[2,1,30,70], -, -, [2,1,30,70], [1,2,30,350], [2,30,8], [1,280,8], [1,280,70]; outputs=4",
      "[3,2,3,150], -, -, [3,2,3,150], [2,3,3,750], [3,3,8], [2,600,8], [2,600,150], -, "
      "i64[3]={3,1,2}; direction='bidirectional' outputs=4"};
  return row;
}

OpDef gru_grad_row() {
  OpDef row = cell_grad_row<kGruForm>();
  row.doc =
      "Gradients of X, W, R, B and the first h of Gru, from those of Y and of the last h, each of "
      "which may be left out, Y, what Gru saved, and the inputs of Gru, of which B is not read.";
  row.attributes.push_back(kLinear);
  row.examples = {
      "[5,1,2,3], [1,2,3], [5,1,2,3], [1,5,2,9], [5,2,4], [1,9,4], [1,9,3]; outputs=4",
      "-, [2,2,2], [3,2,2,2], [2,3,2,8], [3,2,2], [2,6,2], [2,6,2], -, i64[2]={3,1}, [2,2,2]; "
      "direction='bidirectional' linear_before_reset=1 outputs=5",
      "[3,1,0,3], -, [3,1,0,3], [1,3,0,9], [3,0,4], [1,9,4], [1,9,3]; outputs=3",
      "[2,1,30,70], -, [2,1,30,70], [1,2,30,210], [2,30,8], [1,210,8], [1,210,70]; outputs=4",
      "[3,2,3,150], -, [3,2,3,150], [2,3,3,450], [3,3,8], [2,450,8], [2,450,150], -, "
      "i64[3]={3,1,2}; direction='bidirectional' outputs=4",
      "[3,2,3,150], -, [3,2,3,150], [2,3,3,600], [3,3,8], [2,450,8], [2,450,150], -, "
      "i64[3]={3,1,2}; direction='bidirectional' linear_before_reset=1 outputs=4"};
  return row;
}

}  // namespace

std::vector<OpDef> recurrent_ops() {
  return {rnn_row(), rnn_grad_row(), lstm_row(), lstm_grad_row(), gru_row(), gru_grad_row()};
}

}  // namespace trainscope
