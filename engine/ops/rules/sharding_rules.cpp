// The rules that ops of several families share, and what rules are made of.
#include "engine/ops/rules/sharding_rules.h"

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

Shard input_shard(const ShardingArgs& a, int i) { return a.inputs[static_cast<std::size_t>(i)]; }

void choose_shard(const ShardingArgs& a, int i, Shard shard) {
  a.inputs[static_cast<std::size_t>(i)] = shard;
}

const Shape& output_shape(const ShardingArgs& a, int i) {
  return a.graph.value(a.node.outputs[static_cast<std::size_t>(i)]).type.shape;
}

Shards every_output(const ShardingArgs& a, Shard shard) {
  return Shards(a.node.outputs.size(), shard);
}

int aligned_axis(const ShardingArgs& a, int input, int axis) {
  return axis + output_shape(a).rank - a.op.rank(input);
}

void refuse_heads(const ShardingArgs& a, std::int64_t heads) {
  throw Error(ErrorCode::kUsage,
              fmt::format("--tensor-parallel {} does not divide the {} heads of '{}'", a.shards,
                          heads, printable(a.node.name)));
}

std::optional<Shards> shard_by_element(const ShardingArgs& a) {
  const int inputs = a.op.input_count();
  int axis = -1;  // of the result
  for (int i = 0; i < inputs; ++i) {
    const Shard shard = input_shard(a, i);
    if (!shard.is_split()) continue;
    const int at = aligned_axis(a, i, shard.axis);
    if (axis >= 0 && axis != at) return std::nullopt;
    axis = at;
  }
  if (std::ranges::any_of(a.inputs, &Shard::is_partial)) return std::nullopt;
  if (axis < 0) return every_output(a, {});
  for (int i = 0; i < inputs; ++i) {
    const Shard shard = input_shard(a, i);
    if (shard.is_split() || !a.op.has(i)) continue;
    const int own = axis - (output_shape(a).rank - a.op.rank(i));
    if (own < 0 || a.op.shape(i)[own] == 1) continue;
    if (!shard.is_open()) return std::nullopt;
    choose_shard(a, i, Shard::split(own));
  }
  return every_output(a, Shard::split(axis));
}

std::optional<Shards> shard_addition(const ShardingArgs& a) {
  if (std::ranges::none_of(a.inputs, &Shard::is_partial)) return shard_by_element(a);
  for (Shard& shard : a.inputs) {
    if (shard.is_open()) shard = {};
  }
  if (std::ranges::any_of(a.inputs, &Shard::is_split)) return std::nullopt;
  return every_output(a, Shard::partial());
}

std::optional<Shards> shard_along_other_axes(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  const int axis = a.op.axis("axis", -1, a.op.rank(0));
  for (int i = 1; i < a.op.input_count(); ++i) {
    if (input_shard(a, i) != shard) return std::nullopt;
  }
  if (!shard.is_split() || shard.axis == axis) return std::nullopt;
  return every_output(a, shard);
}

bool has_examples(const ShardingArgs& a, std::size_t cut_inputs) {
  for (int i = 0; i < a.op.input_count(); ++i) {
    if (!a.op.has(i)) continue;
    Shard& shard = a.inputs[static_cast<std::size_t>(i)];
    if (shard.is_open()) shard = {};
    const bool cut = static_cast<std::size_t>(i) < cut_inputs;
    if (shard != (cut ? Shard::split(0) : Shard{})) return false;
  }
  return true;
}

}  // namespace trainscope
