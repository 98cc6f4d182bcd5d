// From the rewrite logs of all stages, without their graphs.
#include "gui/views/past_nodes.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "engine/ir/graph.h"

namespace trainscope::gui {
namespace {

struct MadeNode {
  std::string name;
  std::size_t stage;  // that made it
};

class PastNodeList {
 public:
  explicit PastNodeList(const History& history) : history_(history) {}

  std::vector<PastNode> run() {
    for (std::size_t stage = 0; stage < history_.size(); ++stage) {
      for (const RewriteEntry& entry : history_[stage].rewrites.entries) {
        if (entry.thing.is_node && entry.thing.serial != kNoSerial) follow(stage, entry);
      }
    }
    return std::move(past_);
  }

 private:
  void follow(std::size_t stage, const RewriteEntry& entry) {
    if (entry.kind == RewriteKind::kAdded || entry.kind == RewriteKind::kRematerialized) {
      made_.insert_or_assign(entry.thing.serial,
                             MadeNode{.name = entry.thing.name, .stage = stage});
      return;
    }
    const auto made = made_.find(entry.thing.serial);
    if (made == made_.end()) return;  // the model has it
    if (entry.kind == RewriteKind::kRenamed) made->second.name = entry.detail;
    if (!is_gone(entry.kind) || stage == made->second.stage) return;
    past_.push_back(
        {.name = std::move(made->second.name),
         .stage = stage - 1,
         .fate = fmt::format("{}, {}; made by {}", name_of(entry.kind), history_[stage].label,
                             history_[made->second.stage].label)});
    made_.erase(made);
  }

  const History& history_;
  std::unordered_map<Serial, MadeNode> made_;
  std::vector<PastNode> past_;
};

}  // namespace

std::vector<PastNode> past_nodes(RunData& run) {
  const StageHistory* history = run.history();
  if (history == nullptr) return {};
  return PastNodeList(history->history()).run();
}

Selection select_stage_node(RunData& run, Selection from, std::size_t stage, std::string_view name,
                            const PlanLinks* links) {
  Selection selection{.stage = from.stage, .step = from.step, .range = from.range};
  const Graph* graph = run.graph(stage);
  if (graph == nullptr) return selection;
  for (const NodeId id : graph->order()) {
    const Node& node = graph->node(id);
    if (node.name != name) continue;
    const auto serial = static_cast<std::uint32_t>(node.serial);
    if (links != nullptr) {
      selection = select_node(*links, std::move(from), serial);
    } else {
      selection.subject = Subject::kNode;
      selection.node = serial;
    }
    selection.stage = static_cast<std::int32_t>(stage);
    return selection;
  }
  return selection;
}

}  // namespace trainscope::gui
