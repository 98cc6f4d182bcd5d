// Conv, ConvGradInput and ConvGradWeight by cuDNN.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/cuda/cudnn/conv_graphs.h"
#include "kernels/cuda/cudnn/cudnn_kernels.h"
#include "kernels/cuda/cudnn/own_kernel.h"
#include "kernels/cuda/cudnn/plan.h"

namespace trainscope::cuda {
namespace {

ConvShape shape_of(const PrepareArgs& args, const TensorView& x, const TensorView& w,
                   const TensorView& y) {
  return {.type = cudnn_type(args.outputs[0].type.dtype),
          .window = std::get<ConvParams>(args.params).window,
          .x = x.shape(),
          .w = w.shape(),
          .y = y.shape(),
          .has_bias = false};
}

// The three ops. Operands of their graphs are the inputs and the output, in their order.
struct Forward {
  static constexpr std::string_view kOp = "Conv";
  static constexpr std::string_view kName = "conv.cudnn";
  static OpGraph graph(const PrepareArgs& args) {
    ConvShape shape = shape_of(args, args.inputs[0], args.inputs[1], args.outputs[0]);
    shape.has_bias = args.inputs.size() > 2 && args.inputs[2].present;
    return conv_graph(shape);
  }
};
struct GradInput {
  static constexpr std::string_view kOp = "ConvGradInput";
  static constexpr std::string_view kName = "conv_grad_input.cudnn";
  static OpGraph graph(const PrepareArgs& args) {
    return conv_grad_input_graph(shape_of(args, args.outputs[0], args.inputs[1], args.inputs[0]));
  }
};
struct GradWeight {
  static constexpr std::string_view kOp = "ConvGradWeight";
  static constexpr std::string_view kName = "conv_grad_weight.cudnn";
  static OpGraph graph(const PrepareArgs& args) {
    return conv_grad_weight_graph(shape_of(args, args.inputs[0], args.outputs[0], args.inputs[1]));
  }
};

template <class Op>
PlannedGraph planned_for(const PrepareArgs& args) {
  const OpGraph graph = Op::graph(args);
  return planned(graph, most_conv_workspace_bytes(graph));
}

struct ConvCall {
  std::shared_ptr<const CudnnPlan> plan;
  OwnKernel own;
};

template <class Op>
Support supports_conv(const PrepareArgs& args) {
  for (const TensorView& view : {args.inputs[0], args.inputs[1], args.outputs[0]}) {
    if (view.elements() == 0) return {"a tensor is empty"};
  }
  const PlannedGraph graph = planned_for<Op>(args);
  return supported_if(graph.plan != nullptr, graph.why_not);
}

template <class Op>
Prepared prepare_conv(const PrepareArgs& args) {
  const std::shared_ptr<const CudnnPlan> plan = planned_for<Op>(args).plan;
  const auto call = std::make_shared<ConvCall>(
      ConvCall{.plan = plan, .own = OwnKernel(Op::kOp, args.outputs[0].type.dtype, args)});
  return {.workspace_bytes = std::max(plan->workspace_bytes(), call->own.workspace_bytes()),
          .state = call};
}

void run_conv(const RunArgs& args) {
  const auto& call = *static_cast<const ConvCall*>(args.state);
  std::vector<void*> operands;
  for (const TensorView& input : args.inputs) {
    if (input.present) operands.push_back(input.data);
  }
  operands.push_back(args.outputs[0].data);
  if (!lie_aligned(operands)) return call.own.run(args);
  call.plan->run(operands, args.workspace, args.call);
}

template <class Op>
void add_conv_op(KernelTable& table) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    table.add(Op::kOp, dtype,
              {.name = Op::kName,
               .supports = supports_conv<Op>,
               .prepare = prepare_conv<Op>,
               .run = run_conv});
  }
}

}  // namespace

void add_cudnn_conv(KernelTable& table) {
  add_conv_op<Forward>(table);
  add_conv_op<GradInput>(table);
  add_conv_op<GradWeight>(table);
}

}  // namespace trainscope::cuda
