// Rules of how results are sharded when inputs are, for the rows of ops: what ops of several
// families share. What is of one family is beside its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

using Shards = std::vector<Shard>;

// --- What rules are made of ----------------------------------------------------------------------

Shard input_shard(const ShardingArgs& a, int i);
void choose_shard(const ShardingArgs& a, int i, Shard shard);
const Shape& output_shape(const ShardingArgs& a, int i = 0);
Shards every_output(const ShardingArgs& a, Shard shard);
// Axis of the broadcast result that an input's axis is.
int aligned_axis(const ShardingArgs& a, int input, int axis);
// Fails with kUsage: --tensor-parallel does not divide the heads.
[[noreturn]] void refuse_heads(const ShardingArgs& a, std::int64_t heads);

// Elements of each of the shards that a dimension of `size` is cut into.
inline std::int64_t split_size(std::int64_t size, std::int64_t shards) {
  return (size + shards - 1) / shards;
}

// --- Rules ---------------------------------------------------------------------------------------

// Element by element, with broadcasting: nothing of an input may be cut where another one is whole,
// unless that one is broadcast there.
std::optional<Shards> shard_by_element(const ShardingArgs& a);
// A sum of partials is a partial, also with something whole in it, which one device adds.
std::optional<Shards> shard_addition(const ShardingArgs& a);
// All inputs alike, along an axis that is not the op's own.
std::optional<Shards> shard_along_other_axes(const ShardingArgs& a);

// Whether each shard has its examples (axis 0) of the first inputs, and all others are whole.
bool has_examples(const ShardingArgs& a, std::size_t cut_inputs);

// Results have the examples of the first kCut inputs. For ops whose examples do not depend on each
// other, and that are cut no other way.
template <std::size_t kCut>
std::optional<Shards> shard_by_examples(const ShardingArgs& a) {
  if (!has_examples(a, kCut)) return std::nullopt;
  return every_output(a, Shard::split(0));
}

// The result is a sum over examples.
template <std::size_t kCut>
std::optional<Shards> sum_over_examples(const ShardingArgs& a) {
  if (!has_examples(a, kCut)) return std::nullopt;
  return every_output(a, Shard::partial());
}

}  // namespace trainscope
