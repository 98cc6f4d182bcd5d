// A node of a model, while the importer writes it with the ops that have rows.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/onnx/importer/import_scope.h"

namespace trainscope {

// Constants that several nodes of a model are written with, by what they are.
using SharedConstants = std::map<std::string, ValueId>;

// What a composition adds to.
struct CompositionTarget {
  Graph& graph;
  Builder& builder;
  ImportScope& scope;
  const Provenance& provenance;  // of the ONNX node
  SharedConstants& shared;
};

// Nodes are built at once, so that the type of every value is known to what comes after it.
class Composition {
 public:
  Composition(CompositionTarget target, const SourceNode& node) : to_(target), node_(node) {}

  const SourceNode& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  bool has(std::size_t input) const {
    return input < node_.inputs.size() && !node_.inputs[input].empty();
  }
  // kBadInput when the node does not give it.
  ValueId input(std::size_t i) const;
  std::vector<ValueId> inputs() const;  // all of them; kNoValue: left out
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }
  // Elements known before the run, or null.
  const Tensor* known(std::size_t input) const { return to_.scope.known(node_, input); }
  const Tensor* known_value(ValueId v) const;
  Ints known_ints(std::size_t input) const { return to_.scope.known_ints(node_, input); }

  bool has_row(std::string_view op) const { return to_.builder.ops().find(op) != nullptr; }
  // One node, its first output.
  ValueId operator()(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> multi(std::string_view op, std::vector<ValueId> inputs, std::size_t outputs,
                             Attributes attributes = {});
  ValueId constant(Tensor tensor);
  // The constant that `make` gives, made for the first node that asks for what the key says.
  template <typename Make>
  ValueId shared_constant(const std::string& key, Make make) {
    const auto found = to_.shared.find(key);
    if (found != to_.shared.end()) return found->second;
    return to_.shared[key] = constant(make());
  }
  ValueId ints(const Ints& values) { return constant(Tensor::ints(values)); }
  ValueId scalar(double value, DType dtype);

  // `v` itself where nothing is to be done.
  ValueId cast(ValueId v, DType dtype);
  ValueId reshape(ValueId v, const Ints& dims);
  ValueId transpose(ValueId v, Ints permutation);
  // v[..., begin:end, ...] of one axis.
  ValueId slice(ValueId v, int axis, std::int64_t begin, std::int64_t end);
  ValueId concat(std::vector<ValueId> values, std::int64_t axis);
  ValueId add(ValueId a, ValueId b) { return (*this)("Add", {a, b}); }
  ValueId multiply(ValueId a, ValueId b) { return (*this)("Mul", {a, b}); }
  ValueId scaled(ValueId v, double factor);

  TensorType type(ValueId v) const { return to_.graph.value(v).type; }  // a copy: the graph grows
  Shape shape(ValueId v) const { return type(v).shape; }
  DType dtype(ValueId v) const { return type(v).dtype; }

  // Output i of the node is v. Outputs that the node does not ask for are ignored.
  void result(std::size_t output, ValueId v);
  // Outputs that the node asks for and that have no result yet are not there.
  void finish() const;

  template <typename... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok)
      fail(ErrorCode::kBadInput, "{}: {}", label(),
           fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void require_supported(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok) fail_unsupported("{}: {}", label(), fmt::format(format, std::forward<Args>(args)...));
  }
  std::string label() const;

 private:
  CompositionTarget to_;
  const SourceNode& node_;
  std::unordered_set<std::string> made_;  // names of values without a name in the model
  std::vector<bool> done_ = std::vector<bool>(node_.outputs.size(), false);
};

}  // namespace trainscope
