// What each thread does in a training step, and how much of it no event names:
//   timeline_bench w1-sgd|w2-lenet|... [STEPS] [--print]
// One row a thread, of its own events alone: the share of the step (median of the steps) that it
// works in calls and parts of regions, copies and waits for data, wakes others, waits for others,
// has nothing to do, is a library's, and what no event names. Spans that hold others together
// (sections, tiles) name nothing of what these leave. With --print every span of the last
// step and what nothing names, too. Then what listening costs: steps with a listener and without,
// in turn.
#include "tests/support/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/numbers.h"
#include "engine/exec/execution_events.h"
#include "engine/machine/this_machine.h"
#include "engine/run/bench/bench_run.h"

namespace trainscope {
namespace {

using test::Timeline;

constexpr int kWarmUp = 3;

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// What a thread's time goes into, and the spans that say so.
struct Column {
  std::string_view title;
  std::vector<std::string_view> spans;
};
const std::vector<Column> kColumns{
    {"work", {"call", "work"}},
    {"copies, data", {"batch wait", "inputs", "results", "bind", "read", "initial"}},
    {"start", {"start"}},
    {"join", {"join"}},
    {"idle", {"idle"}},
    {"library", {"library"}},
    {"unnamed", {""}},
};

// Of one step, by column.
using Shares = std::vector<double>;

Shares shares_of(const Timeline& timeline, int thread, Interval step) {
  const auto& spans = timeline.spans[static_cast<std::size_t>(thread)];
  Shares shares(kColumns.size(), 0.0);
  for (const test::TimelinePiece& piece : test::pieces_of(spans, step.begin, step.end)) {
    const std::string_view what =
        piece.span < 0 ? "" : spans[static_cast<std::size_t>(piece.span)].what;
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      if (std::ranges::find(kColumns[c].spans, what) == kColumns[c].spans.end()) continue;
      shares[c] +=
          static_cast<double>(piece.end - piece.begin) / static_cast<double>(step.end - step.begin);
    }
  }
  return shares;
}

double ticks_per_microsecond() {
  const profiler::Clock clock;
  const profiler::ClockPair first = clock.pair();
  profiler::ClockPair second = first;
  while (second.ns - first.ns < 10'000'000) second = clock.pair();
  return 1e3 * static_cast<double>(second.ticks - first.ticks) /
         static_cast<double>(second.ns - first.ns);
}

void print(const Timeline& timeline, int threads, Interval step, const Program& program) {
  const double unit = ticks_per_microsecond();
  for (int t = 0; t < threads; ++t) {
    for (const Timeline::Span& span : timeline.spans[static_cast<std::size_t>(t)]) {
      const bool is_call = span.what == "call";
      const NodeId node =
          is_call ? program.call(CallId(static_cast<std::int32_t>(span.id))).node : kNoNode;
      fmt::print("{:>2} {:>12.3f} {:>10.3f} us  {} {} {}\n", t,
                 static_cast<double>(span.begin - step.begin) / unit,
                 static_cast<double>(span.end - span.begin) / unit, span.what, span.id,
                 node == kNoNode ? "" : program.graph.node(node).name);
    }
  }
}

// What nothing names, between which spans.
void print_gaps(const Timeline& timeline, int threads, Interval step) {
  const double unit = ticks_per_microsecond();
  for (int t = 0; t < threads; ++t) {
    const auto& spans = timeline.spans[static_cast<std::size_t>(t)];
    const auto text = [&](int span) {
      if (span < 0) return std::string("-");
      const Timeline::Span& of = spans[static_cast<std::size_t>(span)];
      return fmt::format("{} {}", of.what, of.id);
    };
    for (const test::TimelinePiece& piece : test::pieces_of(spans, step.begin, step.end)) {
      if (piece.span >= 0 || piece.end == piece.begin) continue;
      fmt::print("{:>2} {:>12.3f} {:>10.3f} us  unnamed in {}, after {}, before {}\n", t,
                 static_cast<double>(piece.begin - step.begin) / unit,
                 static_cast<double>(piece.end - piece.begin) / unit, text(piece.around),
                 text(piece.before), text(piece.after));
    }
  }
}

// Step times with a listener and without, in turn: the ratio of the medians.
double cost_of_listening(TimedSteps& steps, int threads, int rounds) {
  std::vector<double> with;
  std::vector<double> without;
  Timeline timeline(threads);
  for (int i = 0; i < rounds; ++i) {
    timeline.clear();
    Subscription listens = steps.executor().listen(timeline);
    with.push_back(steps.run(&timeline).milliseconds);
    listens = {};
    without.push_back(steps.run().milliseconds);
  }
  return median(with) / median(without);
}

// By thread, of all steps.
void print_shares(std::string_view name, const std::vector<std::vector<Shares>>& threads) {
  fmt::print("{:<12} {:>6}", "workload", "thread");
  for (const Column& column : kColumns) fmt::print(" {:>13}", column.title);
  fmt::print("\n");
  for (std::size_t t = 0; t < threads.size(); ++t) {
    fmt::print("{:<12} {:>6}", name, t);
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      std::vector<double> values;
      for (const Shares& one : threads[t]) values.push_back(one[c]);
      fmt::print(" {:>11.3f} %", 100.0 * median(values));
    }
    fmt::print("\n");
  }
}

int run(std::string_view name, int count, bool prints) {
  const BenchWorkload& workload = find_workload(name);
  const int threads = usable_cores();
  TimedSteps steps = workload_steps(workload, {.batch = workload.batch,
                                               .sequence = workload.sequence,
                                               .steps = count,
                                               .threads = threads,
                                               .batch_tiles = BatchTileOptions{}});
  for (int i = 0; i < kWarmUp; ++i) steps.run();
  std::vector<std::vector<Shares>> shares(static_cast<std::size_t>(threads));
  Timeline timeline(threads);
  for (int i = 0; i < count; ++i) {
    timeline.clear();
    Subscription listens = steps.executor().listen(timeline);
    const std::int64_t begin = Timeline::now();
    steps.run(&timeline);
    const Interval step{begin, Timeline::now()};
    listens = {};
    timeline.close();
    for (int t = 0; t < threads; ++t) {
      shares[static_cast<std::size_t>(t)].push_back(shares_of(timeline, t, step));
    }
    if (!prints || i + 1 < count) continue;
    print(timeline, threads, step, steps.compiled().program);
    print_gaps(timeline, threads, step);
  }
  print_shares(name, shares);
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
