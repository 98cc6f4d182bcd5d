// Where a node or value comes from: the ties between kernel, node, stage and ONNX node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/sole_owner.h"

namespace trainscope {

// The number of a node or value, by which every stage of a compilation knows it: it gets one when
// it is added to the graph, copies of the graph keep it, and no other node or value ever gets it.
enum class Serial : std::int32_t {};
inline constexpr Serial kNoSerial{0};

// A list that copies share until one of them adds to it: most nodes that passes make have the
// sources of another, and each stage's graph those of the one before.
template <typename T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}
  explicit SharedList(std::vector<T> items) {
    if (!items.empty()) items_ = std::make_shared<std::vector<T>>(std::move(items));
  }

  const std::vector<T>& list() const {
    static const std::vector<T> none;
    return items_ ? *items_ : none;
  }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  std::size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  void add(T item) {
    if (!is_sole_owner(items_)) items_ = std::make_shared<std::vector<T>>(list());
    items_->push_back(std::move(item));
  }
  bool operator==(const SharedList& other) const { return list() == other.list(); }

 private:
  std::shared_ptr<std::vector<T>> items_;  // null: none
};

// Provenance::pass of what is computed a second time, offloaded or fetched.
inline constexpr const char* kRematerializedBy = "recompute";

using SourceNames = SharedList<std::string>;  // names of ONNX nodes
using Serials = SharedList<Serial>;

struct Provenance {
  // Names of the ONNX nodes it stems from, in model order. The first is its primary source: what is
  // counted by ONNX node (time, bytes) is counted there, once.
  SourceNames sources;
  std::string pass;  // the pass that made it ("import" for the model's own)
  // Of what differentiation made: the node whose gradient it is a part of. It may be gone since:
  // the rewrite logs say what became of it.
  Serial backward_of = kNoSerial;
  // Of what is computed a second time: the node that computes it first.
  Serial rematerialized_of = kNoSerial;
};

}  // namespace trainscope
