// What a run data reads of stages when it is asked: graphs, rewrite logs, differences and fates.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plugin/plugin.h"
#include "gui/data/run_data.h"

namespace trainscope::gui {

const StageHistory* RunData::history() {
  if (!history_) {
    history_.emplace();
    if (reader_ && !stages_.empty()) {
      guarded(Topic::kStages, [this] {
        StageHistory history = StageHistory::of(*reader_, session_);
        // Positions are of the stages that were read: refresh() sees that there are others.
        require(history.history().size() == stages_.size(), ErrorCode::kBadInput,
                "stages were written since they were read");
        *history_ = std::make_unique<StageHistory>(std::move(history));
      });
    }
  }
  return history_->get();
}

const Graph* RunData::graph(std::size_t stage) {
  if (stage >= stages_.size()) return nullptr;
  // A stage that changed nothing has the graph of the one before it.
  while (stage > 0 && !stages_[stage].record.changed) --stage;
  const auto [entry, is_new] = graphs_.try_emplace(stage);
  if (is_new) {
    const bool was_read = guarded(Topic::kStages, [&] {
      if (reader_) {  // logs of rewrites are read when somebody asks what became of nodes
        entry->second =
            std::make_unique<Graph>(read_stage_graph(*reader_, stages_[stage].record, session_));
      } else if (history() != nullptr) {
        entry->second = std::make_unique<Graph>((*history_)->graph(stage));
      }
    });
    if (!was_read) guarded(Topic::kStages, [this] { tell_of_plugins(); });
  }
  return entry->second.get();
}

void RunData::tell_of_plugins() {
  const Json* plugins = manifest_ ? manifest_->model.find("plugins") : nullptr;
  if (plugins == nullptr) return;
  const std::vector<std::string> missing = plugins_not_loaded(*plugins);
  if (missing.empty()) return;
  set_message(Topic::kStages,
              fmt::format("the plugin '{}' of this run is not loaded: {}",
                          printable(missing.front()), message(Topic::kStages).text),
              fmt::format("trainscope gui {}", words()));
}

const StageDiff* RunData::diff(std::size_t from, std::size_t to) {
  if (from > to) std::swap(from, to);
  const Graph* before = graph(from);
  const Graph* after = graph(to);
  if (before == nullptr || after == nullptr || history() == nullptr) return nullptr;
  const auto [entry, is_new] = diffs_.try_emplace({from, to});
  if (is_new) {
    guarded(Topic::kStages, [&] {
      entry->second = std::make_unique<StageDiff>(diff_stages((*history_)->shared_history(),
                                                              {.stage = from, .graph = *before},
                                                              {.stage = to, .graph = *after}));
    });
  }
  return entry->second.get();
}

std::span<const Fate> RunData::fates() {
  if (!fates_) {
    fates_.emplace();
    const Graph* imported = graph(0);
    const Graph* last = stages_.empty() ? nullptr : graph(stages_.size() - 1);
    if (imported != nullptr && last != nullptr && history() != nullptr) {
      guarded(Topic::kStages,
              [&] { *fates_ = imported_fates((*history_)->shared_history(), *imported, *last); });
    }
  }
  return *fates_;
}

const Fate* RunData::node_fate(std::string_view name) {
  const auto found = std::ranges::find_if(
      fates(), [&](const Fate& fate) { return fate.thing.is_node && fate.thing.name == name; });
  return found == fates().end() ? nullptr : &*found;
}

const Fate* RunData::node_fate(std::uint32_t serial) {
  if (serial == 0) return nullptr;
  const auto found = std::ranges::find_if(fates(), [&](const Fate& fate) {
    return fate.thing.is_node && static_cast<std::uint32_t>(fate.thing.serial) == serial;
  });
  return found == fates().end() ? nullptr : &*found;
}

}  // namespace trainscope::gui
