// MatMul, Gemm, BatchMatMul, MatMulAdd and MultiMatMul by cuBLASLt.
#include "kernels/cuda/gemm/matmul.h"

#include <algorithm>
#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/api/matmul_layout.h"
#include "kernels/api/tf32.h"
#include "kernels/cuda/gemm/matmul_call.h"

namespace trainscope::cuda {
namespace {

constexpr std::string_view kNoAlgorithm = "cuBLASLt has no algorithm for this matmul";
constexpr std::string_view kOtherType =
    "operands and result are not all of one type, nor operands of two bytes with a sum in f32";

bool has_types(std::span<const TensorView> inputs, const TensorView& output) {
  const DType dtype = inputs[0].type.dtype;
  const DType result = output.type.dtype;
  const bool upcast = is_stored_only(dtype) && result == DType::kF32;
  return inputs[1].type.dtype == dtype && (result == dtype || upcast) &&
         (inputs.size() < 3 || !inputs[2].present || inputs[2].type.dtype == result);
}

const MatMulParams& params_of(const Params& params) { return std::get<MatMulParams>(params); }

// The context of kernels of forms in TF32; the others have none.
constexpr LtFactors kTf32Factors = LtFactors::kTf32;
LtFactors factors_of(const PrepareArgs& args) {
  if (args.context == nullptr) return LtFactors::kExact;
  return *static_cast<const LtFactors*>(args.context);
}

// --- One matmul ----------------------------------------------------------------------------------
Support supports_one(const PrepareArgs& args, std::span<const TensorView> inputs,
                     const TensorView& output) {
  if (!has_types(inputs, output)) return {kOtherType};
  std::string why_not;
  return supported_if(MatmulCall::make(params_of(args.params), factors_of(args), inputs, output,
                                       &why_not) != nullptr,
                      kNoAlgorithm);
}

Support supports_matmul(const PrepareArgs& args) {
  return supports_one(args, args.inputs, args.outputs[0]);
}

Prepared prepare_matmul(const PrepareArgs& args) {
  std::string why_not;
  std::shared_ptr<const MatmulCall> call = MatmulCall::make(
      params_of(args.params), factors_of(args), args.inputs, args.outputs[0], &why_not);
  if (call == nullptr) return {};
  return {.workspace_bytes = call->workspace_bytes(), .state = std::move(call)};
}

void run_matmul(const RunArgs& args) {
  const auto* call = static_cast<const MatmulCall*>(args.state);
  if (call == nullptr) {
    return args.call.fail(DeviceStatus::Code::kFailed, std::string(kNoAlgorithm));
  }
  call->run(args.inputs, args.outputs[0], args.workspace, args.call);
}

// --- Several matmuls of one A --------------------------------------------------------------------
// Matmul i: the common A, matrix i and bias i, which may be absent.
std::array<TensorView, 3> operands_of(std::span<const TensorView> inputs, std::size_t count,
                                      std::size_t i) {
  const std::size_t bias = 1 + count + i;
  return {inputs[0], inputs[1 + i],
          bias < inputs.size() ? inputs[bias]
                               : TensorView{.type = {}, .data = nullptr, .present = false}};
}

using Calls = std::vector<std::unique_ptr<MatmulCall>>;  // null: an output that nobody reads

Support supports_multi(const PrepareArgs& args) {
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    if (!args.outputs[i].present) continue;
    const auto operands = operands_of(args.inputs, args.outputs.size(), i);
    const Support support = supports_one(args, operands, args.outputs[i]);
    if (!support) return support;
  }
  return {};
}

// The matmuls follow on each other and share a workspace.
Prepared prepare_multi(const PrepareArgs& args) {
  auto calls = std::make_shared<Calls>();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    calls->emplace_back();
    if (!args.outputs[i].present) continue;
    std::string why_not;
    calls->back() = MatmulCall::make(params_of(args.params), factors_of(args),
                                     operands_of(args.inputs, args.outputs.size(), i),
                                     args.outputs[i], &why_not);
    if (calls->back() == nullptr) return {};
    bytes = std::max(bytes, calls->back()->workspace_bytes());
  }
  return {.workspace_bytes = bytes, .state = std::move(calls)};
}

void run_multi(const RunArgs& args) {
  const auto* calls = static_cast<const Calls*>(args.state);
  if (calls == nullptr) {
    return args.call.fail(DeviceStatus::Code::kFailed, std::string(kNoAlgorithm));
  }
  for (std::size_t i = 0; i < calls->size(); ++i) {
    if (!args.outputs[i].present) continue;
    (*calls)[i]->run(operands_of(args.inputs, calls->size(), i), args.outputs[i], args.workspace,
                     args.call);
  }
}

Kernel matmul_kernel(std::string_view name, const LtFactors* factors = nullptr) {
  return {.name = name,
          .supports = supports_matmul,
          .prepare = prepare_matmul,
          .run = run_matmul,
          .context = factors};
}

Kernel multi_kernel(std::string_view name, const LtFactors* factors = nullptr) {
  return {.name = name,
          .supports = supports_multi,
          .prepare = prepare_multi,
          .run = run_multi,
          .context = factors};
}

}  // namespace

void add_matmul(KernelTable& table) {
  const Kernel one = matmul_kernel("matmul.cublas_lt");
  const Kernel several = multi_kernel("multi_matmul.cublas_lt");
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    for (const char* op : kMatmulOps) table.add(op, dtype, one);
    table.add("MultiMatMul", dtype, several);
  }
  const Kernel one_in_tf32 = matmul_kernel("matmul.cublas_lt.tf32", &kTf32Factors);
  for (const char* op : kMatmulOps) table.add(tf32_form(op), DType::kF32, one_in_tf32);
  table.add(tf32_form("MultiMatMul"), DType::kF32,
            multi_kernel("multi_matmul.cublas_lt.tf32", &kTf32Factors));
}

}  // namespace trainscope::cuda
