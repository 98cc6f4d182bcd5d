// The counts are computed node by node, without what nothing of them needs.
#include "engine/longest_trips.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "engine/onnx/import.h"
#include "engine/passes/pass_manager.h"

namespace trainscope {
namespace {

// For the counts of one batch, of which there may be many.
constexpr WorkLimit kBatchLimit{.tensor_bytes = kKnownValuesLimit.tensor_bytes,
                                .work = std::int64_t{1} << 26};

// Numbers of trips that are not known before the step, of the graph's own loops.
std::vector<ValueId> open_counts(const Graph& graph) {
  std::vector<ValueId> counts;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.op->body) continue;
    const int input = node.op->body(*NodeArgs(graph, node)).trips.trips_input;
    if (input < 0) continue;
    const ValueId count = node.inputs[static_cast<std::size_t>(input)];
    if (graph.value(count).data == nullptr) counts.push_back(count);
  }
  return counts;
}

Graph without_others(Graph graph, const std::vector<ValueId>& kept, const Evaluate& evaluate) {
  graph.outputs = kept;
  const TrainingOptions options{.mode = GraphMode::kInference};
  const auto dead_code = std::ranges::find(default_passes(), "dead_code", &Pass::name);
  PassContext context{.ops = op_table(),
                      .evaluate = &evaluate,
                      .options = options,
                      .pass = dead_code->name,
                      .counters = {}};
  dead_code->run(graph, context);
  return graph;
}

}  // namespace

TripCounts::TripCounts(const OnnxModel& model, const ImportOptions& import)
    : ops_(std::make_shared<const OpTable>(op_table())),
      kernels_(std::make_shared<const KernelTable>(cpu_kernels())) {
  const Evaluate evaluate = evaluator(ops_, kernels_, {.limit = kKnownValuesLimit});
  ImportOptions with_room = import;
  with_room.max_trips = 1;  // how many they are is asked here
  with_room.evaluate = &evaluate;
  Graph whole = to_graph(model, *ops_, with_room);
  counts_ = open_counts(whole);
  if (counts_.empty()) return;
  graph_ = without_others(std::move(whole), counts_, evaluate);
  const auto is_read = [this](ValueId v) {
    return !graph_.value(v).uses.empty() || std::ranges::find(counts_, v) != counts_.end();
  };
  const std::vector<ValueId> parameters = graph_.values_of(ValueKind::kParameter);
  if (std::ranges::any_of(parameters, is_read)) return;
  for (const ValueId v : graph_.values_of(ValueKind::kInput)) {
    if (is_read(v)) inputs_.emplace(graph_.value(v).name, graph_.value(v).type);
  }
}

// A count that cannot be made is nobody's error: without it the importer says what it needs.
std::optional<std::int64_t> TripCounts::of(const std::map<std::string, Tensor>& batch) const {
  std::map<std::string, Tensor> given;
  for (const ValueId v : graph_.values_of(ValueKind::kInput)) {
    const Value& value = graph_.value(v);
    const auto found = batch.find(value.name);
    given.emplace(value.name, found != batch.end() ? found->second : Tensor(value.type));
  }
  try {
    const Evaluate evaluate = evaluator(ops_, kernels_, {.limit = kBatchLimit});
    const ReferenceValues values = reference_run(graph_, given, evaluate);
    std::int64_t most = 0;
    for (const ValueId count : counts_) {
      most = std::max(most, values.at(count).values<std::int64_t>()[0]);
    }
    return most;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace trainscope
