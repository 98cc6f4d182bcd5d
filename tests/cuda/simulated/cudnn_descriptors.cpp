// The attributes of each descriptor that the back end uses; others are not supported here.
#include "tests/cuda/simulated/cudnn_descriptors.h"

#include <optional>
#include <set>
#include <span>

namespace trainscope::simulated {
namespace {

constexpr std::int64_t kMostAxes = CUDNN_DIM_MAX;
constexpr std::int64_t kMany = 1 << 20;

struct Rule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t most = 1;  // elements
  bool is_needed = true;
  // Of what it refers to.
  std::optional<cudnnBackendDescriptorType_t> part = std::nullopt;
};
constexpr Rule part(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) {
  return {name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, type};
}
constexpr Rule tensor(cudnnBackendAttributeName_t name) {
  return part(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
}
constexpr Rule optional_tensor(cudnnBackendAttributeName_t name) {
  return {name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false, CUDNN_BACKEND_TENSOR_DESCRIPTOR};
}

constexpr Rule kTensorRules[] = {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
                                 {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, kMostAxes},
                                 {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, kMostAxes},
                                 {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
                                 {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
                                 {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, false},
                                 {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, false}};
constexpr Rule kPointwiseRules[] = {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
                                    {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
                                    {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, false}};
constexpr Rule kPointwiseOpRules[] = {
    part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
    tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
    optional_tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
    optional_tensor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC),
    tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)};
constexpr Rule kMatmulRules[] = {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}};
constexpr Rule kMatmulOpRules[] = {
    part(CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_BACKEND_MATMUL_DESCRIPTOR),
    tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC), tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC),
    tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC)};
constexpr Rule kReductionRules[] = {
    {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
    {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}};
constexpr Rule kReductionOpRules[] = {
    part(CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_BACKEND_REDUCTION_DESCRIPTOR),
    tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC), tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC)};
constexpr Rule kReshapeOpRules[] = {tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
                                    tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)};
constexpr Rule kConvRules[] = {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
                               {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
                               {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64},
                               {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, kMostAxes},
                               {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, kMostAxes},
                               {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, kMostAxes},
                               {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, kMostAxes}};
constexpr Rule kForwardRules[] = {
    part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT}};
constexpr Rule kGradInputRules[] = {
    part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT}};
constexpr Rule kGradWeightRules[] = {
    part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
    tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT}};
constexpr Rule kGraphRules[] = {
    {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMany}};
constexpr Rule kHeuristicsRules[] = {
    part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
    {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE}};
constexpr Rule kPlanRules[] = {
    {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
    part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)};
constexpr Rule kPackRules[] = {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, kMany},
                               {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, kMany},
                               {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}};

std::span<const Rule> rules_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return kTensorRules;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return kPointwiseRules;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return kPointwiseOpRules;
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
      return kMatmulRules;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return kMatmulOpRules;
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
      return kReductionRules;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return kReductionOpRules;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return kReshapeOpRules;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return kConvRules;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return kForwardRules;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return kGradInputRules;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return kGradWeightRules;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return kGraphRules;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return kHeuristicsRules;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return kPlanRules;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return kPackRules;
    default:
      return {};
  }
}

std::set<Descriptor*>& descriptors() {
  static std::set<Descriptor*> live;
  return live;
}

std::string name_of(cudnnBackendAttributeName_t name) {
  return "attribute " + std::to_string(static_cast<int>(name));
}

cudnnStatus_t check_parts(const Descriptor& descriptor, const Rule& rule) {
  for (void* address : descriptor.all<void*>(rule.name)) {
    const Descriptor* referred = live_descriptor(address);
    if (referred == nullptr) {
      return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name_of(rule.name) + " is no descriptor");
    }
    if (!referred->finalized) {
      return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, name_of(rule.name) + " is not finalized");
    }
    if (rule.part.has_value() && referred->type != *rule.part) {
      return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                    name_of(rule.name) + " is a descriptor of another type");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

std::string& last_words() {
  static std::string words;
  return words;
}

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& reason) {
  last_words() += "Warning: simulated status " + std::to_string(static_cast<int>(status)) +
                  "; Reason: " + reason + "\n";
  return status;
}

Descriptor* live_descriptor(cudnnBackendDescriptor_t descriptor) {
  auto* const object = static_cast<Descriptor*>(descriptor);
  return descriptors().contains(object) ? object : nullptr;
}

Descriptor* new_descriptor(cudnnBackendDescriptorType_t type) {
  auto* const made = new Descriptor();
  made->type = type;
  descriptors().insert(made);
  return made;
}

bool destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
  Descriptor* const object = live_descriptor(descriptor);
  descriptors().erase(object);
  delete object;
  return object != nullptr;
}

cudnnStatus_t check_attribute(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, std::int64_t count) {
  for (const Rule& rule : rules_of(descriptor.type)) {
    if (rule.name != name) continue;
    if (rule.type != type) {
      return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, name_of(name) + " has another type");
    }
    if (count < 1 || count > rule.most) {
      return refuse(CUDNN_STATUS_BAD_PARAM, name_of(name) + " has another number of elements");
    }
    return CUDNN_STATUS_SUCCESS;
  }
  return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the descriptor has no " + name_of(name));
}

cudnnStatus_t check_attributes(const Descriptor& descriptor) {
  for (const Rule& rule : rules_of(descriptor.type)) {
    if (!descriptor.has(rule.name)) {
      if (!rule.is_needed) continue;
      return refuse(CUDNN_STATUS_BAD_PARAM, name_of(rule.name) + " is not set");
    }
    if (rule.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
    const cudnnStatus_t status = check_parts(descriptor, rule);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  return CUDNN_STATUS_SUCCESS;
}

std::size_t bytes_of_element(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
      return sizeof(std::int64_t);
    case CUDNN_TYPE_FLOAT:
      return sizeof(float);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    default:
      return sizeof(cudnnDataType_t);  // enumerations
  }
}

}  // namespace trainscope::simulated
