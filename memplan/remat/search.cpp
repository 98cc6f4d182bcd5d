// Repair, filling and annealing of what is held.
#include "memplan/remat/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::optional;
using std::size_t;

// How often the price and the temperature follow the search.
constexpr int64_t kIterationsPerUpdate = 24;
constexpr double kPriceFactor = 1.02;
constexpr double kPriceRange = 1e5;

}  // namespace

RematSearch::RematSearch(Retention& state, std::uint64_t seed, Deadline deadline)
    : state_(state), graph_(state.graph()), random_(seed), deadline_(std::move(deadline)) {
  for (int32_t node = 0; node < graph_.size(); ++node) {
    if (graph_.horizon(node) > node + 1) movable_.push_back(node);
  }
}

bool RematSearch::out_of_time() const {
  graph_.check_stop();
  return deadline_.expired();
}

bool RematSearch::forbidden(const RematCost& cost) const {
  return cost.time - state_.cost().time > graph_.forbidden_time() / 2;
}

// Of two changes that lower the excess: the one with less time lost per byte; of two that gain
// time, the larger gain in bytes.
bool RematSearch::better(const Candidate& a, const Candidate& b) const {
  const RematCost& now = state_.cost();
  const double bytes_a = static_cast<double>(now.excess_bytes - a.cost.excess_bytes);
  const double bytes_b = static_cast<double>(now.excess_bytes - b.cost.excess_bytes);
  const double lost_a = std::max(0.0, a.cost.time - now.time) * bytes_b;
  const double lost_b = std::max(0.0, b.cost.time - now.time) * bytes_a;
  return lost_a != lost_b ? lost_a < lost_b : bytes_a > bytes_b;
}

void RematSearch::consider(const HoldChange& change, optional<Candidate>& best) {
  ++looks_;
  graph_.check_stop();
  const Candidate candidate{.change = change, .cost = state_.propose(change)};
  state_.reject();
  if (candidate.cost.excess_bytes >= state_.cost().excess_bytes || forbidden(candidate.cost))
    return;
  if (!best || better(candidate, *best)) best = candidate;
}

// The last stage up to `stage` at which the node could be recomputed without reruns of its inputs,
// as far as each of them alone tells.
int32_t RematSearch::last_chance(int32_t node, int32_t stage) const {
  for (const int32_t input : graph_.inputs(node)) {
    if (!state_.held(input, stage)) stage = state_.previous_touch(input, stage);
  }
  return stage;
}

// Everything that is in memory in the stage without being read by it, and what it read and keeps.
void RematSearch::consider_drops(int32_t stage, optional<Candidate>& best) {
  for (int32_t node = 0; node < stage; ++node) {
    const bool touched = state_.touched(node, stage);
    const int32_t inside = touched ? stage + 1 : stage;
    if (!state_.held(node, inside)) continue;
    const int32_t first = touched ? inside : state_.previous_touch(node, stage) + 1;
    const int32_t last =
        std::min(state_.next_touch(node, inside), state_.end_of_hold(node, inside));
    consider({.node = node, .first = first, .last = last}, best);
    const int32_t chance = last_chance(node, last);
    if (chance >= inside && chance < last) {
      consider({.node = node, .first = first, .last = chance}, best);
    }
  }
}

// What the stage recomputes could have stayed.
void RematSearch::consider_holds(int32_t stage, optional<Candidate>& best) {
  const std::vector<int32_t> executions(state_.executions(stage).begin(),
                                        state_.executions(stage).end());
  for (const int32_t node : executions) {
    if (node == stage) continue;
    const int32_t first = state_.previous_touch(node, stage - 1) + 1;
    consider({.node = node, .first = first, .last = stage}, best);
    for (int32_t from = first + 1; from <= stage; ++from) {
      if (!std::any_of(graph_.inputs(node).begin(), graph_.inputs(node).end(),
                       [&](int32_t input) { return state_.touched(input, from - 1); })) {
        continue;
      }
      consider({.node = node, .first = from, .last = stage}, best);
    }
  }
}

bool RematSearch::repair() {
  while (state_.cost().excess_bytes > 0) {
    const int32_t stage = state_.worst_stage();
    optional<Candidate> best;
    consider_drops(stage, best);
    consider_holds(stage, best);
    if (!best || looks_ > kMostLooks || out_of_time()) return false;
    state_.propose(best->change);
    state_.accept();
  }
  return true;
}

// The value that the stage recomputes could have stayed since it was last touched. Nothing if that
// saves no time or does not fit.
optional<RematSearch::Candidate> RematSearch::refill(int32_t node, int32_t stage) {
  const HoldChange change{
      .node = node, .first = state_.previous_touch(node, stage - 1) + 1, .last = stage};
  const RematCost before = state_.cost();
  const Candidate candidate{.change = change, .cost = state_.propose(change)};
  state_.reject();
  graph_.check_stop();
  if (candidate.cost.excess_bytes > before.excess_bytes) return {};
  if (candidate.cost.time >= before.time) return {};
  return candidate;
}

// What could be held, as far as there is time to see it.
std::vector<RematSearch::Candidate> RematSearch::refills() {
  std::vector<Candidate> candidates;
  for (int32_t stage = 0; stage < graph_.size(); ++stage) {
    for (const int32_t node :
         std::vector<int32_t>(state_.executions(stage).begin(), state_.executions(stage).end())) {
      if (node == stage) continue;
      if (out_of_time()) return candidates;
      if (const optional<Candidate> one = refill(node, stage)) candidates.push_back(*one);
    }
  }
  return candidates;
}

// In passes, each with those that save most first; of a pass without time one is held all the same.
void RematSearch::fill() {
  bool found = true;
  while (found && !out_of_time()) {
    std::vector<Candidate> candidates = refills();
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.cost.time < b.cost.time; });
    found = false;
    for (const Candidate& candidate : candidates) {
      const int32_t stage = candidate.change.last;
      if (!state_.ran(candidate.change.node, stage)) continue;
      if (found && out_of_time()) return;
      const optional<Candidate> still = refill(candidate.change.node, stage);
      if (!still) continue;
      state_.propose(still->change);
      state_.accept();
      found = true;
    }
  }
}

// Changes of one proposal are about different values.
void RematSearch::add(const HoldChange& change) {
  const bool known = std::any_of(changes_.begin(), changes_.end(), [&](const HoldChange& other) {
    return other.node == change.node;
  });
  if (!known) changes_.push_back(change);
}

int32_t RematSearch::random_node() {
  const auto place = random_.between(0, static_cast<int32_t>(movable_.size()) - 1);
  return movable_[static_cast<size_t>(place)];
}

// What the node reads stays until it runs in `stage`.
void RematSearch::hold_inputs(int32_t node, int32_t stage) {
  for (const int32_t input : graph_.inputs(node)) {
    const int32_t used = state_.previous_touch(input, stage);
    if (used == stage || state_.held(input, stage)) continue;
    add({.node = input, .first = used + 1, .last = stage});
  }
}

// What only the node's execution in `stage` reads need not stay until then.
void RematSearch::release_inputs(int32_t node, int32_t stage) {
  for (const int32_t input : graph_.inputs(node)) {
    if (!state_.held(input, stage) || state_.held(input, stage + 1)) continue;
    const auto others = graph_.consumers(input);
    const bool shared = std::any_of(others.begin(), others.end(), [&](int32_t reader) {
      return reader != node && state_.ran(reader, stage);
    });
    if (shared) continue;
    add({.node = input, .first = state_.previous_touch(input, stage - 1) + 1, .last = stage});
  }
}

void RematSearch::random_drop(int32_t node, int32_t stage) {
  const int32_t first = state_.previous_touch(node, stage - 1) + 1;
  const int32_t end = std::min(state_.next_touch(node, stage), state_.end_of_hold(node, stage));
  int32_t last = end;
  // Sometimes only the beginning: the node then is recomputed earlier than needed, at best while
  // its inputs are at hand. Or they stay in its place.
  const int32_t kind = random_.between(0, 7);
  if (kind <= 1) last = random_.between(first, end);
  if (kind == 2) last = std::max(first, last_chance(node, end));
  add({.node = node, .first = first, .last = last});
  if (kind == 1 || kind == 3) hold_inputs(node, last);
}

void RematSearch::random_hold(int32_t node, int32_t stage) {
  const int32_t last = state_.next_touch(node, stage);
  if (last < 0) return;  // nobody reads it later
  int32_t first = state_.previous_touch(node, stage - 1) + 1;
  // Sometimes only the end: the node then is recomputed earlier than now, at best where its inputs
  // are at hand. Or they need not stay any more.
  const int32_t kind = random_.between(0, 5);
  if (kind == 0) first = random_.between(first, last);
  if (kind == 1) first = std::max(first, last_chance(node, last - 1) + 1);
  add({.node = node, .first = first, .last = last});
  if (kind == 2) release_inputs(node, last);
}

// Puts a change or a few that go together into changes_; none if it found none.
void RematSearch::choose_changes() {
  changes_.clear();
  const int32_t node = random_node();
  // Beyond the last stage that touches it nothing holds the value.
  const int32_t last = state_.previous_touch(node, graph_.horizon(node));
  if (last == node) return;
  const int32_t stage = random_.between(node + 1, last);
  const bool held = state_.held(node, stage);
  if (held) {
    random_drop(node, stage);
  } else {
    random_hold(node, stage);
  }
  if (random_.between(0, 3) > 0) return;
  // Another value takes its place, or the other way round.
  const int32_t other = random_node();
  if (other == node || other >= stage || graph_.horizon(other) < stage) return;
  if (state_.held(other, stage) == held) return;
  if (held) {
    random_hold(other, stage);
  } else {
    random_drop(other, stage);
  }
}

// The mean time of a rerun over the bytes that it saves in all stages, roughly.
double RematSearch::first_price() const {
  double time = 0;
  double bytes = 0;
  for (const int32_t node : movable_) {
    if (!graph_.may_rerun(node)) continue;
    time += graph_.rerun_time(node);
    bytes +=
        static_cast<double>(graph_.bytes(node)) * static_cast<double>(graph_.horizon(node) - node);
  }
  return bytes > 0 ? time / bytes : 1;
}

void RematSearch::remember() {
  if (state_.cost().excess_bytes > 0 || state_.cost().time >= best_time_) return;
  best_time_ = state_.cost().time;
  state_.mark();
}

void RematSearch::anneal(const AnnealOptions& options) {
  if (movable_.empty()) return;
  best_time_ = std::numeric_limits<double>::infinity();
  remember();
  const double usual_price = first_price();
  double price = usual_price;
  double temperature = options.first_temperature;
  for (int64_t i = 0; i < options.iterations; ++i) {
    if (i % kIterationsPerUpdate == 0) {
      if (out_of_time()) break;
      const double progress = static_cast<double>(i) / static_cast<double>(options.iterations);
      temperature = options.first_temperature *
                    std::pow(options.last_temperature / options.first_temperature, progress);
      price = state_.cost().excess_bytes > 0 ? price * kPriceFactor : price / kPriceFactor;
      price = std::clamp(price, usual_price / kPriceRange, usual_price * kPriceRange);
    }
    choose_changes();
    if (changes_.empty()) continue;
    // Worse by w is taken with probability exp(-w / temperature).
    const RematLimit limit{.byte_price = price,
                           .most_cost = -temperature * std::log1p(-random_.fraction()),
                           .most_time = graph_.forbidden_time() / 2};
    if (!state_.propose(changes_, limit)) continue;
    state_.accept();
    remember();
  }
  if (std::isfinite(best_time_)) state_.load(state_.marked());
}

}  // namespace trainscope::memplan
