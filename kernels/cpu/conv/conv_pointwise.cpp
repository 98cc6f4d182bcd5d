// Convolutions with 1 x 1 windows: GEMMs on tensors as they lie, without copies.
#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/gemm.h"

namespace trainscope::cpu {
namespace {

// x [n, c, plane], w [m, c], y [n, m, plane]
struct Sizes {
  std::int64_t n, c, m, plane;
};

Sizes sizes_of(const Shape& x, const Shape& y) {
  std::int64_t plane = 1;
  for (int axis = 2; axis < x.rank; ++axis) plane *= x[axis];
  return {.n = x[0], .c = x[1], .m = y[1], .plane = plane};
}

Support is_pointwise(const Params& params) {
  const auto& conv = std::get<ConvParams>(params);
  const WindowParams& window = conv.window;
  const auto all = [&](const Spatial& values, std::int64_t wanted) {
    return std::all_of(values.begin(), values.begin() + window.rank,
                       [&](std::int64_t value) { return value == wanted; });
  };
  if (conv.group != 1) return {"channels in groups"};
  if (!all(window.kernel, 1)) return {"windows of more than one element"};
  if (!all(window.stride, 1)) return {"a stride above 1"};
  return supported_if(all(window.pad_begin, 0) && all(window.pad_end, 0), "zeros around the input");
}

Support supports(const PrepareArgs& args) {
  const Support pointwise = is_pointwise(args.params);
  if (!pointwise) return pointwise;
  return supported_if(args.inputs[0].elements() > 0 && args.inputs[1].elements() > 0 &&
                          args.outputs[0].elements() > 0,
                      "a tensor has no elements");
}

template <typename T>
Prepared prepared(const GemmPlan<T>& plan) {
  return {.workspace_bytes = plan.workspace_bytes(), .state = std::make_shared<GemmPlan<T>>(plan)};
}

template <typename T>
const GemmPlan<T>& plan_of(const RunArgs& args) {
  return *static_cast<const GemmPlan<T>*>(args.state);
}

// --- Conv: y[n] = w x[n] + bias ------------------------------------------------------------------

template <typename T>
GemmPlan<T> plan_forward(const PrepareArgs& args) {
  const Sizes s = sizes_of(args.inputs[0].shape(), args.outputs[0].shape());
  return plan_gemm<T>({.m = s.m, .n = s.plane, .k = s.c, .batch = s.n}, args.threads);
}
template <typename T>
Prepared prepare_forward(const PrepareArgs& args) {
  return prepared(plan_forward<T>(args));
}
template <typename T>
Estimate estimate_forward(const PrepareArgs& args, const Estimate&) {
  Work work = gemm_work(plan_forward<T>(args));
  if (args.inputs.size() > 2 && args.inputs[2].present) {
    work += {multiplied(2, args.outputs[0].elements()), bytes_of(args.inputs[2]), 0.0};
  }
  return work.estimate();
}

template <typename T>
void run_forward(const RunArgs& args) {
  const Sizes s = sizes_of(args.inputs[0].shape(), args.outputs[0].shape());
  const bool has_bias = args.inputs.size() > 2 && args.inputs[2].present;
  run_gemm(plan_of<T>(args), args.workspace, args.threads, [&](std::int64_t n) {
    return GemmOperands<T>{.a = args.inputs[1].as<const T>(),
                           .a_row = s.c,
                           .a_column = 1,
                           .b = args.inputs[0].as<const T>() + n * s.c * s.plane,
                           .b_row = s.plane,
                           .b_column = 1,
                           .c = args.outputs[0].as<T>() + n * s.m * s.plane,
                           .c_row = s.plane,
                           .d = has_bias ? args.inputs[2].as<const T>() : nullptr,
                           .d_row = 1,
                           .d_column = 0,
                           .beta = 1};
  });
}

// --- ConvGradInput(dy, w): dx[n] = transposed w dy[n] --------------------------------------------

template <typename T>
GemmPlan<T> plan_grad_input(const PrepareArgs& args) {
  const Sizes s = sizes_of(args.outputs[0].shape(), args.inputs[0].shape());
  return plan_gemm<T>({.m = s.c, .n = s.plane, .k = s.m, .batch = s.n}, args.threads);
}
template <typename T>
Prepared prepare_grad_input(const PrepareArgs& args) {
  return prepared(plan_grad_input<T>(args));
}
template <typename T>
Estimate estimate_grad_input(const PrepareArgs& args, const Estimate&) {
  return gemm_work(plan_grad_input<T>(args)).estimate();
}

template <typename T>
void run_grad_input(const RunArgs& args) {
  const Sizes s = sizes_of(args.outputs[0].shape(), args.inputs[0].shape());
  run_gemm(plan_of<T>(args), args.workspace, args.threads, [&](std::int64_t n) {
    return GemmOperands<T>{.a = args.inputs[1].as<const T>(),
                           .a_row = 1,
                           .a_column = s.c,
                           .b = args.inputs[0].as<const T>() + n * s.m * s.plane,
                           .b_row = s.plane,
                           .b_column = 1,
                           .c = args.outputs[0].as<T>() + n * s.c * s.plane,
                           .c_row = s.plane};
  });
}

// --- ConvGradWeight(x, dy): dw = sum of dy[n] transposed x[n], in the order of n -----------------

// Divided according to all the work, then run for one example at a time.
template <typename T>
GemmPlan<T> plan_grad_weight(const PrepareArgs& args) {
  const Sizes s = sizes_of(args.inputs[0].shape(), args.inputs[1].shape());
  GemmPlan<T> plan = plan_gemm<T>({.m = s.m, .n = s.c, .k = s.plane * s.n}, args.threads);
  set_depth(plan, s.plane);
  return plan;
}
template <typename T>
Prepared prepare_grad_weight(const PrepareArgs& args) {
  return prepared(plan_grad_weight<T>(args));
}
template <typename T>
Estimate estimate_grad_weight(const PrepareArgs& args, const Estimate&) {
  const Work example = gemm_work(plan_grad_weight<T>(args));
  Work work;
  const std::int64_t examples = args.inputs[0].shape()[0];
  for (std::int64_t n = 0; n < examples; ++n) work += example;
  const double sums = multiplied(examples - 1, args.outputs[0].elements());
  work += {2 * sums, sizeof(T) * sums, 0.0};  // what the examples before have
  return work.estimate();
}

template <typename T>
void run_grad_weight(const RunArgs& args) {
  const Sizes s = sizes_of(args.inputs[0].shape(), args.inputs[1].shape());
  T* dw = args.outputs[0].as<T>();
  for (std::int64_t n = 0; n < s.n; ++n) {
    run_gemm(plan_of<T>(args), args.workspace, args.threads, [&](std::int64_t) {
      return GemmOperands<T>{.a = args.inputs[1].as<const T>() + n * s.m * s.plane,
                             .a_row = s.plane,
                             .a_column = 1,
                             .b = args.inputs[0].as<const T>() + n * s.c * s.plane,
                             .b_row = 1,
                             .b_column = s.plane,
                             .c = dw,
                             .c_row = s.c,
                             .d = n == 0 ? nullptr : dw,
                             .d_row = s.c,
                             .d_column = 1,
                             .beta = 1};
    });
  }
}

template <typename T>
void add_for(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Conv", dtype,
            {.name = "conv.pointwise",
             .supports = supports,
             .prepare = prepare_forward<T>,
             .run = run_forward<T>,
             .estimate = estimate_forward<T>});
  table.add("ConvGradInput", dtype,
            {.name = "conv_grad_input.pointwise",
             .supports = supports,
             .prepare = prepare_grad_input<T>,
             .run = run_grad_input<T>,
             .estimate = estimate_grad_input<T>});
  table.add("ConvGradWeight", dtype,
            {.name = "conv_grad_weight.pointwise",
             .supports = supports,
             .prepare = prepare_grad_weight<T>,
             .run = run_grad_weight<T>,
             .estimate = estimate_grad_weight<T>});
}

}  // namespace

void add_conv_pointwise(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
