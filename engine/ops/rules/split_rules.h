// Op by op: how the results of a node are shared when its inputs are. Tensor parallelism cuts by
// these rules (engine/world), and so do chains of ops on parts of the batch (engine/plan/chains.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// What one device of a tensor-parallel group, or one part of a batch, holds of a value.
struct Share {
  enum class Kind : std::uint8_t {
    kWhole,    // all of it
    kSplit,    // an equal part along `axis`, the last one padded
    kPartial,  // a summand of it
    kOpen,     // of a parameter: the rule may choose
  };
  Kind kind = Kind::kWhole;
  int axis = 0;

  bool operator==(const Share&) const = default;
  bool is_whole() const { return kind == Kind::kWhole; }
  bool is_split() const { return kind == Kind::kSplit; }
  bool is_partial() const { return kind == Kind::kPartial; }
  bool is_open() const { return kind == Kind::kOpen; }
  static Share split(int axis) { return {.kind = Kind::kSplit, .axis = axis}; }
  static Share partial() { return {.kind = Kind::kPartial}; }
};

struct SplitArgs {
  const Graph& graph;
  const Node& node;
  const OpArgs& op;
  std::int64_t parts = 1;
  std::vector<Share>& inputs;     // the rule says what it wants of those that are open
  std::span<const Share> wanted;  // what the optimizer needs of gradients; whole: nothing said
};

// The outputs' shares; none when the node cannot work on shares like these.
using SplitRule = std::optional<std::vector<Share>> (*)(const SplitArgs&);

struct SplitRow {
  std::string_view op;
  SplitRule rule = nullptr;
  bool linear = false;  // may be given summands
  // Holds for examples too: a part is a run of neighbours along axis 0, and parts of results made
  // of them are. Of tokens or classes a part may be any, each device of a group having its own.
  bool by_examples = false;
  // An attribute that holds a shape with the examples in front; empty: none does.
  std::string_view shape_attribute = {};
};
// Null for an op without a rule: it works on whole values only.
const SplitRow* find_split_row(const Node& node);
// The rows of ops that are cut by examples alone, a part of the table.
std::span<const SplitRow> rows_by_examples();

// Parts of `parts` that a dimension is cut into have so many elements each.
inline std::int64_t split_size(std::int64_t size, std::int64_t parts) {
  return (size + parts - 1) / parts;
}

}  // namespace trainscope
