// placement_bench KIND SIZE [THREADS]: layouts of generated training steps, their gaps and times,
// as one line of JSON. KIND gpt: SIZE layers, every degree of recomputation; branching: SIZE
// buffers, 20 networks; offload: SIZE layers whose activations two more streams copy to the host
// and back, 20 networks. Each problem is solved three times with default options; its times, on the
// wall and of all threads' processors together, are the shortest.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include "memplan/solution.h"
#include "memplan/streams/solve.h"
#include "memplan/streams/validate.h"
#include "memplan/validate.h"
#include "tests/memplan/graphs.h"
#include "tests/memplan/streams/problems.h"

namespace trainscope::memplan {
namespace {

constexpr int kNetworks = 20;

constexpr int kRepeats = 3;

struct Timed {
  Solution solution = {};
  double wall_ms = std::numeric_limits<double>::infinity();
  double cpu_ms = std::numeric_limits<double>::infinity();
};

// Over the problems of one run. A gap is height / lower bound - 1.
struct Statistics {
  std::vector<double> gaps = {};
  std::vector<double> wall_ms = {};
  std::vector<double> cpu_ms = {};
  std::size_t buffers = 0;  // the most of one problem
  int at_bound = 0;
  int invalid = 0;

  void add(const Timed& timed, bool valid) {
    const Solution& solution = timed.solution;
    gaps.push_back(static_cast<double>(solution.height_bytes) /
                       static_cast<double>(solution.lower_bound_bytes) -
                   1);
    wall_ms.push_back(timed.wall_ms);
    cpu_ms.push_back(timed.cpu_ms);
    buffers = std::max(buffers, solution.offsets.size());
    at_bound += solution.proven ? 1 : 0;
    invalid += valid ? 0 : 1;
  }
};

template <typename Solve>
Timed quickest(const Solve& solve_once) {
  Timed best;
  for (int i = 0; i < kRepeats; ++i) {
    const std::clock_t start = std::clock();
    best.solution = solve_once();
    const double cpu_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    best.cpu_ms = std::min(best.cpu_ms, 1e3 * cpu_s);
    best.wall_ms = std::min(
        best.wall_ms, std::chrono::duration<double, std::milli>(best.solution.elapsed).count());
  }
  return best;
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

int to_number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Run {
  std::string_view kind = {};
  int size = 0;
  int threads = 1;
};

void solve_steps(const Run& run, Statistics& ours, Statistics& ort) {
  const bool gpt = run.kind == "gpt";
  for (int i = 0; i < (gpt ? testing::kGptPlans : kNetworks); ++i) {
    const Problem problem =
        gpt ? testing::gpt_problem(run.size, i)
            : testing::branching_problem(run.size, static_cast<std::uint64_t>(i));
    const Timed timed = quickest([&] { return solve(problem, {.threads = run.threads}).solution; });
    ours.add(timed, validate(problem, timed.solution).empty());
    const Timed baseline{.solution = solve(problem, {.method = "ort_best_fit"}).solution};
    ort.add(baseline, validate(problem, baseline.solution).empty());
  }
}

void solve_offloads(const Run& run, Statistics& ours) {
  for (int i = 0; i < kNetworks; ++i) {
    const StreamProblem problem = testing::offload_step(run.size, static_cast<std::uint64_t>(i));
    const Timed timed =
        quickest([&] { return solve_streams(problem, {.threads = run.threads}).solution; });
    ours.add(timed, validate_streams(problem, timed.solution).empty());
  }
}

int report(const Run& run) {
  Statistics ours;
  Statistics ort;
  if (run.kind == "offload") {
    solve_offloads(run, ours);
  } else {
    solve_steps(run, ours, ort);
  }
  fmt::print(
      "{{\"kind\": \"{}\", \"size\": {}, \"threads\": {}, \"problems\": {}, \"most_buffers\": {}, "
      "\"invalid\": {}, \"at_bound\": {}, \"mean_gap\": {:.6f}, \"worst_gap\": {:.6f}, "
      "\"median_ms\": {:.3f}, \"p99_ms\": {:.3f}, \"worst_ms\": {:.3f}, "
      "\"median_cpu_ms\": {:.3f}, \"worst_cpu_ms\": {:.3f}",
      run.kind, run.size, run.threads, ours.gaps.size(), ours.buffers, ours.invalid, ours.at_bound,
      mean(ours.gaps), quantile(ours.gaps, 1), quantile(ours.wall_ms, 0.5),
      quantile(ours.wall_ms, 0.99), quantile(ours.wall_ms, 1), quantile(ours.cpu_ms, 0.5),
      quantile(ours.cpu_ms, 1));
  if (!ort.gaps.empty()) {
    fmt::print(", \"ort_at_bound\": {}, \"ort_mean_gap\": {:.6f}, \"ort_worst_gap\": {:.6f}",
               ort.at_bound, mean(ort.gaps), quantile(ort.gaps, 1));
  }
  fmt::print("}}\n");
  return ours.invalid + ort.invalid == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trainscope::memplan

int main(int argc, char** argv) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  const int size = argc > 2 ? trainscope::memplan::to_number(argv[2]) : 0;
  const int threads = argc > 3 ? trainscope::memplan::to_number(argv[3]) : 1;
  const bool known = kind == "gpt" || kind == "branching" || kind == "offload";
  if (!known || size < 1 || threads < 1) {
    std::fputs("usage: placement_bench gpt|branching|offload SIZE [THREADS]\n", stderr);
    return 2;
  }
  return trainscope::memplan::report({.kind = kind, .size = size, .threads = threads});
}
