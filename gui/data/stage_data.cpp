// What a run data reads of stages when it is asked: graphs, rewrite logs, differences and fates.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plugin/plugin.h"
#include "gui/data/run_data.h"

namespace trainscope::gui {

StagesToRead RunData::stages_to_read(StagePair pair) const {
  return {.run = reader_,
          .session = session_,
          .stages = stages_,
          .pair = pair,
          .with_graphs = {stage_of_graph(pair.first), stage_of_graph(pair.second)},
          .history = history_.value_or(nullptr),
          .graphs = graphs_};
}

bool RunData::reads_unwanted() {
  std::erase_if(unwanted_, [](const std::function<bool()>& has_ended) { return has_ended(); });
  return !unwanted_.empty();
}

void RunData::read_ahead() {
  if (has_read_ahead_ || is_opening() || reads_unwanted()) return;  // not many threads at a time
  has_read_ahead_ = true;
  try {
    begin_to_read_ahead();
  } catch (const std::system_error&) {
    return;  // there is no thread: whoever asks reads it
  }
}

void RunData::begin_to_read_ahead() {
  if (!stages_.empty()) {
    StagesToRead what = stages_to_read({0, stages_.size() - 1});
    for (const std::size_t stage : {what.with_graphs.first, what.with_graphs.second}) {
      if (!graphs_.contains(stage)) graphs_ahead_.push_back(stage);
    }
    stages_ahead_ = std::async(std::launch::async, read_stages_ahead, std::move(what));
  }
  if (events_ && plan_ && !times_ahead_.valid()) {
    times_ahead_ = std::async(std::launch::async, read_times_ahead,
                              TimesToRead{.events = *events_,
                                          .plan = *plan_,
                                          .machine = machine_,
                                          .times = times_.value_or(nullptr)});
  }
}

namespace {

template <typename T>
bool is_under_way(const std::future<T>& future) {
  constexpr std::chrono::seconds kNow(0);
  return future.valid() && future.wait_for(kNow) != std::future_status::ready;
}

}  // namespace

bool RunData::is_reading_ahead() {
  const bool reads_stages = is_under_way(stages_ahead_);
  const bool reads_times = is_under_way(times_ahead_);
  if (!reads_stages) take_stages_ahead();
  if (!reads_times) take_times_ahead();
  return reads_stages || reads_times;
}

bool RunData::reads_diff(std::size_t from, std::size_t to) {
  if (is_under_way(diff_ahead_)) return true;
  take_diff_ahead();
  const StagePair pair = std::minmax(from, to);
  if (pair.second >= stages_.size() || diffs_.contains(pair)) return false;
  if (is_under_way(stages_ahead_)) return true;  // it needs the same logs
  take_stages_ahead();
  diff_ahead_pair_ = pair;
  try {
    diff_ahead_ = std::async(std::launch::async, read_diff_ahead, stages_to_read(pair));
  } catch (const std::system_error&) {
    return false;  // there is no thread: whoever asks reads it
  }
  return true;
}

void RunData::take_diff_ahead() {
  if (!diff_ahead_.valid()) return;
  try {
    DiffAhead ahead = std::exchange(diff_ahead_, {}).get();
    if (!history_) history_ = std::move(ahead.history);
    graphs_.merge(ahead.graphs);
    diffs_.try_emplace(ahead.pair, std::move(ahead.diff));
  } catch (const std::exception&) {
    diff(diff_ahead_pair_.first, diff_ahead_pair_.second);
    diffs_.try_emplace(diff_ahead_pair_);
  }
}

// What cannot be read ahead is read again by whoever asks for it, and says what is wrong.
void RunData::take_stages_ahead() {
  graphs_ahead_.clear();
  if (!stages_ahead_.valid()) return;
  try {
    StagesAhead ahead = std::exchange(stages_ahead_, {}).get();
    if (!history_) history_ = std::move(ahead.history);
    if (!fates_) fates_ = std::move(ahead.fates);
    if (!entries_) entries_ = std::move(ahead.entries);
    graphs_.merge(ahead.graphs);
  } catch (const std::exception&) {
    return;
  }
}

void RunData::take_times_ahead() {
  if (!times_ahead_.valid()) return;
  try {
    TimesAhead ahead = std::exchange(times_ahead_, {}).get();
    if (!times_) times_ = std::move(ahead.times);
    calls_by_.merge(ahead.calls_by);
  } catch (const std::exception&) {
    return;
  }
}

const StageHistory* RunData::history() {
  if (!history_) take_stages_ahead();
  if (!history_) {
    history_.emplace();
    if (reader_ && !stages_.empty()) {
      guarded(Topic::kStages, [this] {
        StageHistory history = StageHistory::of(*reader_, session_);
        // Positions are of the stages that were read: refresh() sees that there are others.
        require(history.history().size() == stages_.size(), ErrorCode::kBadInput,
                "stages were written since they were read");
        *history_ = std::make_shared<const StageHistory>(std::move(history));
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
  if (std::ranges::find(graphs_ahead_, stage) != graphs_ahead_.end()) take_stages_ahead();
  const auto [entry, is_new] = graphs_.try_emplace(stage);
  if (is_new) {
    const bool was_read = guarded(Topic::kStages, [&] {
      // Logs of a run's rewrites are read when somebody asks what became of nodes.
      const StageHistory* stages = reader_ ? nullptr : history();
      if (!reader_ && stages == nullptr) return;
      entry->second = std::make_shared<const Graph>(stage_graph(
          reader_ ? &*reader_ : nullptr, session_, stages_[stage].record, stages, stage));
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
      entry->second = std::make_unique<const StageDiff>(
          diff_stages((*history_)->shared_history(), {.stage = from, .graph = *before},
                      {.stage = to, .graph = *after}));
    });
  }
  return entry->second.get();
}

std::span<const Fate> RunData::fates() {
  if (!fates_) take_stages_ahead();
  if (!fates_) {
    fates_.emplace();
    const Graph* imported = graph(0);
    const Graph* last = stages_.empty() ? nullptr : graph(stages_.size() - 1);
    if (imported != nullptr && last != nullptr && history() != nullptr) {
      guarded(Topic::kStages, [&] {
        fates_ = FateTable::of(imported_fates((*history_)->shared_history(), *imported, *last));
      });
    }
  }
  return fates_->all;
}

const Fate* RunData::node_fate(std::string_view name) {
  const std::span<const Fate> all = fates();
  const auto found = fates_->by_name.find(name);
  return found == fates_->by_name.end() ? nullptr : &all[found->second];
}

const Fate* RunData::node_fate(std::uint32_t serial) {
  const std::span<const Fate> all = fates();
  const auto found = fates_->by_serial.find(serial);
  return serial == 0 || found == fates_->by_serial.end() ? nullptr : &all[found->second];
}

std::span<const LogEntry> RunData::entries_of(std::uint32_t serial) {
  if (!entries_) take_stages_ahead();
  if (!entries_) {
    const StageHistory* stages = history();
    entries_ = stages == nullptr ? LogEntries() : log_entries(stages->history());
  }
  const auto found = entries_->find(serial);
  return found == entries_->end() ? std::span<const LogEntry>() : found->second;
}

}  // namespace trainscope::gui
