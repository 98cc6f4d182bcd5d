// Batch axes and addends of matmuls, as the library takes them.
#include "kernels/cuda/gemm/matmul_call.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/gemm/addend.h"

namespace trainscope::cuda {
namespace {

const std::byte* at(const TensorView& view, std::int64_t elements) {
  return view.as<const std::byte>() +
         elements * static_cast<std::int64_t>(size_of(view.type.dtype));
}

}  // namespace

std::unique_ptr<MatmulCall> MatmulCall::make(const MatMulParams& params, LtFactors factors,
                                             std::span<const TensorView> inputs,
                                             const TensorView& output, std::string* why_not) {
  std::unique_ptr<MatmulCall> call(new MatmulCall());
  call->params_ = params;
  call->factors_ = factors;
  call->layout_ = matmul_layout(params, inputs[0].shape(), inputs[1].shape());
  call->dtype_ = inputs[0].type.dtype;
  call->result_ = output.type.dtype;
  if (inputs.size() > 2 && inputs[2].present && params.beta != 0.0) call->choose_addend(inputs[2]);
  if (output.elements() == 0 || call->layout_.size.k == 0) return call;
  call->matmul_ = LtMatmul::make(call->problem(call->addend_), why_not);
  if (call->addend_ == LtAddend::kRow) {
    if (call->matmul_ == nullptr) {
      call->addend_ = LtAddend::kMatrix;
      call->spreads_ = true;
      call->matmul_ = LtMatmul::make(call->problem(call->addend_), why_not);
    } else if (is_stored_only(call->dtype_)) {
      call->spread_matmul_ = LtMatmul::make(call->problem(LtAddend::kMatrix), why_not);
      if (call->spread_matmul_ == nullptr) return nullptr;
    }
  }
  if (call->matmul_ == nullptr) call.reset();
  return call;
}

std::size_t MatmulCall::workspace_bytes() const {
  const auto bytes_of = [](const std::unique_ptr<LtMatmul>& matmul) {
    return matmul == nullptr ? std::size_t{0} : matmul->workspace_bytes();
  };
  return std::max(bytes_of(matmul_), bytes_of(spread_matmul_));
}

void MatmulCall::choose_addend(const TensorView& addend) {
  const MatmulSize& size = layout_.size;
  adds_ = true;
  strides_ = addend_strides(addend.shape());
  const bool is_row = addend.elements() == size.n && strides_.row == 0 && strides_.column == 1;
  addend_ = LtAddend::kMatrix;
  if (addend.elements() == size.batch * size.m * size.n) {
    strides_ = {.row = size.n, .column = 1};
  } else if (is_row && params_.beta == 1.0) {
    addend_ = LtAddend::kRow;
  } else {
    spreads_ = true;
  }
}

// The last batch axis is the library's, the others are loops.
LtProblem MatmulCall::problem(LtAddend addend) const {
  const MatmulSize& size = layout_.size;
  LtProblem problem{.m = size.m,
                    .n = size.n,
                    .k = size.k,
                    .transpose_a = layout_.transpose_a,
                    .transpose_b = layout_.transpose_b,
                    .dtype = dtype_,
                    .result = result_,
                    .addend = addend,
                    .tf32 = factors_ == LtFactors::kTf32};
  if (layout_.batch_rank == 0) return problem;
  const auto last = static_cast<std::size_t>(layout_.batch_rank - 1);
  problem.batch = layout_.batch[last];
  problem.a_stride = layout_.a_stride[last] * size.m * size.k;
  problem.b_stride = layout_.b_stride[last] * size.k * size.n;
  return problem;
}

void MatmulCall::spread(std::span<const TensorView> inputs, const TensorView& output, double scale,
                        const CallContext& call) const {
  const MatmulSize& size = layout_.size;
  spread_addend({.to = output.data,
                 .from = adds_ ? inputs[2].data : nullptr,
                 .rows = size.batch * size.m,
                 .columns = size.n,
                 .row_stride = strides_.row,
                 .column_stride = strides_.column,
                 .scale = scale},
                result_, call);
}

void MatmulCall::run(std::span<const TensorView> inputs, const TensorView& output, void* workspace,
                     const CallContext& call) const {
  if (output.elements() == 0) return;
  if (matmul_ == nullptr) return spread(inputs, output, params_.beta, call);
  const bool unaligned_row =
      spread_matmul_ != nullptr &&
      !matmul_->is_aligned(
          {.a = inputs[0].data, .b = inputs[1].data, .addend = inputs[2].data, .d = output.data});
  const LtMatmul& matmul = unaligned_row ? *spread_matmul_ : *matmul_;
  const LtAddend kind = unaligned_row ? LtAddend::kMatrix : addend_;
  const bool spreads = spreads_ || unaligned_row;
  if (spreads) spread(inputs, output, 1.0, call);
  const MatmulSize& size = layout_.size;
  const auto last = static_cast<std::size_t>(std::max(0, layout_.batch_rank - 1));
  const std::int64_t together = layout_.batch_rank == 0 ? 1 : layout_.batch[last];
  const TensorView& addend = spreads || !adds_ ? output : inputs[2];
  for (std::int64_t first = 0; first < size.batch; first += together) {
    const MatrixPair pair = matrices_of(layout_, first);
    const std::int64_t of_result = first * size.m * size.n;
    const void* added = nullptr;
    if (kind == LtAddend::kMatrix) added = at(addend, of_result);
    if (kind == LtAddend::kRow) added = addend.data;
    matmul.run({.a = at(inputs[0], pair.a * size.m * size.k),
                .b = at(inputs[1], pair.b * size.k * size.n),
                .addend = added,
                .d = const_cast<std::byte*>(at(output, of_result)),
                .alpha = params_.alpha,
                .beta = params_.beta},
               workspace, call);
  }
}

}  // namespace trainscope::cuda
