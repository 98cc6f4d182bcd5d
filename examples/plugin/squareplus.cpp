// An example of a plugin: an activation with a gradient and kernels, one that is written with other
// ops, and an optimizer.
#include <trainscope/plugin.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace {

namespace api = trainscope::plugin;

constexpr const char* kDomain = "com.example";

bool is_float(const api::Tensor& tensor) {
  return tensor.type.dtype == api::kFloat32 || tensor.type.dtype == api::kFloat64;
}

// --- Squareplus: y = (x + sqrt(x^2 + b)) / 2 (Barron, arXiv 2112.11687) --------------------------

void squareplus_shape(const api::Call& call, api::TensorType* outputs) {
  if (!is_float(call.inputs[0])) throw std::invalid_argument("x must be float or double");
  if (call.number("b", 4.0) < 0.0) throw std::invalid_argument("b must be 0 or more");
  outputs[0] = call.inputs[0].type;
}

std::int64_t squareplus_flops(const api::Call& call) { return 5 * call.inputs[0].type.elements(); }

template <typename T>
void squareplus(const api::Call& call) {
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  const T b = static_cast<T>(call.number("b", 4.0));
  const std::int64_t count = call.inputs[0].type.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = (x[i] + std::sqrt(x[i] * x[i] + b)) / 2;
  }
}

// dx = dy * y / sqrt(x^2 + b), with the ops of ONNX.
constexpr const char* kSquareplusGradient = R"(
Squareplus_grad <b: float = 4.0> (x, y, dy) => (dx) {
  square = Mul (x, x)
  added = Constant <value_float = @b> ()
  sum = Add (square, added)
  root = Sqrt (sum)
  slope = Div (y, root)
  dx = Mul (dy, slope)
})";

constexpr api::AttributeRow kSquareplusAttributes[] = {{"b", "0 or more, default 4"}};
constexpr api::InPlace kSquareplusInPlace[] = {{.output = 0, .input = 0}};
constexpr const char* kSquareplusExamples[] = {"[2,3]", "[]", "[0]", "[3,4,5]; b=0.5", "[20,1001]"};

api::Op squareplus_op() {
  api::Op op;
  op.name = "Squareplus";
  op.domain = kDomain;
  op.doc = "(x + sqrt(x^2 + b)) / 2";
  op.attribute_count = 1;
  op.attributes = kSquareplusAttributes;
  op.shape = api::guarded<squareplus_shape>;
  op.gradient = kSquareplusGradient;
  op.flops = api::guarded<squareplus_flops>;
  op.in_place = kSquareplusInPlace;
  op.in_place_count = 1;
  op.form = api::OpForm::kElementwise;
  op.examples = kSquareplusExamples;
  op.example_count = 5;
  return op;
}

template <typename T>
api::Kernel squareplus_kernel(std::int32_t dtype) {
  api::Kernel kernel;
  kernel.op = "Squareplus";
  kernel.name = "squareplus.example";
  kernel.dtype = dtype;
  kernel.run = api::guarded<squareplus<T>>;
  return kernel;
}

// --- TanhShrink: x - tanh(x), of which the definition is all that is needed ----------------------

void same_shape(const api::Call& call, api::TensorType* outputs) {
  if (!is_float(call.inputs[0])) throw std::invalid_argument("x must be float or double");
  outputs[0] = call.inputs[0].type;
}

constexpr const char* kTanhShrinkExamples[] = {"[2,3]", "[]", "[0]"};

api::Op tanh_shrink_op() {
  api::Op op;
  op.name = "TanhShrink";
  op.domain = kDomain;
  op.doc = "x - tanh(x)";
  op.shape = api::guarded<same_shape>;
  op.definition = "TanhShrink (x) => (y) { t = Tanh (x)  y = Sub (x, t) }";
  op.examples = kTanhShrinkExamples;
  op.example_count = 3;
  return op;
}

// --- signum: steps by the sign of a momentum (Bernstein et al., arXiv 1802.04434) ----------------

void signum_shape(const api::Call& call, api::TensorType* outputs) {
  if (!is_float(call.inputs[0])) throw std::invalid_argument("parameters must be float or double");
  for (int i : {0, 1}) {
    if (i < call.output_count) outputs[i] = call.inputs[0].type;
  }
}

double scalar(const api::Tensor& tensor) {
  if (tensor.type.dtype == api::kFloat64) return *tensor.as<double>();
  return static_cast<double>(*tensor.as<float>());
}

template <typename T>
T sign(T x) {
  return x > T{0} ? T{1} : x < T{0} ? T{-1} : x;
}

// parameter, gradient, m, learning rate, gradient scale, step -> parameter, m.
template <typename T>
void signum(const api::Call& call) {
  const T* p = call.inputs[0].as<T>();
  const T* gradient = call.inputs[1].as<T>();
  const T* m = call.inputs[2].as<T>();
  T* new_p = call.outputs[0].as<T>();
  T* new_m =
      call.output_count > 1 && call.outputs[1].present != 0 ? call.outputs[1].as<T>() : nullptr;
  const bool left_out = *call.inputs[5].as<std::int64_t>() == 0;
  const double rate = scalar(call.inputs[3]) * call.number("learning_rate_scale", 1.0);
  const T step = static_cast<T>(rate);
  const T kept = static_cast<T>(1.0 - rate * call.number("weight_decay", 0.0));
  const T scale = static_cast<T>(scalar(call.inputs[4]));
  const T beta = static_cast<T>(call.number("momentum", 0.0));
  const std::int64_t count = call.inputs[0].type.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const T moment = left_out ? m[i] : beta * m[i] + (T{1} - beta) * gradient[i] * scale;
    new_p[i] = left_out ? p[i] : kept * p[i] - step * sign(moment);
    if (new_m != nullptr) new_m[i] = moment;
  }
}

constexpr api::AttributeRow kSignumAttributes[] = {
    {"momentum", "default 0"}, {"weight_decay", "default 0"}, {"learning_rate_scale", "default 1"}};
constexpr api::InPlace kSignumInPlace[] = {{.output = 0, .input = 0}, {.output = 1, .input = 2}};
constexpr const char* kSignumExamples[] = {
    "[2,3], [2,3]~, [2,3]~, []>0, []>0, i64[]={1}; outputs=2 momentum=0.9 weight_decay=0.1",
    "[4], [4]~, [4]~, f64[]>0, []>0, i64[]={7}; outputs=2 learning_rate_scale=0.5",
    "[3], [3]~, [3]~, []>0, []>0, i64[]={0}; outputs=2",
    "[0,2], [0,2], [0,2], []>0, []>0, i64[]={1}; outputs=2"};

api::Op signum_op() {
  api::Op op;
  op.name = "SignumStep";
  op.domain = kDomain;
  op.doc =
      "parameter, gradient, m, learning_rate, gradient_scale, step -> parameter, m: m = momentum * "
      "m + (1 - momentum) * gradient * gradient_scale; p -= learning_rate * (sign(m) + "
      "weight_decay * p)";
  op.min_inputs = 6;
  op.max_inputs = 6;
  op.max_outputs = 2;
  op.attribute_count = 3;
  op.attributes = kSignumAttributes;
  op.shape = api::guarded<signum_shape>;
  op.in_place = kSignumInPlace;
  op.in_place_count = 2;
  op.recompute = api::Recompute::kNever;
  op.examples = kSignumExamples;
  op.example_count = 4;
  return op;
}

template <typename T>
api::Kernel signum_kernel(std::int32_t dtype) {
  api::Kernel kernel;
  kernel.op = "SignumStep";
  kernel.name = "signum.example";
  kernel.dtype = dtype;
  kernel.run = api::guarded<signum<T>>;
  return kernel;
}

constexpr const char* kSignumStates[] = {"m"};

api::Optimizer signum_optimizer() {
  api::Optimizer optimizer;
  optimizer.name = "signum";
  optimizer.doc = "steps of one size by the sign of a momentum";
  optimizer.step = "SignumStep";
  optimizer.state_count = 1;
  optimizer.states = kSignumStates;
  return optimizer;
}

}  // namespace

const api::Plugin* trainscope_plugin_entry(std::int32_t /*version*/) noexcept {
  static const api::Op ops[] = {squareplus_op(), tanh_shrink_op(), signum_op()};
  static const api::Op* const op_list[] = {&ops[0], &ops[1], &ops[2]};
  static const api::Kernel kernels[] = {
      squareplus_kernel<float>(api::kFloat32), squareplus_kernel<double>(api::kFloat64),
      signum_kernel<float>(api::kFloat32), signum_kernel<double>(api::kFloat64)};
  static const api::Kernel* const kernel_list[] = {&kernels[0], &kernels[1], &kernels[2],
                                                   &kernels[3]};
  static const api::Optimizer optimizer = signum_optimizer();
  static const api::Optimizer* const optimizer_list[] = {&optimizer};
  static const api::Plugin plugin = [] {
    api::Plugin made;
    made.name = "squareplus example";
    made.op_count = 3;
    made.ops = op_list;
    made.kernel_count = 4;
    made.kernels = kernel_list;
    made.optimizer_count = 1;
    made.optimizers = optimizer_list;
    return made;
  }();
  return &plugin;
}
