// Matmuls follow Megatron-LM (Shoeybi et al. 2019): a weight is cut by columns where its input is
// whole, by rows where the input is cut already.
#include "engine/ops/gemm/matmul_sharding.h"

#include <variant>

namespace trainscope {
namespace {

struct Matrices {
  int a_inner = 0;  // axes that are summed over
  int b_inner = 0;
  int a_outer = 0;  // rows of the result
  int b_outer = 0;  // its columns
};

// Of input 0 and this one.
std::optional<Matrices> matrices_of(const ShardingArgs& a, int weight) {
  const int left = a.op.rank(0);
  const int right = a.op.rank(weight);
  if (left < 2 || right < 2) return std::nullopt;
  const MatMulParams params = std::get<MatMulParams>(a.node.op->params(a.op));
  return Matrices{.a_inner = params.transpose_a ? left - 2 : left - 1,
                  .b_inner = params.transpose_b ? right - 1 : right - 2,
                  .a_outer = params.transpose_a ? left - 1 : left - 2,
                  .b_outer = params.transpose_b ? right - 2 : right - 1};
}

// Column then row: what is chosen of an open weight.
void choose_weight(const ShardingArgs& a, const Matrices& m, int weight) {
  const Shard x = input_shard(a, 0);
  if (!input_shard(a, weight).is_open() || a.op.rank(weight) != 2) return;
  if (x.is_split() && x.axis == m.a_inner) choose_shard(a, weight, Shard::split(m.b_inner));
  if (x.is_whole()) choose_shard(a, weight, Shard::split(m.b_outer));
}

std::optional<Shard> batched(const ShardingArgs& a, int weight) {
  const int rank = output_shape(a).rank;
  const int split = input_shard(a, 0).is_split() ? 0 : weight;
  const int at = aligned_axis(a, split, input_shard(a, split).axis);
  if (at >= rank - 2 || at < 0) return std::nullopt;
  for (int i : {0, weight}) {
    const Shard shard = input_shard(a, i);
    const int own = at - (rank - a.op.rank(i));
    const bool cut = shard.is_split() && shard.axis == own;
    const bool broadcast = shard.is_whole() && (own < 0 || a.op.shape(i)[own] == 1);
    if (!cut && !broadcast) return std::nullopt;
  }
  return Shard::split(at);
}

std::optional<Shard> multiplied(const ShardingArgs& a, int weight) {
  const std::optional<Matrices> m = matrices_of(a, weight);
  if (!m) return std::nullopt;
  choose_weight(a, *m, weight);
  const Shard x = input_shard(a, 0);
  const Shard w = input_shard(a, weight);
  const int rank = output_shape(a).rank;
  const auto cut_at = [](Shard shard, int axis) { return shard.is_split() && shard.axis == axis; };
  if (x.is_open() || w.is_open()) return std::nullopt;
  if (x.is_whole() && w.is_whole()) return Shard{};
  if (cut_at(x, m->a_inner) && cut_at(w, m->b_inner)) return Shard::partial();
  if (x.is_whole() && cut_at(w, m->b_outer)) return Shard::split(rank - 1);
  if (cut_at(x, m->a_outer) && w.is_whole()) return Shard::split(rank - 2);
  return batched(a, weight);
}

// Whether a matmul whose result is `y` can add this input; where `y` is a partial, one device does.
bool adds(const ShardingArgs& a, Shard y, int addend) {
  if (!a.op.has(addend)) return true;
  const int axis = y.is_split() ? y.axis - (output_shape(a).rank - a.op.rank(addend)) : -1;
  const bool cut = axis >= 0 && a.op.shape(addend)[axis] > 1;
  const Shard wanted = cut ? Shard::split(axis) : Shard{};
  if (input_shard(a, addend).is_open()) choose_shard(a, addend, wanted);
  return input_shard(a, addend) == wanted;
}

}  // namespace

std::optional<Shards> shard_matmul(const ShardingArgs& a) {
  const std::optional<Shard> shard = multiplied(a, 1);
  return shard ? std::optional(Shards{*shard}) : std::nullopt;
}

std::optional<Shards> shard_biased_matmul(const ShardingArgs& a) {
  const std::optional<Shards> result = shard_matmul(a);
  return result && adds(a, result->front(), 2) ? result : std::nullopt;
}

std::optional<Shards> shard_multi_matmul(const ShardingArgs& a) {
  const int count = static_cast<int>(a.node.outputs.size());
  Shards shards;
  for (int i = 1; i <= count; ++i) {
    const std::optional<Shard> shard = multiplied(a, i);
    if (!shard || !adds(a, *shard, count + i)) return std::nullopt;
    shards.push_back(*shard);
  }
  return shards;
}

// A matmul that is added to a sum, as addition() has it.
std::optional<Shards> shard_matmul_add(const ShardingArgs& a) {
  const std::optional<Shards> result = shard_matmul(a);
  if (!result) return result;
  const Shard y = result->front();
  if (input_shard(a, 2).is_open()) choose_shard(a, 2, y.is_partial() ? Shard{} : y);
  const Shard sum = input_shard(a, 2);
  if (y == sum) return result;
  const bool is_sum = y.is_partial() || sum.is_partial();
  if (!is_sum || y.is_split() || sum.is_split()) return std::nullopt;
  return Shards{Shard::partial()};
}

}  // namespace trainscope
