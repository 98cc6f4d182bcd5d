// Each tensor and op of a graph as a descriptor; heuristics; notes of engines.
#include "kernels/cuda/cudnn/graph_descriptors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "kernels/cuda/cudnn/cudnn.h"

namespace trainscope::cuda {
namespace {

constexpr std::int64_t kAlignment = 16;  // bytes, of every operand
constexpr std::int64_t kMostNotes = 64;  // of an engine: room for those of later versions

// Makes the descriptors of one graph.
class Describer {
 public:
  Describer(const OpGraph& graph, CudnnFailure& failure) : graph_(graph), failure_(failure) {}

  GraphDescriptors describe(const CudnnTarget& target) {
    for (const GraphTensor& tensor : graph_.tensors()) add_tensor(tensor);
    for (const GraphOp& op : graph_.ops()) ops_.push_back(described(op));
    GraphDescriptors made;
    if (target.handle == nullptr) {
      made.device = CudnnDescriptor(failure_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device");
      made.device
          .set_all(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                   std::span(target.description.data(), target.description.size()))
          .finalize();
    }
    made.graph = CudnnDescriptor(failure_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "op graph");
    made.graph.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const CudnnDescriptor>(ops_));
    if (target.handle != nullptr) {
      made.graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
    }
    made.graph.finalize();
    for (std::vector<CudnnDescriptor>* part : {&tensors_, &ops_, &parts_}) {
      std::ranges::move(*part, std::back_inserter(made.parts));
    }
    return made;
  }

 private:
  void add_tensor(const GraphTensor& tensor) {
    CudnnDescriptor descriptor(failure_, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
    const auto uid = static_cast<std::int64_t>(tensors_.size() + 1);
    descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.type)
        .set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(tensor.dims))
        .set_all(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(tensor.strides))
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.place == TensorPlace::kVirtual)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, tensor.place == TensorPlace::kValue)
        .finalize();
    tensors_.push_back(std::move(descriptor));
  }

  const CudnnDescriptor& tensor(TensorId id) const {
    return tensors_[static_cast<std::size_t>(id)];
  }

  CudnnDescriptor described(const GraphOp& op) {
    switch (op.kind) {
      case GraphOpKind::kPointwise:
        return pointwise(op);
      case GraphOpKind::kMatmul:
        return matmul(op);
      case GraphOpKind::kReduction:
        return reduction(op);
      case GraphOpKind::kReshape:
        return reshape(op);
      case GraphOpKind::kConv:
        return convolution(op, kForward);
      case GraphOpKind::kConvGradInput:
        return convolution(op, kGradInput);
      case GraphOpKind::kConvGradWeight:
        return convolution(op, kGradWeight);
    }
    return {};
  }

  CudnnDescriptor pointwise(const GraphOp& op) {
    CudnnDescriptor how(failure_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise mode");
    how.set(CUDNN_ATTR_POINTWISE_MODE, op.pointwise)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    if (op.pointwise == CUDNN_POINTWISE_GEN_INDEX) how.set(CUDNN_ATTR_POINTWISE_AXIS, op.axis);
    how.finalize();
    CudnnDescriptor made(failure_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise op");
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(op.x))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(op.y));
    if (op.b != kNoTensor) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(op.b));
    if (op.mask != kNoTensor) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensor(op.mask));
    return done(std::move(made), std::move(how));
  }

  CudnnDescriptor matmul(const GraphOp& op) {
    CudnnDescriptor how(failure_, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
    CudnnDescriptor made(failure_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul op");
    made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(op.x))
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(op.b))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor(op.y));
    return done(std::move(made), std::move(how));
  }

  CudnnDescriptor reduction(const GraphOp& op) {
    CudnnDescriptor how(failure_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, op.reduction)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .finalize();
    CudnnDescriptor made(failure_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction op");
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor(op.x))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(op.y));
    return done(std::move(made), std::move(how));
  }

  CudnnDescriptor reshape(const GraphOp& op) {
    CudnnDescriptor made(failure_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape op");
    made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensor(op.x))
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensor(op.y));
    made.finalize();
    return made;
  }

  // What the three convolutions are called, by attribute: x is what is read first.
  struct ConvNames {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, b, y, alpha, beta;
  };
  static constexpr ConvNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr ConvNames kGradInput{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr ConvNames kGradWeight{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

  CudnnDescriptor convolution(const GraphOp& op, const ConvNames& names) {
    const auto rank = static_cast<std::size_t>(op.window.rank);
    const auto of = [rank](const Spatial& values) { return std::span(values.data(), rank); };
    CudnnDescriptor how(failure_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
    how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{op.window.rank})
        .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
        .set_all(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, of(op.window.pad_begin))
        .set_all(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, of(op.window.pad_end))
        .set_all(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, of(op.window.stride))
        .set_all(CUDNN_ATTR_CONVOLUTION_DILATIONS, of(op.window.dilation))
        .finalize();
    CudnnDescriptor made(failure_, names.type, "convolution op");
    made.set(names.conv, how)
        .set(names.x, tensor(op.x))
        .set(names.b, tensor(op.b))
        .set(names.y, tensor(op.y))
        .set(names.alpha, 1.0F)
        .set(names.beta, 0.0F);
    return done(std::move(made), std::move(how));
  }

  // The op refers to what says how it is computed, which is kept.
  CudnnDescriptor done(CudnnDescriptor made, CudnnDescriptor how) {
    made.finalize();
    parts_.push_back(std::move(how));
    return made;
  }

  const OpGraph& graph_;
  CudnnFailure& failure_;
  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> ops_;
  std::vector<CudnnDescriptor> parts_;
};

// Why no engine takes a graph, of what the library said: a block for each engine, which begins with
// a brace and whose first line is its reason. Engines for other GPUs say nothing of the graph; of
// the others, those that name its sizes, types or strides know best.
std::string reasons_of(const std::string& words) {
  constexpr std::string_view kMark = "Reason: ";
  std::string reasons;
  bool are_best = false;
  bool begins = true;
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t mark = line.find(kMark);
    const bool is_reason = begins && mark != std::string::npos;
    begins = line.starts_with('{') || (begins && !is_reason);
    if (!is_reason || line.find("_ARCH_MISMATCH") < mark) continue;
    const bool is_best =
        line.find("_SHAPE") < mark || line.find("_DATA_TYPE") < mark || line.find("_LAYOUT") < mark;
    if (are_best && !is_best) continue;
    if (is_best && !are_best) reasons.clear();
    are_best = is_best;
    const std::string reason = line.substr(mark + kMark.size());
    if (reasons.find(reason) != std::string::npos) continue;
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return reasons;
}

// What an attribute holds, or nothing and why: up to `most` elements.
template <typename T>
std::vector<T> attribute_of(const CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t most,
                            CudnnFailure& failure) {
  if (!failure.none()) return {};
  const std::string what = "cudnnBackendGetAttribute " + std::to_string(static_cast<int>(name));
  std::vector<T> values(static_cast<std::size_t>(most));
  std::int64_t count = 0;
  failure.check(cudnn().get_attribute(descriptor.get(), name, type, most, &count, values.data()),
                what);
  if (count < 0 || count > most) failure.say(what + ": " + std::to_string(count) + " elements");
  values.resize(failure.none() ? static_cast<std::size_t>(count) : 0);
  return values;
}

// The one number that an attribute holds; 0, and why, where it holds none.
std::int64_t number_of(const CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name,
                       CudnnFailure& failure) {
  const auto numbers = attribute_of<std::int64_t>(descriptor, name, CUDNN_TYPE_INT64, 1, failure);
  if (!numbers.empty()) return numbers[0];
  failure.say("cudnnBackendGetAttribute " + std::to_string(static_cast<int>(name)) +
              ": it holds nothing");
  return 0;
}

// What can be read of a configuration; the failure says why not all that a choice needs.
EngineConfig engine_config(CudnnDescriptor config, CudnnFailure& failure) {
  EngineConfig found;
  found.config = std::move(config);
  found.engine = CudnnDescriptor(failure, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  if (!failure.none()) return found;
  cudnnBackendDescriptor_t engine = found.engine.get();
  std::int64_t count = 0;
  failure.check(
      cudnn().get_attribute(found.config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, static_cast<void*>(&engine)),
      "cudnnBackendGetAttribute of an engine");
  if (count != 1) failure.say("a configuration has no engine");
  found.index = number_of(found.engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, failure);
  found.notes = attribute_of<std::int32_t>(found.engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE, kMostNotes, failure);
  CudnnFailure of_plans_alone;
  found.workspace_bytes =
      number_of(found.config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, of_plans_alone);
  return found;
}

// Of the configurations that a mode gives those that can be read. The failure is the mode's, or
// says why the first one cannot be read.
void add_proposed(const GraphDescriptors& graph, cudnnBackendHeurMode_t mode, CudnnFailure& failure,
                  std::vector<EngineConfig>& configs) {
  CudnnDescriptor heuristics(failure, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (graph.device.get() != nullptr) {
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, graph.device);
  }
  heuristics.finalize();
  std::int64_t count = 0;
  if (!failure.none()) return;
  failure.check(cudnn().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                "cudnnBackendGetAttribute of the heuristics' results");
  std::vector<CudnnDescriptor> results;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count && failure.none(); ++i) {
    results.emplace_back(failure, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
    handles.push_back(results.back().get());
  }
  if (!failure.none() || results.empty()) return;
  failure.check(cudnn().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                                      static_cast<void*>(handles.data())),
                "cudnnBackendGetAttribute of the heuristics' results");
  if (!failure.none()) return;
  results.resize(static_cast<std::size_t>(count));
  for (CudnnDescriptor& result : results) {
    CudnnFailure of_result;
    EngineConfig config = engine_config(std::move(result), of_result);
    if (of_result.none()) {
      configs.push_back(std::move(config));
    } else {
      failure.say(of_result.text());
    }
  }
}

}  // namespace

GraphDescriptors describe_graph(const OpGraph& graph, const CudnnTarget& target,
                                CudnnFailure& failure) {
  return Describer(graph, failure).describe(target);
}

bool EngineConfig::has(cudnnBackendNumericalNote_t note) const {
  return std::ranges::find(notes, static_cast<std::int32_t>(note)) != notes.end();
}

// One of the two lists may be empty, or refused.
std::vector<EngineConfig> engine_configs(const GraphDescriptors& graph, CudnnFailure& failure) {
  std::vector<EngineConfig> configs;
  if (!failure.none()) return configs;
  (void)cudnn().last_words();
  CudnnFailure refusal;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnFailure of_mode;
    add_proposed(graph, mode, of_mode, configs);
    if (of_mode.is_fault()) {
      failure = of_mode;
      return {};
    }
    if (refusal.none()) refusal = of_mode;
  }
  if (!configs.empty()) return configs;
  failure = refusal;
  const std::string reasons = reasons_of(cudnn().last_words());
  failure.say("cuDNN has no engine for it" + (reasons.empty() ? "" : ": " + reasons));
  return configs;
}

std::string why_not_used(const EngineConfig& config, cudnnDataType_t type,
                         std::size_t most_workspace_bytes) {
  constexpr auto kKnownNotes = static_cast<std::int32_t>(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto is_unknown = [](std::int32_t note) { return note < 0 || note >= kKnownNotes; };
  if (std::ranges::any_of(config.notes, is_unknown)) {
    return "it has a note on its numbers that this build does not know";
  }
  if (config.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "its sums have no fixed order";
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) {
    if (config.has(note)) return "it transforms numbers";
  }
  if (config.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) {
    return "it adds in less than f32";
  }
  if (type == CUDNN_DATA_FLOAT && (config.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ||
                                   config.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))) {
    return "it multiplies in TF32";
  }
  if (static_cast<std::size_t>(config.workspace_bytes) > most_workspace_bytes) {
    return "its workspace is larger than " + std::to_string(most_workspace_bytes) + " bytes";
  }
  return {};
}

CudnnDescriptor plan_descriptor(const EngineConfig& config, const GraphDescriptors& graph,
                                const CudnnTarget& target, CudnnFailure& failure) {
  CudnnDescriptor plan(failure, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.config);
  if (target.handle != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, graph.device);
  }
  plan.finalize();
  return plan;
}

std::int64_t plan_workspace_bytes(const CudnnDescriptor& plan, CudnnFailure& failure) {
  return number_of(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, failure);
}

}  // namespace trainscope::cuda
