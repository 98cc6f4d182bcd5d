// Intervals first, which are quick and well understood; then first fits under the relation itself.
#include "memplan/streams/solve.h"

#include <algorithm>
#include <array>
#include <utility>

#include "memplan/streams/bounds.h"
#include "memplan/streams/clocks.h"
#include "memplan/streams/first_fit.h"
#include "memplan/streams/intervals.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint64_t;
using Clock = std::chrono::steady_clock;

// Pairs compared for a plan that somebody waits for: some ten milliseconds.
constexpr uint64_t kWorthwhileVisits = 4'000'000;

// In bytes, by buffer.
std::vector<int64_t> sizes_of(const StreamProblem& problem) {
  std::vector<int64_t> sizes;
  for (const StreamBuffer& buffer : problem.buffers) {
    sizes.push_back(occupied_bytes(problem, buffer));
  }
  return sizes;
}

class StreamSolver {
 public:
  StreamSolver(const StreamProblem& problem, const Options& options)
      : problem_(problem),
        options_(options),
        start_(Clock::now()),
        clocks_(find_clocks(problem)),
        fitter_(find_lifetimes(problem, clocks_), sizes_of(problem)) {}

  Solution run() {
    bound_bytes_ = heaviest_cut_bytes(problem_, clocks_, lifetimes());
    const bool exact = try_intervals(intervals_by_birth(problem_, clocks_, lifetimes()));
    if (!exact) {
      if (open()) try_intervals(intervals_by_death(problem_, clocks_, lifetimes()));
      if (open()) raise_bound();
      try_orders();
      push_down();
    }
    return {.offsets = std::move(best_.offsets),
            .height_bytes = best_.height_bytes,
            .lower_bound_bytes = bound_bytes_,
            .proven = best_.height_bytes == bound_bytes_,
            .method = method_,
            .elapsed = Clock::now() - start_};
  }

 private:
  const StreamLifetimes& lifetimes() const { return fitter_.lifetimes(); }
  const std::vector<int64_t>& sizes() const { return fitter_.sizes(); }
  int64_t target() const { return std::max(bound_bytes_, problem_.capacity_bytes.value_or(0)); }
  double seconds_left() const {
    const std::chrono::duration<double> spent = Clock::now() - start_;
    return std::max(0.0, options_.seconds - spent.count());
  }
  bool open() const { return best_.height_bytes > target() && seconds_left() > 0; }
  uint64_t most_visits() const {
    return options_.patience == Patience::kUnlimited
               ? options_.most_visits
               : std::min(options_.most_visits, kWorthwhileVisits);
  }
  FitLimits effort() const { return {.most_visits = most_visits()}; }
  bool may_go_on() const { return open() && fitter_.visits() < most_visits(); }

  void keep(Fit fit, std::string_view method) {
    if (fit.height_bytes >= best_.height_bytes) return;
    best_ = std::move(fit);
    method_ = method;
  }

  // Returns whether the intervals say it all; then their bound holds here.
  bool try_intervals(IntervalProblem intervals) {
    intervals.problem.capacity_bytes = target();
    Options options = options_;
    options.method = "all";
    options.seconds = seconds_left();
    Result result = memplan::solve(intervals.problem, options);
    const std::string_view method = result.solution.method;
    if (intervals.exact) bound_bytes_ = std::max(bound_bytes_, result.solution.lower_bound_bytes);
    keep({std::move(result.solution.offsets), result.solution.height_bytes}, method);
    return intervals.exact;
  }

  void raise_bound() {
    const std::optional<int64_t> heaviest =
        heaviest_antichain_bytes(problem_, clocks_, lifetimes());
    bound_bytes_ = std::max(bound_bytes_, heaviest.value_or(0));
  }

  // Larger keys first: by length of lifetime, by bytes, by both, and in order of birth.
  void try_orders() {
    using Key = std::array<double, 2>;
    std::vector<std::array<Key, 5>> keys;
    for (size_t i = 0; i < sizes().size(); ++i) {
      const auto size = static_cast<double>(sizes()[i]);
      const double length = length_of_lifetime(i);
      const auto birth = static_cast<double>(place_of_birth(i));
      keys.push_back({Key{length, size}, Key{size * length, size}, Key{-birth, length},
                      Key{size, length}, Key{-birth, size}});
    }
    for (size_t key = 0; key < 5; ++key) {
      std::vector<size_t> order = sized_buffers();
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return keys[a][key] > keys[b][key]; });
      try_fit(&StreamFitter::stack, order, "stack");
      try_fit(&StreamFitter::fit, order, "first_fit");
    }
  }

  void try_fit(std::optional<Fit> (StreamFitter::*fit)(const std::vector<size_t>&,
                                                       const FitLimits&),
               const std::vector<size_t>& order, std::string_view method) {
    if (!may_go_on()) return;
    FitLimits limits = effort();
    limits.most_bytes = best_.height_bytes;
    if (std::optional<Fit> found = (fitter_.*fit)(order, limits)) keep(std::move(*found), method);
  }

  // Again and again from the placement before, lowest address first, but what was above the target
  // goes earlier ("squeaky wheel" optimisation, Joslin and Clements 1999).
  void push_down() {
    constexpr std::array<double, 4> kEarlier = {0.5, 0.0, 0.75, 0.25};
    const size_t most_in_vain = options_.patience == Patience::kUnlimited ? 2000 : 64;
    Fit current = best_;
    for (size_t in_vain = 0; in_vain < most_in_vain && may_go_on(); ++in_vain) {
      const double factor = kEarlier[in_vain % kEarlier.size()];
      std::optional<Fit> pushed = fitter_.fit(pushed_order(current, factor), effort());
      if (!pushed) return;
      current = std::move(*pushed);
      if (current.height_bytes < best_.height_bytes) in_vain = 0;
      keep(current, "pushed_down");
    }
  }

  std::vector<size_t> pushed_order(const Fit& placement, double factor) const {
    std::vector<size_t> order = sized_buffers();
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return placement.offsets[a] < placement.offsets[b];
    });
    std::vector<std::pair<double, size_t>> places;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool high = placement.offsets[order[i]] + sizes()[order[i]] > target();
      const auto place = static_cast<double>(i);
      places.emplace_back(high ? factor * place - 0.5 : place, order[i]);
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < order.size(); ++i) order[i] = places[i].second;
    return order;
  }

  std::vector<size_t> sized_buffers() const {
    std::vector<size_t> buffers;
    for (size_t i = 0; i < sizes().size(); ++i) {
      if (sizes()[i] > 0) buffers.push_back(i);
    }
    return buffers;
  }

  double length_of_lifetime(size_t buffer) const {
    double operations = 0;
    for (int32_t s = 0; s < lifetimes().streams; ++s) {
      operations +=
          lifetimes().free[lifetimes().at(buffer, s)] - lifetimes().born[lifetimes().at(buffer, s)];
    }
    return operations;
  }
  // How many operations are known to have ended before.
  int64_t place_of_birth(size_t buffer) const {
    int64_t seen = 0;
    for (int32_t s = 0; s < lifetimes().streams; ++s)
      seen += lifetimes().seen_at_birth[lifetimes().at(buffer, s)];
    return seen;
  }

  const StreamProblem& problem_;
  const Options& options_;
  Clock::time_point start_;
  Clocks clocks_;
  StreamFitter fitter_;
  int64_t bound_bytes_ = 0;
  Fit best_;
  std::string_view method_ = {};
};

}  // namespace

Result solve_streams(const StreamProblem& problem, const Options& options) {
  if (std::optional<std::string> error = find_problem_error(problem)) {
    return {.message = std::move(*error)};
  }
  if (!(options.seconds >= 0)) return {.message = "the time limit must be 0 seconds or more"};
  if (options.threads < 1) return {.message = "the number of threads must be 1 or more"};
  return judge(problem.capacity_bytes, StreamSolver(problem, options).run());
}

}  // namespace trainscope::memplan
