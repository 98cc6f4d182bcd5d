// Nodes, types and attributes in the plugin interface's form.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/attributes.h"
#include "engine/ir/op_def.h"
#include "include/trainscope/plugin.h"
#include "kernels/api/kernel.h"

namespace trainscope {

// A struct that a plugin gave, as far as it has one: fields that it was built without are zeros.
// None where the size that it begins with is no size of this struct.
template <typename T>
std::optional<T> taken(const T* given) {
  if (given == nullptr || given->size < sizeof(given->size)) return std::nullopt;
  T own;
  std::memset(static_cast<void*>(&own), 0, sizeof(own));
  std::memcpy(static_cast<void*>(&own), given, std::min(given->size, sizeof(own)));
  return own;
}

plugin::TensorType plugin_type(const TensorType& type);
// None for a type of elements that there is not, and for dimensions that are none.
std::optional<TensorType> engine_type(const plugin::TensorType& type);
std::optional<DType> engine_dtype(std::int32_t onnx_number);
plugin::Tensor plugin_tensor(const TensorView& view);

// Attributes of a node, and the memory that they point to. Tensors are left out.
class PluginAttributes {
 public:
  explicit PluginAttributes(const Attributes& attributes);
  PluginAttributes(const PluginAttributes&) = delete;

  std::span<const plugin::Attribute> list() const { return list_; }

 private:
  Attributes owner_;
  std::vector<plugin::Attribute> list_;
};

// What is asked about a node while a graph is built or planned: its operands and what it reports.
class NodeCall {
 public:
  explicit NodeCall(const OpArgs& args);
  NodeCall(const NodeCall&) = delete;

  const plugin::Call& call() const { return call_; }
  // Throws kBadInput, with what the plugin reported, if it did.
  void check() const;

 private:
  static void report(const plugin::Call* call, const char* message);

  PluginAttributes attributes_;
  std::vector<plugin::Tensor> inputs_;
  std::vector<plugin::Tensor> outputs_;
  plugin::Call call_;
  std::optional<std::string> reported_;
};

}  // namespace trainscope
