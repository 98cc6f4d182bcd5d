// Evaluates stages and changes of what is held.
#include "memplan/remat/retention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

constexpr double kForever = std::numeric_limits<double>::infinity();

// Calls run(node) and free(node) in the order in which a stage does them. `last_use[v]` is the
// position in `executions` of the last node that reads or makes v.
template <typename Run, typename Free>
void walk_stage(const RematGraph& graph, const std::vector<int32_t>& executions,
                const std::vector<int32_t>& last_use, const Run& run, const Free& free) {
  for (size_t i = 0; i < executions.size(); ++i) {
    const int32_t node = executions[i];
    const int32_t position = static_cast<int32_t>(i);
    run(node);
    for (const int32_t input : graph.inputs(node)) {
      if (last_use[at(input)] == position) free(input);
    }
    if (last_use[at(node)] == position) free(node);
  }
}

}  // namespace

Retention::Retention(const RematGraph& graph, int64_t budget_bytes)
    : graph_(graph),
      budget_bytes_(budget_bytes),
      touched_(graph.size(), graph.size() + 1),
      needed_(graph.size()),
      touch_mark_(at(graph.size()), 0),
      fresh_mark_(at(graph.size()) + 1, 0),
      last_use_(at(graph.size()), 0) {}

void Retention::load(BitRows held) {
  const size_t count = at(graph_.size());
  held_ = std::move(held);
  touched_.reset();
  starts_.assign(count + 1, {});
  held_bytes_.assign(count + 1, 0);
  for (int32_t node = 0; node < graph_.size(); ++node) {
    int32_t first = held_.next_set(node, 0);
    while (first >= 0) {
      const int32_t last = end_of_hold(node, first);
      held_bytes_[at(first)] += graph_.bytes(node);
      held_bytes_[at(last) + 1] -= graph_.bytes(node);
      toggle_start(first - 1, node);
      first = held_.next_set(node, last + 1);
    }
  }
  for (size_t t = 1; t <= count; ++t) held_bytes_[t] += held_bytes_[t - 1];
  peak_bytes_ = held_bytes_;
  stages_.assign(count, {});
  cost_ = {};
  adopted_.clear();
  proposed_.clear();
  fresh_stages_.clear();
  for (int32_t stage = 0; stage < graph_.size(); ++stage) {
    Stage& fresh = stages_[at(stage)];
    find_executions(stage, kForever, fresh);
    find_peak(stage, fresh);
    for (const int32_t node : fresh.touched) touched_.set(node, stage);
    cost_.time += fresh.time;
    peak_bytes_[at(stage)] += fresh.extra_bytes;
  }
  block_peak_.assign(count / kBlock + 1, 0);
  if (count > 0) sum_up_blocks(0, graph_.size() - 1);
  set_budget(budget_bytes_);
  for (int32_t node = 0; node < graph_.size(); ++node) {
    for (int32_t first = held_.next_set(node, 0); first >= 0;) {
      const int32_t last = end_of_hold(node, first);
      maybe_useless_.push_back({node, last});
      first = held_.next_set(node, last + 1);
    }
  }
  trim();
}

void Retention::set_budget(int64_t budget_bytes) {
  budget_bytes_ = budget_bytes;
  cost_.excess_bytes = 0;
  for (int32_t stage = 0; stage < graph_.size(); ++stage) {
    cost_.excess_bytes += excess(peak_bytes(stage));
  }
}

void Retention::sum_up_blocks(int32_t first_stage, int32_t last_stage) {
  for (int32_t block = first_stage / kBlock; block <= last_stage / kBlock; ++block) {
    const auto begin = peak_bytes_.begin() + block * kBlock;
    const auto end = peak_bytes_.begin() + std::min(graph_.size(), (block + 1) * kBlock);
    block_peak_[at(block)] = *std::max_element(begin, end);
  }
}

int64_t Retention::peak_bytes() const {
  return *std::max_element(peak_bytes_.begin(), peak_bytes_.end());
}

int32_t Retention::worst_stage() const {
  return static_cast<int32_t>(std::max_element(peak_bytes_.begin(), peak_bytes_.end()) -
                              peak_bytes_.begin());
}

void Retention::toggle_start(int32_t stage, int32_t node) {
  if (stage == node) return;  // the first execution makes it anyway
  std::vector<int32_t>& starts = starts_[at(stage)];
  const auto found = std::find(starts.begin(), starts.end(), node);
  if (found == starts.end()) {
    starts.push_back(node);
  } else {
    *found = starts.back();
    starts.pop_back();
  }
}

void Retention::toggle(const HoldChange& change) {
  // A hold starts in the stage before its first column, so an end of the change moves a start
  // exactly if the column beyond it is (or is not) held.
  if (!held_.test(change.node, change.first - 1)) toggle_start(change.first - 1, change.node);
  if (held_.test(change.node, change.last + 1)) toggle_start(change.last, change.node);
  held_.flip(change.node, change.first, change.last);
}

bool Retention::find_executions(int32_t stage, double most_time, Stage& out) {
  needed_.insert(stage);
  out.executions.assign(1, stage);
  out.time = graph_.time(stage);
  const auto need = [&](int32_t node) {
    if (!needed_.insert(node)) return;
    out.executions.push_back(node);
    out.time += graph_.rerun_time(node);
  };
  for (const int32_t node : starts_[at(stage)]) need(node);
  for (size_t i = 0; i < out.executions.size() && out.time <= most_time; ++i) {
    for (const int32_t input : graph_.inputs(out.executions[i])) {
      if (!held_.test(input, stage)) need(input);
    }
  }
  needed_.take_in_order(out.executions);
  return out.time <= most_time;
}

void Retention::find_peak(int32_t stage, Stage& out) {
  ++epoch_;
  out.touched.clear();
  const auto touch = [&](int32_t node, size_t position) {
    // A value that stays is never freed here.
    last_use_[at(node)] = held_.test(node, stage + 1) ? -1 : static_cast<int32_t>(position);
    if (std::exchange(touch_mark_[at(node)], epoch_) != epoch_) out.touched.push_back(node);
  };
  for (size_t i = 0; i < out.executions.size(); ++i) {
    touch(out.executions[i], i);
    for (const int32_t input : graph_.inputs(out.executions[i])) touch(input, i);
  }
  int64_t live = 0;
  int64_t most = std::numeric_limits<int64_t>::min();
  const auto run = [&](int32_t node) {
    live += graph_.bytes(node);
    most = std::max(most, live + graph_.workspace_bytes(node));
  };
  walk_stage(graph_, out.executions, last_use_, run,
             [&](int32_t node) { live -= graph_.bytes(node); });
  out.extra_bytes = most;
}

void Retention::add_fresh(int32_t stage) {
  if (std::exchange(fresh_mark_[at(stage)], fresh_epoch_) == fresh_epoch_) return;
  if (fresh_.size() == fresh_stages_.size()) fresh_.emplace_back();
  fresh_stages_.push_back(stage);
}

// The stages at both ends; those in between notice the change only if they read the value.
void Retention::add_noticing(const HoldChange& change) {
  add_fresh(change.first - 1);
  for (int32_t stage = touched_.next_set(change.node, change.first);
       stage >= 0 && stage < change.last; stage = touched_.next_set(change.node, stage + 1)) {
    add_fresh(stage);
  }
  add_fresh(change.last);
}

// Makes the changes and finds the time that they cost; gives up as soon as that is above `most` for
// sure.
bool Retention::change_time(std::span<const HoldChange> changes, double most) {
  proposed_.assign(changes.begin(), changes.end());
  ++fresh_epoch_;
  for (const HoldChange& change : changes) toggle(change);
  for (const HoldChange& change : changes) add_noticing(change);
  proposed_cost_ = cost_;
  double most_saved = 0;  // by stages yet to come: their reruns
  for (const int32_t stage : fresh_stages_) {
    most_saved += stages_[at(stage)].time - graph_.time(stage);
  }
  for (size_t i = 0; i < fresh_stages_.size(); ++i) {
    const int32_t stage = fresh_stages_[i];
    const double before = stages_[at(stage)].time;
    most_saved -= before - graph_.time(stage);
    const double lost = proposed_cost_.time - cost_.time;
    if (!find_executions(stage, before + most - lost + most_saved, fresh_[i])) return false;
    proposed_cost_.time += fresh_[i].time - before;
  }
  return true;
}

int64_t Retention::shift_bytes(int32_t stage) const {
  int64_t bytes = 0;
  for (const Shift& shift : shifts_) {
    if (shift.first <= stage && stage <= shift.last) bytes += shift.bytes;
  }
  return bytes;
}

// The excess of all stages but the fresh ones.
void Retention::change_excess_between() {
  shifts_.clear();
  first_changed_ = graph_.size();
  last_changed_ = -1;
  int64_t most_bytes = 0;  // by which a stage can rise
  for (const HoldChange& change : proposed_) {
    const int64_t bytes = graph_.bytes(change.node);
    const bool added = held_.test(change.node, change.first);
    shifts_.push_back({change.first, change.last, added ? bytes : -bytes});
    if (added) most_bytes += bytes;
    first_changed_ = std::min(first_changed_, change.first);
    last_changed_ = std::max(last_changed_, change.last);
  }
  for (int32_t block = first_changed_ / kBlock; block <= last_changed_ / kBlock; ++block) {
    if (block_peak_[at(block)] + most_bytes <= budget_bytes_) continue;
    const int32_t end = std::min(last_changed_ + 1, (block + 1) * kBlock);
    for (int32_t stage = std::max(first_changed_, block * kBlock); stage < end; ++stage) {
      const int64_t peak = peak_bytes(stage);
      proposed_cost_.excess_bytes += excess(peak + shift_bytes(stage)) - excess(peak);
    }
  }
  for (const int32_t stage : fresh_stages_) {
    proposed_cost_.excess_bytes -= excess(peak_bytes(stage) + shift_bytes(stage));
  }
}

void Retention::change_fresh_excess() {
  for (size_t i = 0; i < fresh_stages_.size(); ++i) {
    const int32_t stage = fresh_stages_[i];
    find_peak(stage, fresh_[i]);
    proposed_cost_.excess_bytes +=
        excess(held_bytes_[at(stage)] + shift_bytes(stage) + fresh_[i].extra_bytes);
  }
}

RematCost Retention::propose(std::span<const HoldChange> changes) {
  change_time(changes, kForever);
  change_excess_between();
  change_fresh_excess();
  return proposed_cost_;
}

bool Retention::propose(std::span<const HoldChange> changes, const RematLimit& limit) {
  const auto rent = [&](int64_t bytes) { return limit.byte_price * static_cast<double>(bytes); };
  const auto within = [&] {
    const int64_t more_excess = proposed_cost_.excess_bytes - cost_.excess_bytes;
    return proposed_cost_.time - cost_.time + rent(more_excess) <= limit.most_cost;
  };
  const double most_time = std::min(limit.most_time, limit.most_cost + rent(cost_.excess_bytes));
  bool taken = change_time(changes, most_time);
  if (taken) {
    change_excess_between();
    taken = within();
  }
  if (taken) {
    change_fresh_excess();
    taken = within();
  }
  if (!taken) reject();
  return taken;
}

void Retention::reject() {
  for (size_t i = proposed_.size(); i-- > 0;) toggle(proposed_[i]);
  fresh_stages_.clear();
}

void Retention::adopt(int32_t stage, Stage& fresh) {
  Stage& old = stages_[at(stage)];
  std::swap(old, fresh);
  for (const int32_t node : fresh.touched) touched_.clear(node, stage);
  for (const int32_t node : old.touched) touched_.set(node, stage);
  for (const int32_t node : fresh.touched) {
    if (!touched_.test(node, stage)) maybe_useless_.push_back({node, stage});
  }
  peak_bytes_[at(stage)] = held_bytes_[at(stage)] + old.extra_bytes;
}

void Retention::adopt() {
  for (const Shift& shift : shifts_) {
    for (int32_t stage = shift.first; stage <= shift.last; ++stage) {
      held_bytes_[at(stage)] += shift.bytes;
      peak_bytes_[at(stage)] += shift.bytes;
    }
  }
  for (size_t i = 0; i < fresh_stages_.size(); ++i) adopt(fresh_stages_[i], fresh_[i]);
  sum_up_blocks(first_changed_ - 1, last_changed_);
  cost_ = proposed_cost_;
  adopted_.insert(adopted_.end(), proposed_.begin(), proposed_.end());
  fresh_stages_.clear();
  for (const HoldChange& change : proposed_) {
    maybe_useless_.push_back({change.node, change.first - 1});
    maybe_useless_.push_back({change.node, change.last});
  }
}

void Retention::accept() {
  adopt();
  trim();
}

void Retention::forget_useless(const HoldEnd& end) {
  if (end.stage <= end.node || !held_.test(end.node, end.stage)) return;
  if (held_.test(end.node, end.stage + 1) || touched_.test(end.node, end.stage)) return;
  // The stage that makes the value touches it, so the search stops inside the hold.
  const int32_t used = touched_.previous_set(end.node, end.stage);
  propose(HoldChange{.node = end.node, .first = used + 1, .last = end.stage});
  adopt();
}

void Retention::trim() {
  while (!maybe_useless_.empty()) {
    const HoldEnd end = maybe_useless_.back();
    maybe_useless_.pop_back();
    forget_useless(end);
  }
}

BitRows Retention::marked() const {
  BitRows held = held_;
  for (const HoldChange& change : adopted_) held.flip(change.node, change.first, change.last);
  return held;
}

RematPlan Retention::plan() const {
  RematPlan plan;
  std::vector<int32_t> last_use(at(graph_.size()), -1);
  for (int32_t stage = 0; stage < graph_.size(); ++stage) {
    const std::vector<int32_t>& executions = stages_[at(stage)].executions;
    for (size_t i = 0; i < executions.size(); ++i) {
      const auto touch = [&](int32_t node) {
        last_use[at(node)] = held_.test(node, stage + 1) ? -1 : static_cast<int32_t>(i);
      };
      touch(executions[i]);
      for (const int32_t input : graph_.inputs(executions[i])) touch(input);
    }
    walk_stage(
        graph_, executions, last_use,
        [&](int32_t node) {
          plan.actions.push_back({RematActionKind::kCompute, node});
        },
        [&](int32_t node) {
          plan.actions.push_back({RematActionKind::kFree, node});
        });
  }
  return plan;
}

}  // namespace trainscope::memplan
