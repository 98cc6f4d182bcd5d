// Races the placers over the sections of a problem, refines what stays too high, keeps the lowest.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "memplan/bounds.h"
#include "memplan/deadline.h"
#include "memplan/exact/refine.h"
#include "memplan/place/decompose.h"
#include "memplan/place/placer.h"
#include "memplan/place/race.h"
#include "memplan/solution.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;
using std::uint64_t;
using Clock = std::chrono::steady_clock;

constexpr std::array kPlacers = {
#define PLACER(name) Placer{#name, place_##name},
#include "memplan/placers.def"
#undef PLACER
};

constexpr size_t kPrompt = 0
#define PLACER(name) +1
#define THOROUGH(name)
#define BASELINE(name)
#include "memplan/placers.def"
#undef PLACER
    ;

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
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

Result refuse(std::string message) {
  return {.status = Status::kBadProblem, .message = std::move(message)};
}

// What a method consists of.
struct Stages {
  std::vector<Placer> prompt = {};
  std::span<const Placer> thorough = {};
  bool exact = false;
};

// All methods; only the prompt ones for a glance. A `first` that is none of these changes nothing.
Stages all_stages(const Options& options) {
  const std::span<const Placer> all(kPlacers);
  Stages stages{.prompt = {all.begin(), all.begin() + kPrompt}};
  const auto first = std::find_if(stages.prompt.begin(), stages.prompt.end(),
                                  [&](const Placer& p) { return p.name == options.first; });
  if (first != stages.prompt.end()) std::rotate(stages.prompt.begin(), first, first + 1);
  if (options.patience == Patience::kGlance) return stages;
  stages.thorough = all.subspan(kPrompt, kRacing - kPrompt);
  stages.exact = true;
  return stages;
}

Stages stages_of(const Options& options) {
  if (options.method == "all") return all_stages(options);
  if (options.method == kExact) return {.prompt = {kPlacers.front()}, .exact = true};
  for (const Placer& placer : kPlacers) {
    if (placer.name == options.method) return {.prompt = {placer}};
  }
  return {};
}

// The height from which on there is nothing to win.
int64_t good_height(const Problem& problem, int64_t bound_bytes, Patience patience) {
  constexpr int64_t kGlanceShare = 200;
  const int64_t slack = patience == Patience::kGlance ? bound_bytes / kGlanceShare : 0;
  return std::max(bound_bytes + slack, problem.capacity_bytes.value_or(0));
}

// What may be spent on a section that the prompt placers have left above the target, in visits.
struct Worth {
  // All of it where a tenth of the target can be won, a quarter where a twentieth can; but at least
  // what takes some ten milliseconds and decides most training steps.
  static constexpr double kGapWorthAll = 0.1;
  static constexpr uint64_t kLeastVisits = uint64_t{1} << 20;
  // A first fit gets an eighth of that, at most a quarter of a second (only orders that leave the
  // arena in crumbs need more), and is left out where it would not come to its end.
  static constexpr uint64_t kPlacerShare = 8;
  static constexpr uint64_t kMostOfPlacer = 40'000'000;
  static constexpr uint64_t kVisitsPerBox = 128;

  int64_t target_bytes = 0;
  const Options& options;

  uint64_t visits(int64_t height_bytes) const {
    if (options.patience == Patience::kUnlimited) return options.most_visits;
    const auto target = static_cast<double>(std::max<int64_t>(target_bytes, 1));
    const double gap = static_cast<double>(height_bytes - target_bytes) / target;
    const double share = std::clamp(gap / kGapWorthAll, 0.0, 1.0);
    const double worth = share * share * static_cast<double>(options.most_visits);
    return std::min(options.most_visits, kLeastVisits + static_cast<uint64_t>(worth));
  }
  uint64_t visits_of_placer(int64_t height_bytes, size_t boxes) const {
    const uint64_t share = std::min(visits(height_bytes) / kPlacerShare, kMostOfPlacer);
    return share < kVisitsPerBox * boxes ? 0 : share;
  }
};

// Lets the exact search lower the sections that are above the target, the highest first: once it
// has failed on one, the others need not be lower than that one. Returns a bound on the whole.
int64_t refine_sections(const Decomposition& decomposition, std::vector<Best>& best,
                        const Worth& worth, Effort effort) {
  int64_t target_bytes = worth.target_bytes;
  int64_t bound_bytes = 0;
  std::vector<size_t> order(best.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return best[a].height_bytes > best[b].height_bytes; });
  for (const size_t p : order) {
    const int64_t height_bytes = best[p].height_bytes;
    if (height_bytes <= target_bytes) break;
    if (p == order.front()) effort.visits = worth.visits(height_bytes);
    const Task& task = decomposition.sections[p].task;
    const Interval known{.lower_bytes = task.bound_bytes, .height_bytes = height_bytes};
    const Interval found = refine(task, known, target_bytes, effort, best[p].offsets);
    if (found.height_bytes < height_bytes) best[p].method = kExact;
    best[p].height_bytes = found.height_bytes;
    bound_bytes = std::max(bound_bytes, found.lower_bytes);
    target_bytes = std::max(target_bytes, found.height_bytes);
  }
  return decomposition.stacking_is_free ? bound_bytes : 0;
}

// Collects the sections' placements and names the method of the highest section.
void assemble(const Problem& problem, const std::vector<Best>& placements,
              Decomposition decomposition, Solution& solution) {
  int64_t highest_section = -1;
  for (size_t p = 0; p < decomposition.sections.size(); ++p) {
    const Section& section = decomposition.sections[p];
    const Best& best = placements[p];
    for (size_t i = 0; i < section.buffers.size(); ++i) {
      decomposition.offsets[section.buffers[i]] = best.offsets[i];
    }
    if (best.height_bytes <= highest_section) continue;
    highest_section = best.height_bytes;
    solution.method = best.method;
  }
  solution.offsets = std::move(decomposition.offsets);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    solution.height_bytes = std::max(
        solution.height_bytes, solution.offsets[i] + occupied_bytes(problem, problem.buffers[i]));
  }
  solution.proven = solution.height_bytes == solution.lower_bound_bytes;
}

}  // namespace

std::span<const std::string_view> placer_names() { return kPlacerNames; }

Result judge(std::optional<int64_t> capacity_bytes, Solution solution) {
  if (!capacity_bytes || solution.height_bytes <= *capacity_bytes) {
    return {.status = Status::kPlaced, .solution = std::move(solution)};
  }
  std::string message = "no placement within the capacity of " + std::to_string(*capacity_bytes) +
                        " bytes found: best height " + std::to_string(solution.height_bytes) +
                        ", lower bound " + std::to_string(solution.lower_bound_bytes);
  if (solution.lower_bound_bytes > *capacity_bytes) message += " (so none exists)";
  return {.status = Status::kOverCapacity,
          .solution = std::move(solution),
          .message = std::move(message)};
}

Result solve(const Problem& problem, const Options& options) {
  const Clock::time_point start = Clock::now();
  if (std::optional<std::string> error = find_problem_error(problem)) return refuse(*error);
  const Stages stages = stages_of(options);
  if (stages.prompt.empty())
    return refuse("no placement method '" + std::string(options.method) + "'");
  if (!(options.seconds >= 0)) return refuse("the time limit must be 0 seconds or more");
  if (options.threads < 1) return refuse("the number of threads must be 1 or more");

  Solution solution{.lower_bound_bytes = lower_bound_bytes(problem)};
  const int64_t target = good_height(problem, solution.lower_bound_bytes, options.patience);
  Decomposition decomposition = decompose(problem, solution.lower_bound_bytes);
  const Deadline deadline(options.seconds, options.stop);
  Race race(decomposition.sections,
            {.target_bytes = target, .deadline = deadline, .threads = options.threads});
  race.run(stages.prompt, [](size_t) { return kUnlimited; });
  const Worth worth{.target_bytes = target, .options = options};
  race.run(stages.thorough, [&](size_t section) {
    const size_t boxes = decomposition.sections[section].task.boxes.size();
    return worth.visits_of_placer(race.best()[section].height_bytes, boxes);
  });
  if (stages.exact) {
    const int64_t bound = refine_sections(decomposition, race.best(), worth,
                                          {.deadline = deadline, .threads = options.threads});
    solution.lower_bound_bytes = std::max(solution.lower_bound_bytes, bound);
  }
  assemble(problem, race.best(), std::move(decomposition), solution);
  solution.elapsed = Clock::now() - start;
  return judge(problem.capacity_bytes, std::move(solution));
}

}  // namespace trainscope::memplan
