// cuDNN, simulated: the functions of its backend API that the back end calls. It has few engines,
// but for any graph of the ops that it knows; some of them are such as nobody may choose who wants
// deterministic sums, or f32.
#include <cudnn_graph.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda/simulated/cudnn_execution.h"
#include "tests/cuda/simulated/cudnn_graph.h"
#include "tests/cuda/simulated/runtime.h"

namespace trainscope::simulated {
namespace {

// What a plan asks for, and what its run then writes: nobody else may use it.
constexpr std::size_t kWorkspaceBytes = 4096;

struct Handle {
  cudaStream_t stream = nullptr;
};
Handle* handle_of(cudnnHandle_t handle) { return reinterpret_cast<Handle*>(handle); }

// The status that TRAINSCOPE_SIMULATED_CUDNN_FAULT asks for at a place: "plan 4001" where a plan is
// finalized, "graph 1002" and "heuristics 4003" likewise, "handle 1008" where one is made.
cudnnStatus_t asked_fault(std::string_view place) {
  const char* const asked = std::getenv("TRAINSCOPE_SIMULATED_CUDNN_FAULT");
  std::istringstream words(asked == nullptr ? "" : asked);
  std::string at;
  int status = 0;
  words >> at >> status;
  if (at != place) return CUDNN_STATUS_SUCCESS;
  return refuse(static_cast<cudnnStatus_t>(status), "the environment asks for it");
}

cudnnStatus_t asked_fault_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return asked_fault("graph");
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return asked_fault("heuristics");
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return asked_fault("plan");
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

struct Engine {
  Flaw flaw;
  std::vector<std::int32_t> notes;
  bool tells_notes = true;
};
constexpr std::int32_t kNoteOfLaterVersions = CUDNN_NUMERICAL_NOTE_TYPE_COUNT + 3;
const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = {
      {Flaw::kUnordered, {}, false},
      {Flaw::kUnordered, {kNoteOfLaterVersions}},
      {Flaw::kUnordered, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
      {Flaw::kLowSums, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}},
      {Flaw::kTf32, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
      {Flaw::kNone, {}}};
  return all;
}
constexpr std::int64_t kTf32Engine = 4;
constexpr std::int64_t kRightEngine = 5;

bool is_short(cudnnDataType_t type) {
  return type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF;
}

// Engines of this graph, by number, in the order in which heuristics propose them. As the
// library's: matmuls run on tensor cores alone, which take rows of 16 bytes; elements of two bytes
// they take as they are.
std::vector<std::int64_t> engines_for(const OpGraph& graph) {
  bool multiplies = false;
  bool is_two_bytes = false;
  for (const GraphOp& op : graph.ops) {
    multiplies = multiplies || op.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  }
  for (const auto& [uid, tensor] : graph.tensors) {
    if (tensor.is_virtual || !is_short(tensor.type)) continue;
    is_two_bytes = true;
    const auto row = std::ranges::find(tensor.strides, 1) - tensor.strides.begin();
    if (multiplies && tensor.dims[static_cast<std::size_t>(row)] % 8 != 0) {
      (void)refuse(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "rows of heads are no multiple of 8");
      return {};
    }
  }
  std::vector<std::int64_t> numbers = {0, 1, 2, 3};
  if (!is_two_bytes) numbers.push_back(kTf32Engine);
  if (!multiplies || is_two_bytes) numbers.push_back(kRightEngine);
  return numbers;
}

const Engine& engine_of(const Descriptor& descriptor) {
  return engines()[static_cast<std::size_t>(descriptor.engine)];
}

cudnnStatus_t finalize(Descriptor& descriptor) {
  cudnnStatus_t status = check_attributes(descriptor);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  switch (descriptor.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(descriptor);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return check_convolution(descriptor);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return check_op(descriptor);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      descriptor.graph = op_graph(descriptor, &status);
      return status;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      descriptor.graph = descriptor.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).graph;
      return status;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Descriptor& config = descriptor.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      descriptor.graph = config.graph;
      descriptor.engine = config.engine;
      return status;
    }
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return status;
    default:  // engines and their configurations are given, not made
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "a descriptor that nobody finalizes");
  }
}

// The descriptors of the caller become what is found; all where there is room for them.
cudnnStatus_t give(const Descriptor& from, const std::vector<std::int64_t>& found,
                   cudnnBackendDescriptorType_t type, std::int64_t room, std::int64_t* count,
                   void* elements) {
  const auto given = std::min<std::int64_t>(room, static_cast<std::int64_t>(found.size()));
  *count = room == 0 ? static_cast<std::int64_t>(found.size()) : given;
  for (std::int64_t i = 0; i < given; ++i) {
    Descriptor* const to = live_descriptor(static_cast<void**>(elements)[i]);
    if (to == nullptr || to->type != type) {
      return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "no descriptor for what is found");
    }
    to->graph = from.graph;
    to->engine = found[static_cast<std::size_t>(i)];
    to->finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

template <typename T>
cudnnStatus_t give_values(const std::vector<T>& values, std::int64_t room, std::int64_t* count,
                          void* elements) {
  *count = static_cast<std::int64_t>(values.size());
  if (room < *count) return refuse(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "room for values");
  std::memcpy(elements, values.data(), values.size() * sizeof(T));
  return CUDNN_STATUS_SUCCESS;
}

// The operands of a graph out of a pack, each of which must be there and lie as it was said.
cudnnStatus_t operands_of(const OpGraph& graph, const Descriptor& pack, Operands* operands) {
  const auto uids = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (uids.size() != pointers.size()) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "as many addresses as uids");
  }
  for (std::size_t i = 0; i < uids.size(); ++i) {
    const auto found = graph.tensors.find(uids[i]);
    if (found == graph.tensors.end() || found->second.is_virtual || pointers[i] == nullptr) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "an address of no operand, or none");
    }
    const auto alignment = static_cast<std::uintptr_t>(found->second.alignment);
    if (found->second.is_value) {
      operands->values[uids[i]] = static_cast<double>(*static_cast<const float*>(pointers[i]));
    } else if (reinterpret_cast<std::uintptr_t>(pointers[i]) % alignment == 0) {
      operands->memory[uids[i]] = pointers[i];
    } else {
      return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "an operand's address");
    }
  }
  for (const auto& [uid, tensor] : graph.tensors) {
    if (tensor.is_virtual || operands->memory.contains(uid) || operands->values.contains(uid)) {
      continue;
    }
    return refuse(CUDNN_STATUS_BAD_PARAM, "an operand has no address");
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace trainscope::simulated

using namespace trainscope::simulated;  // NOLINT: what follows is C's

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "a simulated status";
}
void cudnnGetLastErrorString(char* message, std::size_t bytes) {
  if (bytes == 0) return;
  const std::string words = last_words().substr(0, bytes - 1);
  std::memcpy(message, words.c_str(), words.size() + 1);
  last_words().clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const cudnnStatus_t status = asked_fault("handle");
  if (status != CUDNN_STATUS_SUCCESS) return status;
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle());
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle_of(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new_descriptor(type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  if (destroy_descriptor(descriptor)) return CUDNN_STATUS_SUCCESS;
  return refuse(CUDNN_STATUS_BAD_PARAM, "no descriptor");
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t object,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* elements) {
  Descriptor* const descriptor = live_descriptor(object);
  if (descriptor == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
  if (descriptor->finalized) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an attribute of a finalized descriptor");
  }
  const cudnnStatus_t status = check_attribute(*descriptor, name, type, count);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  Attribute& attribute = descriptor->attributes[name];
  attribute.type = type;
  attribute.count = count;
  attribute.bytes.resize(static_cast<std::size_t>(count) * bytes_of_element(type));
  std::memcpy(attribute.bytes.data(), elements, attribute.bytes.size());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const object,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t room,
                                       std::int64_t* count, void* elements) {
  const Descriptor* const from = live_descriptor(object);
  if (from == nullptr || !from->finalized) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "what is asked for an attribute");
  }
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return give(*from, engines_for(*from->graph), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, room, count,
                  elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return give(*from, {from->engine}, CUDNN_BACKEND_ENGINE_DESCRIPTOR, room, count, elements);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give_values<std::int64_t>({from->engine}, room, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      if (!engine_of(*from).tells_notes) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "notes that cannot be read");
      }
      return give_values(engine_of(*from).notes, room, count, elements);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give_values<std::int64_t>({std::int64_t{kWorkspaceBytes}}, room, count, elements);
    default:
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an attribute that nobody asks for");
  }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t object) {
  Descriptor* const descriptor = live_descriptor(object);
  if (descriptor == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
  cudnnStatus_t status = asked_fault_of(descriptor->type);
  if (status == CUDNN_STATUS_SUCCESS) status = finalize(*descriptor);
  descriptor->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_object,
                                  cudnnBackendDescriptor_t pack_object) {
  const Descriptor* const plan = live_descriptor(plan_object);
  const Descriptor* const pack = live_descriptor(pack_object);
  const auto is_ready = [](const Descriptor* descriptor, cudnnBackendDescriptorType_t type) {
    return descriptor != nullptr && descriptor->type == type && descriptor->finalized;
  };
  if (!is_ready(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) ||
      !is_ready(pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the plan or the pack");
  }
  Operands operands;
  const cudnnStatus_t status = operands_of(*plan->graph, *pack, &operands);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  void* const workspace = pack->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (workspace == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the workspace");
  runtime().add(handle_of(handle)->stream, [=, graph = plan->graph, flaw = engine_of(*plan).flaw] {
    std::memset(workspace, 0xFF, kWorkspaceBytes);
    execute(*graph, operands, flaw);
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
