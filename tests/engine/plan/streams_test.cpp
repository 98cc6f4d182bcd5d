// Streams of a program: which calls are transfers, and what waits for what.
#include "engine/plan/streams.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/ir/builder.h"
#include "engine/plan/batch_tiles.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/program_check.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kElements = 256;

// x -> a -> b -> c -> d -> e, and a waits in host memory until y = d + a, if anything reads it
// then.
Graph with_offload(bool fetched) {
  Graph graph;
  Builder b(graph, op_table());
  b.set_provenance({.sources = {"test"}, .pass = "test"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {kElements}});
  const ValueId a = b("Exp", {x});
  const ValueId stored = b("Offload", {a});
  ValueId last = b("Tanh", {a});
  for (int i = 0; i < 3; ++i) last = b("Sigmoid", {last});
  graph.outputs = {last};
  if (!fetched) {
    graph.outputs = {last, stored, a};  // nothing may overwrite a
    return graph;
  }
  const ValueId back = b("Fetch", {stored});
  graph.outputs = {b("Add", {last, back})};
  return graph;
}

const Call* call_of(const Program& program, std::string_view op) {
  const auto found = std::ranges::find_if(program.calls, [&](const Call& call) {
    return program.graph.node(call.node).op->name == op;
  });
  return found == program.calls.end() ? nullptr : &*found;
}

// The ops of the calls that it waits for.
std::vector<std::string> awaited(const Program& program, std::string_view op) {
  std::vector<std::string> ops;
  for (const CallId id : call_of(program, op)->waits) {
    ops.emplace_back(program.graph.node(program.call(id).node).op->name);
  }
  return ops;
}

Tensor result_of(const Program& program) {
  Executor executor(program);
  executor.load_initial();
  for (const auto& [name, tensor] : random_inputs(program.graph, 3)) executor.write(name, tensor);
  executor.run_micro_step();
  return executor.read(program.graph.value(program.graph.outputs[0]).name);
}

using Ops = std::vector<std::string>;

}  // namespace

TEST_CASE("streams: a transfer waits for what makes its value, and its reader for it") {
  const Program program = lower(with_offload(true), test_device(), {});
  CHECK(call_of(program, "Offload")->kind == CallKind::kTransfer);
  CHECK(call_of(program, "Offload")->stream == kTransferStream);
  CHECK(call_of(program, "Fetch")->stream == kTransferStream);
  CHECK(awaited(program, "Offload") == Ops{"Exp"});
  CHECK(awaited(program, "Add") == Ops{"Fetch"});
  CHECK(awaited(program, "Tanh") == Ops{"Offload"});  // it is in a's bytes
  CHECK(call_of(program, "Sigmoid")->waits.empty());
  check_placements(program);
}

TEST_CASE("streams: a transfer that nothing waits for stays with the kernels") {
  const Program program = lower(with_offload(false), test_device(), {});
  CHECK(call_of(program, "Offload")->kind == CallKind::kTransfer);
  for (const Call& call : program.calls) {
    CHECK(call.stream == kComputeStream);
    CHECK(call.waits.empty());
  }
}

TEST_CASE("streams: programs without host memory have one stream") {
  const Program program =
      lower(graph("(float[4] x) => (float[4] y) { a = Exp(x) y = Neg(a) }"), test_device(), {});
  for (const Call& call : program.calls) CHECK(call.stream == kComputeStream);
}

TEST_CASE("streams: each wait is needed") {
  const Tensor right = result_of(lower(with_offload(true), cpu_device(), {}));
  const auto run = [&](Timing timing, std::int64_t skipped) {
    const auto device =
        std::make_shared<CopyingDevice>(CopyingOptions{.timing = timing, .skipped_wait = skipped});
    const Tensor result = result_of(lower(with_offload(true), device, {}));
    return std::pair(difference(result, right) == 0.0, device->waits());
  };
  std::int64_t waits = 0;
  for (const Timing timing : {Timing::kTransfersLate, Timing::kTransfersEarly}) {
    const auto [same, asked] = run(timing, -1);
    CHECK(same);
    waits = asked;
  }
  REQUIRE(waits >= 2);
  for (std::int64_t wait = 0; wait < waits; ++wait) {
    CAPTURE(wait);
    const bool late = run(Timing::kTransfersLate, wait).first;
    const bool early = run(Timing::kTransfersEarly, wait).first;
    CHECK(!(late && early));
  }
}

namespace {

// A section that waits: Tanh's tiles are in the bytes that the transfer reads.
Program tiled_with_offload(DeviceHandle device) {
  Program program = lower(with_offload(true), std::move(device), {.threads = 2});
  REQUIRE(add_batch_tiles(program, {.least_share = 0.0}));
  return program;
}

bool waits(const Program& program, const TiledSection& section) {
  bool any = false;
  for (auto i = static_cast<int>(section.begin); i < static_cast<int>(section.end); ++i) {
    any = any || !program.call(CallId(i)).waits.empty();
  }
  return any;
}

}  // namespace

TEST_CASE("streams: each wait of a section is needed, and asked for before its tiles") {
  const Tensor right = result_of(lower(with_offload(true), cpu_device(), {}));
  const auto run = [&](Timing timing, std::int64_t skipped) {
    const auto device =
        std::make_shared<CopyingDevice>(CopyingOptions{.timing = timing, .skipped_wait = skipped});
    const Program program = tiled_with_offload(device);
    REQUIRE(std::ranges::any_of(
        program.sections, [&](const TiledSection& section) { return waits(program, section); }));
    const Tensor result = result_of(program);
    return std::pair(difference(result, right) == 0.0, device->waits());
  };
  std::int64_t asked = 0;
  for (const Timing timing : {Timing::kTransfersLate, Timing::kTransfersEarly}) {
    const auto [same, waits] = run(timing, -1);
    CHECK(same);
    asked = waits;
  }
  REQUIRE(asked >= 2);
  for (std::int64_t wait = 0; wait < asked; ++wait) {
    CAPTURE(wait);
    const bool late = run(Timing::kTransfersLate, wait).first;
    const bool early = run(Timing::kTransfersEarly, wait).first;
    CHECK(!(late && early));
  }
}

TEST_CASE("streams: the first bad tensor is found behind transfers that are late") {
  const auto device = std::make_shared<CopyingDevice>();
  const Program program = lower(with_offload(true), device, {});
  Executor executor(program);
  executor.load_initial();
  Tensor x(program.graph.value(program.graph.find("x")).type);
  for (float& element : x.values<float>()) element = 1000;  // its exponential is infinite
  executor.write("x", x);
  const std::optional<BadTensor> bad = executor.find_bad_tensor();
  REQUIRE(bad);
  CHECK(bad->op == "Exp");
  CHECK(bad->infinite == kElements);
  // As far as the transfer to the host: its elements are there, not those of the step before.
  for (float& element : x.values<float>()) element = 0;
  executor.write("x", x);
  const auto offload = call_of(program, "Offload") - program.calls.data();
  executor.run_until(CallId(static_cast<std::int32_t>(offload) + 1));
  const Tensor stored = executor.read(
      program.graph.value(program.calls[static_cast<std::size_t>(offload)].outputs[0].value).name);
  CHECK(stored.values<float>()[0] == 1.0F);
}

TEST_CASE("streams: where they are captured and replayed, the waits hold in each replay") {
  for (const Timing timing : {Timing::kTransfersLate, Timing::kTransfersEarly}) {
    const auto device =
        std::make_shared<CopyingDevice>(CopyingOptions{.timing = timing, .replays = true});
    const Program program = lower(with_offload(true), device, {});
    Executor executor(program);
    executor.load_initial();
    const Program plain = lower(with_offload(true), cpu_device(), {});
    Executor reference(plain);
    reference.load_initial();
    const std::string& y = program.graph.value(program.graph.outputs[0]).name;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      for (Executor* each : {&executor, &reference}) {
        for (const auto& [name, tensor] : random_inputs(program.graph, seed)) {
          each->write(name, tensor);
        }
        each->run_micro_step();
      }
      CHECK(difference(executor.read(y), reference.read(y)) == 0.0);
    }
    CHECK(device->replayed() == 3);
  }
}

TEST_CASE("streams: a replay that fails ends the step, and the next one begins at its first call") {
  Graph g =
      graph("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(w, x)  n = Add(w, x) }");
  g.updates.push_back({.state = g.find("w"), .value = g.find("n")});
  g.node(g.value(g.find("n")).producer).phase = Phase::kUpdate;
  const auto device =
      std::make_shared<CopyingDevice>(CopyingOptions{.replays = true, .failing_replay = 1});
  Executor executor(lower(g, device, {}));
  executor.load_initial();
  executor.write("x", floats({2}, {10, 20}));
  executor.run_micro_step();
  CHECK_THROWS_WITH(executor.run_update(), "the device failed: no");
  CHECK(executor.cursor() == CallId{0});
  executor.write("x", floats({2}, {100, 200}));
  executor.run_micro_step();
  CHECK(difference(executor.read("y"), floats({2}, {100, 400})) == 0.0);
}

}  // namespace trainscope::test
