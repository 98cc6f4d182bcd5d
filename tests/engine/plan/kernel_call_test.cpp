// What a kernel reports and what a library throws inside of it: an error that names the node,
// whoever calls the kernel.
#include "engine/plan/kernel_call.h"

#include <doctest/doctest.h>

#include <array>
#include <new>
#include <stdexcept>
#include <string_view>

#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/exec/reference.h"
#include "engine/plan/batch_tiles.h"
#include "engine/plan/lower.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kThreeOps =
    "(float[8,4] x) => (float[8,4] y) { a = Exp(x) b = Tanh(a) y = Sigmoid(b) }";

Support throws_in_supports(const PrepareArgs&) { throw std::runtime_error("no such case"); }
Prepared throws_in_prepare(const PrepareArgs&) { throw std::runtime_error("no such case"); }
void nothing(const RunArgs&) {}
template <DeviceStatus::Code kCode>
void reports(const RunArgs& run) {
  run.call.fail(kCode, "no such case");
  run.call.fail(DeviceStatus::Code::kFailed, "said too late");
}
constexpr Kernel kReporting{.name = "tanh.library", .run = reports<DeviceStatus::Code::kBadInput>};
void lacks_memory(const RunArgs&) { throw std::bad_alloc(); }

// The CPU with another kernel for Tanh.
DeviceHandle device_with(const Kernel& kernel) {
  KernelTable table = cpu_kernels();
  table.add("Tanh", DType::kF32, kernel);
  return cpu_with(std::move(table));
}

template <class F>
void check_names_node(const F& action, std::string_view what = "could not") {
  const std::optional<Error> error = error_of(action);
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->message() ==
        "the kernel tanh.library " + std::string(what) + " compute this: no such case");
  REQUIRE(error->context().size() == 1);
  CHECK(error->context()[0] == "node 'Tanh_1' (Tanh)");
}

void run_once(const Program& program) {
  Executor executor(program);
  executor.load_initial();
  for (const auto& [name, tensor] : random_inputs(program.graph, 5)) executor.write(name, tensor);
  executor.run_micro_step();
}

TEST_CASE("kernel call: lower names the node whose kernel a library refuses") {
  const Kernel asked{.name = "tanh.library", .supports = throws_in_supports, .run = nothing};
  const Kernel made{.name = "tanh.library", .prepare = throws_in_prepare, .run = nothing};
  for (const Kernel& kernel : {asked, made}) {
    const auto lowers = [&] { (void)lower(graph(kThreeOps), device_with(kernel), {}); };
    check_names_node(lowers, "cannot");
    CHECK(error_of(lowers)->unsupported());
  }
}

TEST_CASE("kernel call: a step names the node, in sections on several threads too") {
  Program program = lower(graph(kThreeOps), device_with(kReporting), {.threads = 2});
  check_names_node([&] { run_once(program); });
  REQUIRE(add_batch_tiles(program));
  check_names_node([&] { run_once(program); });
}

TEST_CASE("kernel call: a run node by node names the node") {
  const Graph three = graph(kThreeOps);
  const DeviceHandle device = device_with(kReporting);
  const Evaluate evaluate = evaluator(op_table(), device->kernels());
  check_names_node([&] { (void)reference_run(three, random_inputs(three, 5), evaluate); });
}

TEST_CASE("kernel call: what is folded before the run is left to the run") {
  const DeviceHandle device = device_with(kReporting);
  const Evaluate evaluate = evaluator(op_table(), device->kernels(), {.limit = kKnownValuesLimit});
  const Tensor x = floats({1}, {1});
  CHECK(evaluate(op_table().get("Tanh"), {}, {&x}, {x.type()}).empty());
}

TEST_CASE("kernel call: a work that is replayed or timed reports too") {
  const DeviceHandle device = cpu_device();
  const Params params = NoParams{};
  const RunArgs args{.params = params, .inputs = {}, .outputs = {}};
  double seconds = 0.0;
  CHECK(device->time(kReporting, args, &seconds).message == "no such case");
  std::unique_ptr<CapturedWork> work;
  REQUIRE(device->begin_capture().done());
  REQUIRE(device->launch(kComputeStream, kReporting, args).done());
  REQUIRE(device->end_capture(&work).done());
  CHECK(device->replay(*work).message == "no such case");
}

TEST_CASE("kernel call: out of memory stays what it is") {
  const auto run = [](const Kernel& kernel) {
    run_once(lower(graph(kThreeOps), device_with(kernel), {}));
  };
  CHECK_THROWS_AS(run({.name = "tanh.library", .run = lacks_memory}), std::bad_alloc);
  const Kernel tells{.name = "tanh.library", .run = reports<DeviceStatus::Code::kOutOfMemory>};
  CHECK(error_of([&] { run(tells); })->code() == ErrorCode::kOutOfMemory);
}

TEST_CASE("kernel call: integers have no NaN to say that an index is outside") {
  const Program program = lower(
      graph("(int64[3] x, int64[2] i) => (int64[2] y) { y = Gather(x, i) }"), cpu_device(), {});
  const auto look_up = [&](std::int64_t index) {
    Executor executor(program);
    executor.write("x", Tensor::ints(std::array<std::int64_t, 3>{4, 5, 6}));
    executor.write("i", Tensor::ints(std::array{std::int64_t{0}, index}));
    executor.run_micro_step();
    return executor.read("y").values<std::int64_t>()[1];
  };
  CHECK(look_up(-1) == 6);
  const std::optional<Error> error = error_of([&] { look_up(3); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(contains(error->message(), "the index 3 is outside of an axis of 3"));
}

}  // namespace
}  // namespace trainscope::test
