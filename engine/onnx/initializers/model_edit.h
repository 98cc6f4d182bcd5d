// Changes to the initializers and nodes of a model that was just read.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/onnx/initializers/folded.h"
#include "engine/onnx/model_impl.h"

namespace trainscope {

class ModelEdit {
 public:
  explicit ModelEdit(OnnxModel::Impl& model);

  OnnxModel::Impl& model() { return model_; }
  const pb::NodeProto& node(int index) const { return model_.proto.graph().node(index); }
  // Of a node of the file, before any is added or removed.
  const NodeMarks& marks(int index) const {
    return model_.marks.nodes[static_cast<std::size_t>(index)];
  }
  int node_count() const { return model_.proto.graph().node_size(); }

  // The initializer's index, -1 when there is none of that name.
  int find(std::string_view name) const;
  bool is_float_initializer(std::string_view name) const;
  const TensorType& type(int index) const;
  SharedTensor elements(int index) const { return model_.tensor(index); }
  // Whether both have equal bytes under one type.
  bool equal(int index, const Tensor& other) const;
  // Whether a node of the file reads the initializer.
  bool is_read(std::string_view name) const { return find(name) >= 0 && read_.contains(name); }
  // Whether it is an input of the graph.
  bool is_input(const std::string& name) const;
  // Whether an initializer can have that name: it is one, and no node, value or initializer has it.
  bool is_free(const std::string& name) const;
  // `wanted`, or the next name after it that is free.
  std::string free_name(std::string wanted) const;
  // Whether the elements can be read.
  bool has_elements(int index) const { return !model_.is_unread(index); }

  void add(const std::string& name, SharedTensor elements, const RestoredInitializer& restored);
  // The elements of initializer `from` under another name.
  void copy(int from, const std::string& name, const std::string& how);

  void set_input(int node, int slot, const std::string& name);
  void remove_node(int node) { removed_.insert(node); }
  void insert_before(int node, pb::NodeProto added) { added_[node].push_back(std::move(added)); }
  // Puts nodes in their places and makes the model's index anew.
  void finish();

 private:
  void drop_unread();

  OnnxModel::Impl& model_;
  std::unordered_map<std::string, int> index_;
  std::unordered_set<std::string> names_;
  std::set<std::string, std::less<>> read_;  // by nodes of the file
  std::unordered_set<int> removed_;
  std::map<int, std::vector<pb::NodeProto>> added_;  // by the node that they stand before
};

}  // namespace trainscope
