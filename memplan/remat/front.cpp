// Sweeps cuts and fills between them.
#include "memplan/remat/front.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "memplan/remat/drop_set.h"
#include "memplan/remat/frontier_cut.h"
#include "memplan/remat/seeds.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// Steps between two neighbouring cuts; more would only be thinned out again.
constexpr size_t kMostSteps = 100;
constexpr size_t kMostSingles = 500;

size_t at(int32_t index) { return static_cast<size_t>(index); }

// The last forward node; without backward nodes the one that most bytes are kept beyond.
int32_t choose_frontier(const RematGraph& graph) {
  if (graph.first_backward() < graph.size()) return std::max(0, graph.first_backward() - 1);
  std::vector<int64_t> change(at(graph.size()) + 1, 0);
  for (int32_t node = 0; node < graph.size(); ++node) {
    change[at(node)] += graph.bytes(node);
    change[at(graph.last_use(node))] -= graph.bytes(node);
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return static_cast<int32_t>(std::max_element(change.begin(), change.end()) - change.begin());
}

// `count` values about evenly over the bytes up to the frontier: the smallest of those near each
// place that are read after it at all.
std::vector<int32_t> checkpoints(const RematGraph& graph, int32_t frontier, int32_t count) {
  std::vector<int32_t> useful;
  for (int32_t node = 0; node <= frontier; ++node) {
    if (graph.horizon(node) > frontier) useful.push_back(node);
  }
  std::vector<int32_t> chosen;
  const int64_t parts = 2 * int64_t{count} + 1;
  for (int64_t part = 1; part < parts; part += 2) {
    const auto size = static_cast<int64_t>(useful.size());
    const auto first = useful.begin() + static_cast<std::ptrdiff_t>(part * size / parts);
    const auto last = useful.begin() + static_cast<std::ptrdiff_t>((part + 1) * size / parts);
    if (first == last) continue;
    chosen.push_back(*std::min_element(
        first, last, [&](int32_t a, int32_t b) { return graph.bytes(a) < graph.bytes(b); }));
  }
  return chosen;
}

// 1, 2, 3, 4, 6, 8, 12, 16, ... up to a quarter of the values.
std::vector<int32_t> checkpoint_counts(int32_t values) {
  std::vector<int32_t> counts;
  for (int32_t count = 1; count <= std::max(1, values / 4); count *= 2) {
    counts.push_back(count);
    if (count > 1 && count + count / 2 <= values / 4) counts.push_back(count + count / 2);
  }
  return counts;
}

std::vector<int32_t> difference(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::vector<int32_t> only_a;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
  return only_a;
}

// Splits nodes (ascending) into pieces without an edge between them, by their first nodes.
std::vector<std::vector<int32_t>> connected_pieces(const RematGraph& graph,
                                                   const std::vector<int32_t>& nodes) {
  std::vector<int32_t> root(nodes.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find_root = [&](int32_t place) {
    while (root[at(place)] != place) place = root[at(place)] = root[at(root[at(place)])];
    return place;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const int32_t input : graph.inputs(nodes[i])) {
      const auto found = std::lower_bound(nodes.begin(), nodes.end(), input);
      if (found == nodes.end() || *found != input) continue;
      const int32_t a = find_root(static_cast<int32_t>(i));
      const int32_t b = find_root(static_cast<int32_t>(found - nodes.begin()));
      root[at(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<std::vector<int32_t>> pieces(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    pieces[at(find_root(static_cast<int32_t>(i)))].push_back(nodes[i]);
  }
  std::erase_if(pieces, [](const auto& piece) { return piece.empty(); });
  return pieces;
}

class Sweep {
 public:
  Sweep(const RematGraph& graph, int32_t frontier)
      : graph_(graph), frontier_(frontier), simulator_(graph, frontier) {}

  void run(int64_t enough_bytes) {
    add({});
    add_single_values();
    sweep({});
    for (const int32_t count : checkpoint_counts(frontier_ + 1)) {
      if (least_bytes_ <= enough_bytes) return;
      sweep(checkpoints(graph_, frontier_, count));
    }
  }

  std::vector<FrontPoint> points = {};

 private:
  void add(const std::vector<int32_t>& dropped) {
    const DropCost cost = simulator_.run(dropped);
    least_bytes_ = std::min(least_bytes_, cost.peak_bytes);
    points.push_back({.peak_bytes = cost.peak_bytes, .time = cost.time, .dropped = dropped});
  }

  void sweep(const std::vector<int32_t>& kept) {
    FrontierCut cut(graph_, {.frontier = frontier_, .last = graph_.size() - 1}, kept);
    std::vector<int32_t> before;
    for (FrontierChoice& choice : all_choices(cut)) {
      step_by_step(before, choice.rerun);
      before = std::move(choice.rerun);
    }
  }

  // Cuts at rising prices are nested, so each step adds one piece; a piece alone may lack what it
  // reads, which then runs again too, and the simulator counts it.
  void step_by_step(const std::vector<int32_t>& before, const std::vector<int32_t>& after) {
    const std::vector<std::vector<int32_t>> pieces =
        connected_pieces(graph_, difference(after, before));
    const size_t stride = pieces.size() / kMostSteps + 1;
    std::vector<int32_t> dropped = before;
    for (size_t i = 0; i < pieces.size(); ++i) {
      dropped.insert(dropped.end(), pieces[i].begin(), pieces[i].end());
      if (i % stride != 0 && i + 1 != pieces.size()) continue;
      std::sort(dropped.begin(), dropped.end());
      add(dropped);
    }
  }

  // The beginning of the front: pieces may be more than is needed there.
  void add_single_values() {
    const size_t stride = at(frontier_) / kMostSingles + 1;
    for (size_t i = 0; i <= at(frontier_); i += stride) {
      const auto node = static_cast<int32_t>(i);
      if (graph_.may_rerun(node) && graph_.horizon(node) > frontier_) add({node});
    }
  }

  const RematGraph& graph_;
  int32_t frontier_;
  DropSimulator simulator_;
  int64_t least_bytes_ = std::numeric_limits<int64_t>::max();
};

// Those that no other beats, by falling peak.
std::vector<FrontPoint> not_beaten(std::vector<FrontPoint> points) {
  std::sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) {
    return a.time != b.time ? a.time < b.time : a.peak_bytes < b.peak_bytes;
  });
  std::vector<FrontPoint> kept;
  for (FrontPoint& point : points) {
    if (kept.empty() || point.peak_bytes < kept.back().peak_bytes) kept.push_back(std::move(point));
  }
  return kept;
}

// At most `most`: of points close to each other in peak only the first.
std::vector<FrontPoint> thin_out(std::vector<FrontPoint> points, size_t most) {
  if (points.size() <= most || most < 2) return points;
  const double range = static_cast<double>(points.front().peak_bytes - points.back().peak_bytes);
  std::vector<FrontPoint> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const double slots_left = static_cast<double>(most - kept.size());
    const double left = static_cast<double>(points[i].peak_bytes - points.back().peak_bytes);
    const bool last = i + 1 == points.size();
    const bool apart =
        kept.empty() || static_cast<double>(kept.back().peak_bytes - points[i].peak_bytes) *
                                static_cast<double>(most) >=
                            range;
    const bool all_fit = static_cast<double>(points.size() - i) <= slots_left;
    if (last || all_fit || (apart && left > 0)) kept.push_back(std::move(points[i]));
  }
  return kept;
}

}  // namespace

RematFront::RematFront(const RematGraph& graph, const FrontOptions& options)
    : frontier_(graph.size() > 0 ? choose_frontier(graph) : 0) {
  if (graph.size() == 0) return;
  Sweep sweep(graph, frontier_);
  sweep.run(options.enough_bytes);
  points_ = thin_out(not_beaten(std::move(sweep.points)), options.most_points);
}

size_t RematFront::find(int64_t budget_bytes) const {
  const auto found = std::find_if(points_.begin(), points_.end(), [&](const FrontPoint& point) {
    return point.peak_bytes <= budget_bytes;
  });
  return static_cast<size_t>(found - points_.begin());
}

BitRows RematFront::holds(const RematGraph& graph, size_t place) const {
  return hold_with_reruns(graph, frontier_, points_[place].dropped);
}

}  // namespace trainscope::memplan
