// Descriptors of a simulated cuDNN: attributes as they were given, and what is asked of them when a
// descriptor is finalized.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace trainscope::simulated {

// What is refused is said as the library does: a status, and a line for cudnnGetLastErrorString.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string& reason);
std::string& last_words();

struct OpGraph;
struct ExecutionPlan;

struct Attribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  std::shared_ptr<const OpGraph> graph;  // of an op graph, and of what is made of it
  std::int64_t engine = 0;               // of an engine, its configuration and a plan

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
  template <typename T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.bytes.size() / sizeof(T));
    if (!values.empty())
      std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T one(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    const auto found = attributes.find(name);
    if (found != attributes.end()) std::memcpy(&otherwise, found->second.bytes.data(), sizeof(T));
    return otherwise;
  }
  const Descriptor& part(cudnnBackendAttributeName_t name) const {
    return *static_cast<const Descriptor*>(one<void*>(name));
  }
};

// Null where it is no descriptor, or none any more.
Descriptor* live_descriptor(cudnnBackendDescriptor_t descriptor);
Descriptor* new_descriptor(cudnnBackendDescriptorType_t type);
bool destroy_descriptor(cudnnBackendDescriptor_t descriptor);

// Whether it has an attribute of this name, with elements of this type, so many of them.
cudnnStatus_t check_attribute(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, std::int64_t count);
// Whether all attributes that it needs are there, and the descriptors that it refers to are
// finalized and of the right type.
cudnnStatus_t check_attributes(const Descriptor& descriptor);
std::size_t bytes_of_element(cudnnBackendAttributeType_t type);

}  // namespace trainscope::simulated
