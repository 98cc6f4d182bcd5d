// Lower bounds by minimum cuts at frontiers.
#include "memplan/remat/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "memplan/at.h"
#include "memplan/remat/frontier_cut.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostPrices = 24;

// max over p of min over choices (time + p * (bytes - room)), by cutting planes: the best price so
// far is where the best lines of either slope meet. Stops early if no more than `useless` can come
// out.
double least_rerun_time(FrontierCut& cut, int64_t budget_bytes, double useless) {
  const int64_t room = budget_bytes - cut.sure_bytes();
  if (cut.read_bytes() <= room) return 0;
  FrontierChoice more = cut.choose(0);
  if (more.saved_bytes <= room) return 0;  // what it recomputes takes no time
  FrontierChoice less = cut.choose(kInfinity);
  if (less.saved_bytes > room) return kInfinity;
  double best = 0;
  for (int i = 0; i < kMostPrices; ++i) {
    const double bytes = static_cast<double>(more.saved_bytes - less.saved_bytes);
    const double price = (less.rerun_time - more.rerun_time) / bytes;
    const double rent = price * static_cast<double>(room);
    const double met = more.rerun_time + price * static_cast<double>(more.saved_bytes);
    if (!(price > 0) || met - rent <= useless) break;
    FrontierChoice between = cut.choose(price);
    best = std::max(best, between.bound - rent * (1 + 1e-12));
    const double value = between.rerun_time + price * static_cast<double>(between.saved_bytes);
    if (value >= met * (1 - 1e-9)) break;
    (between.saved_bytes > room ? more : less) = std::move(between);
  }
  return best;
}

// Bytes of all values that first executions after each node read and that are made up to it.
std::vector<int64_t> bytes_over_frontiers(const RematGraph& graph) {
  std::vector<int64_t> bytes(at(graph.size()) + 1, 0);
  for (int32_t node = 0; node < graph.size(); ++node) {
    bytes[at(node)] += graph.bytes(node);
    bytes[at(graph.last_use(node))] -= graph.bytes(node);
  }
  for (size_t i = 1; i < bytes.size(); ++i) bytes[i] += bytes[i - 1];
  return bytes;
}

// Of those that more bytes cross than the budget: in each of `most` groups of neighbours the one
// that leaves least room for others while it runs; and the last forward node.
std::vector<int32_t> choose_frontiers(const RematGraph& graph, int64_t budget_bytes, int32_t most) {
  const std::vector<int64_t> crossing = bytes_over_frontiers(graph);
  std::vector<int32_t> tight;
  for (int32_t node = 0; node + 1 < graph.size(); ++node) {
    if (crossing[at(node)] + graph.workspace_bytes(node) > budget_bytes) tight.push_back(node);
  }
  const int64_t count = static_cast<int64_t>(tight.size());
  if (count <= most) return tight;
  std::vector<int32_t> chosen;
  for (int32_t i = 0; i < most; ++i) {
    const auto first = tight.begin() + static_cast<std::ptrdiff_t>(i * count / most);
    const auto last = tight.begin() + static_cast<std::ptrdiff_t>((i + 1) * count / most);
    chosen.push_back(*std::max_element(first, last, [&](int32_t a, int32_t b) {
      return graph.least_bytes(a) < graph.least_bytes(b);
    }));
  }
  const int32_t loss = graph.first_backward() - 1;
  if (std::binary_search(tight.begin(), tight.end(), loss)) chosen.push_back(loss);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

// The reruns in ranges between frontiers, added up from the last one back.
class Chain {
 public:
  Chain(const RematGraph& graph, int64_t budget_bytes, std::vector<int32_t> frontiers)
      : graph_(graph),
        budget_bytes_(budget_bytes),
        frontiers_(std::move(frontiers)),
        after_(frontiers_.size() + 1, 0) {}

  double rerun_time() {
    for (size_t i = frontiers_.size(); i-- > 0;) after_[i] = from(i);
    return after_.front();
  }

 private:
  // Ranges that begin at the same frontier rerun the more the longer they are, and what comes after
  // them the less, so that several ends in a row can be left out by the first and the last.
  double from(size_t begin) const {
    struct Ends {
      size_t first, end;  // where a range may end; before `end`
      double most;        // reruns of a range that ends later
    };
    double best = after_[begin + 1];
    const size_t longest = frontiers_.size();
    const double all = between(begin, longest, best);
    best = std::max(best, all);
    std::vector<Ends> open = {{begin + 1, longest, std::max(all, best)}};
    while (!open.empty()) {
      const Ends ends = open.back();
      open.pop_back();
      if (ends.first == ends.end || ends.most + after_[ends.first] <= best) continue;
      const size_t middle = (ends.first + ends.end) / 2;
      const double useless = best - after_[middle];
      const double here = between(begin, middle, useless);
      best = std::max(best, here + after_[middle]);
      open.push_back({ends.first, middle, std::max(here, useless)});
      open.push_back({middle + 1, ends.end, ends.most});
    }
    return best;
  }

  double between(size_t begin, size_t end, double useless) const {
    const int32_t last = end < frontiers_.size() ? frontiers_[end] : graph_.size() - 1;
    FrontierCut cut(graph_, {.frontier = frontiers_[begin], .last = last});
    return least_rerun_time(cut, budget_bytes_, useless);
  }

  const RematGraph& graph_;
  int64_t budget_bytes_;
  std::vector<int32_t> frontiers_;
  std::vector<double> after_;  // by frontier: reruns after it for sure
};

}  // namespace

LeastBudget least_budget(const RematGraph& graph) {
  LeastBudget least;
  for (int32_t node = 0; node < graph.size(); ++node) {
    if (graph.least_bytes(node) > least.bytes) least = {graph.least_bytes(node), node};
  }
  return least;
}

double least_time(const RematGraph& graph, int64_t budget_bytes, int32_t frontiers) {
  if (least_budget(graph).bytes > budget_bytes) return kInfinity;
  double base = 0;
  for (int32_t node = 0; node < graph.size(); ++node) base += graph.time(node);
  Chain chain(graph, budget_bytes, choose_frontiers(graph, budget_bytes, frontiers));
  // Times are whole numbers.
  return base + std::ceil(chain.rerun_time() * (1 - 1e-9) - 1e-9);
}

}  // namespace trainscope::memplan
