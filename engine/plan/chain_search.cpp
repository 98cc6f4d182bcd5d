// Finding chains: neighbours that have a rule, a kernel for a part, and bytes of their own.
#include "engine/plan/chain_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/ops/rules/split_rules.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
namespace {

constexpr double kFlopsPerSecond = 5e10;  // of one core, roughly
constexpr double kBytesPerSecond = 1e10;

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

PartOf part_of(Shard share) {
  if (share.is_partial()) return PartOf::kSummand;
  return share.is_split() ? PartOf::kExamples : PartOf::kWhole;
}

std::vector<TensorType> part_types(const Graph& graph, const std::vector<ValueId>& values,
                                   std::span<const PartOf> of, std::int64_t parts) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < values.size(); ++i) {
    types.push_back(values[i] == kNoValue ? TensorType{} : graph.value(values[i]).type);
    if (of[i] == PartOf::kExamples) types.back().shape[0] /= parts;
  }
  return types;
}

class ChainSearch {
 public:
  ChainSearch(const Program& program, const KernelTable& kernels, const ChainOptions& options)
      : program_(program),
        graph_(program.graph),
        kernels_(kernels),
        options_(options),
        parts_(program.threads),
        made_(graph_.value_capacity()) {
    find_persistent();
  }

  // Chains, and in `links` what their instructions are, by instruction.
  std::vector<Chain> run(std::vector<Link>& links) {
    links.resize(program_.instructions.size());
    std::vector<Chain> chains;
    Chain open;
    const auto close = [&](std::size_t end) {
      open.end = end;
      if (open.end - open.begin >= options_.least_ops) chains.push_back(open);
      open.begin = end;
      forget();
    };
    for (std::size_t i = 0; i < program_.update_begin; ++i) {
      if (i > 0 && node_of(i).phase != node_of(i - 1).phase) close(i);
      std::optional<Link> link = link_of(i);
      if (!link) {
        close(i);
        link = link_of(i);  // reads what the chain before it made
      }
      if (!link) {
        open.begin = i + 1;
        continue;
      }
      remember(i, *link);
      links[i] = std::move(*link);
    }
    close(program_.update_begin);
    return chains;
  }

 private:
  const Node& node_of(std::size_t i) const { return graph_.node(program_.instructions[i].node); }
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  bool divides(ValueId v) const {
    return type(v).shape.rank > 0 && type(v).shape[0] > 0 && type(v).shape[0] % parts_ == 0;
  }

  void remember(std::size_t i, const Link& link) {
    const Node& node = node_of(i);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      made_[index(node.outputs[k])] = link.outputs[k];
      made_list_.push_back(node.outputs[k]);
      written_.insert(buffer_of(node.outputs[k]));
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (reads_beyond(node.inputs[k], link.inputs[k])) {
        read_beyond_.insert(buffer_of(node.inputs[k]));
      }
    }
  }
  std::int32_t buffer_of(ValueId v) const { return program_.placements[index(v)].buffer; }
  // Whether parts read bytes that other parts would write if a result took them over.
  bool reads_beyond(ValueId v, PartOf of) const {
    if (v == kNoValue || buffer_of(v) < 0 || program_.placements[index(v)].external) return false;
    return of == PartOf::kWhole || !has_own_bytes(v);
  }
  // Threads are at different ops: no part may write what another one may still read, nor read what
  // another one may not have written yet.
  bool is_apart(const Node& node, const Link& link) const {
    std::set<std::int32_t> own;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!reads_beyond(node.inputs[k], link.inputs[k])) continue;
      own.insert(buffer_of(node.inputs[k]));
      if (written_.contains(buffer_of(node.inputs[k]))) return false;
    }
    return std::ranges::none_of(node.outputs, [&](ValueId v) {
      return v != kNoValue && (own.contains(buffer_of(v)) || read_beyond_.contains(buffer_of(v)));
    });
  }
  void forget() {
    for (ValueId v : made_list_) made_[index(v)].reset();
    made_list_.clear();
    written_.clear();
    read_beyond_.clear();
  }

  // What a part has of an input; none: it cannot have what it needs.
  std::optional<PartOf> part_of_input(ValueId v) const {
    ValueId root = v;
    while (!made_[index(root)] && graph_.value(root).producer != kNoNode) {
      const Node& producer = graph_.node(graph_.value(root).producer);
      if (!producer.op->is_view) break;
      root = producer.inputs[0];
    }
    const ValueKind kind = graph_.value(root).kind;
    const bool given = kind != ValueKind::kNode && kind != ValueKind::kInput;
    if (const std::optional<PartOf> made = made_[index(root)]) {
      const bool known = made == PartOf::kExamples && divides(v) && has_own_bytes(v);
      return known ? made : std::nullopt;
    }
    return !given && divides(v) ? PartOf::kExamples : PartOf::kWhole;
  }

  // Whether it is all that lies in its bytes: other values inside them, or around them, have parts
  // elsewhere.
  bool has_own_bytes(ValueId v) const {
    const Placement& placement = program_.placements[index(v)];
    if (placement.buffer < 0 || placement.external || placement.host) return false;
    const auto buffer = static_cast<std::size_t>(placement.buffer);
    return placement.offset == program_.solution.offsets[buffer] &&
           program_.problem.buffers[buffer].size_bytes ==
               static_cast<std::int64_t>(type(v).bytes());
  }
  void find_persistent() {
    persistent_.assign(program_.problem.buffers.size(), false);
    for (ValueId v : graph_.live_values()) {
      const Placement& placement = program_.placements[index(v)];
      if (placement.buffer < 0 || placement.host || graph_.value(v).kind == ValueKind::kNode)
        continue;
      persistent_[static_cast<std::size_t>(placement.buffer)] = true;
    }
  }

  bool is_short(const Node& node) const {
    const NodeArgs args(graph_, node);
    const Cost cost = cost_of(*node.op, *args);
    const double seconds =
        static_cast<double>(cost.flops) / kFlopsPerSecond +
        static_cast<double>(saturating_add(cost.bytes_read, cost.bytes_written)) / kBytesPerSecond;
    return seconds <= options_.short_seconds;
  }

  bool may_write(ValueId v, PartOf of) const {
    if (!has_own_bytes(v) || persistent_[static_cast<std::size_t>(buffer_of(v))]) return false;
    if (of == PartOf::kSummand) return type(v).dtype == DType::kF32;
    return of == PartOf::kExamples && divides(v);
  }

  std::optional<Link> link_of(std::size_t i) const {
    const Node& node = node_of(i);
    const SplitRow* row = find_split_row(node);
    if (row == nullptr || !row->by_examples || node.op->determinism == Determinism::kRandom ||
        node.op->to_host || !is_short(node)) {
      return std::nullopt;
    }
    std::optional<Link> link = shares_of(node, *row);
    if (link && is_apart(node, *link) && with_kernel(node, *link)) return link;
    return std::nullopt;
  }

  std::optional<Link> shares_of(const Node& node, const SplitRow& row) const {
    std::vector<Shard> inputs;
    for (ValueId v : node.inputs) {
      const std::optional<PartOf> part = v == kNoValue ? PartOf::kWhole : part_of_input(v);
      if (!part) return std::nullopt;
      inputs.push_back(part == PartOf::kExamples ? Shard::split(0) : Shard{});
    }
    if (std::ranges::none_of(inputs, &Shard::is_split)) return std::nullopt;
    const NodeArgs args(graph_, node);
    const std::vector<Shard> wanted(node.outputs.size());
    const auto outputs = row.rule({.graph = graph_,
                                   .node = node,
                                   .op = *args,
                                   .shards = parts_,
                                   .inputs = inputs,
                                   .wanted = wanted});
    if (!outputs) return std::nullopt;
    Link link;
    for (const Shard& share : inputs) link.inputs.push_back(part_of(share));
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const Shard share = (*outputs)[k];
      link.outputs.push_back(part_of(share));
      if (node.outputs[k] == kNoValue) continue;
      if (share.is_split() && share.axis != 0) return std::nullopt;
      if (!may_write(node.outputs[k], link.outputs.back())) return std::nullopt;
      if (share.is_partial() && adds_something_whole(node, link)) return std::nullopt;
    }
    return link;
  }

  // A bias, say, which each part would add to its summand.
  bool adds_something_whole(const Node& node, const Link& link) const {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == kNoValue || link.inputs[k] != PartOf::kWhole) continue;
      if (is_float(type(node.inputs[k]).dtype)) return true;
    }
    return false;
  }

  bool with_kernel(const Node& node, Link& link) const {
    const PartNode part(graph_, node, link.inputs, link.outputs, parts_);
    if (!part.fits()) return false;
    if (node.op->params) link.params = node.op->params(part.args());
    const std::vector<TensorView> inputs = part.inputs();
    const std::vector<TensorView> outputs = part.outputs();
    const PrepareArgs args{
        .params = link.params, .inputs = inputs, .outputs = outputs, .threads = 1};
    const DType dtype = kernel_dtype(part.args().inputs, part.args().outputs);
    for (const Kernel* kernel : kernels_for(kernels_, node.op->name, dtype, options_.kernels)) {
      if (!supports(*kernel, args)) continue;
      link.kernel = kernel;
      return true;
    }
    return false;
  }

  const Program& program_;
  const Graph& graph_;
  const KernelTable& kernels_;
  const ChainOptions& options_;
  std::int64_t parts_;
  std::vector<bool> persistent_;             // by buffer: holds inputs, parameters, states
  std::vector<std::optional<PartOf>> made_;  // by ValueId: in the open chain
  std::vector<ValueId> made_list_;
  std::set<std::int32_t> written_;      // buffers, in the open chain
  std::set<std::int32_t> read_beyond_;  // ... of which a part reads more than its own bytes
};

}  // namespace

PartNode::PartNode(const Graph& graph, const Node& node, std::span<const PartOf> inputs,
                   std::span<const PartOf> outputs, std::int64_t parts)
    : node_(node),
      whole_(graph, node),
      attributes_(node.attributes),
      input_types_(part_types(graph, node.inputs, inputs, parts)),
      output_types_(part_types(graph, node.outputs, outputs, parts)) {
  const SplitRow* row = find_split_row(node);
  if (row == nullptr || !attributes_.has(row->shape_attribute)) return;
  Ints shape = attributes_.integers(row->shape_attribute);
  shape[0] /= parts;
  attributes_.set(std::string(row->shape_attribute), std::move(shape));
}

OpArgs PartNode::args() const {
  return {.attributes = attributes_,
          .inputs = input_types_,
          .constants = whole_->constants,
          .present = whole_->present,
          .outputs = output_types_,
          .output_count = whole_->output_count};
}

bool PartNode::fits() const {
  OpArgs asked = args();
  asked.outputs = {};
  std::vector<TensorType> made;
  try {
    made = node_.op->shape(asked);
  } catch (const Error&) {
    return false;  // a constant counts all examples: the shape of an Expand, say
  }
  for (std::size_t k = 0; k < node_.outputs.size(); ++k) {
    if (node_.outputs[k] != kNoValue && made[k] != output_types_[k]) return false;
  }
  return true;
}

std::vector<TensorView> PartNode::views(const std::vector<ValueId>& values,
                                        const std::vector<TensorType>& types) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < values.size(); ++i) {
    views.push_back({.type = types[i], .data = nullptr, .present = values[i] != kNoValue});
  }
  return views;
}

std::vector<Chain> find_chains(const Program& program, const KernelTable& kernels,
                               const ChainOptions& options, std::vector<Link>& links) {
  return ChainSearch(program, kernels, options).run(links);
}

}  // namespace trainscope
