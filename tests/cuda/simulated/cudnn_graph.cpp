// Ops out of their descriptors, sizes against each other, the order of ops.
#include "tests/cuda/simulated/cudnn_graph.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace trainscope::simulated {
namespace {

GraphTensor tensor_of(const Descriptor& d) {
  return {.uid = d.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
          .type = d.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
          .dims = d.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
          .strides = d.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
          .alignment = d.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
          .is_virtual = d.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL),
          .is_value = d.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
}

// Where an op's operands are among its attributes. kNone, which no op has: there is none such.
constexpr auto kNone = CUDNN_ATTR_POINTWISE_MODE;
struct OperandNames {
  cudnnBackendAttributeName_t x, b, mask, y, how, alpha, beta;
};
OperandNames names_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
              kNone,
              kNone};
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_MATMUL_ADESC,
              CUDNN_ATTR_OPERATION_MATMUL_BDESC,
              kNone,
              CUDNN_ATTR_OPERATION_MATMUL_CDESC,
              CUDNN_ATTR_OPERATION_MATMUL_DESC,
              kNone,
              kNone};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return {
          CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kNone, kNone, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
          CUDNN_ATTR_OPERATION_REDUCTION_DESC,  kNone, kNone};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
              kNone,
              kNone,
              CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
              kNone,
              kNone,
              kNone};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              kNone,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              kNone,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              kNone,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

bool is_op(cudnnBackendDescriptorType_t type) {
  constexpr cudnnBackendDescriptorType_t kOps[] = {
      CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
  return std::ranges::find(kOps, type) != std::end(kOps);
}

std::optional<GraphTensor> operand(const Descriptor& op, cudnnBackendAttributeName_t name) {
  if (name == kNone || !op.has(name)) return std::nullopt;
  return tensor_of(op.part(name));
}

GraphOp op_of(const Descriptor& d) {
  const OperandNames names = names_of(d.type);
  const auto uid = [&](cudnnBackendAttributeName_t name) {
    const std::optional<GraphTensor> tensor = operand(d, name);
    return tensor ? tensor->uid : std::int64_t{0};
  };
  GraphOp op{.type = d.type,
             .x = uid(names.x),
             .b = uid(names.b),
             .mask = uid(names.mask),
             .y = uid(names.y)};
  if (names.alpha != kNone) op.alpha = d.one<float>(names.alpha);
  if (names.beta != kNone) op.beta = d.one<float>(names.beta);
  if (names.how == kNone) return op;
  const Descriptor& how = d.part(names.how);
  op.pointwise = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  op.axis = how.one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
  op.reduction = how.one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
  op.window = {.flips = how.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) ==
                        CUDNN_CONVOLUTION,
               .stride = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
               .dilation = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS),
               .pad_begin = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
               .pad_end = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)};
  return op;
}

cudnnStatus_t wrong_sizes(const char* of) {
  return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, std::string("the sizes of ") + of);
}

bool divides_each(const Dims& parts, const Dims& whole) {
  if (parts.size() != whole.size()) return false;
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    if (whole[axis] % parts[axis] != 0) return false;
  }
  return true;
}
bool broadcasts_to(const Dims& from, const Dims& to) {
  if (from.size() != to.size()) return false;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[axis]) return false;
  }
  return true;
}

cudnnStatus_t check_pointwise(const GraphOp& op, const GraphTensor& x,
                              const std::optional<GraphTensor>& b,
                              const std::optional<GraphTensor>& mask, const GraphTensor& y) {
  const bool is_unary =
      op.pointwise == CUDNN_POINTWISE_EXP || op.pointwise == CUDNN_POINTWISE_LOG ||
      op.pointwise == CUDNN_POINTWISE_IDENTITY || op.pointwise == CUDNN_POINTWISE_GEN_INDEX;
  const bool selects = op.pointwise == CUDNN_POINTWISE_BINARY_SELECT;
  if (is_unary == b.has_value() || selects != mask.has_value()) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "the operands of a pointwise op");
  }
  if (selects && mask->type != CUDNN_DATA_BOOLEAN) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "what selects is no truth value");
  }
  const bool indexes = op.pointwise == CUDNN_POINTWISE_GEN_INDEX;
  if (indexes && (op.axis < 0 || op.axis >= static_cast<std::int64_t>(x.dims.size()))) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "the axis of an index");
  }
  const bool well = broadcasts_to(x.dims, y.dims) && (!b || broadcasts_to(b->dims, y.dims)) &&
                    (!mask || broadcasts_to(mask->dims, y.dims));
  return well ? CUDNN_STATUS_SUCCESS : wrong_sizes("a pointwise op");
}

// Batch axes of an operand are shared by as many of the result, one after the other.
cudnnStatus_t check_matmul(const GraphTensor& a, const GraphTensor& b, const GraphTensor& c) {
  const std::size_t rank = c.dims.size();
  if (a.dims.size() != rank || b.dims.size() != rank || rank < 3) return wrong_sizes("a matmul");
  const auto batch = [&](const GraphTensor& t) { return Dims(t.dims.begin(), t.dims.end() - 2); };
  const bool well = a.dims[rank - 1] == b.dims[rank - 2] && a.dims[rank - 2] == c.dims[rank - 2] &&
                    b.dims[rank - 1] == c.dims[rank - 1] && divides_each(batch(a), batch(c)) &&
                    divides_each(batch(b), batch(c));
  return well ? CUDNN_STATUS_SUCCESS : wrong_sizes("a matmul");
}

cudnnStatus_t check_conv(const GraphOp& op, const GraphTensor& in, const GraphTensor& w,
                         const GraphTensor& out) {
  const std::size_t rank = in.dims.size();
  const ConvWindow& window = op.window;
  if (w.dims.size() != rank || out.dims.size() != rank || window.stride.size() + 2 != rank) {
    return wrong_sizes("a convolution");
  }
  bool well = in.dims[0] == out.dims[0] && w.dims[0] == out.dims[1] &&
              in.dims[1] % w.dims[1] == 0 && out.dims[1] % (in.dims[1] / w.dims[1]) == 0;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
    const std::int64_t reach = (w.dims[axis + 2] - 1) * window.dilation[axis] + 1;
    const std::int64_t padded = in.dims[axis + 2] + window.pad_begin[axis] + window.pad_end[axis];
    well =
        well && padded >= reach && (padded - reach) / window.stride[axis] + 1 == out.dims[axis + 2];
  }
  return well ? CUDNN_STATUS_SUCCESS : wrong_sizes("a convolution");
}

// Ops in an order in which what each reads is there.
bool put_in_order(OpGraph& graph) {
  std::set<std::int64_t> made;
  for (const GraphOp& op : graph.ops) {
    if (!made.insert(op.y).second) return false;  // made twice
  }
  std::set<std::int64_t> missing = made;
  std::vector<GraphOp> open = std::exchange(graph.ops, {});
  while (!open.empty()) {
    const auto ready = std::ranges::find_if(open, [&](const GraphOp& op) {
      return !missing.contains(op.x) && !missing.contains(op.b) && !missing.contains(op.mask);
    });
    if (ready == open.end()) return false;
    missing.erase(ready->y);
    graph.ops.push_back(*ready);
    open.erase(ready);
  }
  return std::ranges::all_of(graph.tensors, [&](const auto& each) {
    return !each.second.is_virtual || made.contains(each.first);
  });
}

}  // namespace

cudnnStatus_t check_tensor(const Descriptor& descriptor) {
  const GraphTensor tensor = tensor_of(descriptor);
  const bool positive = std::ranges::all_of(tensor.dims, [](std::int64_t d) { return d > 0; });
  const bool well = tensor.dims.size() == tensor.strides.size() && positive &&
                    tensor.alignment > 0 && !(tensor.is_virtual && tensor.is_value) &&
                    tensor.uid != 0;
  return well ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "a tensor's attributes");
}

cudnnStatus_t check_convolution(const Descriptor& d) {
  const auto rank =
      static_cast<std::size_t>(d.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  const auto all_at_least = [&](cudnnBackendAttributeName_t name, std::int64_t least) {
    const Dims values = d.all<std::int64_t>(name);
    return values.size() == rank &&
           std::ranges::all_of(values, [&](std::int64_t v) { return v >= least; });
  };
  const bool well = all_at_least(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1) &&
                    all_at_least(CUDNN_ATTR_CONVOLUTION_DILATIONS, 1) &&
                    all_at_least(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0) &&
                    all_at_least(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0);
  return well ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "a convolution's attributes");
}

cudnnStatus_t check_op(const Descriptor& descriptor) {
  const OperandNames names = names_of(descriptor.type);
  const GraphOp op = op_of(descriptor);
  const GraphTensor x = tensor_of(descriptor.part(names.x));
  const GraphTensor y = tensor_of(descriptor.part(names.y));
  const std::optional<GraphTensor> b = operand(descriptor, names.b);
  switch (descriptor.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return check_pointwise(op, x, b, operand(descriptor, names.mask), y);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return check_matmul(x, *b, y);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return divides_each(y.dims, x.dims) ? CUDNN_STATUS_SUCCESS : wrong_sizes("a reduction");
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return check_conv(op, x, *b, y);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return check_conv(op, y, *b, x);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return check_conv(op, *b, y, x);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

std::shared_ptr<const OpGraph> op_graph(const Descriptor& descriptor, cudnnStatus_t* status) {
  const auto graph = std::make_shared<OpGraph>();
  for (void* address : descriptor.all<void*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    const Descriptor& op = *static_cast<const Descriptor*>(address);
    if (!is_op(op.type)) {
      *status = refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "an op graph of what is no op");
      return nullptr;
    }
    const OperandNames names = names_of(op.type);
    for (const auto name : {names.x, names.b, names.mask, names.y}) {
      const std::optional<GraphTensor> tensor = operand(op, name);
      if (!tensor) continue;
      const auto [found, is_new] = graph->tensors.emplace(tensor->uid, *tensor);
      if (!is_new && found->second != *tensor) {
        *status = refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "two tensors have one uid");
        return nullptr;
      }
    }
    graph->ops.push_back(op_of(op));
  }
  if (put_in_order(*graph)) return graph;
  *status = refuse(CUDNN_STATUS_BAD_PARAM, "ops that make no graph");
  return nullptr;
}

}  // namespace trainscope::simulated
