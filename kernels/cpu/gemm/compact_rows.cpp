// Masked-label compaction: CompactRows, which finds the rows whose labels count, and CompactMatMul,
// which computes only these, on our own GEMM.
#include "kernels/cpu/gemm/compact_rows.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

// labels [rows] -> order [rows], count []: the numbers of the `count` rows whose labels count, then
// those of the others.
template <typename T>
void compact_rows(const RunArgs& args) {
  const auto ignored = std::get<LossParams>(args.params).ignore_index;
  const T* labels = args.inputs[0].as<const T>();
  const std::int64_t rows = args.inputs[0].elements();
  auto* order = args.outputs[0].as<std::int64_t>();
  const std::int64_t count = rows - std::count_if(labels, labels + rows, [ignored](T label) {
                               return std::int64_t{label} == ignored;
                             });
  std::int64_t compacted = 0;
  std::int64_t other = count;
  for (std::int64_t row = 0; row < rows; ++row) {
    order[std::int64_t{labels[row]} == ignored ? other++ : compacted++] = row;
  }
  if (args.outputs.size() > 1 && args.outputs[1].present) {
    *args.outputs[1].as<std::int64_t>() = count;
  }
}

std::int64_t rows_that_count(std::span<const TensorView> inputs) {
  return std::clamp<std::int64_t>(*inputs[2].as<const std::int64_t>(), 0, inputs[0].shape()[0]);
}

// The plan of the GEMM on all rows. With sums_rows the rows of `a` are what it sums over (a is
// transposed), so that compaction makes k smaller, else m.
template <typename T>
struct State {
  GemmPlan<T> plan;
  bool sums_rows = false;
};

// The plan for the first `count` rows, which are those whose labels count.
template <typename T>
GemmPlan<T> compacted_plan(const State<T>& state, std::int64_t count) {
  GemmPlan<T> plan = state.plan;
  if (!state.sums_rows) plan.size.m = count;
  if (state.sums_rows) set_depth(plan, count);
  return plan;
}

template <typename T>
State<T> state_of(const PrepareArgs& args) {
  const auto& p = std::get<MatMulParams>(args.params);
  const Shape& a = args.inputs[0].shape();
  const std::int64_t n = args.inputs[1].shape()[p.transpose_b ? 0 : 1];
  const GemmSize all{
      .m = a[p.transpose_a ? 1 : 0],
      .n = n,
      .k = a[p.transpose_a ? 0 : 1],
      .rounds_result = kIsStoredOnly<T> && is_stored_only(args.outputs[0].type.dtype)};
  return {.plan = plan_gemm<T>(all, args.threads), .sums_rows = p.transpose_a};
}

template <typename T>
Prepared prepare_compact_matmul(const PrepareArgs& args) {
  auto state = std::make_shared<State<T>>(state_of<T>(args));
  const std::size_t bytes = state->sums_rows
                                ? most_workspace_bytes(state->plan, args.inputs[0].shape()[0])
                                : state->plan.workspace_bytes();
  return {.workspace_bytes = bytes, .state = state};
}

// Of the rows that count where their number is known already, else of all; the other rows of a
// result are filled.
template <typename T>
Estimate estimate_compact_matmul(const PrepareArgs& args, const Estimate&) {
  const State<T> state = state_of<T>(args);
  const std::int64_t rows = args.inputs[0].shape()[0];
  const std::int64_t count = args.inputs[2].data == nullptr ? rows : rows_that_count(args.inputs);
  const TensorView& c = args.outputs[0];
  const double element = static_cast<double>(size_of(c.type.dtype));
  Work work = gemm_work(compacted_plan(state, count), element);
  if (!state.sums_rows) {
    work.bytes_written += multiplied(rows - count, c.shape()[1]) * element;
  }
  if (args.inputs.size() > 3 && args.inputs[3].present) {
    work += {multiplied(2, state.sums_rows ? c.shape()[0] : count, c.shape()[1]),
             bytes_of(args.inputs[3]), 0.0};
  }
  return work.estimate();
}

// Rows of the result [rows, columns] from `first` on become the bias, input 3, or zeros.
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
void run_compact_matmul(const RunArgs& args) {
  const auto& params = std::get<MatMulParams>(args.params);
  const auto& state = *static_cast<const State<T>*>(args.state);
  const std::int64_t count = rows_that_count(args.inputs);
  const GemmPlan<T> plan = compacted_plan(state, count);
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

constexpr Kernel kCompactMatmul{.name = "compact_matmul.own",
                                .prepare = prepare_compact_matmul<float>,
                                .run = run_compact_matmul<float>,
                                .estimate = estimate_compact_matmul<float>};

// A bias must have the result's type.
Support supports_bf16(const PrepareArgs& args) {
  const bool biased = args.inputs.size() > 3 && args.inputs[3].present;
  if (biased && args.inputs[3].type.dtype != args.outputs[0].type.dtype) {
    return {"the bias has another type than the result"};
  }
  return supported_if(!gemm_tiles<BFloat16>().empty(), kNoBf16Tiles);
}

void run_bf16(const RunArgs& args) {
  if (args.outputs[0].type.dtype == DType::kF32) return run_compact_matmul<BFloat16, float>(args);
  run_compact_matmul<BFloat16>(args);
}

void add_compact_matmul(KernelTable& table) {
  table.add("CompactMatMul", DType::kF32, kCompactMatmul);
  add_upcast<kCompactMatmul>(table, "CompactMatMul", "compact_matmul.own_upcast");
  table.add("CompactMatMul", DType::kF64,
            {.name = "compact_matmul.own",
             .prepare = prepare_compact_matmul<double>,
             .run = run_compact_matmul<double>,
             .estimate = estimate_compact_matmul<double>});
  table.add("CompactMatMul", DType::kBF16,
            {.name = "compact_matmul.own",
             .supports = supports_bf16,
             .prepare = prepare_compact_matmul<BFloat16>,
             .run = run_bf16,
             .estimate = estimate_compact_matmul<BFloat16>});
}

}  // namespace

void add_compact_rows(KernelTable& table) {
  table.add("CompactRows", DType::kI32,
            {.name = "compact_rows", .run = compact_rows<std::int32_t>});
  table.add("CompactRows", DType::kI64,
            {.name = "compact_rows", .run = compact_rows<std::int64_t>});
  add_compact_matmul(table);
}

}  // namespace trainscope::cpu
