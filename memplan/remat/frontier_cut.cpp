// Builds the networks and reads the cuts.
#include "memplan/remat/frontier_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// The sum of all finite capacities stays below kUncuttable = 2^61.
constexpr double kLargestTotal = 0x1p58;
constexpr int32_t kSource = 0;
constexpr int32_t kSink = 1;

// Of the member at this place: its two ends in the network, and its two arcs.
int32_t in_end(int32_t place) { return 2 + 2 * place; }
int32_t out_end(int32_t place) { return 3 + 2 * place; }

}  // namespace

FrontierCut::FrontierCut(const RematGraph& graph, Span span, std::span<const int32_t> kept)
    : graph_(graph),
      role_(at(graph.size()), Role::kOutside),
      sure_(at(graph.size())),
      member_of_(at(graph.size()), -1) {
  const auto keep = [&](int32_t node) {
    if (!sure_[at(node)]) sure_bytes_ += graph.bytes(node);
    sure_[at(node)] = true;
  };
  sure_bytes_ = graph.workspace_bytes(span.frontier);
  keep(span.frontier);
  for (const int32_t input : graph.inputs(span.frontier)) keep(input);
  for (const int32_t node : kept) keep(node);
  find_members(span);
  build_network();
}

// What the nodes after the frontier read, and what is needed to recompute that.
void FrontierCut::find_members(Span span) {
  for (int32_t node = span.frontier + 1; node <= span.last; ++node) {
    for (const int32_t input : graph_.inputs(node)) {
      if (input <= span.frontier && !sure_[at(input)]) role_[at(input)] = Role::kRead;
    }
  }
  for (int32_t node = span.frontier; node >= 0; --node) {
    if (role_[at(node)] == Role::kOutside) continue;
    if (role_[at(node)] == Role::kRead) read_bytes_ += graph_.bytes(node);
    members_.push_back(node);
    if (!graph_.may_rerun(node)) continue;
    for (const int32_t input : graph_.inputs(node)) {
      if (sure_[at(input)] || role_[at(input)] != Role::kOutside) continue;
      role_[at(input)] = Role::kInner;
    }
  }
  std::reverse(members_.begin(), members_.end());
  for (size_t i = 0; i < members_.size(); ++i)
    member_of_[at(members_[i])] = static_cast<int32_t>(i);
}

// Arcs 4i and 4i + 2 (each has a reverse) are the rerun and the save arc of member i; after those
// of all members come the uncuttable ones.
void FrontierCut::build_network() {
  flow_ = MaxFlow(2 + 2 * static_cast<int32_t>(members_.size()));
  for (int32_t i = 0; i < static_cast<int32_t>(members_.size()); ++i) {
    flow_.add_arc(kSource, in_end(i));
    flow_.add_arc(in_end(i), out_end(i));
  }
  for (int32_t i = 0; i < static_cast<int32_t>(members_.size()); ++i) {
    const int32_t node = members_[at(i)];
    if (role_[at(node)] == Role::kRead) flow_.add_arc(out_end(i), kSink);
    if (!graph_.may_rerun(node)) continue;
    for (const int32_t input : graph_.inputs(node)) {
      if (!sure_[at(input)]) flow_.add_arc(out_end(member_of_[at(input)]), in_end(i));
    }
  }
}

// Rounds down, so that the flow never exceeds the true minimum.
void FrontierCut::set_capacities(double price) {
  const bool bytes_only = std::isinf(price);
  double total = 1;
  for (const int32_t node : members_) {
    if (!bytes_only && graph_.may_rerun(node)) total += graph_.rerun_time(node);
    total += (bytes_only ? 1 : price) * static_cast<double>(graph_.bytes(node));
  }
  time_scale_ = bytes_only ? 1 : kLargestTotal / total;
  int32_t arc = 0;
  for (const int32_t node : members_) {
    const double rerun = bytes_only ? 0 : graph_.rerun_time(node) * time_scale_;
    const double save = static_cast<double>(graph_.bytes(node)) * (bytes_only ? 1 : price);
    flow_.set_capacity(arc,
                       graph_.may_rerun(node) ? static_cast<int64_t>(rerun) : MaxFlow::kUncuttable);
    flow_.set_capacity(arc + 2, static_cast<int64_t>(save * time_scale_));
    arc += 4;
  }
  for (const int32_t node : members_) {
    if (role_[at(node)] == Role::kRead) {
      flow_.set_capacity(arc, MaxFlow::kUncuttable);
      arc += 2;
    }
    if (!graph_.may_rerun(node)) continue;
    for (const int32_t input : graph_.inputs(node)) {
      if (sure_[at(input)]) continue;
      flow_.set_capacity(arc, MaxFlow::kUncuttable);
      arc += 2;
    }
  }
}

FrontierChoice FrontierCut::read_choice() const {
  FrontierChoice choice;
  for (int32_t i = 0; i < static_cast<int32_t>(members_.size()); ++i) {
    const int32_t node = members_[at(i)];
    if (flow_.on_source_side(out_end(i))) continue;  // not needed
    if (flow_.on_source_side(in_end(i))) {
      choice.saved.push_back(node);
      choice.saved_bytes += graph_.bytes(node);
    } else {
      choice.rerun.push_back(node);
      choice.rerun_time += graph_.rerun_time(node);
    }
  }
  return choice;
}

FrontierChoice FrontierCut::choose(double price) {
  graph_.check_stop();
  set_capacities(price);
  const int64_t value = flow_.solve(kSource, kSink);
  FrontierChoice choice = read_choice();
  // Relative errors of the products above are some 1e-16 each.
  choice.bound = static_cast<double>(value) / time_scale_ * (1 - 1e-12);
  return choice;
}

std::vector<FrontierChoice> all_choices(FrontierCut& cut, const WorthLooking& worth) {
  constexpr double kAllBytes = std::numeric_limits<double>::infinity();
  std::vector<FrontierChoice> found = {cut.choose(0), cut.choose(kAllBytes)};
  // At price 0 all that is read is saved; neighbours that are both cheapest at the price where
  // their costs meet have nothing between them (Eisner and Severance 1976).
  for (size_t i = 0; i + 1 < found.size();) {
    const FrontierChoice& more = found[i];
    const FrontierChoice& less = found[i + 1];
    const double bytes = static_cast<double>(more.saved_bytes - less.saved_bytes);
    const double time = less.rerun_time - more.rerun_time;
    if (bytes <= 0 || time <= 0 || !worth(more, less)) {
      ++i;
      continue;
    }
    FrontierChoice between = cut.choose(time / bytes);
    if (between.rerun_time >= less.rerun_time || between.saved_bytes >= more.saved_bytes) {
      ++i;
    } else if (between.saved_bytes > less.saved_bytes) {
      found.insert(found.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(between));
    } else {
      found[i + 1] = std::move(between);  // as few bytes in less time
    }
  }
  return found;
}

}  // namespace trainscope::memplan
