// The graph: nodes in topological order over single-assignment values with known types.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/ir/attributes.h"
#include "engine/ir/name_index.h"
#include "engine/ir/provenance.h"
#include "engine/ir/rewrite_notes.h"
#include "engine/ir/sole_owner.h"
#include "kernels/api/tensor_view.h"

namespace trainscope {

struct OpDef;
enum class ValueId : std::int32_t {};
enum class NodeId : std::int32_t {};
inline constexpr ValueId kNoValue{-1};  // an optional input or output that is left out
inline constexpr NodeId kNoNode{-1};

enum class Phase : std::uint8_t { kForward, kBackward, kUpdate };
std::string_view name_of(Phase phase);

// Where a value's bytes come from.
enum class ValueKind : std::uint8_t {
  kInput,      // bound anew each step: model inputs, labels, step number, learning rate
  kParameter,  // trainable initializer, persistent
  kState,      // persistent and updated by the step, not trained: running statistics, moments
  kConstant,   // initializer that never changes
  kNode,       // output of a node
};
std::string_view name_of(ValueKind kind);

struct Use {
  NodeId node;
  int input = 0;
  bool operator==(const Use&) const = default;
};

struct Value {
  std::string name;
  TensorType type;
  ValueKind kind = ValueKind::kNode;
  // Constants: their elements. Parameters and states: the initial elements (null: zeros). Node
  // outputs: the elements when they are known at compile time, else null.
  SharedTensor data;
  NodeId producer = kNoNode;
  int producer_output = 0;
  Serial serial = kNoSerial;
  // Of a complete gradient: the values whose it is, as differentiation had them. Several where a
  // gradient passes through unchanged (x and y of x + y). They may be gone since.
  Serials gradient_of;
  std::vector<Use> uses;  // of live nodes, in any order; graph outputs and updates are not in here
  bool erased = false;
};

struct Node {
  const OpDef* op = nullptr;
  std::string name;
  std::vector<ValueId> inputs;         // kNoValue: optional input left out
  std::vector<ValueId> outputs;        // kNoValue: optional output left out
  std::vector<std::size_t> use_slots;  // by input: where it is in its value's uses; Graph's own
  Attributes attributes;
  Phase phase = Phase::kForward;
  Provenance provenance;
  Serial serial = kNoSerial;
  NodeId previous = kNoNode;  // the order of execution, a linked list
  NodeId next = kNoNode;
  bool erased = false;
};

// After a step the storage of `state` (parameter or state) holds `value`.
struct Update {
  ValueId state;
  ValueId value;
};

// d loss / d `of`.
struct GradientOf {
  ValueId of;
  ValueId gradient;
};

// Invariants, checked by verify(): the linked list visits every live node once, in an order where
// each input is an input, initializer or earlier output; each value has one producer at most; uses
// are exactly the inputs of live nodes; types are what the op's shape rule gives; names of values
// are unique, and so are those of nodes; no two of both have one serial; provenance is not empty,
// and no forward node is part of a gradient. Mutation goes through Builder
// (append) and Rewriter only; the lists of outputs, updates and gradients may grow and shrink,
// their entries change by replace_output() only.
//
// A copy shares nodes and values with its original until one of the two is about to change, which
// a value() or node() that is not const counts as: it may move them elsewhere. Several threads may
// read one graph while none changes it.
class Graph {
 public:
  std::string name;
  int opset = 17;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Update> updates;
  std::vector<GradientOf> gradients;
  ValueId loss = kNoValue;
  // What the present pass noted of its changes; the pass manager takes it.
  RewriteNotes notes;

  const Value& value(ValueId id) const { return shared_->values[index(id)]; }
  Value& value(ValueId id) { return own().values[index(id)]; }
  const Node& node(NodeId id) const { return shared_->nodes[index(id)]; }
  Node& node(NodeId id) { return own().nodes[index(id)]; }

  // Counts include erased entries: valid bounds for dense side tables.
  std::size_t value_capacity() const { return shared_->values.size(); }
  std::size_t node_capacity() const { return shared_->nodes.size(); }
  std::size_t node_count() const { return live_nodes_; }
  // The highest that a node or value ever got in this graph or those that it is a copy of.
  Serial last_serial() const { return last_serial_; }

  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  std::vector<NodeId> order() const;         // live nodes in order of execution
  std::vector<ValueId> live_values() const;  // by id
  std::vector<ValueId> values_of(ValueKind kind) const;

  ValueId find(std::string_view value_name) const;     // kNoValue when there is none
  NodeId find_node(std::string_view node_name) const;  // kNoNode when there is none
  bool is_output(ValueId id) const;  // a graph output, update value, gradient or the loss
  // Puts `to` wherever `from` is one of these, or what a gradient is of; false when it is nowhere.
  bool replace_output(ValueId from, ValueId to);
  // Takes these off the list of graph outputs: a step need not keep their bytes to its end.
  void release_outputs(std::span<const ValueId> released);

  // Forgets the initial elements of parameters and states, in all copies too that share them.
  void release_initial();

  // `wanted` if it is free, else wanted_1, wanted_2, ...
  std::string unique_name(std::string_view wanted);

  // Adds a value that no node produces; the name must be unused. It gets a new serial.
  ValueId add_value(Value value);
  // Adds a node before `before` (kNoNode: at the end) with new values for its outputs (names; an
  // empty name leaves the output out). Where another node has its name, or it has none, it gets
  // one: name_1, name_2, ... All get new serials. Used by Builder and the importer.
  NodeId add_node(Node node, const std::vector<Value>& output_values, NodeId before);

  // The serials that a stage file has for them.
  void restore_serial(ValueId id, Serial serial);
  void restore_serial(NodeId id, Serial serial);

  // Used by Rewriter only.
  void set_input(NodeId node, int input, ValueId value);
  void erase_node(NodeId node);  // its outputs must be unused; they are erased too
  void erase_value(ValueId value);
  void rename(ValueId value, std::string name);
  // A copy without erased entries, ids dense in order of execution.
  Graph compacted() const { return reordered(order()); }
  // ... with the live nodes in another topological order.
  Graph reordered(std::span<const NodeId> nodes) const;

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  std::string unique_node_name(std::string wanted);
  Serial next_serial();
  void link(NodeId id, NodeId before);
  void add_use(NodeId id, std::size_t input);
  void remove_use(NodeId id, std::size_t input);

  struct Storage {
    std::vector<Value> values;
    std::vector<Node> nodes;
    NameIndex by_name;        // positions in values
    NameIndex nodes_by_name;  // positions in nodes
  };
  Storage& own() {
    if (!is_sole_owner(shared_)) shared_ = std::make_shared<Storage>(*shared_);
    return *shared_;
  }

  std::shared_ptr<Storage> shared_ = std::make_shared<Storage>();
  std::unordered_map<std::string, int> name_hints_;  // the last suffix tried
  std::unordered_map<std::string, int> node_name_hints_;

  // What is_output() says, by value, for the first entries of the lists: they only grow as a rule.
  // The thread that finds longer lists first brings it up to them. A copy begins empty.
  class OutputIndex {
   public:
    OutputIndex() = default;
    OutputIndex(OutputIndex&&) noexcept {}
    OutputIndex& operator=(OutputIndex&&) noexcept;
    OutputIndex(const OutputIndex&) {}
    OutputIndex& operator=(const OutputIndex&);

    void update(const Graph& graph);
    void exchange(const Graph& graph, ValueId from, ValueId to);
    bool is_output(ValueId id) const { return is_output_[index(id)]; }
    bool has_gradient(ValueId id) const { return has_gradient_[index(id)]; }

   private:
    bool covers(const Graph& graph) const;
    void extend(const Graph& graph);

    std::mutex mutex_;
    std::vector<bool> is_output_;
    std::vector<bool> has_gradient_;
    // Stored after what they say is in the two lists above.
    std::atomic<std::size_t> values_ = 0;
    std::atomic<std::size_t> outputs_ = 0;
    std::atomic<std::size_t> updates_ = 0;
    std::atomic<std::size_t> gradients_ = 0;
    std::atomic<ValueId> loss_ = kNoValue;
  };
  mutable OutputIndex output_index_;
  NodeId first_ = kNoNode;
  NodeId last_ = kNoNode;
  std::size_t live_nodes_ = 0;
  Serial last_serial_ = kNoSerial;
};

// FNV-style hash of everything that print() shows: equal graphs have equal hashes.
std::uint64_t hash_of(const Graph& graph);
// One stable line per input, initializer, node, output; bodies indented behind their nodes.
std::string print(const Graph& graph);
// Empty when every invariant holds, else one line per violation.
std::vector<std::string> verify(const Graph& graph);

}  // namespace trainscope
