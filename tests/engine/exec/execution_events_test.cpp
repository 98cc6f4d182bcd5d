// Events of execution: what they tell, in which order, and that they change nothing.
#include "engine/exec/execution_events.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

// All that happens, a line each.
struct Lines final : ExecutionEvents {
  explicit Lines(bool calls = true) : has_calls(calls) {}
  bool wants_calls() const override { return has_calls; }
  bool has_calls;
  std::vector<std::string> lines;
  void part_begin(StepPart part) override {
    lines.push_back(part == StepPart::kUpdate ? "update" : "micro-step");
  }
  void part_end(StepPart) override { lines.emplace_back("end"); }
  void part_failed(StepPart) override { lines.emplace_back("failed"); }
  void call_begin(const CallEvent& event) override {
    lines.push_back(fmt::format("call {}", static_cast<int>(event.call)));
  }
  void call_end(const CallEvent& event) override {
    lines.push_back(fmt::format("done {}", static_cast<int>(event.call)));
  }
  void copy_begin(const CopyEvent& event) override {
    lines.push_back(fmt::format("{} {}", name_of(event.kind), event.bytes));
  }
};

constexpr std::string_view kTwoCalls =
    "(float[2] x) => (float[2] y) <float[2] w = {10, 100}> { a = Mul(x, w)  y = Neg(a) }";

// Which buffers are alive, as the events say, compared with the plan at each call.
struct Alive final : ExecutionEvents {
  explicit Alive(const Program& of) : program(of) {}
  const Program& program;
  std::set<BufferId> alive;
  int wrong = 0;
  int calls = 0;

  void memory_bound(std::int64_t, std::span<const BufferId> buffers) override {
    for (const BufferId id : buffers) wrong += !alive.insert(id).second;
  }
  void memory_freed(std::int64_t, std::span<const BufferId> buffers) override {
    for (const BufferId id : buffers) wrong += alive.erase(id) == 0;
  }
  void call_begin(const CallEvent& event) override {
    const std::int64_t time = program.call(event.call).time;
    std::set<BufferId> planned;
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const PlannedBuffer& buffer = program.buffers[i];
      const bool lives = buffer.begin <= time && time < buffer.end;
      if (lives && !buffer.persistent && !buffer.external) {
        planned.insert(BufferId(static_cast<int>(i)));
      }
    }
    wrong += planned != alive;
    ++calls;
  }
  bool one_at_a_time() const override { return true; }
  bool wants_memory() const override { return true; }
};

}  // namespace

TEST_CASE("events: copies and calls in the order in which they happen, told to each listener") {
  const Program program = lower(graph(kTwoCalls), test_device(), {});
  Executor executor(program);
  executor.load_initial();
  Lines first;
  Lines second;
  Subscription first_listens = executor.listen(first);
  Subscription second_listens = executor.listen(second);
  executor.write("x", floats({2}, {1, 2}));
  executor.run_micro_step();
  executor.run_update();
  (void)executor.read("y");
  CHECK(first.lines == std::vector<std::string>{"bind 8", "micro-step", "call 0", "done 0",
                                                "call 1", "done 1", "end", "update", "end",
                                                "read 8"});
  CHECK(second.lines == first.lines);
  first_listens = {};
  executor.run_micro_step();
  CHECK(first.lines.size() == 10);
  CHECK(second.lines.size() == 16);
  second_listens = {};
}

struct NotingTracer final : DeviceTracer {
  std::string text;
  void at_call(std::uint32_t call) override {
    text += call == kOutsideTracedCalls ? "- " : fmt::format("{} ", call);
  }
  DeviceStatus start(const TraceWishes& /*wishes*/) override { return {}; }
  DeviceStatus stop() override { return {}; }
  DeviceStatus take(TraceReader& /*reader*/) override { return {}; }
};

TEST_CASE("events: who wants no calls leaves steps to be replayed, and hears of parts and copies") {
  const auto device = std::make_shared<CopyingDevice>(CopyingOptions{.replays = true});
  Executor executor(lower(graph(kTwoCalls), device, {}));
  executor.load_initial();
  Lines listener(false);
  Subscription listens = executor.listen(listener);
  CHECK(executor.replays());
  const auto step = [&] {
    executor.write("x", floats({2}, {1, 2}));
    executor.run_micro_step();
  };
  step();
  step();
  CHECK(device->replayed() == 2);
  CHECK(listener.lines ==
        std::vector<std::string>{"bind 8", "micro-step", "end", "bind 8", "micro-step", "end"});
  Lines wants_calls;
  Subscription other = executor.listen(wants_calls);
  CHECK_FALSE(executor.replays());
  step();
  CHECK(device->replayed() == 2);
  CHECK(listener.lines.size() == 13);  // told of its two calls as well
  other = {};
  step();
  CHECK(device->replayed() == 3);
}

TEST_CASE("events: a tracer is told of each call as it is captured or given to the device") {
  const auto device = std::make_shared<CopyingDevice>(CopyingOptions{.replays = true});
  Executor executor(lower(graph(kTwoCalls), device, {}));
  executor.load_initial();
  NotingTracer tracer;
  const auto step = [&] {
    tracer.text.clear();
    executor.write("x", floats({2}, {1, 2}));
    executor.run_micro_step();
    return tracer.text;
  };
  CHECK(step() == "");
  executor.trace(&tracer);
  CHECK(step() == "0 1 - ");  // captured anew
  CHECK(step() == "");        // replayed
  Lines wants_calls;
  Subscription listens = executor.listen(wants_calls);
  CHECK(step() == "0 - 1 - - ");  // what listeners do between calls is none of them
  executor.trace(nullptr);
  CHECK(step() == "");
}

TEST_CASE("events: buffers are bound and freed as the plan has them") {
  for (const std::string name : {"mlp", "gpt2", "resnet18"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    Session session(reference.model, reference.options(GraphMode::kTrain));
    Trainer trainer(session.shared_executor(), 1);
    Cycle batches(reference.batches);
    Alive alive(session.compiled().program);
    Subscription listens = session.executor().listen(alive);
    for (std::int64_t step = 1; step <= 2; ++step) {
      trainer.run_step(step, 1e-3, batches);
      CHECK(alive.alive.empty());
    }
    listens = {};
    CHECK(alive.wrong == 0);
    CHECK(alive.calls == 2 * static_cast<int>(session.compiled().program.calls.size()));
  }
}

TEST_CASE("events: each micro-batch binds its own, a cursor loses nothing") {
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.training.micro_batches = 2;
  Session session(reference.model, options);
  Executor& executor = session.executor();
  Trainer trainer(session.shared_executor(), 2);
  Cycle batches(reference.batches);
  const Program& program = session.compiled().program;
  Alive alive(program);
  Subscription listens = executor.listen(alive);
  for (std::int64_t step = 1; step <= 2; ++step) trainer.run_step(step, 1e-3, batches);
  CHECK(alive.wrong == 0);
  CHECK(alive.alive.empty());
  // A third step, a call at a time.
  alive.calls = 0;
  for (std::size_t i = 0; i <= program.calls.size(); ++i) {
    executor.run_until(CallId(static_cast<std::int32_t>(i)));
  }
  executor.run_update();
  listens = {};
  CHECK(alive.wrong == 0);
  CHECK(alive.alive.empty());
  CHECK(alive.calls == static_cast<int>(program.calls.size()));
}

TEST_CASE("events: a call that fails ends its part, and the next step begins anew") {
  KernelTable kernels;
  for (const KernelTable::Row& row : cpu_kernels().rows()) {
    kernels.add(row.op, row.dtype, row.kernel);
  }
  static bool fails = true;
  const auto run = [](const RunArgs& args) {
    if (fails) args.call.fail(DeviceStatus::Code::kFailed, "no");
    args.outputs[0].as<float>()[0] = 7;
  };
  kernels.add("Neg", DType::kF32, {.name = "neg.failing", .run = run});
  const Program program = lower(graph(kTwoCalls), cpu_with(std::move(kernels)), {});
  Executor executor(program);
  executor.load_initial();
  Lines lines;
  Subscription listens = executor.listen(lines);
  CHECK(contains(refusal_of([&] { executor.run_micro_step(); }), "neg.failing"));
  CHECK(lines.lines.back() == "failed");
  CHECK(executor.cursor() == CallId{0});
  fails = false;
  executor.run_micro_step();
  CHECK(lines.lines.back() == "end");
  listens = {};
}

TEST_CASE("events: a subscription ends with itself, moves, and outlives neither side") {
  const Program program = lower(graph(kTwoCalls), test_device(), {});
  auto executor = std::make_unique<Executor>(program);
  executor->load_initial();
  executor->write("x", floats({2}, {1, 2}));
  Lines lines;
  const auto shared = std::make_shared<Lines>();
  Subscription of_shared = executor->listen(shared);
  CHECK(shared.use_count() == 2);
  Subscription kept;
  CHECK_FALSE(kept);
  {
    Subscription ends = executor->listen(lines);
    CHECK(ends);
    kept = std::move(ends);
  }
  CHECK(kept);
  executor->run_micro_step();
  const std::size_t told = lines.lines.size();
  CHECK(told > 0);
  CHECK(shared->lines == lines.lines);
  kept = {};
  executor->run_micro_step();
  CHECK(lines.lines.size() == told);
  CHECK(shared->lines.size() == 2 * told);
  executor.reset();  // before what listened to it
  of_shared = {};
  CHECK(shared.use_count() == 1);
}

TEST_CASE("executor: a cursor stops before any call, and the step goes on from there") {
  const Program program = lower(graph(kTwoCalls), test_device(), {});
  Executor executor(program);
  executor.load_initial();
  executor.write("x", floats({2}, {1, 2}));
  CHECK(executor.cursor() == CallId{0});
  executor.run_until(CallId{1});
  CHECK(executor.cursor() == CallId{1});
  const Tensor a = executor.read("a");
  CHECK(std::vector<float>(a.values<float>().begin(), a.values<float>().end()) ==
        std::vector<float>{10, 200});
  CHECK(contains(refusal_of([&] { executor.run_until(CallId{0}); }), "call 0 is not between"));
  CHECK(contains(refusal_of([&] { executor.run_until(CallId{9}); }), "call 9 is not between"));
  CHECK(contains(refusal_of([&] { executor.run_update(); }), "another part of the step"));
  executor.run_micro_step();
  const Tensor y = executor.read("y");
  CHECK(std::vector<float>(y.values<float>().begin(), y.values<float>().end()) ==
        std::vector<float>{-10, -200});
  CHECK(executor.cursor() == CallId{0});
}

}  // namespace trainscope::test
