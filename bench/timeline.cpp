// What each thread does in a training step, and how much of it no event names:
//   timeline_bench w1-sgd|w2-lenet|... [STEPS] [--print]
// One row a thread: the share of the step (median of the steps) inside of calls and their threads'
// work, in copies and batch waits, waiting for thread 0 or for a region's other threads, and
// unnamed. With --print every span of the last step too. Then what listening costs: steps with a
// listener and without, in turn.
#include "tests/support/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/verbs/bench_run.h"
#include "engine/exec/execution_events.h"

namespace trainscope {
namespace {

using test::Timeline;
using Spans = std::vector<Timeline::Span>;

constexpr int kWarmUp = 3;

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Nanoseconds of [begin, end) that the spans of the lists cover together.
std::int64_t covered(const std::vector<const Spans*>& lists, Interval in) {
  std::vector<Interval> all;
  for (const Spans* spans : lists) {
    for (const Timeline::Span& span : *spans) {
      all.push_back({std::max(span.begin, in.begin), std::min(span.end, in.end)});
    }
  }
  std::ranges::sort(all, {}, &Interval::begin);
  std::int64_t sum = 0;
  std::int64_t at = in.begin;
  for (const Interval& one : all) {
    sum += std::max<std::int64_t>(0, one.end - std::max(one.begin, at));
    at = std::max(at, one.end);
  }
  return sum;
}

Spans only(const Spans& spans, std::initializer_list<std::string_view> what) {
  Spans found;
  std::ranges::copy_if(spans, std::back_inserter(found), [&](const Timeline::Span& span) {
    return std::ranges::find(what, span.what) != what.end();
  });
  return found;
}

// Shares of one step, by thread.
struct Shares {
  double own = 0.0;    // its own work: calls of thread 0, parts of regions, batch tiles
  double given = 0.0;  // copies, batch waits
  double waits = 0.0;  // for thread 0 or the other threads, with an event that says where
  double unnamed = 0.0;
};

Shares shares_of(const Timeline& timeline, int thread, Interval step) {
  const auto share = [&](std::int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(step.end - step.begin);
  };
  const Spans& first = timeline.spans[0];
  const Spans& own = timeline.spans[static_cast<std::size_t>(thread)];
  const Spans work = thread == 0 ? only(first, {"call"}) : only(own, {"call", "work"});
  const Spans given = only(first, {"batch wait", "bind", "read", "initial"});
  const std::int64_t named = covered({&first, &own}, step);
  Shares shares{.own = share(covered({&work}, step)), .given = share(covered({&given}, step))};
  shares.waits = share(named) - shares.own - shares.given;
  shares.unnamed = 1.0 - share(named);
  return shares;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void print(const Timeline& timeline, int threads, Interval step, const Program& program) {
  for (int t = 0; t < threads; ++t) {
    for (const Timeline::Span& span : timeline.spans[static_cast<std::size_t>(t)]) {
      const bool is_call = span.what == "call";
      const NodeId node =
          is_call ? program.call(CallId(static_cast<std::int32_t>(span.id))).node : kNoNode;
      fmt::print("{:>2} {:>12.3f} {:>10.3f} us  {} {} {}\n", t,
                 static_cast<double>(span.begin - step.begin) / 1e3,
                 static_cast<double>(span.end - span.begin) / 1e3, span.what, span.id,
                 node == kNoNode ? "" : program.graph.node(node).name);
    }
  }
}

// Step times with a listener and without, in turn: the ratio of the medians.
double cost_of_listening(TimedSteps& steps, int threads, int rounds) {
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < rounds; ++i) {
    Timeline timeline(threads);
    steps.executor().add_listener(timeline);
    with.push_back(steps.run(&timeline).milliseconds);
    steps.executor().remove_listener(timeline);
    without.push_back(steps.run().milliseconds);
  }
  return median(with) / median(without);
}

int run(std::string_view name, int count, bool prints) {
  const BenchWorkload& workload = find_workload(name);
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  TimedSteps steps = workload_steps(workload, {.batch = workload.batch,
                                               .sequence = workload.sequence,
                                               .steps = count,
                                               .threads = threads,
                                               .batch_tiles = BatchTileOptions{}});
  for (int i = 0; i < kWarmUp; ++i) steps.run();
  std::vector<std::vector<Shares>> shares(static_cast<std::size_t>(threads));
  for (int i = 0; i < count; ++i) {
    Timeline timeline(threads);
    steps.executor().add_listener(timeline);
    const std::int64_t begin = Timeline::now();
    steps.run(&timeline);
    const Interval step{begin, Timeline::now()};
    steps.executor().remove_listener(timeline);
    for (int t = 0; t < threads; ++t) {
      shares[static_cast<std::size_t>(t)].push_back(shares_of(timeline, t, step));
    }
    if (prints && i + 1 == count) print(timeline, threads, step, steps.compiled().program);
  }
  fmt::print("{:<10} {:>7} {:>10} {:>12} {:>8} {:>9}\n", "workload", "thread", "own work",
             "copies, data", "waits", "unnamed");
  for (int t = 0; t < threads; ++t) {
    const auto of = [&](double Shares::*part) {
      std::vector<double> values;
      for (const Shares& one : shares[static_cast<std::size_t>(t)]) values.push_back(one.*part);
      return 100.0 * median(values);
    };
    fmt::print("{:<10} {:>7} {:>8.2f} % {:>10.2f} % {:>6.2f} % {:>7.3f} %\n", name, t,
               of(&Shares::own), of(&Shares::given), of(&Shares::waits), of(&Shares::unnamed));
  }
  fmt::print("listening: {:.4f} times as long\n", cost_of_listening(steps, threads, 2 * count));
  return 0;
}

}  // namespace
}  // namespace trainscope

int main(int argc, char** argv) {
  const std::string_view last = argc > 1 ? argv[argc - 1] : "";
  const bool prints = last == "--print";
  const int words = prints ? argc - 1 : argc;
  if (words < 2) return EXIT_FAILURE;
  return trainscope::run(argv[1], words > 2 ? std::max(1, std::atoi(argv[2])) : 20, prints);
}
