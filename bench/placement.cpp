// placement_bench KIND SIZE [THREADS]: layouts of generated training steps, their gaps and times,
// as one line of JSON. KIND gpt: SIZE layers, every degree of recomputation; KIND branching: SIZE
// buffers, 20 networks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <vector>

#include "memplan/solution.h"
#include "memplan/validate.h"
#include "tests/memplan/graphs.h"

namespace trainscope::memplan {
namespace {

constexpr int kNetworks = 20;

// Over the problems of one run. A gap is height / lower bound - 1.
struct Statistics {
  std::vector<double> gaps = {};
  std::vector<double> milliseconds = {};
  std::size_t buffers = 0;  // the most of one problem
  int at_bound = 0;
  int invalid = 0;

  void add(const Problem& problem, const Solution& solution) {
    gaps.push_back(static_cast<double>(solution.height_bytes) /
                       static_cast<double>(solution.lower_bound_bytes) -
                   1);
    milliseconds.push_back(std::chrono::duration<double, std::milli>(solution.elapsed).count());
    buffers = std::max(buffers, problem.buffers.size());
    at_bound += solution.proven ? 1 : 0;
    invalid += validate(problem, solution).empty() ? 0 : 1;
  }
};

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

int run(std::string_view kind, int size, int threads) {
  const bool gpt = kind == "gpt";
  Statistics ours;
  Statistics ort;
  for (int i = 0; i < (gpt ? testing::kGptPlans : kNetworks); ++i) {
    const Problem problem = gpt ? testing::gpt_problem(size, i)
                                : testing::branching_problem(size, static_cast<std::uint64_t>(i));
    ours.add(problem, solve(problem, {.threads = threads}).solution);
    ort.add(problem, solve(problem, {.method = "ort_best_fit"}).solution);
  }
  fmt::print(
      "{{\"kind\": \"{}\", \"size\": {}, \"threads\": {}, \"problems\": {}, \"most_buffers\": {}, "
      "\"invalid\": {}, \"at_bound\": {}, \"worst_gap\": {:.6f}, \"median_ms\": {:.3f}, "
      "\"p99_ms\": {:.3f}, \"worst_ms\": {:.3f}, \"ort_at_bound\": {}, \"ort_mean_gap\": {:.6f}, "
      "\"ort_worst_gap\": {:.6f}}}\n",
      kind, size, threads, ours.gaps.size(), ours.buffers, ours.invalid, ours.at_bound,
      quantile(ours.gaps, 1), quantile(ours.milliseconds, 0.5), quantile(ours.milliseconds, 0.99),
      quantile(ours.milliseconds, 1), ort.at_bound, mean(ort.gaps), quantile(ort.gaps, 1));
  return ours.invalid == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trainscope::memplan

int main(int argc, char** argv) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  const int size = argc > 2 ? trainscope::memplan::to_number(argv[2]) : 0;
  const int threads = argc > 3 ? trainscope::memplan::to_number(argv[3]) : 1;
  if ((kind != "gpt" && kind != "branching") || size < 1 || threads < 1) {
    std::fputs("usage: placement_bench gpt|branching SIZE [THREADS]\n", stderr);
    return 2;
  }
  return trainscope::memplan::run(kind, size, threads);
}
