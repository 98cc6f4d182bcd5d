// A complete timeline: what each thread does in a step of training is told by events of its own.
#include "tests/support/timeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <istream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/printed_timeline.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

constexpr int kThreads = 2;

using Spans = std::vector<Timeline::Span>;

// A step of a model on two threads, and what a listener saw of it.
struct Watched {
  explicit Watched(std::string_view name)
      : reference(name),
        session(reference.model, options(reference)),
        trainer(session.shared_executor(), 1),
        batches(reference.batches) {
    trainer.run_step(1, 1e-3, batches);
    Subscription listens = session.executor().listen(timeline);
    begin = Timeline::now();
    trainer.run_step(2, 1e-3, batches, &timeline);
    end = Timeline::now();
    listens = {};
    timeline.close();
  }
  const Program& program() { return session.compiled().program; }
  const Spans& spans(int thread) const { return timeline.spans[static_cast<std::size_t>(thread)]; }

  static CompileOptions options(const ReferenceModel& reference) {
    CompileOptions options = reference.options(GraphMode::kTrain, {.threads = kThreads});
    options.batch_tiles = BatchTileOptions{.least_share = 0.0, .most_growth = 1e9};
    return options;
  }

  ReferenceModel reference;
  Session session;
  Trainer trainer;
  Cycle batches;
  Timeline timeline{kThreads};
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::string_view what(const Spans& spans, int i) {
  return i < 0 ? "" : spans[static_cast<std::size_t>(i)].what;
}

// Where one state of a thread ends and the next begins by the same event, within a call too.
bool hands_over(std::string_view before, std::string_view after) {
  static const std::set<std::pair<std::string_view, std::string_view>> kStates{
      {"start", "work"}, {"start", "tile"},   {"idle", "work"},
      {"idle", "tile"},  {"work", "join"},    {"tile", "join"},
      {"join", "idle"},  {"idle", "library"}, {"library", "idle"},
  };
  return kStates.contains({before, after});
}

// Between calls the executor itself works: on thread 0, and within a batch tile.
bool is_between_calls(int thread, std::string_view around) {
  return around == "tile" || (thread == 0 && (around.empty() || around == "section"));
}

// Whether the thread is somewhere at each moment: in one of the calls, copies and waits for data,
// or in a state; or one state becomes the next.
bool has_cause(const Spans& spans, const TimelinePiece& piece) {
  return piece.span >= 0 || hands_over(what(spans, piece.before), what(spans, piece.after));
}

void check_nesting(const Spans& spans) {
  std::vector<const Timeline::Span*> open;
  std::int64_t last = 0;
  for (const Timeline::Span& span : spans) {
    CHECK(last <= span.begin);
    CHECK(span.begin <= span.end);
    last = span.begin;
    while (!open.empty() && open.back()->end <= span.begin) open.pop_back();
    CHECK((open.empty() || span.end <= open.back()->end));
    open.push_back(&span);
  }
}

// A step as printed by PrintedTimeline, read again: each line is of one thread, and goes on from
// the one before it.
struct PrintedStep {
  explicit PrintedStep(std::istream& text) {
    std::string line;
    while (std::getline(text, line)) add(std::istringstream(line));
  }
  std::map<int, std::vector<std::string>> open;  // by thread: what has begun and not ended
  std::map<int, std::string> state;              // by thread
  std::map<int, int> states;                     // by thread: lines that tell of its state
  std::map<int, int> calls;                      // by call: how often it has ended
  int wrong = 0;                                 // lines that do not fit those before
  std::int64_t last = 0;

  void add(std::istringstream line) {
    std::int64_t time = 0;
    int thread = 0;
    std::string word;
    std::string what;
    int id = 0;
    line >> time >> what >> thread >> word;
    wrong += time < last || what != "thread";
    last = time;
    if (word != "begin" && word != "end") {
      state[thread] = word;
      ++states[thread];
      return;
    }
    line >> what >> id;
    const std::string name = what + std::to_string(id);
    std::vector<std::string>& within = open[thread];
    if (word == "begin") return within.push_back(name);
    wrong += within.empty() || within.back() != name;
    if (!within.empty()) within.pop_back();
    if (what == "call") ++calls[id];
  }
};

std::int64_t count(const Spans& spans, std::string_view of) {
  return std::ranges::count(spans, of, &Timeline::Span::what);
}

}  // namespace

TEST_CASE("timeline: spans of a thread nest, and name all of its time but what lies between calls" *
          doctest::test_suite("cpu")) {
  std::map<std::string_view, std::int64_t> seen;
  for (const std::string name : {"gpt2", "resnet18", "lenet"}) {
    Watched watched(name);
    for (int thread = 0; thread < kThreads; ++thread) {
      CAPTURE(name);
      CAPTURE(thread);
      const Spans& spans = watched.spans(thread);
      check_nesting(spans);
      std::int64_t without_cause = 0;
      for (const TimelinePiece& piece : pieces_of(spans, watched.begin, watched.end)) {
        if (has_cause(spans, piece)) continue;
        const std::string_view around = what(spans, piece.around);
        if (is_between_calls(thread, around)) continue;
        MESSAGE("'" << what(spans, piece.before) << "' and '" << what(spans, piece.after)
                    << "' within '" << around << "'");
        ++without_cause;
      }
      CHECK(without_cause == 0);
      for (const Timeline::Span& span : spans) ++seen[span.what];
    }
    // Each region is started by thread 0, and joined by all that it had.
    const std::int64_t regions = count(watched.spans(0), "start");
    CHECK(regions > 0);
    for (int thread = 0; thread < kThreads; ++thread) {
      const Spans& spans = watched.spans(thread);
      CHECK(count(spans, "work") + count(spans, "tile") == regions);
      CHECK(count(spans, "join") == regions);
    }
  }
  for (const std::string_view kind :
       {"call", "section", "tile", "work", "start", "join", "idle", "bind", "read"}) {
    CAPTURE(kind);
    CHECK(seen[kind] > 0);
  }
}

TEST_CASE("timeline: each call of the program once a step, on the thread of its batch tile" *
          doctest::test_suite("cpu")) {
  for (const std::string name : {"gpt2", "resnet18", "lenet"}) {
    CAPTURE(name);
    Watched watched(name);
    std::vector<int> times(watched.program().calls.size(), 0);
    for (int thread = 0; thread < kThreads; ++thread) {
      for (const Timeline::Span& span : watched.spans(thread)) {
        if (span.what != "call") continue;
        ++times[static_cast<std::size_t>(span.id)];
        const Call& call = watched.program().call(CallId(static_cast<std::int32_t>(span.id)));
        CHECK(thread == std::max(call.tile, 0));
      }
    }
    CHECK(std::ranges::count(times, 1) == std::ssize(times));
  }
}

TEST_CASE("timeline: a listener of forty lines prints every call and what each thread is at" *
          doctest::test_suite("cpu")) {
  for (const std::string name : {"gpt2", "resnet18", "lenet"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    Session session(reference.model, Watched::options(reference));
    Trainer trainer(session.shared_executor(), 1);
    Cycle batches(reference.batches);
    std::stringstream text;
    PrintedTimeline timeline(text);
    Subscription listens = session.executor().listen(timeline);
    trainer.run_step(1, 1e-3, batches);
    listens = {};
    PrintedStep printed(text);
    CHECK(printed.wrong == 0);
    CHECK(printed.calls.size() == session.compiled().program.calls.size());
    for (const auto& [call, times] : printed.calls) CHECK(times == 1);
    CHECK(printed.states.size() == kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      CHECK(printed.open[thread].empty());
      CHECK(printed.states[thread] > 3);
      CHECK(printed.state[thread] == (thread == 0 ? "caller" : "idle"));
    }
  }
}

}  // namespace trainscope::test
