// Sections are neighbours that have a rule, a kernel for a tile's slices, and bytes of their own.
#include "engine/plan/tile_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/plan/kernel_choice.h"

namespace trainscope {
namespace {

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

TileSlice slice_of(Shard shard) {
  if (shard.is_partial()) return TileSlice::kPartial;
  return shard.is_split() ? TileSlice::kExamples : TileSlice::kWhole;
}

std::vector<TensorType> tile_types(const Graph& graph, const std::vector<ValueId>& values,
                                   std::span<const TileSlice> of, std::int64_t tiles) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < values.size(); ++i) {
    types.push_back(values[i] == kNoValue ? TensorType{} : graph.value(values[i]).type);
    if (of[i] == TileSlice::kExamples) types.back().shape[0] /= tiles;
  }
  return types;
}

class TileSearch {
 public:
  TileSearch(const Program& program, const BatchTileOptions& options)
      : program_(program),
        graph_(program.graph),
        kernels_(program.device->kernels()),
        options_(options),
        tiles_(program.threads),
        adds_partials_(add_partials_kernel(*program.device) != nullptr),
        calls_(calls_by_time(program)),
        made_(graph_.value_capacity()) {
    find_given();
  }

  // The sections, and in `calls`, by time, how those in them run.
  std::vector<TimeSection> run(std::vector<TiledCall>& calls) {
    calls.resize(calls_.size());
    std::vector<TimeSection> sections;
    TimeSection open;
    const auto close = [&](std::int64_t end) {
      open.end = end;
      if (open.end - open.begin >= options_.least_ops) sections.push_back(open);
      open.begin = end;
      forget();
    };
    for (std::int64_t i = 0; i < program_.update_time; ++i) {
      if (i > 0 && node_of(i).phase != node_of(i - 1).phase) close(i);
      std::optional<TiledCall> call = call_of(i);
      if (!call) {
        close(i);
        call = call_of(i);  // reads what the section before it made
      }
      if (!call) {
        open.begin = i + 1;
        continue;
      }
      remember(i, *call);
      calls[static_cast<std::size_t>(i)] = std::move(*call);
    }
    close(program_.update_time);
    return sections;
  }

 private:
  const Node& node_of(std::int64_t time) const {
    return graph_.node(program_.call(calls_[static_cast<std::size_t>(time)]).node);
  }
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  bool divides(ValueId v) const {
    return type(v).shape.rank > 0 && type(v).shape[0] > 0 && type(v).shape[0] % tiles_ == 0;
  }

  void remember(std::int64_t i, const TiledCall& call) {
    const Node& node = node_of(i);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      made_[index(node.outputs[k])] = call.outputs[k];
      made_list_.push_back(node.outputs[k]);
      written_.insert(buffer_of(node.outputs[k]));
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (reads_beyond(node.inputs[k], call.inputs[k])) {
        read_beyond_.insert(buffer_of(node.inputs[k]));
      }
    }
  }
  BufferId buffer_of(ValueId v) const { return program_.place(v).buffer; }
  // Whether a tile reads bytes that another one would write if a result took them over.
  bool reads_beyond(ValueId v, TileSlice of) const {
    if (v == kNoValue || !program_.keeps(v) || program_.buffer_of(v)->external) return false;
    return of == TileSlice::kWhole || !has_own_bytes(v);
  }
  // Threads are at different ops: no tile may write what another one may still read, nor read what
  // another one may not have written yet.
  bool is_apart(const Node& node, const TiledCall& call) const {
    std::set<BufferId> own;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!reads_beyond(node.inputs[k], call.inputs[k])) continue;
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

  // What a tile has of an input; none: it cannot have what it needs.
  std::optional<TileSlice> slice_of_input(ValueId v) const {
    ValueId root = v;
    while (!made_[index(root)] && graph_.value(root).producer != kNoNode) {
      const Node& producer = graph_.node(graph_.value(root).producer);
      if (!producer.op->is_view) break;
      root = producer.inputs[0];
    }
    const ValueKind kind = graph_.value(root).kind;
    const bool given = kind != ValueKind::kNode && kind != ValueKind::kInput;
    if (const std::optional<TileSlice> made = made_[index(root)]) {
      const bool known = made == TileSlice::kExamples && divides(v) && has_own_bytes(v);
      return known ? made : std::nullopt;
    }
    return !given && divides(v) ? TileSlice::kExamples : TileSlice::kWhole;
  }

  // Whether it is all that lies in its bytes: other values inside them, or around them, have slices
  // elsewhere.
  bool has_own_bytes(ValueId v) const {
    const PlannedBuffer* buffer = program_.buffer_of(v);
    if (buffer == nullptr || buffer->external || buffer->space == Space::kHost) return false;
    return program_.place(v).offset == 0 &&
           buffer->bytes == static_cast<std::int64_t>(type(v).bytes());
  }
  void find_given() {
    given_.assign(program_.buffers.size(), false);
    for (ValueId v : graph_.live_values()) {
      if (!program_.keeps(v) || graph_.value(v).kind == ValueKind::kNode) continue;
      given_[static_cast<std::size_t>(buffer_of(v))] = true;
    }
  }

  bool is_short(const Node& node) const {
    const NodeArgs args(graph_, node);
    const Cost cost = cost_of(*node.op, *args);
    const Machine& machine = options_.machine;
    const DType dtype = kernel_dtype(args->inputs, args->outputs);
    const double seconds =
        static_cast<double>(cost.flops) / machine.flops(dtype).one +
        static_cast<double>(saturating_add(cost.bytes_read, cost.bytes_written)) /
            machine.memory().copy.one;
    return seconds <= options_.short_forks * machine.seconds_per_fork;
  }

  bool may_write(ValueId v, TileSlice of) const {
    if (!has_own_bytes(v) || given_[static_cast<std::size_t>(buffer_of(v))]) return false;
    if (of == TileSlice::kPartial) return type(v).dtype == DType::kF32 && adds_partials_;
    return of == TileSlice::kExamples && divides(v);
  }

  std::optional<TiledCall> call_of(std::int64_t i) const {
    const Node& node = node_of(i);
    const Sharding* sharding = sharding_of(*node.op);
    if (sharding == nullptr || !sharding->by_examples ||
        node.op->determinism == Determinism::kRandom || node.op->to_host || !is_short(node)) {
      return std::nullopt;
    }
    std::optional<TiledCall> call = shards_of(node, *sharding);
    if (call && is_apart(node, *call) && with_kernel(node, *call)) return call;
    return std::nullopt;
  }

  std::optional<TiledCall> shards_of(const Node& node, const Sharding& sharding) const {
    std::vector<Shard> inputs;
    for (ValueId v : node.inputs) {
      const std::optional<TileSlice> tile = v == kNoValue ? TileSlice::kWhole : slice_of_input(v);
      if (!tile) return std::nullopt;
      inputs.push_back(tile == TileSlice::kExamples ? Shard::split(0) : Shard{});
    }
    if (std::ranges::none_of(inputs, &Shard::is_split)) return std::nullopt;
    const NodeArgs args(graph_, node);
    const std::vector<Shard> wanted(node.outputs.size());
    const auto outputs = sharding.rule({.graph = graph_,
                                        .node = node,
                                        .op = *args,
                                        .shards = tiles_,
                                        .inputs = inputs,
                                        .wanted = wanted});
    if (!outputs) return std::nullopt;
    TiledCall call;
    for (const Shard& shard : inputs) call.inputs.push_back(slice_of(shard));
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const Shard shard = (*outputs)[k];
      call.outputs.push_back(slice_of(shard));
      if (node.outputs[k] == kNoValue) continue;
      if (shard.is_split() && shard.axis != 0) return std::nullopt;
      if (!may_write(node.outputs[k], call.outputs.back())) return std::nullopt;
      if (shard.is_partial() && adds_something_whole(node, call)) return std::nullopt;
    }
    return call;
  }

  // A bias, say, which each tile would add to its partial.
  bool adds_something_whole(const Node& node, const TiledCall& call) const {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == kNoValue || call.inputs[k] != TileSlice::kWhole) continue;
      if (is_float(type(node.inputs[k]).dtype)) return true;
    }
    return false;
  }

  bool with_kernel(const Node& node, TiledCall& call) const {
    const TileNode tile(graph_, node, call, tiles_);
    if (!tile.fits()) return false;
    if (node.op->params) call.params = node.op->params(tile.args());
    const std::vector<TensorView> inputs = tile.inputs();
    const std::vector<TensorView> outputs = tile.outputs();
    const PrepareArgs args{
        .params = call.params, .inputs = inputs, .outputs = outputs, .threads = 1};
    const DType dtype = kernel_dtype(tile.args().inputs, tile.args().outputs);
    KernelChoiceResult choice = choose_kernel(
        kernels_, {.op = node.op->name, .dtype = dtype, .args = args, .choice = options_.kernels});
    call.kernel = choice.kernel;
    call.others = std::move(choice.others);
    return call.kernel != nullptr;
  }

  const Program& program_;
  const Graph& graph_;
  const KernelTable& kernels_;
  const BatchTileOptions& options_;
  std::int64_t tiles_;
  const bool adds_partials_;                    // the device has a kernel for it
  const std::vector<CallId> calls_;             // by time
  std::vector<bool> given_;                     // by buffer: holds inputs, parameters, states
  std::vector<std::optional<TileSlice>> made_;  // by ValueId: in the open section
  std::vector<ValueId> made_list_;
  std::set<BufferId> written_;      // buffers, in the open section
  std::set<BufferId> read_beyond_;  // ... of which a tile reads more than its own bytes
};

}  // namespace

TileNode::TileNode(const Graph& graph, const Node& node, const TiledCall& call, std::int64_t tiles)
    : node_(node),
      whole_(graph, node),
      attributes_(node.attributes),
      input_types_(tile_types(graph, node.inputs, call.inputs, tiles)),
      output_types_(tile_types(graph, node.outputs, call.outputs, tiles)) {
  const Sharding* sharding = sharding_of(*node.op);
  if (sharding == nullptr || !attributes_.has(sharding->shape_attribute)) return;
  Ints shape = attributes_.integers(sharding->shape_attribute);
  shape[0] /= tiles;
  attributes_.set(std::string(sharding->shape_attribute), std::move(shape));
}

OpArgs TileNode::args() const {
  return {.attributes = attributes_,
          .inputs = input_types_,
          .constants = whole_->constants,
          .present = whole_->present,
          .outputs = output_types_,
          .output_count = whole_->output_count};
}

bool TileNode::fits() const {
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

std::vector<TensorView> TileNode::views(const std::vector<ValueId>& values,
                                        const std::vector<TensorType>& types) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < values.size(); ++i) {
    views.push_back({.type = types[i], .data = nullptr, .present = values[i] != kNoValue});
  }
  return views;
}

std::vector<TimeSection> find_tiled_sections(const Program& program,
                                             const BatchTileOptions& options,
                                             std::vector<TiledCall>& calls) {
  return TileSearch(program, options).run(calls);
}

}  // namespace trainscope
