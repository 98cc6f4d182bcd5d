// Plans of reductions, made on the host.
#include "kernels/cuda/reduce/reduction.h"

namespace trainscope::cuda {
namespace {

std::int64_t column_blocks(std::int64_t columns, int width) {
  return columns == 1 ? 1 : (columns + kWarp * width - 1) / (kWarp * width);
}

std::int64_t chunk_count(const ReducePlan& plan) {
  const std::int64_t blocks = plan.kept.elements * column_blocks(plan.columns, plan.width);
  if (blocks == 0 || blocks >= kEnoughBlocks) return 1;
  const std::int64_t of_block =
      plan.reduced.elements * (plan.columns == 1 ? 1 : kWarp * plan.width);
  const std::int64_t wanted = (kEnoughBlocks + blocks - 1) / blocks;
  return std::clamp<std::int64_t>(of_block / kChunkElements, 1, wanted);
}

}  // namespace

ReducePlan reduce_plan(const Shape& input, const ReduceParams& params, int most_width) {
  ReducePlan plan{reduce_layout(input, params)};
  for (const int width : {kPackWidth, most_width}) {
    if (plan.columns > 1 && plan.columns % width == 0) plan.width = width;
  }
  plan.chunks = chunk_count(plan);
  return plan;
}

ReduceWalk::ReduceWalk(const ReducePlan& plan, bool aligned)
    : kept(plan.kept, 1),
      reduced(plan.reduced, 1),
      in_a_row(plan.columns == 1 && plan.reduced.rank <= 1 && plan.reduced.row_stride(0) <= 1),
      packs(aligned),
      columns(static_cast<std::uint32_t>(plan.columns)),
      column_blocks(static_cast<std::uint32_t>(cuda::column_blocks(plan.columns, plan.width))),
      reduced_count(static_cast<std::uint32_t>(plan.reduced.elements)),
      chunks(static_cast<std::uint32_t>(plan.chunks)),
      share((reduced_count + chunks - 1) / chunks),
      outputs(plan.outputs()) {
  // Packs begin where rows and chunks do.
  share = (share + kPackWidth - 1) / kPackWidth * kPackWidth;
  if (plan.columns > 1) return;
  for (int axis = 0; axis < plan.kept.rank; ++axis) {
    packs = packs && plan.kept.strides[1][axis] % kPackWidth == 0;
  }
}

Support supports_reduction(const PrepareArgs& args) {
  const ReducePlan plan =
      reduce_plan(args.inputs[0].shape(), std::get<ReduceParams>(args.params), kPackWidth);
  const std::int64_t blocks = plan.kept.elements * column_blocks(plan.columns, 1) * plan.chunks;
  return supported_if(blocks < kMaxItems && plan.reduced.elements < kMaxItems,
                      "on CUDA a reduction has less than 2^31 results and terms");
}

}  // namespace trainscope::cuda
