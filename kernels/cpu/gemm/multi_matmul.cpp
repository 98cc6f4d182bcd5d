// MultiMatMul on our own GEMM: its matmuls are computed as adjacent GEMMs of one A.
#include "kernels/cpu/gemm/multi_matmul.h"

#include <algorithm>
#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/api/matmul_layout.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/matmul.h"
#include "kernels/cpu/gemm/one_by_one.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kMostMatmuls = 8;

const MatMulParams& params_of(const Params& params) { return std::get<MatMulParams>(params); }

template <typename T>
struct State {
  GemmPlan<T> plan;
  std::vector<MatmulLayout> layouts;  // of the matmuls
};

Support supports(const PrepareArgs& args) {
  return supported_if(args.outputs.size() <= kMostMatmuls, "more than 8 matmuls");
}

template <typename T>
std::shared_ptr<State<T>> state_of(const PrepareArgs& args) {
  auto state = std::make_shared<State<T>>();
  GemmSize all;
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    state->layouts.push_back(
        matmul_layout(params_of(args.params), args.inputs[0].shape(), args.inputs[1 + i].shape()));
    const MatmulSize& size = state->layouts.back().size;
    all.m = size.m * size.batch;  // 0 rows are not flattened
    all.k = size.k;
    // A rematerialized call leaves out the outputs that nobody reads any more.
    if (args.outputs[i].present) all.n += adjacent_columns<T>(size.n);
  }
  const auto made = std::ranges::find_if(args.outputs, &TensorView::present);
  all.rounds_result =
      kIsStoredOnly<T> && made != args.outputs.end() && made->type.dtype != DType::kF32;
  state->plan = plan_gemm<T>(all, args.threads);
  return state;
}

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  auto state = state_of<T>(args);
  const std::size_t bytes = state->plan.workspace_bytes();
  return {.workspace_bytes = bytes, .state = std::move(state)};
}

// The GEMM of all matmuls, whose columns are whole tiles, and the biases.
template <typename T>
Estimate estimate(const PrepareArgs& args, const Estimate&) {
  const std::size_t count = args.outputs.size();
  const auto made = std::ranges::find_if(args.outputs, &TensorView::present);
  const bool none = made == args.outputs.end();
  const DType result = none ? DType::kF32 : made->type.dtype;
  Work work = gemm_work(state_of<T>(args)->plan, static_cast<double>(size_of(result)));
  for (std::size_t i = 0; i < count && 1 + count + i < args.inputs.size(); ++i) {
    const TensorView& bias = args.inputs[1 + count + i];
    if (!bias.present || !args.outputs[i].present) continue;
    work += {multiplied(2, args.outputs[i].elements()), bytes_of(bias), 0.0};
  }
  return work.estimate();
}

// Matmul i as one of the adjacent GEMMs.
template <typename T>
AdjacentGemm<T> adjacent(const RunArgs& args, const MatmulLayout& layout, std::size_t i) {
  const OneMatmul matmul = one_matmul(args.inputs, args.outputs, i);
  const TensorView& bias = matmul.inputs[2];
  GemmOperands<T> operands{.a = matmul.inputs[0].as<const T>(),
                           .a_row = layout.a_row(),
                           .a_column = layout.a_column(),
                           .b = matmul.inputs[1].as<const T>(),
                           .b_row = layout.b_row(),
                           .b_column = layout.b_column(),
                           .c = matmul.outputs[0].as<T>(),
                           .c_row = layout.size.n};
  if (bias.present) {
    operands.d = bias.as<const T>();
    operands.d_column = 1;
    operands.beta = 1;
  }
  return {.operands = operands, .n = layout.size.n};
}

template <typename T>
void run(const RunArgs& args) {
  const auto& state = *static_cast<const State<T>*>(args.state);
  std::array<AdjacentGemm<T>, kMostMatmuls> gemms;
  std::size_t count = 0;
  for (std::size_t i = 0; i < state.layouts.size(); ++i) {
    if (args.outputs[i].present) gemms[count++] = adjacent<T>(args, state.layouts[i], i);
  }
  const AdjacentGemms<T> all(gemms.data(), count);
  run_gemm<T>(state.plan, args.workspace, args.threads, [all](std::int64_t) { return all; });
}

// Where each element is used in many sums, which repays packing.
Support supports_bf16(const PrepareArgs& args) {
  const Support few = supports(args);
  if (!few) return few;
  if (gemm_tiles<BFloat16>().empty()) return {kNoBf16Tiles};
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    if (!args.outputs[i].present) continue;
    const MatmulLayout layout =
        matmul_layout(params_of(args.params), args.inputs[0].shape(), args.inputs[1 + i].shape());
    if (!is_worth_packing(layout)) return {kLacksPackingsReturn};
  }
  return {};
}

constexpr Kernel kMultiMatMul{.name = "multi_matmul.own",
                              .supports = supports,
                              .prepare = prepare<float>,
                              .run = run<float>,
                              .estimate = estimate<float>};

}  // namespace

void add_multi_matmul(KernelTable& table) {
  const char* op = "MultiMatMul";
  table.add(op, DType::kF32, kMultiMatMul);
  add_upcast<kMultiMatMul>(table, op, "multi_matmul.own_upcast");
  table.add(op, DType::kF64,
            {.name = "multi_matmul.own",
             .supports = supports,
             .prepare = prepare<double>,
             .run = run<double>,
             .estimate = estimate<double>});
  add_multi_matmul_onednn(table);
  table.add(op, DType::kBF16,
            {.name = "multi_matmul.own",
             .supports = supports_bf16,
             .prepare = prepare<BFloat16>,
             .run = run<BFloat16>,
             .estimate = estimate<BFloat16>});
}

}  // namespace trainscope::cpu
