// The search goes from the softmax to the matmul that reads its weights, then back through masks
// and scales to the matmul that makes the scores, and from there along q, k and v.
#include "engine/passes/fuse/attention_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr int kRank = 4;
// [batch, tokens, heads, width] of [batch, heads, tokens, width], or of the transposed matrices.
const Ints kByToken = {0, 2, 1, 3};
const Ints kByTokenOfTransposed = {0, 3, 1, 2};
constexpr int kMostSteps = 16;  // from the weights to the matmul of the scores

}  // namespace

bool Strand::is_in_order() const { return std::ranges::is_sorted(permutation); }

std::optional<AttentionMatch> AttentionSearch::give_up(std::string why) {
  why_not_ = std::move(why);
  return std::nullopt;
}

std::optional<AttentionMatch> AttentionSearch::find(NodeId softmax) {
  const Node& node = match_.graph().node(softmax);
  const ValueId scores = node.inputs[0];
  const ValueId weights = after_dropout(node.outputs[0]);
  const std::int64_t axis = node.attributes.integer("axis", -1);
  if (shape(scores).rank != kRank || (axis != -1 && axis != kRank - 1)) return std::nullopt;
  const std::optional<Matmul> mixed = matmul_of_weights(weights);
  if (!mixed) return std::nullopt;
  found_.nodes.insert(found_.nodes.end(), {softmax, mixed->node});
  const std::optional<Matmul> scored = matmul_of_scores(scores);
  if (!scored) return std::nullopt;
  if (!settle_masks()) return std::nullopt;
  const DType expected = computed(match_.value(weights).type.dtype);
  for (ValueId bias : found_.biases) {
    const TensorType& type = match_.value(bias).type;
    if (type.dtype != expected) {
      return give_up(
          fmt::format("its bias is {}, {} is expected", type_text(type), name_of(expected)));
    }
  }
  found_.nodes.push_back(scored->node);
  found_.q = follow(scored->a, kByToken, false);
  found_.k = follow(scored->b, scored->transpose_b ? kByToken : kByTokenOfTransposed, true);
  found_.v = follow(mixed->b, kByToken, true);
  found_.scale *= scored->alpha * found_.q.scale * found_.k.scale;
  if (found_.v.scale != 1.0) found_.v = {mixed->b, kByToken};
  const auto heads = [&](const Strand& s) {
    return shape(s.source)[static_cast<int>(s.permutation[2])];
  };
  const auto width = [&](const Strand& s) {
    return shape(s.source)[static_cast<int>(s.permutation[3])];
  };
  if (width(found_.v) != width(found_.q)) return give_up("values and queries differ in width");
  if (heads(found_.k) != heads(found_.v)) return give_up("keys and values differ in heads");
  if (heads(found_.k) == 0 || heads(found_.q) % heads(found_.k) != 0) {
    return give_up(fmt::format("{} heads of queries cannot share {} of keys", heads(found_.q),
                               heads(found_.k)));
  }
  if (shape(scored->a)[0] != shape(scored->b)[0] || shape(weights)[0] != shape(mixed->b)[0]) {
    return give_up("a batch axis is broadcast");
  }
  find_packed();
  find_end(*mixed);
  return found_;
}

// Both operands are [batch, heads, rows, columns]; only the second may be transposed.
std::optional<AttentionSearch::Matmul> AttentionSearch::matmul(NodeId id) const {
  if (id == kNoNode) return std::nullopt;
  const Node& node = match_.graph().node(id);
  const bool batch = is_op(node, kTrainscopeDomain, "BatchMatMul");
  if (!batch && !match_.is_op(id, "MatMul")) return std::nullopt;
  if (node.attributes.integer("transpose_a", 0) != 0) return std::nullopt;
  if (shape(node.inputs[0]).rank != kRank || shape(node.inputs[1]).rank != kRank) {
    return std::nullopt;
  }
  return Matmul{.node = id,
                .a = node.inputs[0],
                .b = node.inputs[1],
                .transpose_b = node.attributes.integer("transpose_b", 0) != 0,
                .alpha = node.attributes.number("alpha", 1.0)};
}

// What dropout leaves of the weights, where it is all that reads them; else the weights.
ValueId AttentionSearch::after_dropout(ValueId weights) {
  const auto drops = [this](const Use& use) {
    return is_op(match_.graph().node(use.node), kTrainscopeDomain, "RandomDropout");
  };
  const std::vector<Use>& uses = match_.value(weights).uses;
  const auto dropout = std::ranges::find_if(uses, drops);
  if (dropout == uses.end()) return weights;
  if (match_.only_reader(weights) == kNoNode) {
    give_up(match_.why_kept(weights));
    return weights;
  }
  found_.dropout = dropout->node;
  found_.nodes.push_back(found_.dropout);
  return match_.output(found_.dropout);
}

std::optional<AttentionSearch::Matmul> AttentionSearch::matmul_of_weights(ValueId weights) {
  const std::vector<Use>& uses = match_.value(weights).uses;
  std::optional<Matmul> mixed;
  for (const Use& use : uses) {
    const std::optional<Matmul> candidate = matmul(use.node);
    if (candidate && candidate->a == weights && !candidate->transpose_b) mixed = candidate;
  }
  const NodeId reader = match_.only_reader(weights);
  if (!mixed && reader != kNoNode && match_.graph().node(reader).op->is_view) {
    give_up("its weights are reshaped before the matmul");
  }
  if (!mixed || mixed->alpha != 1.0) return std::nullopt;
  if (match_.only_reader(weights) == kNoNode) {
    give_up(match_.why_kept(weights));
    return std::nullopt;
  }
  return mixed;
}

std::optional<AttentionSearch::Matmul> AttentionSearch::matmul_of_scores(ValueId scores) {
  ValueId v = scores;
  for (int step = 0; step < kMostSteps; ++step) {
    if (match_.only_reader(v) == kNoNode) {
      give_up(match_.why_kept(v));
      return std::nullopt;
    }
    const NodeId id = match_.value(v).producer;
    if (const std::optional<Matmul> found = matmul(id)) return found;
    if (id == kNoNode) break;
    ValueId next = kNoValue;
    if (match_.is_op(id, "Add")) {
      next = without_bias(id);
    } else if (match_.is_op(id, "Where")) {
      next = without_mask(id);
    } else if (!take_scale(id, next)) {
      next = kNoValue;
      give_up(why_not_passed(id));
    }
    if (next == kNoValue) return std::nullopt;
    found_.nodes.push_back(id);
    v = next;
  }
  return std::nullopt;
}

std::string AttentionSearch::why_not_passed(NodeId id) const {
  std::string trained = match_.why_no_number(id);
  if (!trained.empty()) return trained;
  const Node& node = match_.graph().node(id);
  return fmt::format("'{}' ({}) stands between the scores and their softmax", printable(node.name),
                     node.op->name);
}

// v * number or v / number: v becomes the operand, the factor is returned.
std::optional<double> AttentionSearch::factor_of(NodeId id, ValueId& v) const {
  const bool quotient = match_.is_op(id, "Div");
  if (!quotient && !match_.is_op(id, "Mul")) return std::nullopt;
  for (std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    if (quotient && i == 0) break;
    const std::optional<double> number = match_.number(match_.input(id, i));
    const ValueId other = match_.input(id, 1 - i);
    if (!number || shape(other) != shape(match_.output(id))) continue;
    v = other;
    return quotient ? 1.0 / *number : *number;
  }
  return std::nullopt;
}

bool AttentionSearch::take_scale(NodeId id, ValueId& v) {
  const std::optional<double> factor = factor_of(id, v);
  if (!factor || *factor <= 0.0) return false;
  found_.scale *= *factor;
  return true;
}

Strand AttentionSearch::follow(ValueId v, Ints permutation, bool shared_heads) {
  Strand strand{.source = v, .permutation = std::move(permutation)};
  // The gradient of a value that is passed by would be lost.
  while (!match_.is_wanted(strand.source)) {
    const NodeId id = match_.value(strand.source).producer;
    const bool by_head = strand.permutation == kByToken;
    if (match_.is_op(id, "Transpose")) {
      const Ints inner = match_.graph().node(id).attributes.integers("perm");
      if (inner.empty()) return strand;
      for (std::int64_t& axis : strand.permutation) axis = inner[static_cast<std::size_t>(axis)];
      strand.source = match_.input(id, 0);
      found_.nodes.push_back(id);
    } else if (passes_rotary(strand, id)) {
      strand.rotary = id;
      strand.rotary_permutation = strand.permutation;
      strand.source = match_.input(id, 0);
      found_.nodes.push_back(id);
    } else if (const std::optional<double> factor = factor_of(id, strand.source)) {
      strand.scale *= *factor;
      found_.nodes.push_back(id);
    } else if (const ValueId few = before_sharing(strand.source);
               shared_heads && by_head && strand.rotary == kNoNode && few != kNoValue) {
      for (ValueId at = strand.source; at != few;) {
        found_.nodes.push_back(match_.value(at).producer);
        at = match_.input(found_.nodes.back(), 0);
      }
      strand.source = few;
    } else {
      break;
    }
  }
  return strand;
}

// Heads that are rotated before a Transpose brings them into place may be rotated after it as well,
// which leaves no Transpose where another one has moved them before.
bool AttentionSearch::passes_rotary(const Strand& strand, NodeId id) const {
  if (id == kNoNode || strand.rotary != kNoNode || strand.is_in_order()) return false;
  if (!is_op(match_.graph().node(id), kTrainscopeDomain, "RotaryEmbedding")) return false;
  return strand.permutation[kRank - 1] == kRank - 1 && match_.value(strand.source).uses.size() == 1;
}

// [batch, heads, tokens, width] that each of several heads of q reads: before it was repeated as
// [batch, heads, times, tokens, width].
ValueId AttentionSearch::before_sharing(ValueId v) const {
  const NodeId reshape = match_.made_by(v, "Reshape");
  const NodeId expand =
      reshape == kNoNode ? kNoNode : match_.made_by(match_.input(reshape, 0), "Expand");
  if (expand == kNoNode) return kNoValue;
  const ValueId repeated = match_.output(expand);
  const ValueId once = match_.input(expand, 0);
  const NodeId inserted = match_.value(once).producer;
  const bool reshaped = match_.is_op(inserted, "Unsqueeze") || match_.is_op(inserted, "Reshape");
  if (!reshaped || shape(repeated).rank != kRank + 1) return kNoValue;
  if (match_.is_wanted(repeated) || match_.is_wanted(once)) return kNoValue;
  const ValueId source = match_.input(inserted, 0);
  const Shape& s = shape(source);
  if (s.rank != kRank || shape(once) != Shape{s[0], s[1], 1, s[2], s[3]}) return kNoValue;
  const std::int64_t times = shape(repeated)[2];
  const bool plain = shape(repeated) == Shape{s[0], s[1], times, s[2], s[3]} &&
                     shape(v) == Shape{s[0], s[1] * times, s[2], s[3]};
  return plain ? source : kNoValue;
}

// q, k and v are the outputs of one Split along the heads, or along [heads * width] of the tokens.
void AttentionSearch::find_packed() {
  const auto is_rotated = [](const Strand& strand) { return strand.rotary != kNoNode; };
  if (is_rotated(found_.q) || is_rotated(found_.k) || is_rotated(found_.v)) return;
  const Strand* strands[] = {&found_.q, &found_.k, &found_.v};
  NodeId split = kNoNode;
  bool reshaped = false;
  for (std::size_t i = 0; i < 3; ++i) {
    const Strand& strand = *strands[i];
    ValueId piece = strand.source;
    const NodeId reshape = match_.made_by(piece, "Reshape");
    const bool from_flat = reshape != kNoNode && strand.is_in_order();
    if (from_flat) piece = match_.input(reshape, 0);
    const NodeId producer = match_.value(piece).producer;
    if (!match_.is_op(producer, "Split")) return;
    const Node& node = match_.graph().node(producer);
    const bool wanted = match_.is_wanted(piece) || match_.is_wanted(strand.source);
    const bool fits = !wanted && node.outputs.size() == 3 && node.outputs[i] == piece &&
                      strand.permutation == found_.q.permutation &&
                      (i == 0 || (producer == split && from_flat == reshaped));
    const Shape& heads = shape(strand.source);
    const int axis = normalized_axis(node.attributes.integer("axis", 0), shape(piece).rank);
    // A token's heads are one row of the flat piece.
    const bool along_heads =
        from_flat ? shape(piece).rank == 3 && axis == 2 && shape(piece)[2] == heads[2] * heads[3]
                  : axis == static_cast<int>(strand.permutation[2]);
    if (!fits || !along_heads) return;
    if (from_flat) found_.nodes.push_back(reshape);
    split = producer;
    reshaped = from_flat;
  }
  found_.nodes.push_back(split);
  if (reshaped) {
    found_.packed = match_.input(split, 0);
    return;
  }
  const Strand whole = follow(match_.input(split, 0), found_.q.permutation, false);
  if (whole.is_in_order() && whole.scale == 1.0) found_.packed = whole.source;
}

// The Transpose that brings the heads back beside each other, where it is the only reader.
void AttentionSearch::find_end(const Matmul& mixed) {
  const ValueId y = match_.output(mixed.node);
  const NodeId reader = match_.only_reader(y);
  found_.by_token = reader != kNoNode && match_.is_op(reader, "Transpose") &&
                    match_.graph().node(reader).attributes.integers("perm") == kByToken;
  found_.last = found_.by_token ? reader : mixed.node;
  if (found_.by_token) found_.nodes.push_back(reader);
}

}  // namespace trainscope
