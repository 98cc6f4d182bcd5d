// Checks serials before a graph takes them.
#include "engine/onnx/importer/stage_serials.h"

#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

void StageSerials::apply(Graph& graph, const StageMetadata& stage) const {
  for (const auto& [name, of] : stage.gradient_of) {
    const ValueId value = graph.find(name);
    require(value != kNoValue, ErrorCode::kBadInput, "gradient '{}' is not in the graph",
            printable(name));
    graph.value(value).gradient_of = Serials(of);
  }
  const bool complete =
      nodes_.size() == graph.node_count() && values_.size() == graph.live_values().size();
  if (!complete) return;
  std::unordered_set<Serial> seen;
  const auto check = [&seen](Serial id, const std::string& name) {
    require(id != kNoSerial && seen.insert(id).second, ErrorCode::kBadInput,
            "the serial {} of '{}' is not its own", static_cast<std::int32_t>(id), printable(name));
  };
  for (const auto& [value, id] : values_) check(id, graph.value(value).name);
  for (const auto& [node, id] : nodes_) check(id, graph.node(node).name);
  for (const auto& [value, id] : values_) graph.restore_serial(value, id);
  for (const auto& [node, id] : nodes_) graph.restore_serial(node, id);
}

}  // namespace trainscope
