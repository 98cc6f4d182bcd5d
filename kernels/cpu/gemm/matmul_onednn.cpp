// MatMul, Gemm, BatchMatMul and MatMulAdd on oneDNN's matmul primitive: in bf16, and in f32
// small and narrow ones.
#include <algorithm>
#include <cstring>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/matmul_layout.h"
#include "kernels/cpu/gemm/matmul.h"
#include "kernels/cpu/gemm/one_by_one.h"
#include "kernels/cpu/support/onednn.h"
#include "kernels/cpu/support/processor.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

using Dims = dnnl::memory::dims;

struct StoredMatrix {
  dnnl::memory::data_type type;
  Dims dims;
  Dims strides;
};

// An operand as oneDNN sees it: a stored matrix for each matmul. Batch axes of stride 0 have size
// 1, oneDNN broadcasts them.
dnnl::memory::desc operand_desc(const MatmulLayout& layout,
                                const std::array<std::int64_t, kMaxRank>& batch_stride,
                                const StoredMatrix& stored) {
  const auto& [type, matrix, matrix_strides] = stored;
  Dims dims;
  Dims strides;
  for (int axis = 0; axis < layout.batch_rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const bool shared = batch_stride[at] == 0;
    dims.push_back(shared ? 1 : layout.batch[at]);
    strides.push_back((shared ? 1 : batch_stride[at]) * matrix[0] * matrix[1]);
  }
  dims.insert(dims.end(), matrix.begin(), matrix.end());
  strides.insert(strides.end(), matrix_strides.begin(), matrix_strides.end());
  return strided_desc(dims, type, strides);
}

dnnl::memory::desc output_desc(const MatmulLayout& layout, DType dtype) {
  Dims dims(layout.batch.begin(), layout.batch.begin() + layout.batch_rank);
  dims.push_back(layout.size.m);
  dims.push_back(layout.size.n);
  return plain_desc(dims, onednn_type(dtype));
}

bool has_addend(const PrepareArgs& args) {
  return args.inputs.size() > 2 && args.inputs[2].present &&
         std::get<MatMulParams>(args.params).beta != 0.0;
}

// What is added has a number for each of the result's: the primitive adds to the output.
bool adds_to_output(const PrepareArgs& args) {
  return has_addend(args) && args.inputs[2].shape() == args.outputs[0].shape();
}

struct Description {
  dnnl::memory::desc a, b, c, bias;
  dnnl::matmul::primitive_desc primitive;  // empty when oneDNN cannot do it
};

Description describe(const PrepareArgs& args, const dnnl::engine& engine) {
  const auto& params = std::get<MatMulParams>(args.params);
  const MatmulLayout layout = matmul_layout(params, args.inputs[0].shape(), args.inputs[1].shape());
  const MatmulSize& size = layout.size;
  const dnnl::memory::data_type type = onednn_type(args.inputs[0].type.dtype);
  Description found{
      .a = operand_desc(layout, layout.a_stride,
                        {type, {size.m, size.k}, {layout.a_row(), layout.a_column()}}),
      .b = operand_desc(layout, layout.b_stride,
                        {type, {size.k, size.n}, {layout.b_row(), layout.b_column()}}),
      .c = output_desc(layout, args.outputs[0].type.dtype),
      .bias = {},
      .primitive = {}};
  dnnl::primitive_attr attributes = user_scratchpad();
  if (params.alpha != 1.0) attributes.set_output_scales(0, {static_cast<float>(params.alpha)});
  if (adds_to_output(args)) {
    dnnl::post_ops sum;
    sum.append_sum(static_cast<float>(params.beta));
    attributes.set_post_ops(sum);
  }
  if (has_addend(args) && !adds_to_output(args)) {
    Dims bias(static_cast<std::size_t>(layout.batch_rank) + 1, 1);
    bias.push_back(size.n);
    found.bias = plain_desc(bias, onednn_type(args.inputs[2].type.dtype));
    found.primitive = {{found.a, found.b, found.bias, found.c}, attributes, engine, true};
  } else {
    found.primitive = {{found.a, found.b, found.c}, attributes, engine, true};
  }
  return found;
}

// A bias per column is what oneDNN adds, after scaling by alpha only when alpha is 1, or the
// output.
bool addend_fits(const PrepareArgs& args) {
  if (!has_addend(args)) return true;
  if (adds_to_output(args)) return args.inputs[2].type.dtype == args.outputs[0].type.dtype;
  const auto& params = std::get<MatMulParams>(args.params);
  const AddendStrides strides = addend_strides(args.inputs[2].shape());
  const Shape& output = args.outputs[0].shape();
  return params.alpha == 1.0 && params.beta == 1.0 && strides.row == 0 &&
         (strides.column == 1 || output[output.rank - 1] == 1);
}

Support supports(const PrepareArgs& args) {
  const bool is_bf16 = args.inputs[0].type.dtype == DType::kBF16;
  if (is_bf16 && !prefers_avx512_bf16() && !onednn_has_amx()) {
    return {"neither AMX nor an AVX512_BF16 on this processor that is quicker than f32"};
  }
  const bool empty = std::ranges::any_of(
      args.inputs, [](const TensorView& view) { return view.present && view.elements() == 0; });
  if (empty) return {"a tensor has no elements"};
  if (!addend_fits(args)) return {"oneDNN's matmul does not add or scale such an addend"};
  const auto& params = std::get<MatMulParams>(args.params);
  const MatmulLayout layout = matmul_layout(params, args.inputs[0].shape(), args.inputs[1].shape());
  if (args.inputs[0].type.dtype == DType::kF32 && is_worth_packing(layout)) {
    return {kRepaysPacking};
  }
  return onednn_supports(args.threads, [&](const dnnl::engine& engine) {
    return is_usable(describe(args, engine).primitive) ? Support{} : kNoOneDnnCode;
  });
}

void build(const PrepareArgs& args, OneDnnProgram& program) {
  const Description found = describe(args, program.engine());
  OneDnnProgram::Arguments arguments{{DNNL_ARG_SRC, program.input(0, found.a)},
                                     {DNNL_ARG_WEIGHTS, program.input(1, found.b)},
                                     {DNNL_ARG_DST, program.output(0, found.c)}};
  if (has_addend(args) && !adds_to_output(args)) {
    arguments.emplace_back(DNNL_ARG_BIAS, program.input(2, found.bias));
  }
  program.add(dnnl::matmul(found.primitive), found.primitive.scratchpad_desc(), arguments);
}

void run(const RunArgs& args) {
  const TensorView& output = args.outputs[0];
  const bool adds =
      args.inputs.size() > 2 && args.inputs[2].present && args.inputs[2].shape() == output.shape();
  if (adds && args.inputs[2].data != output.data) {
    std::memcpy(output.data, args.inputs[2].data, output.type.bytes());
  }
  run_program(args);
}

// oneDNN chooses blocks of the inner dimension by the number of threads.
constexpr Kernel kMatmul{.name = "matmul.onednn",
                         .supports = supports,
                         .prepare = prepare_program<build>,
                         .run = run,
                         .same_for_any_threads = false};
constexpr Kernel kOneByOne = one_by_one<kMatmul>("multi_matmul.onednn");

}  // namespace

void add_matmul_onednn(KernelTable& table) {
  for (const char* op : kMatmulOps) {
    table.add(op, DType::kF32, kMatmul);
    add_upcast<kMatmul>(table, op, "matmul.onednn_upcast");
    table.add(op, DType::kBF16, kMatmul);
  }
}

void add_multi_matmul_onednn(KernelTable& table) {
  table.add("MultiMatMul", DType::kF32, kOneByOne);
  add_upcast<kOneByOne>(table, "MultiMatMul", "multi_matmul.onednn_upcast");
  table.add("MultiMatMul", DType::kBF16, kOneByOne);
}

}  // namespace trainscope::cpu
