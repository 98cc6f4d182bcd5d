// AveragePool, AveragePoolGrad and MaxPoolGrad in f32 on oneDNN. Not MaxPool: oneDNN's maximum
// skips NaN, which would hide the first bad tensor of a run.
#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/support/onednn.h"

namespace trainscope::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Forward = dnnl::pooling_v2_forward;
using Backward = dnnl::pooling_v2_backward;

struct Problem {
  dnnl::algorithm algorithm = dnnl::algorithm::pooling_max;
  dnnl::memory::desc x, y;
  Dims stride, kernel, dilation, pad_begin, pad_end;
  bool fits = false;  // oneDNN would compute the same
};

// Elements that the last window needs behind the input.
std::int64_t reach(const Window& w, std::size_t axis) {
  const std::int64_t last = (w.out[axis] - 1) * w.stride[axis] - w.pad[axis];
  return last + (w.kernel[axis] - 1) * w.dilation[axis] + 1 - w.in[axis];
}

Problem problem(const PoolParams& params, const Shape& x, const Shape& y) {
  Problem p;
  p.fits = x.elements() > 0 && y.elements() > 0;
  if (!p.fits) return p;
  p.algorithm = params.count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                                         : dnnl::algorithm::pooling_avg_exclude_padding;
  p.x = plain_desc({x.span().begin(), x.span().end()});
  p.y = plain_desc({y.span().begin(), y.span().end()});
  const Window window = window_of(params.window, x, y);
  for (int i = 0; i < params.window.rank; ++i) {
    const auto axis = static_cast<std::size_t>(i + kMaxSpatialRank - params.window.rank);
    p.stride.push_back(window.stride[axis]);
    p.kernel.push_back(window.kernel[axis]);
    p.dilation.push_back(window.dilation[axis] - 1);
    p.pad_begin.push_back(window.pad[axis]);
    // What ceil_mode lets a window see beyond the padding is padding to oneDNN, and counted.
    p.pad_end.push_back(std::max(window.pad_end[axis], reach(window, axis)));
    if (params.count_include_pad && p.pad_end.back() > window.pad_end[axis]) p.fits = false;
    // A dilated window may miss the input altogether.
    if (window.dilation[axis] > 1) p.fits = false;
  }
  for (const Dims* sizes : {&p.stride, &p.kernel, &p.dilation, &p.pad_begin, &p.pad_end}) {
    in_32_bits(*sizes);
  }
  return p;
}

Forward::primitive_desc forward(const Problem& p, const dnnl::engine& engine) {
  return {{dnnl::prop_kind::forward_training, p.algorithm, p.x, p.y, p.stride, p.kernel, p.dilation,
           p.pad_begin, p.pad_end},
          user_scratchpad(),
          engine,
          true};
}

Backward::primitive_desc backward(const Problem& p, const dnnl::engine& engine,
                                  const Forward::primitive_desc& hint) {
  return {{p.algorithm, p.x, p.y, p.stride, p.kernel, p.dilation, p.pad_begin, p.pad_end},
          user_scratchpad(),
          engine,
          hint,
          true};
}

// --- AveragePool ---------------------------------------------------------------------------------

Problem average_problem(const PrepareArgs& args) {
  return problem(std::get<PoolParams>(args.params), args.inputs[0].shape(),
                 args.outputs[0].shape());
}

constexpr Support kComputesAnother{"oneDNN would count other elements, or a tensor has none"};

Support supports_average(const PrepareArgs& args) {
  return onednn_supports(args.threads, [&](const dnnl::engine& engine) {
    const Problem p = average_problem(args);
    if (!p.fits) return kComputesAnother;
    return is_usable(forward(p, engine)) ? Support{} : kNoOneDnnCode;
  });
}

void build_average(const PrepareArgs& args, OneDnnProgram& program) {
  const Problem p = average_problem(args);
  const auto primitive = forward(p, program.engine());
  program.add(Forward(primitive), primitive.scratchpad_desc(),
              {{DNNL_ARG_SRC, program.input(0, p.x)}, {DNNL_ARG_DST, program.output(0, p.y)}});
}

// --- AveragePoolGrad(dy) -------------------------------------------------------------------------

Problem average_grad_problem(const PrepareArgs& args) {
  return problem(std::get<PoolParams>(args.params), args.outputs[0].shape(),
                 args.inputs[0].shape());
}

using ProblemOf = Problem(const PrepareArgs&);

template <ProblemOf problem_of>
Support supports_backward(const PrepareArgs& args) {
  return onednn_supports(args.threads, [&](const dnnl::engine& engine) {
    const Problem p = problem_of(args);
    if (!p.fits) return kComputesAnother;
    const auto hint = forward(p, engine);
    const bool usable = is_usable(hint) && is_usable(backward(p, engine, hint));
    return usable ? Support{} : kNoOneDnnCode;
  });
}

void build_average_grad(const PrepareArgs& args, OneDnnProgram& program) {
  const Problem p = average_grad_problem(args);
  const auto primitive = backward(p, program.engine(), forward(p, program.engine()));
  program.add(
      Backward(primitive), primitive.scratchpad_desc(),
      {{DNNL_ARG_DIFF_DST, program.input(0, p.y)}, {DNNL_ARG_DIFF_SRC, program.output(0, p.x)}});
}

// --- MaxPoolGrad(dy, x) --------------------------------------------------------------------------

Problem max_grad_problem(const PrepareArgs& args) {
  Problem p =
      problem(std::get<PoolParams>(args.params), args.inputs[1].shape(), args.inputs[0].shape());
  p.algorithm = dnnl::algorithm::pooling_max;
  return p;
}

// The forward pass once more, for the positions of the maxima: cheaper than keeping them.
void build_max_grad(const PrepareArgs& args, OneDnnProgram& program) {
  const Problem p = max_grad_problem(args);
  const auto find = forward(p, program.engine());
  const auto spread = backward(p, program.engine(), find);
  const auto positions = program.scratch(find.workspace_desc());
  program.add(Forward(find), find.scratchpad_desc(),
              {{DNNL_ARG_SRC, program.input(1, p.x)},
               {DNNL_ARG_DST, program.scratch(p.y)},
               {DNNL_ARG_WORKSPACE, positions}});
  program.add(Backward(spread), spread.scratchpad_desc(),
              {{DNNL_ARG_DIFF_DST, program.input(0, p.y)},
               {DNNL_ARG_WORKSPACE, positions},
               {DNNL_ARG_DIFF_SRC, program.output(0, p.x)}});
}

// A comparison for each element under each window before the gradient's addition.
Estimate estimate_max_grad(const PrepareArgs& args, const Estimate& definition) {
  return estimate_program<build_max_grad>(args, 2.0 * static_cast<double>(definition.flops));
}

}  // namespace

// Each element of a pool is computed by itself: the same bits however they are divided.
void add_pool_onednn(KernelTable& table) {
  table.add("AveragePool", DType::kF32,
            {.name = "average_pool.onednn",
             .supports = supports_average,
             .prepare = prepare_program<build_average>,
             .run = run_program});
  table.add("AveragePoolGrad", DType::kF32,
            {.name = "average_pool_grad.onednn",
             .supports = supports_backward<average_grad_problem>,
             .prepare = prepare_program<build_average_grad>,
             .run = run_program});
  table.add("MaxPoolGrad", DType::kF32,
            {.name = "max_pool_grad.onednn",
             .supports = supports_backward<max_grad_problem>,
             .prepare = prepare_program<build_max_grad>,
             .run = run_program,
             .estimate = estimate_max_grad});
}

}  // namespace trainscope::cpu
