// MatMul, Gemm, BatchMatMul and MatMulAdd on our own GEMM.
#include "kernels/cpu/gemm/matmul.h"

#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/matmul_layout.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

// Results of bf16 are bf16 or f32.
template <typename T>
bool rounds_result(const PrepareArgs& args) {
  return kIsStoredOnly<T> && args.outputs[0].type.dtype != DType::kF32;
}

template <typename T>
struct State {
  MatmulLayout layout;
  GemmPlan<T> plan;
};

template <typename T>
State<T> state_of(const PrepareArgs& args) {
  State<T> state;
  state.layout = matmul_layout(std::get<MatMulParams>(args.params), args.inputs[0].shape(),
                               args.inputs[1].shape());
  GemmSize size = gemm_size(state.layout.size);
  size.rounds_result = rounds_result<T>(args);
  state.plan = plan_gemm<T>(size, args.threads);
  return state;
}

template <typename T>
Prepared prepare_matmul(const PrepareArgs& args) {
  auto state = std::make_shared<State<T>>(state_of<T>(args));
  return {.workspace_bytes = state->plan.workspace_bytes(), .state = state};
}

template <typename T>
Estimate estimate_matmul(const PrepareArgs& args, const Estimate&) {
  const TensorView& c = args.outputs[0];
  Work work = gemm_work(state_of<T>(args).plan, static_cast<double>(size_of(c.type.dtype)));
  const bool adds = args.inputs.size() > 2 && args.inputs[2].present;
  if (adds && std::get<MatMulParams>(args.params).beta != 0.0) {
    work += {multiplied(2, c.elements()), bytes_of(args.inputs[2]), 0.0};
  }
  return work.estimate();
}

// Operands of the first matmul of the batch.
template <typename T, typename Result>
GemmOperands<T, Result> first_operands(const RunArgs& args, const MatmulLayout& layout) {
  const auto& params = std::get<MatMulParams>(args.params);
  GemmOperands<T, Result> operands{.a = args.inputs[0].as<const T>(),
                                   .a_row = layout.a_row(),
                                   .a_column = layout.a_column(),
                                   .b = args.inputs[1].as<const T>(),
                                   .b_row = layout.b_row(),
                                   .b_column = layout.b_column(),
                                   .c = args.outputs[0].as<Result>(),
                                   .c_row = layout.size.n,
                                   .alpha = static_cast<Computed<T>>(params.alpha)};
  if (args.inputs.size() > 2 && args.inputs[2].present && params.beta != 0.0) {
    const AddendStrides strides = addend_strides(args.inputs[2].shape());
    operands.d = args.inputs[2].as<const Result>();
    operands.d_row = strides.row;
    operands.d_column = strides.column;
    operands.beta = static_cast<Computed<T>>(params.beta);
  }
  return operands;
}

template <typename T, typename Result = T>
void run_matmul(const RunArgs& args) {
  const auto& state = *static_cast<const State<T>*>(args.state);
  const MatmulLayout& layout = state.layout;
  const GemmPlan<T>& plan = state.plan;
  const GemmOperands<T, Result> first = first_operands<T, Result>(args, layout);
  run_gemm(plan, args.workspace, args.threads, [&](std::int64_t gemm) {
    const MatrixPair pair = matrices_of(layout, gemm);
    GemmOperands<T, Result> operands = first;
    operands.a += pair.a * plan.size.m * plan.size.k;
    operands.b += pair.b * plan.size.k * plan.size.n;
    operands.c += gemm * plan.size.m * plan.size.n;
    if (operands.d_row != 0) operands.d += gemm * plan.size.m * plan.size.n;
    return operands;
  });
}

// Where each element is used in many sums, which repays packing.
Support supports_bf16(const PrepareArgs& args) {
  if (gemm_tiles<BFloat16>().empty()) return {kNoBf16Tiles};
  const bool adds = args.inputs.size() > 2 && args.inputs[2].present;
  if (adds && args.inputs[2].type.dtype != args.outputs[0].type.dtype) {
    return {"the addend has another type than the result"};
  }
  const MatmulLayout layout = matmul_layout(std::get<MatMulParams>(args.params),
                                            args.inputs[0].shape(), args.inputs[1].shape());
  return supported_if(is_worth_packing(layout), kLacksPackingsReturn);
}

void run_bf16(const RunArgs& args) {
  if (args.outputs[0].type.dtype == DType::kF32) return run_matmul<BFloat16, float>(args);
  run_matmul<BFloat16>(args);
}

constexpr Kernel kMatmul{.name = "matmul.own",
                         .prepare = prepare_matmul<float>,
                         .run = run_matmul<float>,
                         .estimate = estimate_matmul<float>};

}  // namespace

void add_matmul(KernelTable& table) {
  for (const char* op : kMatmulOps) {
    table.add(op, DType::kF32, kMatmul);
    add_upcast<kMatmul>(table, op, "matmul.own_upcast");
    table.add(op, DType::kF64,
              {.name = "matmul.own",
               .prepare = prepare_matmul<double>,
               .run = run_matmul<double>,
               .estimate = estimate_matmul<double>});
  }
  add_matmul_onednn(table);
  for (const char* op : kMatmulOps) {
    table.add(op, DType::kBF16,
              {.name = "matmul.own",
               .supports = supports_bf16,
               .prepare = prepare_matmul<BFloat16>,
               .run = run_bf16,
               .estimate = estimate_matmul<BFloat16>});
  }
}

}  // namespace trainscope::cpu
