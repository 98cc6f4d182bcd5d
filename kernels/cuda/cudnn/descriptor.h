// A descriptor of cuDNN's backend API: made, given attributes, finalized, destroyed with its owner.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace trainscope::cuda {

// What went wrong first in a row of calls; none is made after it.
class CudnnFailure {
 public:
  bool none() const { return text_.empty(); }
  // Whether something is broken: a library is missing, memory has run out, a call was wrong. False
  // also of a refusal, that the library has no way to do what it was asked for: another way may be
  // tried then.
  bool is_fault() const;
  cudnnStatus_t status() const { return status_; }
  // "cudnnBackendFinalize of a matmul: status ...".
  const std::string& text() const { return text_; }
  void check(cudnnStatus_t status, const std::string& what);
  // What is no call's failure.
  void say(std::string text) {
    if (none()) text_ = std::move(text);
  }

 private:
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  std::string text_;
};

// By what cuDNN calls the type of an attribute's elements.
template <typename T>
inline constexpr cudnnBackendAttributeType_t kAttributeType = [] {
  static_assert(sizeof(T) == 0, "no attribute has elements of this type");
  return CUDNN_TYPE_HANDLE;
}();
template <>
inline constexpr auto kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto kAttributeType<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto kAttributeType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto kAttributeType<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr auto kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto kAttributeType<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto kAttributeType<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;

class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  // `name` is for errors, in static storage: "matmul".
  CudnnDescriptor(CudnnFailure& failure, cudnnBackendDescriptorType_t type, const char* name);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, const T& value) {
    return set_elements(attribute, kAttributeType<T>, 1, &value);
  }
  template <typename T>
  CudnnDescriptor& set_all(cudnnBackendAttributeName_t attribute, std::span<const T> values) {
    return set_elements(attribute, kAttributeType<T>, static_cast<std::int64_t>(values.size()),
                        values.data());
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, const CudnnDescriptor& value);
  CudnnDescriptor& set_all(cudnnBackendAttributeName_t attribute,
                           std::span<const CudnnDescriptor> values);
  void finalize();

 private:
  CudnnDescriptor& set_elements(cudnnBackendAttributeName_t attribute,
                                cudnnBackendAttributeType_t type, std::int64_t count,
                                const void* elements);

  CudnnFailure* failure_ = nullptr;
  const char* name_ = "";
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace trainscope::cuda
