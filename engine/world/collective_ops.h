// Ops of a sharded step. All but AllReduce, a row of the op table, are known to plans alone: they
// have sizes, but no kernels.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/ir/op_def.h"

namespace trainscope {

// Over the data-parallel devices unless the attribute `group` says "tensor", or "tied": those of
// the stages of a pipeline that have one parameter in common, in the last micro-batch only.
// `devices` is how many devices the group has, each with a shard of what is sharded.
//   AllGather      [ceil(n / devices)] -> the tensor of n elements; attributes shape, devices
//   ReduceScatter  the tensor -> the sum's [ceil(n / devices)]; attribute devices
//   AllReduce      a tensor -> the sum over the group, in its place
//   ShardedStep    an optimizer's step over shards: parameters, gradients, states, scalars ->
//                  parameters, states, each in its place; attributes parameters, states, flops,
//                  shard_bytes. Parameters and gradients may be whole: one shard is touched.
//   Receive        -> what the neighbouring stage of the pipeline sends; attributes shape, dtype
const OpDef& all_gather_op();
const OpDef& reduce_scatter_op();
const OpDef& all_reduce_op();
const OpDef& sharded_step_op();
const OpDef& receive_op();

inline constexpr std::string_view kTensorGroup = "tensor";
inline constexpr std::string_view kTiedGroup = "tied";

// Elements of one of `shards` equal shards, the last one padded.
inline std::int64_t shard_elements(std::int64_t elements, std::int64_t shards) {
  return elements / shards + (elements % shards != 0 ? 1 : 0);
}

}  // namespace trainscope
