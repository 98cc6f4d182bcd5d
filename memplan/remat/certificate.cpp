// Lower bounds by minimum cuts at frontiers.
#include "memplan/remat/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "memplan/remat/frontier_cut.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostPrices = 24;

size_t at(int32_t index) { return static_cast<size_t>(index); }

// max over p of min over choices (time + p * (bytes - room)), by cutting planes: the best price so
// far is where the best lines of either slope meet.
double least_rerun_time(FrontierCut& cut, int64_t budget_bytes) {
  const int64_t room = budget_bytes - cut.sure_bytes();
  if (cut.read_bytes() <= room) return 0;
  FrontierChoice more = cut.choose(0);
  if (more.saved_bytes <= room) return 0;  // what it lets run again takes no time
  FrontierChoice less = cut.choose(kInfinity);
  if (less.saved_bytes > room) return kInfinity;
  double best = 0;
  for (int i = 0; i < kMostPrices; ++i) {
    const double bytes = static_cast<double>(more.saved_bytes - less.saved_bytes);
    const double price = (less.rerun_time - more.rerun_time) / bytes;
    if (!(price > 0)) break;
    FrontierChoice between = cut.choose(price);
    const double rent = price * static_cast<double>(room);
    best = std::max(best, between.bound - rent * (1 + 1e-12));
    const double met = more.rerun_time + price * static_cast<double>(more.saved_bytes);
    const double value = between.rerun_time + price * static_cast<double>(between.saved_bytes);
    if (value >= met * (1 - 1e-9)) break;
    (between.saved_bytes > room ? more : less) = std::move(between);
  }
  return best;
}

// Bytes of all values that first runs after each node read and that are made up to it.
std::vector<int64_t> bytes_over_frontiers(const RematGraph& graph) {
  std::vector<int64_t> bytes(at(graph.size()) + 1, 0);
  for (int32_t node = 0; node < graph.size(); ++node) {
    bytes[at(node)] += graph.bytes(node);
    bytes[at(graph.last_use(node))] -= graph.bytes(node);
  }
  for (size_t i = 1; i < bytes.size(); ++i) bytes[i] += bytes[i - 1];
  return bytes;
}

// Evenly among those that more bytes cross than the budget, and the last forward node.
std::vector<int32_t> choose_frontiers(const RematGraph& graph, int64_t budget_bytes, int32_t most) {
  const std::vector<int64_t> crossing = bytes_over_frontiers(graph);
  std::vector<int32_t> tight;
  for (int32_t node = 0; node + 1 < graph.size(); ++node) {
    if (crossing[at(node)] + graph.workspace_bytes(node) > budget_bytes) tight.push_back(node);
  }
  const int32_t count = static_cast<int32_t>(tight.size());
  if (count <= most) return tight;
  std::vector<int32_t> chosen;
  for (int32_t i = 0; i < most; ++i) {
    chosen.push_back(tight[at(static_cast<int32_t>(int64_t{i} * count / most))]);
  }
  const int32_t loss = graph.first_backward() - 1;
  if (std::binary_search(tight.begin(), tight.end(), loss)) chosen.push_back(loss);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

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
  const std::vector<int32_t> chosen = choose_frontiers(graph, budget_bytes, frontiers);
  double base = 0;
  for (int32_t node = 0; node < graph.size(); ++node) base += graph.time(node);
  // longest[i]: reruns up to frontier i for sure.
  std::vector<double> longest(chosen.size() + 1, 0);
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (size_t j = i + 1; j <= chosen.size(); ++j) {
      const int32_t last = j < chosen.size() ? chosen[j] : graph.size() - 1;
      FrontierCut cut(graph, {.frontier = chosen[i], .last = last});
      longest[j] = std::max(longest[j], longest[i] + least_rerun_time(cut, budget_bytes));
    }
    longest[i + 1] = std::max(longest[i + 1], longest[i]);
  }
  // Times are whole numbers.
  return base + std::ceil(longest.back() * (1 - 1e-9) - 1e-9);
}

}  // namespace trainscope::memplan
