// Tensors as dense arrays of doubles; strides count only where one is read or written.
#include "tests/cuda/simulated/cudnn_execution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/api/low_precision.h"
#include "tests/cuda/simulated/cudnn_convolution.h"

namespace trainscope::simulated {
namespace {

using Values = std::vector<double>;

std::int64_t count_of(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  return count;
}

Dims dense(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

// Calls f(offsets) for every index of `dims`, the last axis first.
template <std::size_t kTensors, class F>
void walk(const Dims& dims, const std::array<Dims, kTensors>& strides, F f) {
  std::array<std::int64_t, kTensors> at = {};
  Dims index(dims.size(), 0);
  for (std::int64_t left = count_of(dims); left > 0; --left) {
    f(at);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      const bool ends = ++index[axis] == dims[axis];
      for (std::size_t t = 0; t < kTensors; ++t) {
        at[t] += ends ? -strides[t][axis] * (dims[axis] - 1) : strides[t][axis];
      }
      if (!ends) break;
      index[axis] = 0;
    }
  }
}

double rounded(double value, cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return static_cast<double>(
          static_cast<float>(static_cast<BFloat16>(static_cast<float>(value))));
    case CUDNN_DATA_HALF:
      return static_cast<double>(
          static_cast<float>(static_cast<Float16>(static_cast<float>(value))));
    case CUDNN_DATA_FLOAT:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

double load(const void* memory, cudnnDataType_t type, std::int64_t at) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return static_cast<double>(static_cast<float>(static_cast<const BFloat16*>(memory)[at]));
    case CUDNN_DATA_HALF:
      return static_cast<double>(static_cast<float>(static_cast<const Float16*>(memory)[at]));
    case CUDNN_DATA_INT32:
      return static_cast<const std::int32_t*>(memory)[at];
    default:
      return static_cast<double>(static_cast<const float*>(memory)[at]);
  }
}

void store(void* memory, cudnnDataType_t type, std::int64_t at, double value) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      static_cast<BFloat16*>(memory)[at] = static_cast<BFloat16>(static_cast<float>(value));
      return;
    case CUDNN_DATA_HALF:
      static_cast<Float16*>(memory)[at] = static_cast<Float16>(static_cast<float>(value));
      return;
    case CUDNN_DATA_INT32:
      static_cast<std::int32_t*>(memory)[at] = static_cast<std::int32_t>(value);
      return;
    default:
      static_cast<float*>(memory)[at] = static_cast<float>(value);
  }
}

// --- Flaws ---------------------------------------------------------------------------------------

double factor_of(double value, Flaw flaw) {
  if (flaw != Flaw::kTf32) return value;
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>((bits + 0x1000U) & ~0x1FFFU));
}

// Adds one product.
void add_to(double& sum, double product, Flaw flaw) {
  sum += product;
  if (flaw == Flaw::kLowSums) sum = rounded(sum, CUDNN_DATA_BFLOAT16);
}

double sum_of(double sum, Flaw flaw) {
  if (flaw != Flaw::kUnordered) return sum;
  static std::minstd_rand random(1);  // goes on from run to run
  return sum * (1.0 + 1e-6 * static_cast<double>(random() % 1000));
}

// --- Ops -----------------------------------------------------------------------------------------

// The stride of an operand along the axes of a result that it is broadcast to.
Dims broadcast_strides(const Dims& dims) {
  Dims strides = dense(dims);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) strides[axis] = 0;
  }
  return strides;
}

double pointwise_of(cudnnPointwiseMode_t mode, double x, double b) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1.0 : 0.0;
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

// The place of each batch of a result in an operand of which several batches share one.
Dims batch_places(const Dims& of, const Dims& result) {
  const Dims batch(result.begin(), result.end() - 2);
  const Dims strides = dense(of);
  Dims places;
  Dims index(batch.size(), 0);
  for (std::int64_t left = count_of(batch); left > 0; --left) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < batch.size(); ++axis) {
      place += index[axis] * of[axis] / batch[axis] * strides[axis];
    }
    places.push_back(place);
    for (std::size_t axis = batch.size(); axis-- > 0;) {
      if (++index[axis] < batch[axis]) break;
      index[axis] = 0;
    }
  }
  return places;
}

class Execution {
 public:
  Execution(const OpGraph& graph, const Operands& operands, Flaw flaw)
      : graph_(graph), operands_(operands), flaw_(flaw) {}

  void run() {
    for (const GraphOp& op : graph_.ops) {
      const GraphTensor& y = graph_.tensor(op.y);
      Values result = computed(op);
      for (double& value : result) value = rounded(value, y.type);
      if (!y.is_virtual) write(y, result);
      made_[op.y] = std::move(result);
    }
  }

 private:
  // Dense: a result of an op before it, or what the memory holds.
  const Values& values(std::int64_t uid) {
    const auto found = made_.find(uid);
    if (found != made_.end()) return found->second;
    const GraphTensor& tensor = graph_.tensor(uid);
    Values& read = made_[uid];
    if (tensor.is_value) {
      read.push_back(operands_.values.at(uid));
      return read;
    }
    const void* memory = operands_.memory.at(uid);
    walk<1>(tensor.dims, {tensor.strides},
            [&](const auto& at) { read.push_back(load(memory, tensor.type, at[0])); });
    return read;
  }

  void write(const GraphTensor& tensor, const Values& result) const {
    void* memory = operands_.memory.at(tensor.uid);
    walk<2>(tensor.dims, {tensor.strides, dense(tensor.dims)}, [&](const auto& at) {
      store(memory, tensor.type, at[0], result[static_cast<std::size_t>(at[1])]);
    });
  }

  Values computed(const GraphOp& op) {
    switch (op.type) {
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise(op);
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return matmul(op);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduction(op);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape(op);
      default:
        return convolution(op);
    }
  }

  Values pointwise(const GraphOp& op) {
    const Dims& dims = graph_.tensor(op.y).dims;
    Values result(static_cast<std::size_t>(count_of(dims)));
    if (op.pointwise == CUDNN_POINTWISE_GEN_INDEX) {
      const auto axis = static_cast<std::size_t>(op.axis);
      const std::int64_t inner = dense(dims)[axis];
      for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = static_cast<double>(static_cast<std::int64_t>(i) / inner % dims[axis]);
      }
      return result;
    }
    const std::int64_t b_uid = op.b == 0 ? op.x : op.b;
    const std::int64_t mask_uid = op.mask == 0 ? op.x : op.mask;
    const Values& x = values(op.x);
    const Values& b = values(b_uid);
    const Values& mask = values(mask_uid);
    const auto strides = [&](std::int64_t uid) {
      return broadcast_strides(graph_.tensor(uid).dims);
    };
    std::size_t i = 0;
    walk<3>(dims, {strides(op.x), strides(b_uid), strides(mask_uid)}, [&](const auto& at) {
      const double left = x[static_cast<std::size_t>(at[0])];
      const double right = b[static_cast<std::size_t>(at[1])];
      const double selected = mask[static_cast<std::size_t>(at[2])] != 0.0 ? left : right;
      result[i++] = op.mask != 0 ? selected : pointwise_of(op.pointwise, left, right);
    });
    return result;
  }

  Values matmul(const GraphOp& op) {
    const GraphTensor& c = graph_.tensor(op.y);
    const Dims& a_dims = graph_.tensor(op.x).dims;
    const Dims& b_dims = graph_.tensor(op.b).dims;
    const std::int64_t m = c.dims[c.dims.size() - 2];
    const std::int64_t n = c.dims.back();
    const std::int64_t k = a_dims.back();
    const Dims a_places = batch_places(a_dims, c.dims);
    const Dims b_places = batch_places(b_dims, c.dims);
    const Values& a = values(op.x);
    const Values& b = values(op.b);
    Values result(static_cast<std::size_t>(count_of(c.dims)));
    for (std::size_t batch = 0; batch < a_places.size(); ++batch) {
      const double* const left = a.data() + a_places[batch];
      const double* const right = b.data() + b_places[batch];
      double* const sums = result.data() + static_cast<std::int64_t>(batch) * m * n;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t d = 0; d < k; ++d) {
          const double factor = factor_of(left[i * k + d], flaw_);
          for (std::int64_t j = 0; j < n; ++j) {
            add_to(sums[i * n + j], factor * factor_of(right[d * n + j], flaw_), flaw_);
          }
        }
      }
    }
    for (double& sum : result) sum = sum_of(sum, flaw_);
    return result;
  }

  Values reduction(const GraphOp& op) {
    const Dims& from = graph_.tensor(op.x).dims;
    const Dims& to = graph_.tensor(op.y).dims;
    const bool adds = op.reduction == CUDNN_REDUCE_TENSOR_ADD;
    const bool is_max = op.reduction == CUDNN_REDUCE_TENSOR_MAX;
    const double first = adds     ? 0.0
                         : is_max ? -std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::quiet_NaN();
    Values result(static_cast<std::size_t>(count_of(to)), first);
    const Values& x = values(op.x);
    const Dims strides = dense(to);
    Dims index(from.size(), 0);
    for (const double value : x) {
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < from.size(); ++axis) {
        at += index[axis] * to[axis] / from[axis] * strides[axis];
      }
      double& sum = result[static_cast<std::size_t>(at)];
      sum = adds ? sum + value : !(value <= sum) ? value : sum;
      for (std::size_t axis = from.size(); axis-- > 0;) {
        if (++index[axis] < from[axis]) break;
        index[axis] = 0;
      }
    }
    return result;
  }

  // What lies at the same distance from the first element.
  Values reshape(const GraphOp& op) {
    const GraphTensor& from = graph_.tensor(op.x);
    const GraphTensor& to = graph_.tensor(op.y);
    const Values& x = values(op.x);
    std::map<std::int64_t, double> by_distance;
    std::size_t i = 0;
    walk<1>(from.dims, {from.strides}, [&](const auto& at) { by_distance[at[0]] = x[i++]; });
    Values result;
    walk<1>(to.dims, {to.strides}, [&](const auto& at) {
      const auto found = by_distance.find(at[0]);
      result.push_back(found == by_distance.end() ? std::numeric_limits<double>::quiet_NaN()
                                                  : found->second);
    });
    return result;
  }

  // Of the three tensors, two are multiplied and the third one is added up.
  Values convolution(const GraphOp& op) {
    const bool is_input = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    const bool is_weight =
        op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    const std::int64_t in = is_input ? op.y : is_weight ? op.b : op.x;
    const std::int64_t weight = is_weight ? op.y : op.b;
    const std::int64_t out = is_input || is_weight ? op.x : op.y;
    const ConvSizes sizes =
        conv_sizes(op, graph_.tensor(in).dims, graph_.tensor(weight).dims, graph_.tensor(out).dims);
    Values left = values(op.x);
    Values right = values(op.b);
    for (double& value : left) value = factor_of(value, flaw_);
    for (double& value : right) value = factor_of(value, flaw_);
    Values sums(static_cast<std::size_t>(count_of(graph_.tensor(op.y).dims)), 0.0);
    const auto element = [](Values& of, std::int64_t at) -> double& {
      return of[static_cast<std::size_t>(at)];
    };
    for_each_product(sizes, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
      if (is_input) {
        add_to(element(sums, x), element(left, y) * element(right, w), flaw_);
      } else if (is_weight) {
        add_to(element(sums, w), element(left, y) * element(right, x), flaw_);
      } else {
        add_to(element(sums, y), element(left, x) * element(right, w), flaw_);
      }
    });
    const Values before = op.beta == 0.0F ? Values(sums.size(), 0.0) : values(op.y);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = static_cast<double>(op.alpha) * sum_of(sums[i], flaw_) +
                static_cast<double>(op.beta) * before[i];
    }
    return sums;
  }

  const OpGraph& graph_;
  const Operands& operands_;
  const Flaw flaw_;
  std::map<std::int64_t, Values> made_;  // by uid
};

}  // namespace

void execute(const OpGraph& graph, const Operands& operands, Flaw flaw) {
  Execution(graph, operands, flaw).run();
}

}  // namespace trainscope::simulated
