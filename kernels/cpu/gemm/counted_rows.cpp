// CountedRows, and CountedMatMul on our own matrix product.
#include "kernels/cpu/gemm/counted_rows.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

// labels [rows] -> order [rows], count []
template <typename T>
void counted_rows(const RunArgs& args) {
  const auto ignored = std::get<LossParams>(args.params).ignore_index;
  const T* labels = args.inputs[0].as<const T>();
  const std::int64_t rows = args.inputs[0].elements();
  auto* order = args.outputs[0].as<std::int64_t>();
  const std::int64_t count = rows - std::count_if(labels, labels + rows, [ignored](T label) {
                               return std::int64_t{label} == ignored;
                             });
  std::int64_t counted = 0;
  std::int64_t other = count;
  for (std::int64_t row = 0; row < rows; ++row) {
    order[std::int64_t{labels[row]} == ignored ? other++ : counted++] = row;
  }
  if (args.outputs.size() > 1 && args.outputs[1].present) {
    *args.outputs[1].as<std::int64_t>() = count;
  }
}

std::int64_t rows_that_count(const RunArgs& args) {
  return std::clamp<std::int64_t>(*args.inputs[2].as<const std::int64_t>(), 0,
                                  args.inputs[0].shape()[0]);
}

// The product of all rows, and whether the rows of `a` are what it sums over.
template <typename T>
struct State {
  GemmPlan<T> plan;
  bool sums_rows = false;
};

template <typename T>
GemmPlan<T> of_counted(const State<T>& state, std::int64_t count) {
  GemmPlan<T> plan = state.plan;
  if (!state.sums_rows) plan.size.m = count;
  if (state.sums_rows) set_depth(plan, count);
  return plan;
}

template <typename T>
Prepared prepare_product(const PrepareArgs& args) {
  const auto& p = std::get<MatMulParams>(args.params);
  const Shape& a = args.inputs[0].shape();
  const std::int64_t n = args.inputs[1].shape()[p.transpose_b ? 0 : 1];
  const GemmSize all{
      .m = a[p.transpose_a ? 1 : 0],
      .n = n,
      .k = a[p.transpose_a ? 0 : 1],
      .rounds_result = kIsStoredOnly<T> && is_stored_only(args.outputs[0].type.dtype)};
  auto state = std::make_shared<State<T>>(
      State<T>{.plan = plan_gemm<T>(all, args.threads), .sums_rows = p.transpose_a});
  const std::size_t bytes =
      state->sums_rows ? most_workspace_bytes(state->plan, a[0]) : state->plan.workspace_bytes();
  return {.workspace_bytes = bytes, .state = state};
}

// Rows of the product from `first` on: the bias, input 3, or zeros.
template <typename T>
void fill_rest(const RunArgs& args, std::int64_t first) {
  const Shape& shape = args.outputs[0].shape();
  const std::int64_t columns = shape[1];
  const bool biased = args.inputs.size() > 3 && args.inputs[3].present;
  const T* bias = biased ? args.inputs[3].as<const T>() : nullptr;
  T* y = args.outputs[0].as<T>() + first * columns;  // [rows - first, columns]
  parallel_for(args.threads, shape[0] - first, row_grain(columns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   if (bias != nullptr) {
                     std::copy_n(bias, columns, y + row * columns);
                   } else {
                     std::fill_n(y + row * columns, columns, T{0});
                   }
                 }
               });
}

template <typename T, typename Result = T>
void run_product(const RunArgs& args) {
  const auto& params = std::get<MatMulParams>(args.params);
  const auto& state = *static_cast<const State<T>*>(args.state);
  const std::int64_t count = rows_that_count(args);
  const GemmPlan<T> plan = of_counted(state, count);
  const std::int64_t a_columns = args.inputs[0].shape()[1];
  const std::int64_t b_columns = args.inputs[1].shape()[1];
  GemmOperands<T, Result> operands{.a = args.inputs[0].as<const T>(),
                                   .a_row = params.transpose_a ? 1 : a_columns,
                                   .a_column = params.transpose_a ? a_columns : 1,
                                   .b = args.inputs[1].as<const T>(),
                                   .b_row = params.transpose_b ? 1 : b_columns,
                                   .b_column = params.transpose_b ? b_columns : 1,
                                   .c = args.outputs[0].as<Result>(),
                                   .c_row = plan.size.n};
  if (args.inputs.size() > 3 && args.inputs[3].present) {
    operands.d = args.inputs[3].as<const Result>();
    operands.d_column = 1;
    operands.beta = Computed<T>{1};
  }
  run_gemm<T>(plan, args.workspace, args.threads, [&operands](std::int64_t) { return operands; });
  if (!state.sums_rows) fill_rest<Result>(args, count);
}

constexpr Kernel kProduct{
    .name = "counted_matmul.own", .prepare = prepare_product<float>, .run = run_product<float>};

// A bias is of the result's type.
bool supports_bf16(const PrepareArgs& args) {
  const bool biased = args.inputs.size() > 3 && args.inputs[3].present;
  const bool same = !biased || args.inputs[3].type.dtype == args.outputs[0].type.dtype;
  return same && !gemm_tiles<BFloat16>().empty();
}

void run_bf16(const RunArgs& args) {
  if (args.outputs[0].type.dtype == DType::kF32) return run_product<BFloat16, float>(args);
  run_product<BFloat16>(args);
}

void add_product(KernelTable& table) {
  table.add("CountedMatMul", DType::kF32, kProduct);
  add_upcast<kProduct>(table, "CountedMatMul", "counted_matmul.own_upcast");
  table.add("CountedMatMul", DType::kF64,
            {.name = "counted_matmul.own",
             .prepare = prepare_product<double>,
             .run = run_product<double>});
  table.add("CountedMatMul", DType::kBF16,
            {.name = "counted_matmul.own",
             .supports = supports_bf16,
             .prepare = prepare_product<BFloat16>,
             .run = run_bf16});
}

}  // namespace

void add_counted_rows(KernelTable& table) {
  table.add("CountedRows", DType::kI32,
            {.name = "counted_rows", .run = counted_rows<std::int32_t>});
  table.add("CountedRows", DType::kI64,
            {.name = "counted_rows", .run = counted_rows<std::int64_t>});
  add_product(table);
}

}  // namespace trainscope::cpu
