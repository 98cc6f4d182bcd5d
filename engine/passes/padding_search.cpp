// Two walks: forward, which values hold the mask's tokens in place; backward, whose rows of padding
// nothing reads. What is left between is computed for real tokens only.
#include "engine/passes/padding_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string text_of(const Node& node) {
  return fmt::format("'{}' ({})", printable(node.name), node.op->name);
}

}  // namespace

PaddingSearch::PaddingSearch(const Matcher& match, ValueId mask, const TrainingOptions& options)
    : match_(match),
      mask_(mask),
      options_(options),
      tokens_{.batch = match.value(mask).type.shape[0], .length = match.value(mask).type.shape[1]} {
}

std::vector<NodeId> PaddingSearch::find() {
  if (tokens_.rows() < 2) return {};
  find_influence();
  find_masked();
  if (!attentions_are_masked()) return {};
  find_in_place();
  find_unread();
  chosen_.assign(graph().node_capacity(), false);
  for (NodeId id : graph().order()) chosen_[at(id)] = is_packable(id);
  if (options_.loss_chunks > 1) leave_head_whole();
  drop_leading();
  keep_beside_matmuls();
  note_other_matmuls();
  std::vector<NodeId> found;
  for (NodeId id : graph().order()) {
    if (chosen_[at(id)]) found.push_back(id);
  }
  return found;
}

// --- What there is to know of all nodes and values -----------------------------------------------

void PaddingSearch::find_influence() {
  matters_.assign(graph().node_capacity(), false);
  const auto mark = [this](ValueId v) {
    if (v == kNoValue) return;
    const NodeId producer = match_.value(v).producer;
    if (producer != kNoNode) matters_[at(producer)] = true;
  };
  mark(graph().loss);
  for (const Update& update : graph().updates) mark(update.value);
  for (NodeId id : std::views::reverse(graph().order())) {
    if (matters_[at(id)]) std::ranges::for_each(graph().node(id).inputs, mark);
  }
}

void PaddingSearch::find_masked() {
  masked_.assign(graph().value_capacity(), false);
  masked_[at(mask_)] = true;
  for (NodeId id : graph().order()) {
    const Node& node = graph().node(id);
    const bool any = std::ranges::any_of(
        node.inputs, [this](ValueId v) { return v != kNoValue && masked_[at(v)]; });
    for (ValueId v : node.outputs) {
      if (v != kNoValue) masked_[at(v)] = any;
    }
  }
}

std::string PaddingSearch::why_not_masked(const Node& attention) const {
  const std::string name = printable(match_.value(mask_).name);
  const ValueId bias = attention.inputs.size() > 3 ? attention.inputs[3] : kNoValue;
  if (bias == kNoValue || !masked_[at(bias)]) {
    return fmt::format("adds nothing to its scores that is made of '{}'", name);
  }
  const Shape& added = shape(bias);
  if (added.rank == 0 || added[added.rank - 1] != tokens_.length) {
    return fmt::format("what '{}' adds to its scores is not a number per key", name);
  }
  return {};
}

// One that is not: padding is as good as any token there.
bool PaddingSearch::attentions_are_masked() {
  for (NodeId id : graph().order()) {
    const Node& node = graph().node(id);
    if (!matters_[at(id)] || row_kind(node) != RowKind::kAttention) continue;
    const bool apart = node.inputs.size() > 1 && node.inputs[1] != kNoValue;
    if (tokens_.axes(shape(node.inputs[apart ? 1 : 0])) == 0) continue;
    std::string why = why_not_masked(node);
    if (!why.empty()) near_misses_.emplace_back(id, std::move(why));
  }
  return near_misses_.empty();
}

// Whether row r of the node's results comes from row r of this input.
bool PaddingSearch::is_moved_row(const Node& node, std::size_t input) const {
  const ValueId v = node.inputs[input];
  const Shape& result = shape(node.outputs[0]);
  const int leading = tokens_.axes(shape(v));
  if (leading == 0 || tokens_.axes(result) == 0) return false;
  switch (row_kind(node)) {
    case RowKind::kPointwise:
    case RowKind::kQuotient:
      return tokens_.are_in(shape(v), result);
    case RowKind::kView:
      return input == 0;
    case RowKind::kNorm:
      return input == 0 && first_axis(node, result.rank) >= leading;
    case RowKind::kMatmul:
      return input == 0 && is_rows_of_matmul(node);
    case RowKind::kInPlace: {
      const bool along_axis = node.op->axis.has_value();
      if (along_axis && first_axis(node, shape(v).rank) < leading) return false;
      return tokens_.are_in(shape(v), result);
    }
    default:
      return false;
  }
}

bool PaddingSearch::is_rows_of_matmul(const Node& node) const {
  const Shape& a = shape(node.inputs[0]);
  return a.rank >= 2 && shape(node.inputs[1]).rank == 2 && tokens_.axes(a) < a.rank &&
         node.attributes.integer("transA", 0) == 0 &&
         node.attributes.integer("transpose_a", 0) == 0;
}

void PaddingSearch::find_in_place() {
  in_place_.assign(graph().value_capacity(), false);
  for (ValueId v : graph().inputs) {
    const Shape& given = shape(v);
    in_place_[at(v)] = given.rank >= 2 && given[0] == tokens_.batch && given[1] == tokens_.length;
  }
  for (NodeId id : graph().order()) {
    const Node& node = graph().node(id);
    bool in_place = false;
    for (std::size_t i = 0; i < node.inputs.size() && !in_place; ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || !in_place_[at(v)]) continue;
      const bool looked_up = static_cast<int>(i) == node.op->index_input &&
                             first_axis(node, shape(node.inputs[0]).rank) == 0;
      in_place =
          looked_up || (row_kind(node) == RowKind::kAttention && i == 0) || is_moved_row(node, i);
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue) in_place_[at(v)] = in_place && tokens_.axes(shape(v)) > 0;
    }
  }
}

// --- Whose rows of padding are read --------------------------------------------------------------

void PaddingSearch::find_unread() {
  why_read_.assign(graph().value_capacity(), {});
  const auto of_value = [this](ValueId v) -> std::string {
    const bool asked = std::ranges::any_of(graph().updates,
                                           [v](const Update& update) { return update.value == v; });
    if (asked) return fmt::format("'{}' is a next state", printable(match_.value(v).name));
    for (const Use& use : match_.value(v).uses) {
      if (!matters_[at(use.node)]) continue;
      std::string why = why_read(use.node, static_cast<std::size_t>(use.input));
      if (!why.empty()) return why;
    }
    return {};
  };
  for (NodeId id : std::views::reverse(graph().order())) {
    for (ValueId v : graph().node(id).outputs) {
      if (v != kNoValue && tokens_.axes(shape(v)) > 0) why_read_[at(v)] = of_value(v);
    }
  }
}

std::string PaddingSearch::why_read(NodeId id, std::size_t input) const {
  const Node& node = graph().node(id);
  if (row_kind(node) == RowKind::kAttention) return why_attended(node, input);
  if (is_head_of_compacted(node, input)) return {};
  if (row_kind(node) == RowKind::kLoss && input == 0 &&
      match_.value(node.inputs[1]).type.elements() == tokens_.rows()) {
    return {};
  }
  if (!is_moved_row(node, input)) {
    return fmt::format("{} reads more than each token's own row", text_of(node));
  }
  const std::vector<int>& poles = node.op->poles;
  const bool infinite = std::ranges::find(poles, static_cast<int>(input)) != poles.end();
  if (infinite) return fmt::format("{} may be infinite where padding is 0", text_of(node));
  for (ValueId v : node.outputs) {
    if (v != kNoValue && !why_read_[at(v)].empty()) return why_read_[at(v)];
  }
  return {};
}

// Keys and values of padding have a weight of 0.
std::string PaddingSearch::why_attended(const Node& node, std::size_t input) const {
  const Shape& given = shape(node.inputs[input]);
  if (input > 2 || given[0] != tokens_.batch || given[1] != tokens_.length) {
    return fmt::format("{} has other tokens than the mask", text_of(node));
  }
  return input == 0 ? why_read_[at(node.outputs[0])] : std::string();
}

// Of `compact_labels`: it takes the rows whose labels count.
bool PaddingSearch::is_head_of_compacted(const Node& node, std::size_t input) const {
  if (node.op->index_input < 0 || input != 0) return false;
  const auto index_input = static_cast<std::size_t>(node.op->index_input);
  const NodeId index = match_.value(node.inputs[index_input]).producer;
  if (index == kNoNode || !graph().node(index).op->counts_rows) return false;
  return std::ranges::all_of(match_.value(node.outputs[0]).uses, [this](const Use& use) {
    return graph().node(use.node).op->count_input >= 0 && use.input == 0;
  });
}

// --- The choice ----------------------------------------------------------------------------------

bool PaddingSearch::is_rows(const Node& node, std::size_t input) const {
  const ValueId v = node.inputs[input];
  if (v == kNoValue) return false;
  return row_kind(node) == RowKind::kLoss ? input == 0 : is_moved_row(node, input);
}

// What is no row must be the same for all of them, and nothing may count rows by their axes.
bool PaddingSearch::may_leave_axes(const Node& node) const {
  const Shape& result = shape(node.outputs[0]);
  const RowKind kind = row_kind(node);
  const int own = result.rank - tokens_.axes(result);  // axes of a row
  if (kind == RowKind::kMatmul) {
    const auto factor = [&node](std::string_view name) {
      return node.attributes.number(name, 1.0);
    };
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    const std::int64_t columns = result[result.rank - 1];
    const bool per_column = bias == kNoValue || (shape(bias).elements() == columns &&
                                                 shape(bias)[shape(bias).rank - 1] == columns);
    return own == 1 && per_column && factor("alpha") == 1.0 && factor("beta") == 1.0;
  }
  if (kind == RowKind::kNorm) return node.attributes.number("epsilon", 1e-5) > 0.0;
  if (kind == RowKind::kView) return true;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || is_rows(node, i)) continue;
    if (kind == RowKind::kQuotient && i == 0) return false;
    const Shape& other = shape(node.inputs[i]);
    for (int axis = 0; axis < other.rank - own; ++axis) {
      if (other[axis] != 1) return false;
    }
  }
  return kind != RowKind::kQuotient || !is_rows(node, 1);
}

bool PaddingSearch::is_packable(NodeId id) const {
  const Node& node = graph().node(id);
  const RowKind kind = row_kind(node);
  if (!matters_[at(id)] || reads_other_rows(kind) || kind == RowKind::kInPlace) return false;
  bool any = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    any = any || (is_rows(node, i) && in_place_[at(node.inputs[i])]);
  }
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue && !match_.value(node.outputs[i]).uses.empty()) return false;
  }
  const ValueId result = node.outputs[0];
  if (!any || match_.is_gradient_wanted(result)) return false;
  if (kind == RowKind::kLoss) {
    const Shape& scores = shape(node.inputs[0]);
    const int axis = normalized_axis(node.attributes.integer("class_axis", -1), scores.rank);
    return node.op->of_scores && node.inputs.size() == 2 &&
           tokens_.axes(scores) == scores.rank - 1 && axis == scores.rank - 1;
  }
  return is_float(match_.value(result).type.dtype) && why_read_[at(result)].empty() &&
         may_leave_axes(node);
}

// `chunked_loss` divides the last linear layer and the loss itself.
void PaddingSearch::leave_head_whole() {
  NodeId id = match_.value(graph().loss).producer;
  while (id != kNoNode && !reads_other_rows(row_kind(graph().node(id)))) {
    chosen_[at(id)] = false;
    if (row_kind(graph().node(id)) == RowKind::kMatmul) return;
    id = match_.value(graph().node(id).inputs[0]).producer;
  }
}

// Whether a node only makes what the first matmuls read, of what no other chosen node reads: the
// rows may as well be moved behind it.
bool PaddingSearch::leads_in(NodeId id) const {
  const Node& node = graph().node(id);
  if (!chosen_[at(id)] || row_kind(node) == RowKind::kMatmul) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_rows(node, i)) continue;
    const Value& v = match_.value(node.inputs[i]);
    if (v.producer != kNoNode && chosen_[at(v.producer)]) return false;
    const bool others = std::ranges::any_of(
        v.uses, [&](const Use& use) { return use.node != id && chosen_[at(use.node)]; });
    if (others) return false;
  }
  return true;
}

void PaddingSearch::drop_leading() {
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id : graph().order()) {
      if (!leads_in(id)) continue;
      chosen_[at(id)] = false;
      changed = true;
    }
  }
}

// Rows are worth moving where a matmul is near.
void PaddingSearch::keep_beside_matmuls() {
  std::vector<bool> near(chosen_.size(), false);
  std::vector<NodeId> waiting;
  const auto visit = [&](NodeId id) {
    if (id == kNoNode || !chosen_[at(id)] || near[at(id)]) return;
    near[at(id)] = true;
    waiting.push_back(id);
  };
  for (NodeId id : graph().order()) {
    if (row_kind(graph().node(id)) == RowKind::kMatmul) visit(id);
  }
  while (!waiting.empty()) {
    const Node& node = graph().node(waiting.back());
    waiting.pop_back();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_rows(node, i)) visit(match_.value(node.inputs[i]).producer);
    }
    for (const Use& use : match_.value(node.outputs[0]).uses) visit(use.node);
  }
  chosen_ = std::move(near);
}

void PaddingSearch::note_other_matmuls() {
  for (NodeId id : graph().order()) {
    const Node& node = graph().node(id);
    if (chosen_[at(id)] || !matters_[at(id)] || row_kind(node) != RowKind::kMatmul) continue;
    if (!is_moved_row(node, 0) || !in_place_[at(node.inputs[0])]) continue;
    const std::string& why = why_read_[at(node.outputs[0])];
    if (!why.empty()) near_misses_.emplace_back(id, why);
  }
}

}  // namespace trainscope
