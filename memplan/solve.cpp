// Races the placers over the parts of a problem, refines what stays too high, keeps the lowest.
#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <numeric>
#include <system_error>

#include "memplan/bounds.h"
#include "memplan/exact/refine.h"
#include "memplan/place/decompose.h"
#include "memplan/place/placer.h"
#include "memplan/solution.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;
using Clock = std::chrono::steady_clock;

constexpr std::array kPlacers = {
#define PLACER(name) Placer{#name, place_##name},
#include "memplan/placers.def"
#undef PLACER
};

constexpr size_t kRacing = 0
#define PLACER(name) +1
#define BASELINE(name)
#include "memplan/placers.def"
#undef PLACER
    ;

constexpr auto kPlacerNames = [] {
  std::array<std::string_view, kPlacers.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kPlacers[i].name;
  return names;
}();

constexpr std::string_view kExact = "exact";
constexpr int64_t kNoHeight = std::numeric_limits<int64_t>::max();
// More would only wait for each other.
constexpr size_t kMostThreads = 64;
// About a quarter of a second. Only orders that leave the slab in crumbs need more, and only from
// 20,000 buffers on; on training steps of that size the event orders were within 0.1 % already.
constexpr std::uint64_t kMostVisits = 40'000'000;

// The best layout of one part so far. Heights at or below the target count as the target: they are
// all good enough, and the earliest placer to get there wins.
struct Best {
  std::atomic<int64_t> height_bytes = kNoHeight;
  size_t placer = 0;  // which one; the earlier wins a tie
  std::string_view method = {};
  std::vector<int64_t> offsets = {};
};

// All (placer, part) pairs, taken in order by any number of threads. A pair is skipped only if an
// earlier placer has reached the target on that part, and a tie goes to the earlier placer, so
// without a deadline the outcome does not depend on who runs what when.
class Race {
 public:
  struct Goal {
    int64_t target_bytes = 0;
    Clock::time_point deadline = Clock::time_point::max();
  };

  Race(const std::vector<Part>& parts, std::span<const Placer> placers, Goal goal)
      : parts_(parts), placers_(placers), goal_(goal), best_(parts.size()) {}

  void run(int threads) {
    const size_t useful = std::min({static_cast<size_t>(threads), pair_count(), kMostThreads});
    std::vector<std::future<void>> helpers;
    try {
      while (helpers.size() + 1 < useful) {
        helpers.push_back(std::async(std::launch::async, [this] { work(); }));
      }
    } catch (const std::system_error&) {
      // No more threads to be had: those that exist do all the work.
    }
    work();
    for (std::future<void>& helper : helpers) helper.get();
  }

  [[nodiscard]] std::vector<Best>& best() { return best_; }

 private:
  size_t pair_count() const { return parts_.size() * placers_.size(); }

  void work() {
    for (size_t pair = next_++; pair < pair_count(); pair = next_++) {
      const size_t placer = pair / parts_.size();
      const size_t part = pair % parts_.size();
      if (worth_running(placer, part)) place(placer, part);
    }
  }

  bool worth_running(size_t placer, size_t part) {
    if (placer > 0 && Clock::now() >= goal_.deadline) return false;
    const std::scoped_lock lock(mutex_);
    return best_[part].height_bytes > goal_.target_bytes || best_[part].placer > placer;
  }

  void place(size_t placer, size_t part) {
    const Task& task = parts_[part].task;
    // The first placer must finish, or there is no layout at all.
    const Limits limited{.deadline = goal_.deadline,
                         .height_to_beat = &best_[part].height_bytes,
                         .most_visits = kMostVisits};
    Placement offsets = placers_[placer].place(task, placer == 0 ? Limits{} : limited);
    if (!offsets) return;
    int64_t height_bytes = goal_.target_bytes;
    for (size_t i = 0; i < offsets->size(); ++i) {
      height_bytes = std::max(height_bytes, (*offsets)[i] + task.boxes[i].size_bytes);
    }
    const std::scoped_lock lock(mutex_);
    Best& best = best_[part];
    const std::pair known(best.height_bytes.load(), best.placer);
    if (std::pair(height_bytes, placer) >= known) return;
    best.height_bytes = height_bytes;
    best.placer = placer;
    best.method = placers_[placer].name;
    best.offsets = std::move(*offsets);
  }

  const std::vector<Part>& parts_;
  std::span<const Placer> placers_;
  Goal goal_;
  std::vector<Best> best_;
  std::mutex mutex_;
  std::atomic<size_t> next_ = 0;
};

Result refuse(std::string message) {
  return {.status = Status::kBadProblem, .message = std::move(message)};
}

std::span<const Placer> chosen_placers(std::string_view method) {
  if (method == "all") return {kPlacers.data(), kRacing};
  if (method == kExact) return {kPlacers.data(), 1};
  for (const Placer& placer : kPlacers) {
    if (placer.name == method) return {&placer, 1};
  }
  return {};
}

Clock::time_point deadline_after(double seconds) {
  constexpr double kForever = 1e9;  // about 30 years; far from overflowing the clock
  if (seconds >= kForever) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Lets the exact search lower the parts that are above the target, the highest first: once it has
// failed on one, the others need not be lower than that one. Returns a bound on the whole.
int64_t refine_parts(const Decomposition& decomposition, std::vector<Best>& best,
                     int64_t target_bytes, Effort effort) {
  int64_t bound_bytes = 0;
  std::vector<size_t> order(best.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return best[a].height_bytes > best[b].height_bytes; });
  for (const size_t p : order) {
    const int64_t height_bytes = best[p].height_bytes;
    if (height_bytes <= target_bytes) break;
    const Task& task = decomposition.parts[p].task;
    const Interval known{.lower_bytes = task.bound_bytes, .height_bytes = height_bytes};
    const Interval found = refine(task, known, target_bytes, effort, best[p].offsets);
    if (found.height_bytes < height_bytes) best[p].method = kExact;
    best[p].height_bytes = found.height_bytes;
    bound_bytes = std::max(bound_bytes, found.lower_bytes);
    target_bytes = std::max(target_bytes, found.height_bytes);
  }
  return decomposition.stacking_is_free ? bound_bytes : 0;
}

// Collects the parts' layouts and names the method of the highest part.
void assemble(const Problem& problem, const std::vector<Best>& layouts, Decomposition decomposition,
              Solution& solution) {
  int64_t highest_part = -1;
  for (size_t p = 0; p < decomposition.parts.size(); ++p) {
    const Part& part = decomposition.parts[p];
    const Best& best = layouts[p];
    for (size_t i = 0; i < part.buffers.size(); ++i) {
      decomposition.offsets[part.buffers[i]] = best.offsets[i];
    }
    if (best.height_bytes <= highest_part) continue;
    highest_part = best.height_bytes;
    solution.method = best.method;
  }
  solution.offsets = std::move(decomposition.offsets);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    solution.height_bytes = std::max(
        solution.height_bytes, solution.offsets[i] + occupied_bytes(problem, problem.buffers[i]));
  }
  solution.proven = solution.height_bytes == solution.lower_bound_bytes;
}

Result judge(const Problem& problem, Solution solution) {
  if (!problem.capacity_bytes || solution.height_bytes <= *problem.capacity_bytes) {
    return {.status = Status::kPlaced, .solution = std::move(solution)};
  }
  std::string message = "no layout within the capacity of " +
                        std::to_string(*problem.capacity_bytes) + " bytes found: best height " +
                        std::to_string(solution.height_bytes) + ", lower bound " +
                        std::to_string(solution.lower_bound_bytes);
  if (solution.lower_bound_bytes > *problem.capacity_bytes) message += " (so none exists)";
  return {.status = Status::kOverCapacity,
          .solution = std::move(solution),
          .message = std::move(message)};
}

}  // namespace

std::span<const std::string_view> placer_names() { return kPlacerNames; }

Result solve(const Problem& problem, const Options& options) {
  const Clock::time_point start = Clock::now();
  if (std::optional<std::string> error = find_problem_error(problem)) return refuse(*error);
  const std::span<const Placer> placers = chosen_placers(options.method);
  if (placers.empty()) return refuse("no placement method '" + std::string(options.method) + "'");
  if (!(options.seconds >= 0)) return refuse("the time limit must be 0 seconds or more");
  if (options.threads < 1) return refuse("the number of threads must be 1 or more");

  Solution solution{.lower_bound_bytes = lower_bound_bytes(problem)};
  const int64_t target = std::max(solution.lower_bound_bytes, problem.capacity_bytes.value_or(0));
  Decomposition decomposition = decompose(problem, solution.lower_bound_bytes);
  const Clock::time_point deadline = deadline_after(options.seconds);
  Race race(decomposition.parts, placers, {.target_bytes = target, .deadline = deadline});
  race.run(options.threads);
  if (options.method == "all" || options.method == kExact) {
    const int64_t bound = refine_parts(
        decomposition, race.best(), target,
        {.visits = options.most_visits, .deadline = deadline, .threads = options.threads});
    solution.lower_bound_bytes = std::max(solution.lower_bound_bytes, bound);
  }
  assemble(problem, race.best(), std::move(decomposition), solution);
  solution.elapsed = Clock::now() - start;
  return judge(problem, std::move(solution));
}

}  // namespace trainscope::memplan
