// Op by op: how the results of a node are sharded when its inputs are. Tensor parallelism cuts by
// these rules (engine/world), and so do sections of ops that run on batch tiles (engine/plan).
// Here a tile is a shard too: what one thread holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// What one device of a tensor-parallel group, or one batch tile, holds of a value.
struct Shard {
  enum class Kind : std::uint8_t {
    kWhole,    // all of it
    kSplit,    // an equal slice along `axis`, the last one padded
    kPartial,  // a partial: the sum over all shards is the value
    kOpen,     // of a parameter: the rule may choose
  };
  Kind kind = Kind::kWhole;
  int axis = 0;

  bool operator==(const Shard&) const = default;
  bool is_whole() const { return kind == Kind::kWhole; }
  bool is_split() const { return kind == Kind::kSplit; }
  bool is_partial() const { return kind == Kind::kPartial; }
  bool is_open() const { return kind == Kind::kOpen; }
  static Shard split(int axis) { return {.kind = Kind::kSplit, .axis = axis}; }
  static Shard partial() { return {.kind = Kind::kPartial}; }
};

struct SplitArgs {
  const Graph& graph;
  const Node& node;
  const OpArgs& op;
  std::int64_t shards = 1;
  std::vector<Shard>& inputs;     // the rule says what it wants of those that are open
  std::span<const Shard> wanted;  // what the optimizer needs of gradients; whole: nothing said
};

// The outputs' shards; none when the node cannot work on such shards.
using SplitRule = std::optional<std::vector<Shard>> (*)(const SplitArgs&);

struct SplitRow {
  std::string_view op;
  SplitRule rule = nullptr;
  bool linear = false;  // may be given partials
  // Holds for batch tiles too: a tile is a run of neighbours along axis 0, and the results made of
  // it are the same run. Of tokens or classes a shard may be any, each device having its own.
  bool by_examples = false;
  // An attribute that holds a shape with the examples in front; empty: none does.
  std::string_view shape_attribute = {};
};
// Null for an op without a rule: it works on whole values only.
const SplitRow* find_split_row(const Node& node);
// The rows of ops that are cut by examples alone; find_split_row knows them too.
std::span<const SplitRow> rows_by_examples();

// Elements of each of the shards that a dimension of `size` is cut into.
inline std::int64_t split_size(std::int64_t size, std::int64_t shards) {
  return (size + shards - 1) / shards;
}

}  // namespace trainscope
