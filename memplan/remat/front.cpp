// Sweeps cuts and fills between them.
#include "memplan/remat/front.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "memplan/at.h"
#include "memplan/remat/baselines.h"
#include "memplan/remat/drop_set.h"
#include "memplan/remat/frontier_cut.h"
#include "memplan/remat/seeds.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

constexpr size_t kMostSingles = 200;

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
  const int64_t slices = 2 * int64_t{count} + 1;
  for (int64_t slice = 1; slice < slices; slice += 2) {
    const auto size = static_cast<int64_t>(useful.size());
    const auto first = useful.begin() + static_cast<std::ptrdiff_t>(slice * size / slices);
    const auto last = useful.begin() + static_cast<std::ptrdiff_t>((slice + 1) * size / slices);
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

// Plans that no other one beats.
class Staircase {
 public:
  // Whether one needs no more bytes and no more time than this.
  bool beaten(int64_t peak_bytes, double time) const {
    const auto above = points_.upper_bound(peak_bytes);
    return above != points_.begin() && std::prev(above)->second.time <= time;
  }

  void add(FrontPoint point) {
    if (beaten(point.peak_bytes, point.time)) return;
    auto other = points_.lower_bound(point.peak_bytes);
    while (other != points_.end() && other->second.time >= point.time) {
      other = points_.erase(other);
    }
    points_.emplace_hint(other, point.peak_bytes, std::move(point));
  }

  bool empty() const { return points_.empty(); }
  int64_t least_bytes() const { return points_.begin()->first; }
  int64_t most_bytes() const { return points_.rbegin()->first; }

  // By falling peak; none is left.
  std::vector<FrontPoint> take() {
    std::vector<FrontPoint> taken;
    for (auto each = points_.rbegin(); each != points_.rend(); ++each) {
      taken.push_back(std::move(each->second));
    }
    points_.clear();
    return taken;
  }

 private:
  std::map<int64_t, FrontPoint> points_;  // by peak, so with falling time
};

class Sweep {
 public:
  Sweep(const RematGraph& graph, int32_t frontier, size_t most_points)
      : graph_(graph),
        frontier_(frontier),
        most_points_(std::max<int64_t>(1, static_cast<int64_t>(most_points))),
        simulator_(graph, frontier) {}

  void run(int64_t enough_bytes) {
    const DropCost all = add({});
    sweep({});
    add_single_values(all);
    for (const int32_t count : checkpoint_counts(frontier_ + 1)) {
      if (stairs.least_bytes() <= enough_bytes) return;
      sweep(checkpoints(graph_, frontier_, count));
    }
  }

  Staircase stairs = {};

 private:
  DropCost add(const std::vector<int32_t>& dropped) {
    graph_.check_stop();
    const DropCost cost = simulator_.run(dropped);
    if (!stairs.beaten(cost.peak_bytes, cost.time)) {
      FrontPoint point{.peak_bytes = cost.peak_bytes, .time = cost.time, .dropped = dropped};
      std::sort(point.dropped.begin(), point.dropped.end());
      stairs.add(std::move(point));
    }
    return cost;
  }

  // A plan, and what is known of those that drop more of the pieces, before they are tried: each
  // piece takes the time of its reruns, and its bytes of this plan's peak. As prefix sums.
  struct From {
    DropCost cost = {};
    std::vector<DropCost> saved = {{}};
  };

  From price(const std::vector<int32_t>& dropped, const std::vector<std::vector<int32_t>>& pieces) {
    From from{.cost = add(dropped)};
    for (const auto& piece : pieces) {
      DropCost saved = from.saved.back();
      for (const int32_t node : piece) {
        saved.time += graph_.rerun_time(node);
        if (simulator_.was_at_peak(node)) saved.peak_bytes += graph_.bytes(node);
      }
      from.saved.push_back(saved);
    }
    return from;
  }

  // Whether a plan of these bytes and time would be better by a stride of the front.
  bool worth(int64_t peak_bytes, double time) const {
    const int64_t stride = (stairs.most_bytes() - stairs.least_bytes()) / most_points_;
    return !stairs.beaten(peak_bytes + stride, time);
  }

  // Whether one of the plans between may be.
  bool worth(const From& from, size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i) {
      const int64_t less = from.saved[i].peak_bytes - from.saved[begin].peak_bytes;
      const double more = from.saved[i].time - from.saved[begin].time;
      if (worth(from.cost.peak_bytes - less, from.cost.time + more)) return true;
    }
    return false;
  }

  void sweep(const std::vector<int32_t>& kept) {
    FrontierCut cut(graph_, {.frontier = frontier_, .last = graph_.size() - 1}, kept);
    const auto worth_looking = [&](const FrontierChoice& more, const FrontierChoice& less) {
      const From from = price(more.rerun, {difference(less.rerun, more.rerun)});
      return worth(from.cost.peak_bytes - from.saved.back().peak_bytes, from.cost.time);
    };
    std::vector<int32_t> before;
    for (FrontierChoice& choice : all_choices(cut, worth_looking)) {
      add_between(before, choice.rerun);
      before = std::move(choice.rerun);
    }
    add(before);
  }

  // Cuts at rising prices are nested, so the pieces between two of them are dropped one after the
  // other; a piece alone may lack what it reads, which then is recomputed too, and the simulator
  // counts it. Halves the ranges in which
  // something may be found.
  void add_between(const std::vector<int32_t>& before, const std::vector<int32_t>& after) {
    const std::vector<std::vector<int32_t>> pieces =
        connected_pieces(graph_, difference(after, before));
    struct Range {
      size_t begin, end;  // of the pieces
      From from;          // with those before
    };
    std::vector<Range> open = {{0, pieces.size(), price(before, pieces)}};
    while (!open.empty()) {
      Range range = std::move(open.back());
      open.pop_back();
      if (!worth(range.from, range.begin, range.end)) continue;
      const size_t middle = (range.begin + range.end) / 2;
      std::vector<int32_t> dropped = before;
      for (size_t i = 0; i < middle; ++i) {
        dropped.insert(dropped.end(), pieces[i].begin(), pieces[i].end());
      }
      open.push_back({middle, range.end, price(dropped, pieces)});
      open.push_back({range.begin, middle, std::move(range.from)});
    }
  }

  // The beginning of the front: pieces may be more than is needed there. The quickest first: most
  // of the others are beaten before they are tried.
  void add_single_values(const DropCost& all) {
    std::vector<int32_t> values;
    for (int32_t node = 0; node <= frontier_; ++node) {
      if (graph_.may_rerun(node) && graph_.horizon(node) > frontier_) values.push_back(node);
    }
    std::stable_sort(values.begin(), values.end(), [&](int32_t a, int32_t b) {
      return graph_.rerun_time(a) < graph_.rerun_time(b);
    });
    size_t tried = 0;
    for (const int32_t node : values) {
      if (tried == kMostSingles) return;
      const double time = all.time + graph_.rerun_time(node);
      if (stairs.beaten(all.peak_bytes - graph_.bytes(node), time)) continue;
      add({node});
      ++tried;
    }
  }

  const RematGraph& graph_;
  int32_t frontier_;
  int64_t most_points_;
  DropSimulator simulator_;
};

size_t place_within(const std::vector<FrontPoint>& points, int64_t budget_bytes) {
  const auto found =
      std::lower_bound(points.begin(), points.end(), budget_bytes,
                       [](const FrontPoint& point, int64_t b) { return point.peak_bytes > b; });
  return static_cast<size_t>(found - points.begin());
}

// Those that are needed, and others that lie so many bytes below the one before.
std::vector<size_t> places_apart(const std::vector<FrontPoint>& points,
                                 const std::vector<bool>& needed, int64_t bytes) {
  std::vector<size_t> places;
  for (size_t i = 0; i < points.size(); ++i) {
    if (needed[i] || points[places.back()].peak_bytes - points[i].peak_bytes >= bytes) {
      places.push_back(i);
    }
  }
  return places;
}

// At most `most`, and of points close to each other in peak only the first; but first of all those
// that answer to the budgets `asked`.
std::vector<FrontPoint> thin_out(std::vector<FrontPoint> points, size_t most,
                                 const std::vector<int64_t>& asked) {
  if (points.size() <= most || most < 2) return points;
  std::vector<bool> needed(points.size(), false);
  needed.front() = needed.back() = true;
  for (const int64_t budget : asked) needed[place_within(points, budget)] = true;
  if (static_cast<size_t>(std::count(needed.begin(), needed.end(), true)) > most) {
    needed.assign(points.size(), false);
    needed.front() = needed.back() = true;
  }
  // The least distance at which not too many are left.
  int64_t apart = 0;
  int64_t enough = points.front().peak_bytes - points.back().peak_bytes;
  while (apart + 1 < enough) {
    const int64_t middle = apart + (enough - apart) / 2;
    (places_apart(points, needed, middle).size() > most ? apart : enough) = middle;
  }
  std::vector<FrontPoint> kept;
  for (const size_t place : places_apart(points, needed, enough)) {
    kept.push_back(std::move(points[place]));
  }
  return kept;
}

}  // namespace

RematFront::RematFront(const RematGraph& graph, const FrontOptions& options)
    : frontier_(graph.size() > 0 ? choose_frontier(graph) : 0) {
  if (graph.size() == 0) return;
  Sweep sweep(graph, frontier_, options.most_points);
  std::vector<int64_t> asked;
  for (RematBaseline& baseline : remat_baselines(graph)) {
    for (FrontPoint& point : baseline.points) {
      asked.push_back(point.peak_bytes);
      sweep.stairs.add(std::move(point));
    }
  }
  sweep.run(options.enough_bytes);
  points_ = thin_out(sweep.stairs.take(), options.most_points, asked);
}

size_t RematFront::find(int64_t budget_bytes) const { return place_within(points_, budget_bytes); }

BitRows RematFront::holds(const RematGraph& graph, size_t place) const {
  return hold_with_reruns(graph, frontier_, points_[place].dropped);
}

}  // namespace trainscope::memplan
