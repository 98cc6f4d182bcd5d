// The table of rules. Products follow Megatron-LM (Shoeybi et al. 2019): a weight is cut by columns
// where its input is whole, by rows where the input is cut already; tables of tokens by rows.
#include "engine/ops/rules/split_rules.h"

#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

using Shares = std::vector<Share>;
using Result = std::optional<Shares>;

Share input_share(const SplitArgs& a, int i) { return a.inputs[static_cast<std::size_t>(i)]; }
Share& input_share(SplitArgs& a, int i) = delete;

void choose(const SplitArgs& a, int i, Share share) {
  a.inputs[static_cast<std::size_t>(i)] = share;
}

const Shape& shape_of(const SplitArgs& a, ValueId v) { return a.graph.value(v).type.shape; }
const Shape& output_shape(const SplitArgs& a, int i = 0) {
  return shape_of(a, a.node.outputs[static_cast<std::size_t>(i)]);
}

Shares every_output(const SplitArgs& a, Share share) {
  return Shares(a.node.outputs.size(), share);
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
    const Share share = input_share(a, i);
    if (!share.is_split()) continue;
    const int at = aligned(a, i, share.axis);
    if (axis >= 0 && axis != at) return std::nullopt;
    axis = at;
  }
  if (std::ranges::any_of(a.inputs, &Share::is_partial)) return std::nullopt;
  if (axis < 0) return every_output(a, {});
  for (int i = 0; i < inputs; ++i) {
    const Share share = input_share(a, i);
    if (share.is_split() || !a.op.has(i)) continue;
    const int own = axis - (output_shape(a).rank - a.op.rank(i));
    if (own < 0 || a.op.shape(i)[own] == 1) continue;
    if (!share.is_open()) return std::nullopt;
    choose(a, i, Share::split(own));
  }
  return every_output(a, Share::split(axis));
}

// A sum of summands is one, also with something whole in it, which one device adds.
Result addition(const SplitArgs& a) {
  if (std::ranges::none_of(a.inputs, &Share::is_partial)) return pointwise(a);
  for (Share& share : a.inputs) {
    if (share.is_open()) share = {};
  }
  if (std::ranges::any_of(a.inputs, &Share::is_split)) return std::nullopt;
  return every_output(a, Share::partial());
}

// Pairs of elements of the last axis turn together.
Result rotary(const SplitArgs& a) {
  for (int i = 0; i < a.op.input_count(); ++i) {
    const Share share = input_share(a, i);
    if (share.is_split() && share.axis == a.op.rank(i) - 1) return std::nullopt;
  }
  return pointwise(a);
}

Result along_other_axes(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  const int axis = a.op.axis("axis", -1, a.op.rank(0));
  for (int i = 1; i < a.op.input_count(); ++i) {
    if (input_share(a, i) != share) return std::nullopt;
  }
  if (!share.is_split() || share.axis == axis) return std::nullopt;
  return every_output(a, share);
}

// --- Shapes --------------------------------------------------------------------------------------

[[noreturn]] void refuse_heads(const SplitArgs& a, std::int64_t heads) {
  throw Error(ErrorCode::kUsage,
              fmt::format("--tensor-parallel {} does not divide the {} heads of '{}'", a.parts,
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
// first of its group that is no 1: the elements of a part are together then.
Result reshape(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (share.is_open()) return std::nullopt;
  if (!share.is_split()) return every_output(a, share);
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
    if (share.axis < first || share.axis >= i) continue;
    int major = first;
    while (major < i - 1 && from[major] == 1) ++major;
    int major_to = first_to;
    while (major_to < j - 1 && to[major_to] == 1) ++major_to;
    if (major != share.axis) return std::nullopt;
    if (from[major] == to[major_to]) return Shares{Share::split(major_to)};
    if (to[major_to] % a.parts != 0 && from[major] > to[major_to]) {
      refuse_heads(a, heads_along(a, a.node.outputs[0], major_to));
    }
    if (to[major_to] % a.parts != 0 || from[major] % a.parts != 0) return std::nullopt;
    return Shares{Share::split(major_to)};
  }
  return std::nullopt;
}

Result transpose(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (share.is_open()) return std::nullopt;
  if (!share.is_split()) return every_output(a, share);
  const auto permutation = std::get<PermutationParams>(a.node.op->params(a.op)).permutation;
  for (int axis = 0; axis < a.op.rank(0); ++axis) {
    if (permutation[static_cast<std::size_t>(axis)] == share.axis) {
      return Shares{Share::split(axis)};
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
  for (const Share& share : a.inputs) whole = whole && share.is_whole();
  if (whole) return every_output(a, {});
  for (int i = 0; i <= last; ++i) {
    const int heads = i == 2 && first > 2 ? 1 : 2;
    if (a.op.has(i) && input_share(a, i) != Share::split(heads)) return std::nullopt;
  }
  if (biased && bias.rank >= 3 && bias[bias.rank - 3] != 1) return std::nullopt;
  for (std::int64_t heads : {params.heads, params.kv_heads}) {
    if (heads % a.parts != 0) refuse_heads(a, heads);
  }
  Shares shares = every_output(a, Share::split(2));
  if (first == 0 && shares.size() > 1) shares[1] = Share::split(1);  // output 1
  return shares;
}
Result attention(const SplitArgs& a) { return attention_from(a, 0); }
Result attention_grad(const SplitArgs& a) { return attention_from(a, 3); }

// Along its own axis the parts are cut one by one: which columns a device has does not matter.
Result split(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (!share.is_split()) return std::nullopt;
  const int axis = a.op.axis("axis", 0, a.op.rank(0));
  for (std::size_t i = 0; i < a.node.outputs.size() && axis == share.axis; ++i) {
    const std::int64_t size = output_shape(a, static_cast<int>(i))[axis];
    if (size % a.parts != 0) refuse_heads(a, size);
  }
  return every_output(a, share);
}

Result concat(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (!share.is_split()) return std::nullopt;
  for (int i = 1; i < a.op.input_count(); ++i) {
    if (input_share(a, i) != share) return std::nullopt;
  }
  for (int i = 0; i < a.op.input_count(); ++i) {
    if (a.op.shape(i)[share.axis] % a.parts != 0) return std::nullopt;
  }
  return every_output(a, share);
}

// An axis that stays as it is may be cut.
Result slice(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (!share.is_split()) return std::nullopt;
  const auto along = static_cast<std::size_t>(share.axis);
  const bool whole = a.op.shape(0)[share.axis] == output_shape(a)[share.axis] &&
                     std::get<SliceParams>(a.node.op->params(a.op)).step[along] == 1;
  if (!whole) return std::nullopt;
  return every_output(a, share);
}

Result expand(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (!share.is_split()) return std::nullopt;
  return every_output(a, Share::split(aligned(a, 0, share.axis)));
}

Result reduce_sum(const SplitArgs& a) {
  const Share share = input_share(a, 0);
  if (share.is_open()) return std::nullopt;
  if (!share.is_split()) return every_output(a, share);
  const ReduceParams params = std::get<ReduceParams>(a.node.op->params(a.op));
  if (params.reduced[static_cast<std::size_t>(share.axis)]) {
    return every_output(a, Share::partial());
  }
  int axis = share.axis;
  if (output_shape(a).rank < a.op.rank(0)) {
    axis -= static_cast<int>(
        std::count(params.reduced.begin(), params.reduced.begin() + share.axis, true));
  }
  return every_output(a, Share::split(axis));
}

// --- Products ------------------------------------------------------------------------------------

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
  const Share x = input_share(a, 0);
  if (!input_share(a, weight).is_open() || a.op.rank(weight) != 2) return;
  if (x.is_split() && x.axis == m.a_inner) choose(a, weight, Share::split(m.b_inner));
  if (x.is_whole()) choose(a, weight, Share::split(m.b_outer));
}

std::optional<Share> batched(const SplitArgs& a, int weight) {
  const int rank = output_shape(a).rank;
  const int split = input_share(a, 0).is_split() ? 0 : weight;
  const int at = aligned(a, split, input_share(a, split).axis);
  if (at >= rank - 2 || at < 0) return std::nullopt;
  for (int i : {0, weight}) {
    const Share share = input_share(a, i);
    const int own = at - (rank - a.op.rank(i));
    const bool cut = share.is_split() && share.axis == own;
    const bool broadcast = share.is_whole() && (own < 0 || a.op.shape(i)[own] == 1);
    if (!cut && !broadcast) return std::nullopt;
  }
  return Share::split(at);
}

std::optional<Share> multiplied(const SplitArgs& a, int weight) {
  const std::optional<Matrices> m = matrices_of(a, weight);
  if (!m) return std::nullopt;
  choose_weight(a, *m, weight);
  const Share x = input_share(a, 0);
  const Share w = input_share(a, weight);
  const int rank = output_shape(a).rank;
  const auto cut_at = [](Share share, int axis) { return share.is_split() && share.axis == axis; };
  if (x.is_open() || w.is_open()) return std::nullopt;
  if (x.is_whole() && w.is_whole()) return Share{};
  if (cut_at(x, m->a_inner) && cut_at(w, m->b_inner)) return Share::partial();
  if (x.is_whole() && cut_at(w, m->b_outer)) return Share::split(rank - 1);
  if (cut_at(x, m->a_outer) && w.is_whole()) return Share::split(rank - 2);
  return batched(a, weight);
}

Result product(const SplitArgs& a) {
  const std::optional<Share> share = multiplied(a, 1);
  return share ? Result(Shares{*share}) : std::nullopt;
}

// Whether a product of these shares can add this input, which one device does where the product is
// a sum.
bool adds(const SplitArgs& a, Share y, int addend) {
  if (!a.op.has(addend)) return true;
  const int axis = y.is_split() ? y.axis - (output_shape(a).rank - a.op.rank(addend)) : -1;
  const bool cut = axis >= 0 && a.op.shape(addend)[axis] > 1;
  const Share wanted = cut ? Share::split(axis) : Share{};
  if (input_share(a, addend).is_open()) choose(a, addend, wanted);
  return input_share(a, addend) == wanted;
}

Result biased(const SplitArgs& a) {
  const Result result = product(a);
  return result && adds(a, result->front(), 2) ? result : std::nullopt;
}

Result biased_products(const SplitArgs& a) {
  const int count = static_cast<int>(a.node.outputs.size());
  Shares shares;
  for (int i = 1; i <= count; ++i) {
    const std::optional<Share> share = multiplied(a, i);
    if (!share || !adds(a, *share, count + i)) return std::nullopt;
    shares.push_back(*share);
  }
  return shares;
}

// A product that is added to a sum, as addition() has it.
Result summed(const SplitArgs& a) {
  const Result result = product(a);
  if (!result) return result;
  const Share y = result->front();
  if (input_share(a, 2).is_open()) choose(a, 2, y.is_partial() ? Share{} : y);
  const Share sum = input_share(a, 2);
  if (y == sum) return result;
  const bool is_sum = y.is_partial() || sum.is_partial();
  if (!is_sum || y.is_split() || sum.is_split()) return std::nullopt;
  return Shares{Share::partial()};
}

// --- Tables and losses ---------------------------------------------------------------------------

// A table with more rows than columns is one of tokens. Each device looks up what it has.
Result gather(const SplitArgs& a) {
  const Share table = input_share(a, 0);
  if (a.op.rank(0) != 2 || a.op.axis("axis", 0, 2) != 0) return std::nullopt;
  const bool tokens = a.op.shape(0)[0] > a.op.shape(0)[1];
  if (table.is_open() && tokens) choose(a, 0, Share::split(0));
  if (input_share(a, 0) != Share::split(0)) return std::nullopt;
  return Shares{Share::partial()};
}

// Each device keeps the rows that it has, also of a sum that it adds to.
Result gather_grad(const SplitArgs& a) {
  const Share rows = Share::split(0);
  if (!input_share(a, 0).is_whole() || a.wanted.front() != rows) return std::nullopt;
  if (a.op.has(2) && input_share(a, 2) != rows) return std::nullopt;
  return Shares{rows};
}

// Scores cut by classes: the sums over classes are added up over the devices.
Result cross_entropy(const SplitArgs& a) {
  const int axis = a.op.axis("class_axis", -1, a.op.rank(0));
  if (input_share(a, 0) != Share::split(axis)) return std::nullopt;
  return every_output(a, Share::partial());
}

Result cross_entropy_grad(const SplitArgs& a) {
  const int axis = a.op.axis("class_axis", -1, a.op.rank(1));
  if (input_share(a, 1) != Share::split(axis)) return std::nullopt;
  return every_output(a, Share::split(axis));
}

// Gradients in any shares: the sums of squares are added up, a few bytes.
Result norm_of_all(const SplitArgs& a) { return every_output(a, {}); }

Result accumulate(const SplitArgs& a) { return every_output(a, input_share(a, 1)); }

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
    {.op = "MatMul", .rule = product, .by_examples = true},
    {.op = "BatchMatMul", .rule = biased, .by_examples = true},
    {.op = "MultiMatMul", .rule = biased_products, .by_examples = true},
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
