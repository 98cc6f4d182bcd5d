// How matmuls are sharded: by columns or rows of a weight, by rows of the input, by matrices.
#pragma once

#include <optional>

#include "engine/ops/rules/sharding_rules.h"

namespace trainscope {

std::optional<Shards> shard_matmul(const ShardingArgs& a);
// With a bias per column, or whatever C of a Gemm is broadcast to.
std::optional<Shards> shard_biased_matmul(const ShardingArgs& a);
// Of several matrices, each of which may have a bias.
std::optional<Shards> shard_multi_matmul(const ShardingArgs& a);
// A matmul that is added to a sum, as shard_addition() has it.
std::optional<Shards> shard_matmul_add(const ShardingArgs& a);

inline constexpr Sharding kMatMulSharding{.rule = shard_matmul, .by_examples = true};
inline constexpr Sharding kBiasedMatMulSharding{.rule = shard_biased_matmul, .by_examples = true};
inline constexpr Sharding kMultiMatMulSharding{.rule = shard_multi_matmul, .by_examples = true};
inline constexpr Sharding kMatMulAddSharding{
    .rule = shard_matmul_add, .linear = true, .by_examples = true};

}  // namespace trainscope
