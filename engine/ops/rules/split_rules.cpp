// The table of rules. Matmuls follow Megatron-LM (Shoeybi et al. 2019): a weight is cut by columns
// where its input is whole, by rows where the input is cut already; tables of tokens by rows.
#include "engine/ops/rules/split_rules.h"

#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

using Shards = std::vector<Shard>;
using Result = std::optional<Shards>;

Shard input_shard(const SplitArgs& a, int i) { return a.inputs[static_cast<std::size_t>(i)]; }
Shard& input_shard(SplitArgs& a, int i) = delete;

void choose(const SplitArgs& a, int i, Shard shard) {
  a.inputs[static_cast<std::size_t>(i)] = shard;
}

const Shape& shape_of(const SplitArgs& a, ValueId v) { return a.graph.value(v).type.shape; }
const Shape& output_shape(const SplitArgs& a, int i = 0) {
  return shape_of(a, a.node.outputs[static_cast<std::size_t>(i)]);
}

Shards every_output(const SplitArgs& a, Shard shard) {
  return Shards(a.node.outputs.size(), shard);
}

// Axis of the broadcast result that an input's axis is.
int aligned(const SplitArgs& a, int input, int axis) {
  return axis + output_shape(a).rank - a.op.rank(input);
}

// --- Element by element, with broadcasting -------------------------------------------------------

// Nothing of an input may be cut where
// another one is whole, unless that one is broadcast there.
Result pointwise(const SplitArgs& a) {
  const int inputs = a.op.input_count();
  int axis = -1;  // of the result
  for (int i = 0; i < inputs; ++i) {
    const Shard shard = input_shard(a, i);
    if (!shard.is_split()) continue;
    const int at = aligned(a, i, shard.axis);
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
    choose(a, i, Shard::split(own));
  }
  return every_output(a, Shard::split(axis));
}

// A sum of partials is a partial, also with something whole in it, which one device adds.
Result addition(const SplitArgs& a) {
  if (std::ranges::none_of(a.inputs, &Shard::is_partial)) return pointwise(a);
  for (Shard& shard : a.inputs) {
    if (shard.is_open()) shard = {};
  }
  if (std::ranges::any_of(a.inputs, &Shard::is_split)) return std::nullopt;
  return every_output(a, Shard::partial());
}

// Pairs of elements of the last axis are rotated together.
Result rotary(const SplitArgs& a) {
  for (int i = 0; i < a.op.input_count(); ++i) {
    const Shard shard = input_shard(a, i);
    if (shard.is_split() && shard.axis == a.op.rank(i) - 1) return std::nullopt;
  }
  return pointwise(a);
}

Result along_other_axes(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  const int axis = a.op.axis("axis", -1, a.op.rank(0));
  for (int i = 1; i < a.op.input_count(); ++i) {
    if (input_shard(a, i) != shard) return std::nullopt;
  }
  if (!shard.is_split() || shard.axis == axis) return std::nullopt;
  return every_output(a, shard);
}

// --- Shapes --------------------------------------------------------------------------------------

[[noreturn]] void refuse_heads(const SplitArgs& a, std::int64_t heads) {
  throw Error(ErrorCode::kUsage,
              fmt::format("--tensor-parallel {} does not divide the {} heads of '{}'", a.shards,
                          heads, printable(a.node.name)));
}

// Along an axis of heads. Those of queries, keys and values may be one axis, which an Attention
// reads, or a Split behind a transpose takes apart.
std::int64_t heads_along(const SplitArgs& a, ValueId v, int axis) {
  const std::int64_t size = shape_of(a, v)[axis];
  for (bool moved = true; moved;) {
    moved = false;
    for (const Use& use : a.graph.value(v).uses) {
      const Node& reader = a.graph.node(use.node);
      const NodeArgs args(a.graph, reader);
      if (use.input != 0 || reader.phase != Phase::kForward) continue;
      if (reader.op->name == "Split" && args->axis("axis", 0, args->rank(0)) == axis) {
        return shape_of(a, reader.outputs[0])[axis];
      }
      if (reader.op->name == "Attention" && axis == 2) return shape_of(a, reader.outputs[0])[axis];
      if (reader.op->name != "Transpose") continue;
      const auto permutation = std::get<PermutationParams>(reader.op->params(*args)).permutation;
      axis = static_cast<int>(std::ranges::find(permutation, axis) - permutation.begin());
      v = reader.outputs[0];
      moved = true;
      break;
    }
  }
  return size;
}

// Both shapes fall into groups of axes with equal products. A cut goes along where its axis is the
// first of its group that is no 1: the elements of a shard are together then.
Result reshape(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (shard.is_open()) return std::nullopt;
  if (!shard.is_split()) return every_output(a, shard);
  const Shape& from = a.op.shape(0);
  const Shape& to = output_shape(a);
  int i = 0;
  int j = 0;
  while (i < from.rank && j < to.rank) {
    const int first = i;
    const int first_to = j;
    std::int64_t left = from[i++];
    std::int64_t right = to[j++];
    while (left != right) {
      if (left < right && i < from.rank) {
        left *= from[i++];
      } else if (right < left && j < to.rank) {
        right *= to[j++];
      } else {
        return std::nullopt;
      }
    }
    if (shard.axis < first || shard.axis >= i) continue;
    int major = first;
    while (major < i - 1 && from[major] == 1) ++major;
    int major_to = first_to;
    while (major_to < j - 1 && to[major_to] == 1) ++major_to;
    if (major != shard.axis) return std::nullopt;
    if (from[major] == to[major_to]) return Shards{Shard::split(major_to)};
    if (to[major_to] % a.shards != 0 && from[major] > to[major_to]) {
      refuse_heads(a, heads_along(a, a.node.outputs[0], major_to));
    }
    if (to[major_to] % a.shards != 0 || from[major] % a.shards != 0) return std::nullopt;
    return Shards{Shard::split(major_to)};
  }
  return std::nullopt;
}

Result transpose(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (shard.is_open()) return std::nullopt;
  if (!shard.is_split()) return every_output(a, shard);
  const auto permutation = std::get<PermutationParams>(a.node.op->params(a.op)).permutation;
  for (int axis = 0; axis < a.op.rank(0); ++axis) {
    if (permutation[static_cast<std::size_t>(axis)] == shard.axis) {
      return Shards{Shard::split(axis)};
    }
  }
  return std::nullopt;
}

// Heads are cut, those of queries and those of keys and values alike; `first` is the input q, and
// before it come dy, y and output 1 of the forward op.
Result attention_from(const SplitArgs& a, int first) {
  const auto params = std::get<AttentionParams>(a.node.op->params(a.op));
  const bool packed = params.packed;
  const int last = packed ? first : first + 2;
  const bool biased = a.op.input_count() > first + 3 && a.op.has(first + 3);
  const Shape bias = biased ? a.op.shape(first + 3) : Shape{};
  bool whole = true;
  for (const Shard& shard : a.inputs) whole = whole && shard.is_whole();
  if (whole) return every_output(a, {});
  for (int i = 0; i <= last; ++i) {
    const int heads = i == 2 && first > 2 ? 1 : 2;
    if (a.op.has(i) && input_shard(a, i) != Shard::split(heads)) return std::nullopt;
  }
  if (biased && bias.rank >= 3 && bias[bias.rank - 3] != 1) return std::nullopt;
  for (std::int64_t heads : {params.heads, params.kv_heads}) {
    if (heads % a.shards != 0) refuse_heads(a, heads);
  }
  Shards shards = every_output(a, Shard::split(2));
  if (first == 0 && shards.size() > 1) shards[1] = Shard::split(1);  // output 1
  return shards;
}
Result attention(const SplitArgs& a) { return attention_from(a, 0); }
Result attention_grad(const SplitArgs& a) { return attention_from(a, 3); }

// Along its own axis the outputs are cut one by one: which columns a device has does not matter.
Result split(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  const int axis = a.op.axis("axis", 0, a.op.rank(0));
  for (std::size_t i = 0; i < a.node.outputs.size() && axis == shard.axis; ++i) {
    const std::int64_t size = output_shape(a, static_cast<int>(i))[axis];
    if (size % a.shards != 0) refuse_heads(a, size);
  }
  return every_output(a, shard);
}

Result concat(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  for (int i = 1; i < a.op.input_count(); ++i) {
    if (input_shard(a, i) != shard) return std::nullopt;
  }
  for (int i = 0; i < a.op.input_count(); ++i) {
    if (a.op.shape(i)[shard.axis] % a.shards != 0) return std::nullopt;
  }
  return every_output(a, shard);
}

// An axis that stays as it is may be cut.
Result slice(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  const auto along = static_cast<std::size_t>(shard.axis);
  const bool whole = a.op.shape(0)[shard.axis] == output_shape(a)[shard.axis] &&
                     std::get<SliceParams>(a.node.op->params(a.op)).step[along] == 1;
  if (!whole) return std::nullopt;
  return every_output(a, shard);
}

Result expand(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  return every_output(a, Shard::split(aligned(a, 0, shard.axis)));
}

Result reduce_sum(const SplitArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (shard.is_open()) return std::nullopt;
  if (!shard.is_split()) return every_output(a, shard);
  const ReduceParams params = std::get<ReduceParams>(a.node.op->params(a.op));
  if (params.reduced[static_cast<std::size_t>(shard.axis)]) {
    return every_output(a, Shard::partial());
  }
  int axis = shard.axis;
  if (output_shape(a).rank < a.op.rank(0)) {
    axis -= static_cast<int>(
        std::count(params.reduced.begin(), params.reduced.begin() + shard.axis, true));
  }
  return every_output(a, Shard::split(axis));
}

// --- Matmuls -------------------------------------------------------------------------------------

struct Matrices {
  int a_inner = 0;  // axes that are summed over
  int b_inner = 0;
  int a_outer = 0;  // rows of the result
  int b_outer = 0;  // its columns
};

// Of input 0 and this one.
std::optional<Matrices> matrices_of(const SplitArgs& a, int weight) {
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
void choose_weight(const SplitArgs& a, const Matrices& m, int weight) {
  const Shard x = input_shard(a, 0);
  if (!input_shard(a, weight).is_open() || a.op.rank(weight) != 2) return;
  if (x.is_split() && x.axis == m.a_inner) choose(a, weight, Shard::split(m.b_inner));
  if (x.is_whole()) choose(a, weight, Shard::split(m.b_outer));
}

std::optional<Shard> batched(const SplitArgs& a, int weight) {
  const int rank = output_shape(a).rank;
  const int split = input_shard(a, 0).is_split() ? 0 : weight;
  const int at = aligned(a, split, input_shard(a, split).axis);
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

std::optional<Shard> multiplied(const SplitArgs& a, int weight) {
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

Result matmul(const SplitArgs& a) {
  const std::optional<Shard> shard = multiplied(a, 1);
  return shard ? Result(Shards{*shard}) : std::nullopt;
}

// Whether a matmul whose result is `y` can add this input; where `y` is a partial, one device does.
bool adds(const SplitArgs& a, Shard y, int addend) {
  if (!a.op.has(addend)) return true;
  const int axis = y.is_split() ? y.axis - (output_shape(a).rank - a.op.rank(addend)) : -1;
  const bool cut = axis >= 0 && a.op.shape(addend)[axis] > 1;
  const Shard wanted = cut ? Shard::split(axis) : Shard{};
  if (input_shard(a, addend).is_open()) choose(a, addend, wanted);
  return input_shard(a, addend) == wanted;
}

Result biased(const SplitArgs& a) {
  const Result result = matmul(a);
  return result && adds(a, result->front(), 2) ? result : std::nullopt;
}

Result biased_matmuls(const SplitArgs& a) {
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
Result summed(const SplitArgs& a) {
  const Result result = matmul(a);
  if (!result) return result;
  const Shard y = result->front();
  if (input_shard(a, 2).is_open()) choose(a, 2, y.is_partial() ? Shard{} : y);
  const Shard sum = input_shard(a, 2);
  if (y == sum) return result;
  const bool is_sum = y.is_partial() || sum.is_partial();
  if (!is_sum || y.is_split() || sum.is_split()) return std::nullopt;
  return Shards{Shard::partial()};
}

// --- Tables and losses ---------------------------------------------------------------------------

// A table with more rows than columns is one of tokens. Each device looks up what it has.
Result gather(const SplitArgs& a) {
  const Shard table = input_shard(a, 0);
  if (a.op.rank(0) != 2 || a.op.axis("axis", 0, 2) != 0) return std::nullopt;
  const bool tokens = a.op.shape(0)[0] > a.op.shape(0)[1];
  if (table.is_open() && tokens) choose(a, 0, Shard::split(0));
  if (input_shard(a, 0) != Shard::split(0)) return std::nullopt;
  return Shards{Shard::partial()};
}

// Each device keeps the rows that it has, also of a sum that it adds to.
Result gather_grad(const SplitArgs& a) {
  const Shard rows = Shard::split(0);
  if (!input_shard(a, 0).is_whole() || a.wanted.front() != rows) return std::nullopt;
  if (a.op.has(2) && input_shard(a, 2) != rows) return std::nullopt;
  return Shards{rows};
}

// Scores cut by classes: the sums over classes are added up over the devices.
Result cross_entropy(const SplitArgs& a) {
  const int axis = a.op.axis("class_axis", -1, a.op.rank(0));
  if (input_shard(a, 0) != Shard::split(axis)) return std::nullopt;
  return every_output(a, Shard::partial());
}

Result cross_entropy_grad(const SplitArgs& a) {
  const int axis = a.op.axis("class_axis", -1, a.op.rank(1));
  if (input_shard(a, 1) != Shard::split(axis)) return std::nullopt;
  return every_output(a, Shard::split(axis));
}

// Gradients in any shards: the sums of squares are added up, a few bytes.
Result norm_of_all(const SplitArgs& a) { return every_output(a, {}); }

Result accumulate(const SplitArgs& a) { return every_output(a, input_shard(a, 1)); }

constexpr std::string_view kPointwise[] = {
    "Sub",      "Mul",        "Div",           "Pow",     "PowGrad",   "Neg",           "Abs",
    "Sign",     "Reciprocal", "Sqrt",          "Cast",    "Exp",       "Log",           "Relu",
    "Tanh",     "Sigmoid",    "Erf",           "Elu",     "LeakyRelu", "Softplus",      "Softsign",
    "ReluGrad", "TanhGrad",   "SigmoidGrad",   "ErfGrad", "EluGrad",   "LeakyReluGrad", "Equal",
    "Not",      "Where",      "RandomDropout", "Max",     "Min",       "Gelu",          "GeluGrad",
    "Swish",    "SwishGrad",  "Identity",      "Sin",     "Cos"};

constexpr SplitRow kRows[] = {
    {.op = "Add", .rule = addition, .linear = true, .by_examples = true},
    {.op = "Sum", .rule = addition, .linear = true, .by_examples = true},
    {.op = "Reshape", .rule = reshape, .linear = true},
    {.op = "Squeeze", .rule = reshape, .linear = true},
    {.op = "Unsqueeze", .rule = reshape, .linear = true},
    {.op = "Flatten", .rule = reshape, .linear = true},
    {.op = "Transpose", .rule = transpose, .linear = true, .by_examples = true},
    {.op = "ReduceSum", .rule = reduce_sum, .linear = true, .by_examples = true},
    {.op = "Split", .rule = split},
    {.op = "Concat", .rule = concat},
    {.op = "Slice", .rule = slice},
    {.op = "Expand", .rule = expand},
    {.op = "Softmax", .rule = along_other_axes, .by_examples = true},
    {.op = "SoftmaxGrad", .rule = along_other_axes, .by_examples = true},
    {.op = "Attention", .rule = attention},
    {.op = "AttentionGrad", .rule = attention_grad},
    {.op = "RotaryEmbedding", .rule = rotary},
    {.op = "RotaryEmbeddingGrad", .rule = rotary},
    {.op = "LogSoftmax", .rule = along_other_axes, .by_examples = true},
    {.op = "MatMul", .rule = matmul, .by_examples = true},
    {.op = "BatchMatMul", .rule = biased, .by_examples = true},
    {.op = "MultiMatMul", .rule = biased_matmuls, .by_examples = true},
    {.op = "Gemm", .rule = biased, .by_examples = true},
    {.op = "SummedMatMul", .rule = summed, .linear = true, .by_examples = true},
    {.op = "Gather", .rule = gather},
    {.op = "GatherGrad", .rule = gather_grad},
    {.op = "CrossEntropy", .rule = cross_entropy},
    {.op = "CrossEntropyGrad", .rule = cross_entropy_grad},
    {.op = "GlobalNorm", .rule = norm_of_all},
    {.op = "Accumulate", .rule = accumulate},
};

constexpr SplitRow kPointwiseRow{.op = "", .rule = pointwise, .by_examples = true};

}  // namespace

const SplitRow* find_split_row(const Node& node) {
  const auto row = std::ranges::find(kRows, node.op->name, &SplitRow::op);
  if (row != std::end(kRows)) return row;
  const auto by_examples = std::ranges::find(rows_by_examples(), node.op->name, &SplitRow::op);
  if (by_examples != rows_by_examples().end()) return &*by_examples;
  return std::ranges::find(kPointwise, node.op->name) != std::end(kPointwise) ? &kPointwiseRow
                                                                              : nullptr;
}

}  // namespace trainscope
