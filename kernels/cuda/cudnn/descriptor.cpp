// Calls of the backend API on one descriptor, up to the first that fails.
#include "kernels/cuda/cudnn/descriptor.h"

#include <utility>
#include <vector>

#include "kernels/cuda/cudnn/cudnn.h"

namespace trainscope::cuda {
namespace {

std::string call_of(const char* function, const char* name) {
  return std::string(function) + " of a descriptor (" + name + ")";
}

}  // namespace

// Refusals are the statuses of this range, but for those that tell of the machine.
bool CudnnFailure::is_fault() const {
  constexpr int kFirstRefusal = CUDNN_STATUS_NOT_SUPPORTED;
  constexpr int kLastRefusal = kFirstRefusal + 999;
  switch (status_) {
    case CUDNN_STATUS_SUCCESS:
      return false;
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
      return true;
    default:
      return static_cast<int>(status_) < kFirstRefusal || static_cast<int>(status_) > kLastRefusal;
  }
}

void CudnnFailure::check(cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS || !none()) return;
  status_ = status;
  text_ = cudnn().error_text(status, what);
}

CudnnDescriptor::CudnnDescriptor(CudnnFailure& failure, cudnnBackendDescriptorType_t type,
                                 const char* name)
    : failure_(&failure), name_(name) {
  if (!failure.none()) return;
  failure.check(cudnn().create_descriptor(type, &descriptor_),
                call_of("cudnnBackendCreateDescriptor", name));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) (void)cudnn().destroy_descriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept { *this = std::move(other); }

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(failure_, other.failure_);
  std::swap(name_, other.name_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

CudnnDescriptor& CudnnDescriptor::set_elements(cudnnBackendAttributeName_t attribute,
                                               cudnnBackendAttributeType_t type, std::int64_t count,
                                               const void* elements) {
  if (!failure_->none()) return *this;
  const cudnnStatus_t status = cudnn().set_attribute(descriptor_, attribute, type, count, elements);
  if (status == CUDNN_STATUS_SUCCESS) return *this;
  failure_->check(status, call_of("cudnnBackendSetAttribute", name_) + ", attribute " +
                              std::to_string(static_cast<int>(attribute)));
  return *this;
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t attribute,
                                      const CudnnDescriptor& value) {
  return set_elements(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

CudnnDescriptor& CudnnDescriptor::set_all(cudnnBackendAttributeName_t attribute,
                                          std::span<const CudnnDescriptor> values) {
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (const CudnnDescriptor& value : values) descriptors.push_back(value.descriptor_);
  return set_elements(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      static_cast<std::int64_t>(descriptors.size()), descriptors.data());
}

void CudnnDescriptor::finalize() {
  if (!failure_->none()) return;
  failure_->check(cudnn().finalize(descriptor_), call_of("cudnnBackendFinalize", name_));
}

}  // namespace trainscope::cuda
