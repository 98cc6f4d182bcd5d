// From any row of a plan to the rows that have to do with it: nodes, calls, values, buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

// Lists of rows, one after the other: those of row i are [ends[i - 1], ends[i]).
class RowLists {
 public:
  RowLists() = default;
  // Of (row, item) pairs, `rows` lists in all; items keep the order of the pairs.
  RowLists(std::size_t rows, std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs);
  std::span<const std::uint32_t> of(std::uint32_t row) const;

 private:
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> items_;
};

// Has a plan of its own: what the rows lie in is shared, as the view shares it.
class PlanLinks {
 public:
  PlanLinks() = default;
  explicit PlanLinks(const PlanView& plan);

  const PlanView& plan() const { return plan_; }
  // Positions in the plan by serial; kNoRow: the plan has none.
  std::uint32_t node_of_serial(std::uint32_t serial) const;
  std::uint32_t value_of_serial(std::uint32_t serial) const;
  // The first node with this name, or else the first that stems from an ONNX node of this name.
  std::uint32_t node_named(std::string_view name) const;

  std::span<const std::uint32_t> calls_of_node(std::uint32_t node) const {
    return calls_of_node_.of(node);
  }
  // What a node reads, and what it writes: values, in the order of its calls' operands, each once.
  // Of a view (Reshape, Squeeze, ...), which has no call, the value that it is a view of and its
  // own: the plan does not know of its shape or axes, which are constants.
  std::vector<std::uint32_t> inputs_of_node(std::uint32_t node) const;
  std::vector<std::uint32_t> outputs_of_node(std::uint32_t node) const;
  // Nodes that read a value, views among them, but not what reads it through those: the readers
  // that `inspect --node` names.
  std::span<const std::uint32_t> nodes_that_read(std::uint32_t value) const {
    return reader_nodes_.of(value);
  }
  // The value whose bytes a value has: behind all views the one that is none; else itself.
  std::uint32_t storage_of(std::uint32_t value) const;
  // Calls that write, or read, the bytes of a value, through whatever views; in the order of the
  // calls.
  std::span<const std::uint32_t> writers_of(std::uint32_t value) const {
    return writers_.of(storage_of(value));
  }
  std::span<const std::uint32_t> readers_of(std::uint32_t value) const {
    return readers_.of(storage_of(value));
  }
  // Calls whose results a call reads, and those that read its own, through whatever views;
  // ascending, each once.
  std::vector<std::uint32_t> calls_before(std::uint32_t call) const;
  std::vector<std::uint32_t> calls_after(std::uint32_t call) const;

 private:
  void add_calls();
  void add_nodes();
  // Of its calls, each value once.
  std::vector<std::uint32_t> operands_of(std::uint32_t node, RowRange PlanCall::*which) const;

  PlanView plan_;
  std::unordered_map<std::uint32_t, std::uint32_t> node_of_serial_;
  std::unordered_map<std::uint32_t, std::uint32_t> value_of_serial_;
  RowLists calls_of_node_;
  RowLists results_;  // of nodes, by what the values say
  RowLists reader_nodes_;
  std::vector<std::uint32_t> storage_;  // of values
  RowLists writers_;                    // of values that are no views, as readers_ are
  RowLists readers_;
};

// The selection with its ties to the plan drawn: a node has its first call and the buffer of what
// it writes (a view, which has no call, that alone), a call its node, a buffer its first value and
// the node that makes that. The call of a view's value is the one that writes its bytes.
Selection select_node(const PlanLinks& links, Selection from, std::uint32_t serial);
Selection select_value(const PlanLinks& links, Selection from, std::uint32_t serial);
Selection select_call(const PlanLinks& links, Selection from, std::uint32_t call);
Selection select_kernel(const PlanLinks& links, Selection from, std::string_view kernel);
Selection select_buffer(const PlanLinks& links, Selection from, std::uint32_t buffer);

}  // namespace trainscope::gui
