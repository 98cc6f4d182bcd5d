// What a run data reads of stages when it is asked: graphs, rewrite logs, differences and fates.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plugin/plugin.h"
#include "gui/data/run_data.h"

namespace trainscope::gui {

void RunData::read_ahead() {
  if (has_read_ahead_ || !reader_ || stages_.empty()) return;
  has_read_ahead_ = true;
  std::map<std::size_t, StageRecord> wanted;
  for (const std::size_t stage : {std::size_t{0}, stages_.size() - 1}) {
    const std::size_t place = stage_of_graph(stage);
    if (graphs_.contains(place)) continue;
    ahead_graphs_.push_back(place);
    wanted.try_emplace(place, stages_[place].record);
  }
  const bool has_history = history_.has_value();
  if (has_history && wanted.empty()) return;
  const auto read = [run = *reader_, session = session_, has_history, stages = std::move(wanted)] {
    Ahead ahead;
    if (!has_history)
      ahead.history = std::make_unique<StageHistory>(StageHistory::of(run, session));
    for (const auto& [place, record] : stages) {
      ahead.graphs[place] = std::make_unique<Graph>(read_stage_graph(run, record, session));
    }
    return ahead;
  };
  ahead_ = std::async(std::launch::async, read);
}

void RunData::take_ahead() {
  ahead_graphs_.clear();
  if (!ahead_.valid()) return;
  try {
    Ahead ahead = std::exchange(ahead_, {}).get();
    const bool is_of_these = ahead.history && ahead.history->history().size() == stages_.size();
    if (is_of_these && !history_) history_ = std::move(ahead.history);
    graphs_.merge(ahead.graphs);
  } catch (const std::exception&) {
    return;  // it is read again by who asks for it, and says what is wrong
  }
}

const StageHistory* RunData::history() {
  if (!history_) take_ahead();
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

std::size_t RunData::stage_of_graph(std::size_t stage) const {
  while (stage > 0 && !stages_[stage].record.changed) --stage;
  return stage;
}

const Graph* RunData::graph(std::size_t stage) {
  if (stage >= stages_.size()) return nullptr;
  stage = stage_of_graph(stage);
  if (std::ranges::find(ahead_graphs_, stage) != ahead_graphs_.end()) take_ahead();
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
    for (std::size_t i = 0; i < fates_->size(); ++i) {
      const NamedThing& thing = (*fates_)[i].thing;
      if (!thing.is_node) continue;
      fate_by_name_.try_emplace(thing.name, i);
      fate_by_serial_.try_emplace(static_cast<std::uint32_t>(thing.serial), i);
    }
  }
  return *fates_;
}

const Fate* RunData::node_fate(std::string_view name) {
  const std::span<const Fate> all = fates();
  const auto found = fate_by_name_.find(name);
  return found == fate_by_name_.end() ? nullptr : &all[found->second];
}

const Fate* RunData::node_fate(std::uint32_t serial) {
  const std::span<const Fate> all = fates();
  const auto found = fate_by_serial_.find(serial);
  return serial == 0 || found == fate_by_serial_.end() ? nullptr : &all[found->second];
}

std::span<const LogEntry> RunData::entries_of(std::uint32_t serial) {
  if (!entries_) {
    entries_.emplace();
    const StageHistory* stages = history();
    const std::size_t count = stages == nullptr ? 0 : stages->history().size();
    for (std::size_t stage = 0; stage < count; ++stage) {
      const std::vector<RewriteEntry>& log = stages->history()[stage].rewrites.entries;
      for (std::size_t i = 0; i < log.size(); ++i) {
        const LogEntry place{.stage = static_cast<std::uint32_t>(stage),
                             .entry = static_cast<std::uint32_t>(i)};
        const auto add = [&](const NamedThing& thing) {
          if (!thing.is_node) return;
          std::vector<LogEntry>& own = (*entries_)[static_cast<std::uint32_t>(thing.serial)];
          const bool is_there =
              !own.empty() && own.back().stage == place.stage && own.back().entry == place.entry;
          if (!is_there) own.push_back(place);
        };
        add(log[i].thing);
        for (const NamedThing& other : log[i].others) add(other);
      }
    }
  }
  const auto found = entries_->find(serial);
  return found == entries_->end() ? std::span<const LogEntry>() : found->second;
}

}  // namespace trainscope::gui
