// Convolutions in f32 on oneDNN: the direct algorithm (Winograd rounds differently).
#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/fixed_parts.h"
#include "kernels/cpu/onednn.h"

namespace trainscope::cpu {
namespace {

using Dims = dnnl::memory::dims;

Dims dims_of(const Shape& shape) { return {shape.span().begin(), shape.span().end()}; }

// oneDNN's view of a convolution: groups are an axis of the weights of their own.
struct Problem {
  Dims x, w, y;
  Dims stride, dilation, pad_begin, pad_end;
};

Dims first(const Spatial& values, int rank, std::int64_t minus) {
  Dims dims(values.begin(), values.begin() + rank);
  for (auto& value : dims) value -= minus;
  return dims;
}

Problem problem(const ConvParams& params, const Shape& x, const Shape& w, const Shape& y) {
  const WindowParams& window = params.window;
  Problem found{.x = dims_of(x),
                .w = dims_of(w),
                .y = dims_of(y),
                .stride = first(window.stride, window.rank, 0),
                .dilation = first(window.dilation, window.rank, 1),
                .pad_begin = first(window.pad_begin, window.rank, 0),
                .pad_end = first(window.pad_end, window.rank, 0)};
  if (params.group > 1) {
    found.w[0] /= params.group;
    found.w.insert(found.w.begin(), params.group);
  }
  return found;
}

bool has_empty(std::initializer_list<const Shape*> shapes) {
  return std::ranges::any_of(shapes, [](const Shape* shape) { return shape->elements() == 0; });
}

dnnl::convolution_forward::primitive_desc forward(const Problem& p, const dnnl::engine& engine,
                                                  const dnnl::memory::desc& bias = {}) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  if (bias.is_zero()) {
    return {{kKind, kDirect, any_desc(p.x), any_desc(p.w), any_desc(p.y), p.stride, p.dilation,
             p.pad_begin, p.pad_end},
            user_scratchpad(),
            engine,
            true};
  }
  return {{kKind, kDirect, any_desc(p.x), any_desc(p.w), bias, any_desc(p.y), p.stride, p.dilation,
           p.pad_begin, p.pad_end},
          user_scratchpad(),
          engine,
          true};
}

// --- Conv ----------------------------------------------------------------------------------------

struct Forward {
  Problem problem;
  dnnl::memory::desc bias;
  dnnl::convolution_forward::primitive_desc primitive;
};

Forward describe_forward(const PrepareArgs& args, const dnnl::engine& engine) {
  Forward found;
  found.problem = problem(std::get<ConvParams>(args.params), args.inputs[0].shape(),
                          args.inputs[1].shape(), args.outputs[0].shape());
  if (args.inputs.size() > 2 && args.inputs[2].present) {
    found.bias = plain_desc(dims_of(args.inputs[2].shape()));
  }
  found.primitive = forward(found.problem, engine, found.bias);
  return found;
}

bool supports_forward(const PrepareArgs& args) {
  if (has_empty({&args.inputs[0].shape(), &args.inputs[1].shape(), &args.outputs[0].shape()})) {
    return false;
  }
  const ThreadScope scope(args.threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const Forward found = describe_forward(args, engine);
  return is_usable(found.primitive);
}

Prepared prepare_forward(const PrepareArgs& args) {
  const ThreadScope scope(args.threads);
  auto program = std::make_shared<OneDnnProgram>();
  const auto [p, bias, primitive] = describe_forward(args, program->engine());
  const auto x = program->reordered(program->input(0, plain_desc(p.x)), primitive.src_desc());
  const auto w = program->reordered(program->input(1, plain_desc(p.w)), primitive.weights_desc());
  const auto y = program->output(0, plain_desc(p.y));
  const auto result = program->writable(y, primitive.dst_desc());
  OneDnnProgram::Arguments arguments{
      {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, result}};
  if (!bias.is_zero()) arguments.emplace_back(DNNL_ARG_BIAS, program->input(2, bias));
  program->add(dnnl::convolution_forward(primitive), primitive.scratchpad_desc(), arguments);
  program->finish_output(result, y);
  return prepared(program);
}

// --- ConvGradInput(dy, w) ------------------------------------------------------------------------

struct GradInput {
  Problem problem;
  dnnl::convolution_backward_data::primitive_desc primitive;
};

GradInput describe_grad_input(const PrepareArgs& args, const dnnl::engine& engine) {
  GradInput found;
  Problem& p = found.problem;
  p = problem(std::get<ConvParams>(args.params), args.outputs[0].shape(), args.inputs[1].shape(),
              args.inputs[0].shape());
  const auto hint = forward(p, engine);
  if (!hint) return found;
  found.primitive = {{dnnl::algorithm::convolution_direct, any_desc(p.x), any_desc(p.w),
                      any_desc(p.y), p.stride, p.dilation, p.pad_begin, p.pad_end},
                     user_scratchpad(),
                     engine,
                     hint,
                     true};
  return found;
}

bool supports_grad_input(const PrepareArgs& args) {
  if (has_empty({&args.inputs[0].shape(), &args.inputs[1].shape(), &args.outputs[0].shape()})) {
    return false;
  }
  const ThreadScope scope(args.threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const GradInput found = describe_grad_input(args, engine);
  return is_usable(found.primitive);
}

Prepared prepare_grad_input(const PrepareArgs& args) {
  const ThreadScope scope(args.threads);
  auto program = std::make_shared<OneDnnProgram>();
  const auto [p, primitive] = describe_grad_input(args, program->engine());
  const auto dy = program->reordered(program->input(0, plain_desc(p.y)), primitive.diff_dst_desc());
  const auto w = program->reordered(program->input(1, plain_desc(p.w)), primitive.weights_desc());
  const auto dx = program->output(0, plain_desc(p.x));
  const auto result = program->writable(dx, primitive.diff_src_desc());
  program->add(dnnl::convolution_backward_data(primitive), primitive.scratchpad_desc(),
               {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, result}});
  program->finish_output(result, dx);
  return prepared(program);
}

// --- ConvGradWeight(x, dy) -----------------------------------------------------------------------

struct GradWeight {
  Problem problem;
  dnnl::convolution_backward_weights::primitive_desc primitive;
};

GradWeight describe_grad_weight(const PrepareArgs& args, const dnnl::engine& engine) {
  GradWeight found;
  Problem& p = found.problem;
  p = problem(std::get<ConvParams>(args.params), args.inputs[0].shape(), args.outputs[0].shape(),
              args.inputs[1].shape());
  const auto hint = forward(p, engine);
  if (!hint) return found;
  found.primitive = {{dnnl::algorithm::convolution_direct, any_desc(p.x), any_desc(p.w),
                      any_desc(p.y), p.stride, p.dilation, p.pad_begin, p.pad_end},
                     user_scratchpad(),
                     engine,
                     hint,
                     true};
  return found;
}

bool supports_grad_weight(const PrepareArgs& args) {
  if (has_empty({&args.inputs[0].shape(), &args.inputs[1].shape(), &args.outputs[0].shape()})) {
    return false;
  }
  const ThreadScope scope(args.threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const GradWeight found = describe_grad_weight(args, engine);
  return is_usable(found.primitive);
}

Prepared prepare_grad_weight(const PrepareArgs& args) {
  const ThreadScope scope(args.threads);
  auto program = std::make_shared<OneDnnProgram>();
  const auto [p, primitive] = describe_grad_weight(args, program->engine());
  const auto x = program->reordered(program->input(0, plain_desc(p.x)), primitive.src_desc());
  const auto dy = program->reordered(program->input(1, plain_desc(p.y)), primitive.diff_dst_desc());
  const auto dw = program->output(0, plain_desc(p.w));
  const auto result = program->writable(dw, primitive.diff_weights_desc());
  program->add(dnnl::convolution_backward_weights(primitive), primitive.scratchpad_desc(),
               {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, result}});
  program->finish_output(result, dw);
  return prepared(program);
}

// --- The table -----------------------------------------------------------------------------------
// oneDNN chooses blocks and, for the weights, partial sums by the number of threads.

constexpr Kernel kForward = {.name = "conv.onednn",
                             .supports = supports_forward,
                             .prepare = prepare_forward,
                             .run = run_program,
                             .same_for_any_threads = false};
constexpr Kernel kGradInput = {.name = "conv_grad_input.onednn",
                               .supports = supports_grad_input,
                               .prepare = prepare_grad_input,
                               .run = run_program,
                               .same_for_any_threads = false};
constexpr Kernel kGradWeight = {.name = "conv_grad_weight.onednn",
                                .supports = supports_grad_weight,
                                .prepare = prepare_grad_weight,
                                .run = run_program,
                                .same_for_any_threads = false};

constexpr FixedSplit kSliceFirst = {.slices_input = {true}};  // x or dy; the weights are whole
constexpr FixedSplit kSumOverBatch = {.slices_input = {true, true}, .slices_output = false};

}  // namespace

void add_conv_onednn(KernelTable& table) {
  table.add("Conv", DType::kF32, in_fixed_parts<kForward, kSliceFirst>("conv.onednn_parts"));
  table.add("Conv", DType::kF32, kForward);
  table.add("ConvGradInput", DType::kF32,
            in_fixed_parts<kGradInput, kSliceFirst>("conv_grad_input.onednn_parts"));
  table.add("ConvGradInput", DType::kF32, kGradInput);
  table.add("ConvGradWeight", DType::kF32,
            in_fixed_parts<kGradWeight, kSumOverBatch>("conv_grad_weight.onednn_parts"));
  table.add("ConvGradWeight", DType::kF32, kGradWeight);
}

}  // namespace trainscope::cpu
