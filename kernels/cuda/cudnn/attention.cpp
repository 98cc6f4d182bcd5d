// Attention and its gradient by cuDNN.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/cuda/attention/row_statistics.h"
#include "kernels/cuda/cudnn/attention_graphs.h"
#include "kernels/cuda/cudnn/attention_limits.h"
#include "kernels/cuda/cudnn/cudnn_kernels.h"
#include "kernels/cuda/cudnn/own_kernel.h"
#include "kernels/cuda/cudnn/plan.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

constexpr std::size_t kForwardInputs = 3;  // of the gradient, before Attention's: dy, y, statistics
constexpr std::size_t kMostForwardWorkspaceBytes = std::size_t{2} << 30;
constexpr std::size_t kAlignment = 256;  // bytes, of each part of the workspace
constexpr std::int64_t kElementBytes = 2;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// `inputs` begin with q.
AttentionShape shape_of(const Params& params, std::span<const TensorView> inputs) {
  const auto& attention = std::get<AttentionParams>(params);
  const Shape& q = inputs[0].shape();
  AttentionShape shape{.type = cudnn_type(inputs[0].type.dtype),
                       .batch = q[0],
                       .heads = attention.heads,
                       .kv_heads = attention.kv_heads,
                       .tokens = q[1],
                       .keys = attention.packed ? q[1] : inputs[1].shape()[1],
                       .width = q[3],
                       .packed = attention.packed,
                       .causal = attention.causal,
                       .scale = static_cast<float>(attention.scale)};
  if (has_view(inputs, 3)) {
    const auto given = inputs[3].shape().span();
    shape.bias.assign(4 - given.size(), 1);
    shape.bias.insert(shape.bias.end(), given.begin(), given.end());
  }
  return shape;
}

std::int64_t rows_of(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.tokens;
}
std::size_t bytes_of_rows(const AttentionShape& shape) {
  return aligned(static_cast<std::size_t>(rows_of(shape)) * sizeof(float));
}

Support supports_shape(const Params& params, const AttentionShape& shape) {
  if (std::get<AttentionParams>(params).dropout.ratio != 0.0) {
    return {"weights drop out, by other random numbers than cuDNN's"};
  }
  return supported_if(rows_of(shape) * shape.keys * shape.width != 0, "a tensor is empty");
}

// Where a part of a call begins.
struct PartPlace {
  std::int64_t entry = 0;  // of the batch
  std::int64_t group = 0;  // of heads
};

// Elements from the first one of y's tensor.
std::int64_t y_at(const AttentionShape& shape, const PartPlace& place) {
  return place.entry * shape.tokens * shape.y_row() + place.group * shape.heads * shape.width;
}

// Addresses of q, k and v in their tensors, or side by side in one.
std::array<void*, 3> heads_at(const AttentionShape& shape, std::span<const TensorView> tensors,
                              const PartPlace& place) {
  const std::int64_t of_kv = shape.kv_heads * shape.width;
  const std::int64_t q =
      place.entry * shape.tokens * shape.q_row() + place.group * shape.heads * shape.width;
  const std::int64_t k = place.entry * shape.keys * shape.kv_row() + place.group * of_kv;
  const auto at = [&](std::size_t i, std::int64_t element) -> void* {
    return tensors[i].as<std::byte>() + element * kElementBytes;
  };
  if (!shape.packed) return {at(0, q), at(1, k), at(2, k)};
  const std::int64_t all_q = shape.groups * shape.heads * shape.width;
  return {at(0, q), at(0, k + all_q), at(0, k + all_q + shape.groups * of_kv)};
}

void* bias_at(const AttentionShape& shape, const TensorView& bias, const PartPlace& place) {
  const int rank = bias.shape().rank;
  const std::int64_t heads = rank < 3 ? 1 : bias.shape()[rank - 3];
  const std::int64_t of_head = shape.bias[2] * shape.bias[3];
  const bool has_entries = rank == 4 && bias.shape()[0] > 1;
  const std::int64_t of_entries = has_entries ? place.entry * heads * of_head : 0;
  const std::int64_t of_group = heads > 1 ? place.group * shape.heads * of_head : 0;
  return bias.as<float>() + of_entries + of_group;
}

// A result that may lie in place of an operand. Blocks of the library read operands as they like,
// so that it is then made in the workspace and copied from there: with the bits that it has
// elsewhere.
struct StagedResult {
  void* made = nullptr;  // where the library writes it
  void* belongs = nullptr;
  std::size_t bytes = 0;

  void finish(const CallContext& call) const {
    if (made != belongs) copy_bytes(call, belongs, made, bytes);
  }
};
// Of q's and y's size. Packed ones lie in no operand's place.
std::size_t bytes_of_result(const AttentionShape& shape) {
  return static_cast<std::size_t>(shape.batch * shape.tokens * shape.y_row() * kElementBytes);
}
std::size_t staged_bytes(const AttentionShape& shape) {
  return shape.packed ? 0 : aligned(bytes_of_result(shape));
}

// --- Forward -------------------------------------------------------------------------------------

struct ForwardCall {
  AttentionShape shape;
  std::shared_ptr<const CudnnPlan> plan;
  OwnKernel own;

  // Bytes that the library's own workspace comes after.
  std::size_t bytes_before() const { return 2 * bytes_of_rows(shape) + staged_bytes(shape); }
};

PlannedGraph planned_forward(const AttentionShape& shape) {
  return planned(attention_graph(shape), kMostForwardWorkspaceBytes);
}

Support supports_forward(const PrepareArgs& args) {
  const AttentionShape shape = shape_of(args.params, args.inputs);
  if (const Support support = supports_shape(args.params, shape); !support) return support;
  const std::string_view why_not = why_not_attention(shape, current_place());
  if (!why_not.empty()) return {why_not};
  const PlannedGraph graph = planned_forward(shape);
  return supported_if(graph.plan != nullptr, graph.why_not);
}

Prepared prepare_forward(const PrepareArgs& args) {
  const AttentionShape shape = shape_of(args.params, args.inputs);
  const std::shared_ptr<const CudnnPlan> plan = planned_forward(shape).plan;
  const auto call = std::make_shared<ForwardCall>(
      ForwardCall{.shape = shape,
                  .plan = plan,
                  .own = OwnKernel("Attention", args.inputs[0].type.dtype, args)});
  const std::size_t bytes = call->bytes_before() + plan->workspace_bytes();
  return {.workspace_bytes = std::max(bytes, call->own.workspace_bytes()), .state = call};
}

void run_forward(const RunArgs& args) {
  const auto& call = *static_cast<const ForwardCall*>(args.state);
  const AttentionShape& shape = call.shape;
  auto* const largest = static_cast<std::byte*>(args.workspace);
  std::byte* const sums = largest + bytes_of_rows(shape);
  std::byte* const staged = sums + bytes_of_rows(shape);
  void* const y = args.outputs[0].data;
  const StagedResult result{
      .made = y == args.inputs[0].data ? staged : y, .belongs = y, .bytes = bytes_of_result(shape)};
  const auto [q, k, v] = heads_at(shape, args.inputs, {});
  std::vector<void*> operands = {q, k, v};
  if (!shape.bias.empty()) operands.push_back(bias_at(shape, args.inputs[3], {}));
  operands.insert(operands.end(), {largest, sums, result.made});
  if (!lie_aligned(operands)) return call.own.run(args);
  call.plan->run(operands, largest + call.bytes_before(), args.call);
  result.finish(args.call);
  if (!has_view(args.outputs, 1)) return;
  keep_row_statistics(reinterpret_cast<const float*>(largest), reinterpret_cast<const float*>(sums),
                      args.outputs[1].as<float>(), rows_of(shape), args.call);
}

// --- Backward ------------------------------------------------------------------------------------

struct GradientCall {
  AttentionShape part;
  std::int64_t parts;
  std::shared_ptr<const CudnnPlan> plan;
  OwnKernel own;

  // Bytes that the library's own workspace comes after.
  std::size_t bytes_before() const { return 2 * bytes_of_rows(part) + staged_bytes(part); }
};

PlannedGraph planned_backward(const AttentionShape& shape) {
  return planned(attention_grad_graph(attention_grad_part(shape)),
                 most_attention_grad_workspace_bytes(shape));
}

Support supports_backward(const PrepareArgs& args) {
  const AttentionShape shape = shape_of(args.params, args.inputs.subspan(kForwardInputs));
  if (const Support support = supports_shape(args.params, shape); !support) return support;
  const std::string_view why_not = why_not_attention_grad(shape, current_place());
  if (!why_not.empty()) return {why_not};
  for (std::size_t i = 0; i < (shape.packed ? 1U : 3U); ++i) {
    if (!has_view(args.outputs, i)) return {"a gradient is left out"};
  }
  const PlannedGraph graph = planned_backward(shape);
  return supported_if(graph.plan != nullptr, graph.why_not);
}

Prepared prepare_backward(const PrepareArgs& args) {
  const AttentionShape shape = shape_of(args.params, args.inputs.subspan(kForwardInputs));
  const AttentionShape part = attention_grad_part(shape);
  const std::shared_ptr<const CudnnPlan> plan = planned_backward(shape).plan;
  const auto call = std::make_shared<GradientCall>(
      GradientCall{.part = part,
                   .parts = shape.batch / part.batch * part.groups,
                   .plan = plan,
                   .own = OwnKernel("AttentionGrad", args.inputs[0].type.dtype, args)});
  const std::size_t bytes = call->bytes_before() + plan->workspace_bytes();
  return {.workspace_bytes = std::max(bytes, call->own.workspace_bytes()), .state = call};
}

// What is computed of one part of a call.
struct GradientPart {
  std::vector<void*> operands;
  const float* statistics = nullptr;
  float* log_sums = nullptr;
  StagedResult dq = {};
};

GradientPart gradient_part(const GradientCall& call, const RunArgs& args, std::int64_t number) {
  const AttentionShape& shape = call.part;
  const auto forward = args.inputs.subspan(kForwardInputs);
  const PartPlace place{.entry = number / shape.groups * shape.batch,
                        .group = number % shape.groups};
  const std::int64_t y = y_at(shape, place) * kElementBytes;
  auto* const log_sums = static_cast<std::byte*>(args.workspace);
  std::byte* const shifts = log_sums + bytes_of_rows(shape);
  std::byte* const staged = shifts + bytes_of_rows(shape);
  const auto [q, k, v] = heads_at(shape, forward, place);
  const auto [dq, dk, dv] = heads_at(shape, args.outputs, place);
  const void* const result = args.outputs[0].data;
  const bool in_place = result == args.inputs[0].data || result == forward[0].data;
  GradientPart part{.operands = {q, k, v},
                    .statistics = args.inputs[2].as<float>() + number * rows_of(shape) * 2,
                    .log_sums = reinterpret_cast<float*>(log_sums)};
  void* made = dq;
  if (in_place) {
    // The workspace has all heads of these entries: other groups read what dq belongs over, so that
    // it is copied when the last one has made its heads.
    made = staged + place.group * shape.heads * shape.width * kElementBytes;
    const bool is_last = place.group + 1 == shape.groups;
    void* const of_entries = heads_at(shape, args.outputs, {.entry = place.entry})[0];
    part.dq = StagedResult{
        .made = staged, .belongs = is_last ? of_entries : staged, .bytes = bytes_of_result(shape)};
  }
  if (!shape.bias.empty()) part.operands.push_back(bias_at(shape, forward[3], place));
  part.operands.insert(part.operands.end(),
                       {args.inputs[1].as<std::byte>() + y, args.inputs[0].as<std::byte>() + y,
                        log_sums, shifts, dv, dk, made});
  return part;
}

void run_backward(const RunArgs& args) {
  const auto& call = *static_cast<const GradientCall*>(args.state);
  std::vector<GradientPart> parts;
  for (std::int64_t number = 0; number < call.parts; ++number) {
    parts.push_back(gradient_part(call, args, number));
    if (!lie_aligned(parts.back().operands)) return call.own.run(args);
  }
  const AttentionShape& shape = call.part;
  void* const rest = static_cast<std::byte*>(args.workspace) + call.bytes_before();
  for (const GradientPart& part : parts) {
    row_log_sums(part.statistics, part.log_sums, rows_of(shape), args.call);
    call.plan->run(part.operands, rest, args.call);
    part.dq.finish(args.call);
  }
}

}  // namespace

void add_cudnn_attention(KernelTable& table) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    table.add("Attention", dtype,
              {.name = "attention.cudnn",
               .supports = supports_forward,
               .prepare = prepare_forward,
               .run = run_forward});
    table.add("AttentionGrad", dtype,
              {.name = "attention_grad.cudnn",
               .supports = supports_backward,
               .prepare = prepare_backward,
               .run = run_backward});
  }
}

}  // namespace trainscope::cuda
