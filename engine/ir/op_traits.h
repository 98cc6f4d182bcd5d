// OpTraits: what planners and passes may do with the nodes of an op: shard them, run them on some
// rows only, rematerialize them, place results inside inputs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

struct OpArgs;
struct OpDef;

// --- Shards --------------------------------------------------------------------------------------

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
  static constexpr Shard split(int axis) { return {.kind = Kind::kSplit, .axis = axis}; }
  static constexpr Shard partial() { return {.kind = Kind::kPartial}; }
};

struct ShardingArgs {
  const Graph& graph;
  const Node& node;
  const OpArgs& op;
  std::int64_t shards = 1;
  std::vector<Shard>& inputs;     // the rule says what it wants of those that are open
  std::span<const Shard> wanted;  // what the optimizer needs of gradients; whole: nothing said
};

// An axis of input 0, from 0 on.
using AxisRule = int (*)(const OpArgs&);

// The outputs' shards; none when the node cannot work on such shards.
using ShardingRule = std::optional<std::vector<Shard>> (*)(const ShardingArgs&);

// How an op's results are sharded when its inputs are. Tensor parallelism cuts by these rules
// (engine/world), and so do sections of ops that run on batch tiles (engine/plan). Here a tile is a
// shard too: what one thread holds.
struct Sharding {
  ShardingRule rule = nullptr;  // null: the op works on whole values only
  bool linear = false;          // may be given partials
  // Holds for batch tiles too: a tile is a run of neighbours along axis 0, and the results made of
  // it are the same run. Of tokens or classes a shard may be any, each device having its own.
  bool by_examples = false;
  // The devices tell each other a few bytes inside the op, or which rows of a table they have: no
  // shard's results follow from that shard alone.
  bool exchanges = false;
  bool sums_at_once = false;  // nobody can be given a partial of the results: of a loss

  // Where a node is told sizes that a cut changes: the attribute, or the input, that holds the
  // shape of output 0; the input that holds the outputs' sizes along the op's axis; attributes that
  // count heads.
  std::string_view shape_attribute = {};
  int shape_input = -1;
  int sizes_input = -1;
  std::array<std::string_view, 2> head_attributes = {};

  // Where heads are counted behind a view: the axis of input 0 along which the heads of queries,
  // keys and values may lie side by side; output 0 has along it those of one of them.
  AxisRule packed_axis = nullptr;
  bool permutes = false;  // output 0 is input 0 with its axes in the order of PermutationParams
};
inline constexpr Sharding kNoSharding{};

// --- Rows of tokens ------------------------------------------------------------------------------

// How an op treats values of which each row is a token (engine/passes/token_rows.h).
enum class RowKind : std::uint8_t {
  kUnstated,
  kOther,      // reads rows of other tokens, or nothing is known of it
  kInPlace,    // each row of the result is made of the same row, but depends on its place
  kPointwise,  // element by element; finite where its inputs are
  kQuotient,   // the same where the divisor is no row
  kNorm,       // over the axes from `axis` on
  kView,
  kMatmul,  // of each row and one matrix
  kLoss,    // over rows whose labels count
  // Each row, a query, by all keys and values, in input 0 or 1 and 2; input 3 is added to its
  // scores.
  kAttention,
};

// --- Rematerialization ---------------------------------------------------------------------------

// Whether clusters (engine/recompute/clusters.h) may be of an op: what is rematerialized with
// others. The planner's own search asks for times instead.
enum class Rematerialize : std::uint8_t {
  kUnstated,
  kLight,  // wherever that saves memory
  kHeavy,  // matmuls and convolutions: their results stay
  kNorm,   // a norm may be rematerialized; what it reads, a sum between layers, stays
  kOnce,   // of the backward or the update phase: runs once in any case
};

// --- Results inside inputs -----------------------------------------------------------------------

// Where outputs lie in input 0, or inputs in output 0. The planner may place them there: the
// kernels of these ops copy nothing to where it is already.
struct ByteRanges {
  bool in_output = false;
  std::vector<std::int64_t> offsets =
      {};  // by output (or input), in bytes; empty: not in one piece
};
using RangesRule = ByteRanges (*)(const OpDef&, const OpArgs&);
inline constexpr RangesRule kNoRanges = nullptr;

// A row states all four; one of a composite op only `rows`, because no planner ever sees its nodes.
// What a family's rows have in common is in engine/ops/rules/traits.h.
struct OpTraits {
  std::optional<Sharding> sharding = {};  // kNoSharding: none
  RowKind rows = RowKind::kUnstated;
  Rematerialize rematerialize = Rematerialize::kUnstated;
  std::optional<RangesRule> ranges = {};  // kNoRanges: nothing lies inside anything
};

}  // namespace trainscope
